"""The folders of dear_plugin import in one direction; adapters use only its public names.

Source files are parsed, so that imports inside functions and behind TYPE_CHECKING count as well.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

import dear_plugin

ROOT = Path(__file__).parents[1]
ENGINE = ROOT / "dear_plugin"
ADAPTERS = ROOT / "adapters"

# Folders and root files; each may import those before it. A new one needs its place here. The
# first are the engine: what DEAR's own calls and saves need.
CORE = (
    "_version",
    "errors",
    "_threads",
    "_html",
    "_validation",
    "data",
    "problem",
    "models",
    "decoders",
    "evaluation",
    "search",
    "results",
    "methods",
)
# The rooms beside the kernel: what training rows say that a user could have stated, what people
# read of answers, and what `diagnose` measures.
ROOMS = ("look", "check", "tell")
BESIDE = (
    "plots",
    "datasets",
    "paper",
    "rivals",
    "page",
    "testing",
    "demo",
    "benchmark",
)
ORDER = (*CORE, *ROOMS, *BESIDE, "__main__")
# The only imports of what is beside the kernel: inside of these methods, and for their types.
ON_CALL = {
    "dear_plugin/data/infer.py": {"look": {"inferred"}},
    "dear_plugin/data/schema.py": {
        "tell": {"__repr__", "_repr_html_", "excluding", "from_toml", "to_toml"}
    },
    # What has a name in the documentation, and is no part of the kernel.
    "dear_plugin/decoders/__init__.py": {"paper": {"decoder_class"}},
    "dear_plugin/methods/answering.py": {"paper": {"_paper_solver"}},
    "dear_plugin/methods/dear.py": {"page": {"explore"}, "check": {"diagnose"}},
    # Texts are made from the answers.
    "dear_plugin/results/recourses.py": {
        "plots": {"plot"},
        "tell": {
            *("_repr_html_", "advice", "describe", "describe_row", "letter", "note", "plot"),
            *("record", "to_html"),
        },
    },
}
# Narrower than the order.
ONLY = {"datasets": {"errors"}, "plots": {"errors"}}
PACKAGE = "__init__"
USE_PACKAGE = {"benchmark", "demo", "__main__"}

HOSTS = {"dear_dice": "dice_ml", "dear_alibi": "alibi"}
USE_HOSTS = {"benchmark", "demo", "__main__"}


def sources(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def folder_of(path: Path) -> str:
    """The top folder, or the root file without its suffix."""
    return path.relative_to(ENGINE).parts[0].removesuffix(".py")


def allowed(folder: str) -> set[str]:
    """What a folder may import."""
    if folder == PACKAGE:
        return set(ORDER)
    before = set(ORDER[: ORDER.index(folder)])
    return ONLY.get(folder, before | ({PACKAGE} if folder in USE_PACKAGE else set()))


def on_call(path: Path) -> set[str]:
    """What a file of the kernel may import beside it: inside of methods, and for types."""
    own = ON_CALL.get(name(path), {})
    return {*own, *ROOMS} if own else set()


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def package(path: Path) -> list[str]:
    """The dotted name of the package that holds a source file, as a list."""
    base = ADAPTERS if path.is_relative_to(ADAPTERS) else ROOT
    return list(path.relative_to(base).parent.parts)


def imports(path: Path, part: ast.Module | None = None) -> Iterator[tuple[str, str | None]]:
    """Every import of a source file as (module, name), the name None for a plain `import`."""
    for node in ast.walk(part or tree(path)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            here = package(path) if node.level else []
            start = here[: len(here) - node.level + 1]
            module = ".".join([*start, *([node.module] if node.module else [])])
            yield from ((module, alias.name) for alias in node.names)


def top_level(path: Path) -> set[str]:
    return {module.partition(".")[0] for module, _ in imports(path)}


def folders_imported(path: Path) -> set[str]:
    """The folders that a source file imports from; `__version__` belongs to none."""
    found = set()
    for module, member in imports(path):
        head, *rest = module.split(".")
        if head != "dear_plugin" or (not rest and member == "__version__"):
            continue
        found.add(rest[0] if rest else member if member in ORDER else PACKAGE)
    return found


def modules_imported(path: Path) -> set[str]:
    """The files that a source file imports from, as dotted names; without those of `ON_CALL`."""
    base = ADAPTERS if path.is_relative_to(ADAPTERS) else ROOT
    found = set()
    whole = tree(path)
    if name(path) in ON_CALL:
        whole = ast.Module([each for each in whole.body if isinstance(each, ast.ImportFrom)], [])
    for module, member in imports(path, whole):
        for dotted in (f"{module}.{member}", module):
            file = base.joinpath(*dotted.split("."))
            if file.with_suffix(".py").is_file() or (file / "__init__.py").is_file():
                found.add(dotted)
                break
    return found


def circles(graph: Mapping[str, set[str]]) -> list[str]:
    """What is left of a graph once everything is taken off that leads to nothing left."""
    left = dict(graph)
    while done := [each for each, others in left.items() if not others & left.keys() - {each}]:
        for each in done:
            del left[each]
    return sorted(left)


def names_used(path: Path) -> Iterator[tuple[str, ...]]:
    """The dotted names of dear_plugin that a source file uses, by import or by attribute."""
    for module, member in imports(path):
        head, *rest = module.split(".")
        if head == "dear_plugin" and (rest or member):
            yield (*rest, *([member] if member else []))
    bound = {
        alias.asname or alias.name
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name == "dear_plugin"
    }
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Attribute):
            head, *rest = ast.unparse(node).split(".")
            if head in bound:
                yield tuple(rest)


def is_public(dotted: tuple[str, ...]) -> bool:
    """Whether the first name is in `dear_plugin.__all__` and no later one is private."""
    first, *rest = dotted
    return first in dear_plugin.__all__ and not any(part.startswith("_") for part in rest)


ENGINE_SOURCES = pytest.mark.parametrize("path", sources(ENGINE), ids=name)
ADAPTER_SOURCES = pytest.mark.parametrize("path", sources(ADAPTERS), ids=name)


@ENGINE_SOURCES
def test_a_folder_imports_only_from_folders_before_it(path):
    folder = folder_of(path)
    assert folder in {*ORDER, PACKAGE}, f"give {folder} its place in ORDER"
    others = folders_imported(path) - allowed(folder) - on_call(path) - {folder}
    assert not others, f"{name(path)} imports from {sorted(others)}"


@pytest.mark.parametrize("path", [ROOT / file for file in ON_CALL], ids=name)
def test_what_is_beside_the_engine_is_imported_inside_of_a_call(path):
    found = {}
    for node in (node for node in ast.walk(tree(path)) if isinstance(node, ast.FunctionDef)):
        for each in (each for each in ast.walk(node) if isinstance(each, ast.ImportFrom)):
            folder, *_ = [*(each.module or "").split(".")[1:], each.names[0].name]
            found.setdefault(folder, set()).add(node.name)
    assert found == ON_CALL[name(path)]
    typed = [each for each in ast.walk(tree(path)) if isinstance(each, ast.If)]
    assert {ast.unparse(each.test) for each in typed if each.col_offset == 0} <= {"TYPE_CHECKING"}


# What users of DEAR call, in a process of its own, and what it must not have imported by then:
# the rooms, before a text or a guess is asked for, and what is beside them, at any time.
ENGINE_CALLS = """
import logging, sys, tempfile, numpy as np, pandas as pd
from dear_plugin import DEAR, Feature, Kind, Schema
def imported(folders):
    beside = {"dear_plugin." + each for each in folders}
    return sorted(m for m in sys.modules if ".".join(m.split(".")[:2]) in beside)
