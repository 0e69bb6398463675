"""The code of the documentation runs, and prints the text that is shown for it."""

import importlib
import importlib.util
import math
import re
import sys
import warnings
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
import torch

ROOT = Path(__file__).parent.parent
PAGES = sorted([*(ROOT / "docs").glob("*.md"), *(ROOT / "docs/guides").glob("*.md")])
PAGES = [page for page in PAGES if not page.name.startswith("_")]
HOSTS = {"dice.md": "dice_ml", "alibi.md": "alibi", "many-rows.md": "dask.dataframe"}
INCLUDE = re.compile(r"^```\{include\} (\S*_start\.md)\n```$", re.M)
BLOCK = re.compile(r"^```(python|text|\{raw\} html\n:file:)\s(.*?)^```$", re.M | re.S)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def script(name):
    """A script of the documentation, as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / f"docs/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def shown(page, kind, text):
    """What a page shows as printed and as displayed by a block of code, None where nothing."""
    if kind.startswith("{raw}"):
        return None, (page.parent / text.strip()).read_text("utf8")
    return (text if kind == "text" else None), None


def blocks(page):
    """The code blocks of a page with the outputs shown for each."""
    text = INCLUDE.sub(lambda m: (page.parent / m[1]).read_text("utf8"), page.read_text("utf8"))
    found = [*BLOCK.findall(text), ("end", "")]
    return [
        (code, shown(page, follows, output))
        for (kind, code), (follows, output) in pairwise(found)
        if kind == "python"
    ]


def alike(expected, printed):
    """Whether two texts have the same words and about the same numbers."""
    if NUMBER.sub("#", expected).split() != NUMBER.sub("#", printed).split():
        return False
    pairs = zip(NUMBER.findall(expected), NUMBER.findall(printed), strict=True)
    return all(math.isclose(float(a), float(b), rel_tol=0.1, abs_tol=0.02) for a, b in pairs)


def run(code, outputs, name, namespace):
    for expected, found in zip(outputs, script("outputs").displayed(code, namespace), strict=True):
        if expected is not None:
            assert alike(expected, found), f"{name} should give\n{expected}\nand gives\n{found}"


@pytest.mark.ci
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda p: p.name)
def test_code_on_a_page_runs_from_the_top(page, tmp_path, monkeypatch, caplog):
    if page.name in HOSTS:
        pytest.importorskip(HOSTS[page.name])
    monkeypatch.chdir(tmp_path)
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)  # its classes can be pickled
    namespace = module.__dict__
    with warnings.catch_warnings():
        for i, (code, outputs) in enumerate(blocks(page)):
            run(code, outputs, f"{page.name}, block {i + 1}", namespace)
    logged = [
        record.message for record in caplog.records if record.name == "dear_plugin.data.sensitive"
    ]
    assert not logged, f"{page.name}: {logged}"
    if page.name == "dice.md":
        namespace["dear_dice"].unregister()


def dice_namespace():
    """A frame, a torch model of DiCE's encoding, a query."""
    pytest.importorskip("dice_ml")
    rng = np.random.default_rng(0)
    hours, sector = rng.integers(10, 60, 1200), rng.choice(["a", "b"], 1200)
    frame = pd.DataFrame({"hours": hours, "sector": sector})
    frame["approved"] = (frame["hours"] + 5 * (sector == "a") > 35).astype(int)
    net = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Sigmoid())
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[8.0, 1.0, 0.0]]))
        net[0].bias.fill_(-4.5)
    query = frame[frame["hours"] < 25][["hours", "sector"]].head(2)
    return {"frame": frame, "net": net, "query": query}


def alibi_namespace():
    """Label-encoded rows, their names and categories, a predictor."""
    pytest.importorskip("alibi")
    rng = np.random.default_rng(0)
    X = np.stack([rng.integers(10, 60, 1200), rng.integers(0, 2, 1200)], 1).astype(float)

    def predictor(rows):
        p = 1 / (1 + np.exp(-(rows[:, 0] - 35) / 5))
        return np.stack([1 - p, p], 1)

    names, maps = ["Hours per week", "Sex"], {1: ["female", "male"]}
    few = X[(X[:, 0] > 27) & (X[:, 0] < 34)][:5]
    return {"X_train": X, "X": few, "names": names, "maps": maps, "predictor": predictor}


NAMESPACES = [dict, dice_namespace, alibi_namespace]


@pytest.mark.parametrize("block", range(3), ids=["engine", "dice", "alibi"])
def test_code_in_the_readme_runs_with_the_names_it_uses(block, monkeypatch):
    code, outputs = blocks(ROOT / "README.md")[block]
    with warnings.catch_warnings():
        if block:
            warnings.simplefilter("ignore", FutureWarning)
        run(code, outputs, f"README, block {block + 1}", NAMESPACES[block]())
    if block == 1:
        import dear_dice

        dear_dice.unregister()


def test_tables_in_the_readme_equal_the_results():
    readme = script("readme")
    text = (ROOT / "README.md").read_text("utf8")
    assert readme.filled(text) == text, "run: python docs/readme.py"


def links(page):
    """The files that a page links to, relative to it."""
    found = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text("utf8"))
    return [page.parent / target for target in found]


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_linked_files_exist(name):
    missing = [str(target) for target in links(ROOT / name) if not target.exists()]
    assert not missing


def test_pages_that_show_indirect_changes_call_them_associations():
    for page in PAGES:
        text = page.read_text("utf8")
        if "describe(" in text or "expected to move" in text:
            assert re.search(r"associations?\b", text), (
                f"{page.name} does not call them associations"
            )


PUBLIC = ("", ".baselines", ".datasets", ".decoders", ".plots")


def public_classes():
    """The classes of the package's own `__all__` lists, by name."""
    modules = [importlib.import_module(f"dear_plugin{name}") for name in PUBLIC]
    members = {name: getattr(module, name) for module in modules for name in module.__all__}
    return {name: member for name, member in members.items() if isinstance(member, type)}


def test_every_public_class_has_an_example():
    without = [name for name, kind in public_classes().items() if ">>>" not in str(kind.__doc__)]
    assert not without, f"these docstrings have no example: {without}"