rng = np.random.default_rng(0)
income, debt = rng.normal(40, 9, 400).round(), rng.gamma(2, 4, 400).round()
frame = pd.DataFrame({"income": income, "debt": debt})
model = lambda rows: 1 / (1 + np.exp(-(rows["income"] - rows["debt"] - 31) / 4))
refused = frame[model(frame) < 0.5].head(8)
ends = {name: (float(c.min()), float(c.max())) for name, c in frame.items()}
made = Schema(tuple(Feature(n, Kind.NUMERIC, ends[n], precision=0) for n in frame))
stated = {"definitions": {"owed": ["income", "debt"]}, "orders": [("debt", "owed")]}
Schema.infer(frame.assign(owed=income + debt), guess=False, **stated)
dear = DEAR(model, made).fit(frame)
found = dear.generate(refused)
found.alternatives(2), dear.apply(refused, found.direct)
i = refused.index[0]
found.actions, found.changes
with tempfile.TemporaryDirectory() as folder:
    dear.save(folder), DEAR.load(folder, model).generate(refused)
print(imported(%r))
Schema.infer(frame), dear.diagnose(frame), found.advice(), found.letter(i)
found.describe(i)
found._repr_html_(), repr(dear.schema)
print(imported(%r))
"""


@pytest.mark.ci
def test_the_engine_s_calls_import_nothing_beside_it():
    done = subprocess.run(
        [sys.executable, "-c", ENGINE_CALLS % (ROOMS, BESIDE)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.split(), done.returncode) == (["[]", "[]"], 0), done.stderr


def test_no_file_imports_itself_through_others():
    """Imports inside of functions count, as do those for types alone; but for `ON_CALL`."""
    files = sources(ENGINE) + sources(ADAPTERS)
    graph = {}
    for path in files:
        parts = [*package(path), *([] if path.stem == PACKAGE else [path.stem])]
        graph[".".join(parts)] = modules_imported(path)
    assert circles(graph) == []


@ENGINE_SOURCES
@pytest.mark.parametrize(
    ("packages", "folders"),
    [
        ({"matplotlib"}, {"plots"}),
        ({"panel", "param", "bokeh"}, {"page"}),
        ({*HOSTS, *HOSTS.values()}, USE_HOSTS),
    ],
    ids=["matplotlib", "panel", "hosts"],
)
def test_a_package_of_an_extra_is_imported_by_its_folder_only(path, packages, folders):
    assert folder_of(path) in folders or not top_level(path) & packages


@ADAPTER_SOURCES
def test_an_adapter_uses_only_public_names(path):
    private = {".".join(dotted) for dotted in names_used(path) if not is_public(dotted)}
    assert not private, f"{name(path)} uses {sorted(private)}, not in dear_plugin.__all__"


@ADAPTER_SOURCES
def test_an_adapter_imports_no_other_host(path):
    own = path.relative_to(ADAPTERS).parts[0]
    assert own in HOSTS, f"give {own} and its host a line in HOSTS"
    others = {*HOSTS, *HOSTS.values()} - {own, HOSTS[own]}
    assert not top_level(path) & others


@pytest.mark.parametrize("folder", [ENGINE, *(ADAPTERS / adapter for adapter in HOSTS)], ids=name)
def test_a_package_is_marked_as_typed(folder):
    assert (folder / "py.typed").is_file()


@pytest.mark.ci
def test_dear_plugin_imports_without_any_extra():
    absent = ["dice_ml", "alibi", "matplotlib", "dask", "distributed", "panel"]
    code = f"import sys; sys.modules.update(dict.fromkeys({absent})); import dear_plugin"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


# One name for each idea, and one home: what became a smaller idea, or was folded into another one,
# does not come back, neither as a class or function nor as a variable or attribute.
GONE = """
    ARGUMENTS Agreement Answered Answers Attempt Batch Between Candidates Claim Codes Column
    ColumnKind Computed Credibility Cyclic DecoderMethod DifferentiableDecoder Dummies Entries
    Estimator FeasibleSet Formula Given Group Inferred Joinable LATER Labelled Labels Layout Levels
    MIXED MOST_KEPT Method Move NEW Neighbourhood NewLabels OneHot Order Ordinal PER_ROW
    Plausibility QueryFormat REGISTRY RULES Ranked Relations Resolution Rounds RowKey SOLVERS Said
    Saying SearchTable Shares SpecialLevels Spread Store Sum Support Told TriedActions Trying
    Valued Waves Written _Builder _amount _computed_ones _flip_probabilities _is_log _near
    _new_values _tries _with_whole_groups change_of check_index coarser cyclic either expand_new
    has_dtype has_new holds_numbers infer_groups infer_relations is_special keep_groups leveled
    maker of_ranks remembering sayings settled subjects untried values_of_new
    with_whole_groups
"""
# In the kernel, as files and as names; elsewhere, names of a choice, of a sentence, of a row.
GONE_FILES = """
    actions advice agreement closer command definitions descriptions evidence excess exclusion
    fidelity grow html jobs joint letter lint misfit needs neighbours one_hot optimizer
    plausibility range_goal ranks record report result rows said sayings special_values stated
    summary support switched toml trying usual waves wording writing
"""
GONE_IN_KERNEL = {"NONE", "Optimizer", "Requirement", "Result", "WAYS"}


def names_in(files: list[Path]) -> set[str]:
    """The names of classes, functions, variables and attributes in source files."""
    every = (each for path in files for each in ast.walk(tree(path)))
    return {
        getattr(each, what)
        for each in every
        for kind, what in (
            ((ast.ClassDef, ast.FunctionDef), "name"),
            (ast.Name, "id"),
            (ast.Attribute, "attr"),
        )
        if isinstance(each, kind)
    }


def test_what_was_removed_does_not_come_back():
    kernel = [path for path in sources(ENGINE) if folder_of(path) in CORE]
    assert not {*GONE.split()} & names_in(sources(ENGINE) + sources(ADAPTERS))
    assert not GONE_IN_KERNEL & names_in(kernel)
    assert not {*GONE_FILES.split()} & {path.stem for path in kernel}


def test_four_functions_know_which_row_value_is_special():
    home = ENGINE / "data/numbers.py"
    for path in {*sources(ENGINE), *sources(ADAPTERS)} - {home}:
        assert ("dear_plugin.data.numbers", "SPECIAL") not in imports(path), name(path)
    found = (each for each in ast.walk(tree(home)) if isinstance(each, ast.FunctionDef))
    users = {each.name for each in found if "SPECIAL" in ast.unparse(each.body)}
    assert users == {"known", "level_of", "or_nan", "row_value"}


# A class whose instances complete their arguments before they are made; see `completed`.
FROZEN = {"__setattr__", "__new__", "__init_subclass__"}


def test_nothing_frozen_is_written_to():
    for path in sources(ENGINE):
        for each in (each for each in ast.walk(tree(path)) if isinstance(each, ast.ClassDef)):
            made = {f.name: f for f in each.body if isinstance(f, ast.FunctionDef)}
            if any("frozen" in ast.unparse(decorator) for decorator in each.decorator_list):
                assert not FROZEN & {*made}, name(path)
                written = ast.unparse(made.get("__post_init__", ast.Pass()))
                assert "__setattr__" not in written and "vars(self)" not in written, name(path)
    assert not any("object.__setattr__" in ast.unparse(tree(path)) for path in sources(ENGINE))


@pytest.mark.parametrize("path", [*sources(ENGINE), *sources(ADAPTERS)], ids=name)
def test_a_module_s_docstring_begins_with_a_sentence_that_says_what_it_is_for(path):
    first = (ast.get_docstring(tree(path)) or "").partition("\n\n")[0]
    assert first.endswith((".", "::")), first
    assert not re.search(r"\b(in|out)[;,.]", first.removesuffix(" in.")), first
