"""The code of the documentation runs, and prints the text that is shown for it."""

import importlib
import importlib.util
import inspect
import math
import re
import sys
import warnings
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [page for page in sorted((ROOT / "docs").glob("[!_]*.md")) if page.stem != "changelog"]
READ = [ROOT / "README.md", *PAGES]
API = ROOT / "docs/api/index.md"
HOSTS = {
    "hosts.md": ["dice_ml", "alibi"],
    "models.md": ["dask.dataframe"],
    "README.md": ["dice_ml"],
}
MOST_PAGES, MOST_WORDS = 18, 12_000
# Letters with a verdict each are a table, like those of docs/results, and terms are looked up.
LISTS = {"letters-read.md", "glossary.md"}
# What docs/tables.py copies counts where it stands, comments and menus do not.
NO_WORDS = re.compile(
    r"<!-- (file|table).*?<!-- end -->|<!--.*?-->|^```\{toc.*?^```$", re.M | re.S
)
BLOCK = re.compile(r"^```(python|shell|text)\n(.*?)^```$", re.M | re.S)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def script(name):
    """A script of the documentation, as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / f"docs/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def blocks(page):
    """The kinds and code of a page's blocks, and the text shown after each, None where none is."""
    found = [*BLOCK.findall(page.read_text("utf8")), ("end", "")]
    return [
        (kind, code, text if follows == "text" else None)
        for (kind, code), (follows, text) in pairwise(found)
        if kind != "text"
    ]


def blocks_of_text(page):
    """The texts of a page that are shown as code."""
    return [code for kind, code in BLOCK.findall(page.read_text("utf8")) if kind == "text"]


def alike(expected, printed):
    """Whether two texts have the same words and about the same numbers."""
    if NUMBER.sub("#", expected).split() != NUMBER.sub("#", printed).split():
        return False
    pairs = zip(NUMBER.findall(expected), NUMBER.findall(printed), strict=True)
    return all(math.isclose(float(a), float(b), rel_tol=0.1, abs_tol=0.02) for a, b in pairs)


def run(block, name, namespace):
    kind, code, expected = block
    found = script("outputs").printed(kind, code, namespace)
    if expected is not None:
        assert alike(expected, found), f"{name} should print\n{expected}\nand prints\n{found}"


@pytest.mark.ci
@pytest.mark.parametrize("page", [p for p in [*READ, API] if blocks(p)], ids=lambda p: p.name)
def test_code_on_a_page_runs_from_the_top(page, tmp_path, monkeypatch, caplog):
    for host in HOSTS.get(page.name, ()):
        pytest.importorskip(host)
    monkeypatch.chdir(tmp_path)
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)  # its classes can be pickled
    namespace = module.__dict__
    with warnings.catch_warnings():
        for i, block in enumerate(blocks(page)):
            run(block, f"{page.name}, block {i + 1}", namespace)
    logged = [r.message for r in caplog.records if r.name == "dear_plugin.look.names"]
    assert not logged, f"{page.name}: {logged}"
    if "dear_dice" in namespace:
        namespace["dear_dice"].unregister()


@pytest.mark.ci
def test_the_first_figure_is_right_that_the_simulator_agrees_with_dear():
    drawn = script("first_figure")
    shares = drawn.accepted(*drawn.study())
    assert (shares[drawn.TOLD] - shares[drawn.TRUE]).abs().max() < 0.04
    assert (shares[drawn.TRUE] - shares[drawn.FROZEN]).max() > 0.2


@pytest.mark.ci
def test_the_errors_of_orders_are_those_of_its_script():
    shown = blocks_of_text(ROOT / "docs/effects.md")
    assert any(alike(text, script("orders").table().to_string()) for text in shown)


def words(text):
    """The number of words of a text, code and outputs included."""
    return sum(bool(re.search(r"\w", word)) for word in NO_WORDS.sub("", text).split())


MEAN_LENGTH, MOST_LENGTH, MOST_TERMS = 20, 35, 40
# Code, tables, formulas, comments, headings and pictures have no sentences.
NO_SENTENCES = re.compile(
    r"^```.*?^```$|^\$\$.*?^\$\$$|<!--.*?-->|^ *\|.*?$|^#.*?$|^!\[.*?\]\([^)]*\)$", re.M | re.S
)


def sentences(text):
    """The sentences of a page; code and formulas in a line are one word."""
    text = NO_SENTENCES.sub("", text)
    text = re.sub(r"`[^`]*`|\$[^$]*\$", "code", text).replace("et al.", "et al")
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    parts = re.split(r"\n\s*\n|^ *(?:[-*]|\d+\.) ", text, flags=re.M)
    found = [each for part in parts for each in re.split(r"(?<=[.!?])[*_)]*\s+", part)]
    return [each.strip() for each in found if re.search(r"\w", each)]


def length(sentence):
    """The number of words of a sentence."""
    return len(re.findall(r"\S*\w\S*", sentence))


def test_a_sentence_ends_at_a_point_and_code_is_one_word():
    text = "# A heading\n\nOne `x = 1.0` two. [Three](a.md) four:\n\n- five\n\n| no | table |\n"
    assert sentences(text) == ["One code two.", "Three four:", "five"]


@pytest.mark.parametrize("page", READ, ids=lambda p: p.name)
def test_sentences_of_a_page_are_short(page):
    found = sentences(page.read_text("utf8"))
    assert not [each for each in found if length(each) > MOST_LENGTH]
    assert sum(map(length, found)) <= MEAN_LENGTH * len(found)


def test_the_glossary_is_short():
    terms = re.findall(r"^## (.*)$", (ROOT / "docs/glossary.md").read_text("utf8"), re.M)
    assert terms == sorted(terms)
    assert len(terms) <= MOST_TERMS


def test_the_documentation_is_short():
    read = [page for page in [*READ, ROOT / "docs/_start.md"] if page.name not in LISTS]
    texts = [page.read_text("utf8") for page in read]
    assert len(PAGES) <= MOST_PAGES
    assert sum(map(words, texts)) <= MOST_WORDS


def test_an_answer_is_shown_after_200_words_and_a_letter_after_700():
    readme, letters = READ[0].read_text("utf8"), blocks_of_text(ROOT / "docs/letters.md")
    (letter,) = (text for text in blocks_of_text(READ[0]) if text in letters)
    assert words(readme[: readme.index("print(recourses.describe(")]) <= 200
    assert words(readme[: readme.index(letter)]) <= 700


@pytest.mark.parametrize("page", READ, ids=lambda p: p.name)
def test_what_a_page_copies_is_what_its_source_has(page):
    text = page.read_text("utf8")
    assert script("tables").filled(text, page.parent) == text, "run: python docs/tables.py"


@pytest.fixture
def tables(tmp_path):
    """The script that fills pages, with an empty folder of results."""
    tables = script("tables")
    tables.HERE = tmp_path
    (tmp_path / "results").mkdir()
    return tables


def test_a_value_in_a_line_is_that_of_its_csv(tables, tmp_path):
    (tmp_path / "results/found.csv").write_text("method,measure,value\nDEAR,effort,0.1234\n")
    text = "<!-- value: found method = DEAR; measure = effort -->x<!-- end --> and\nmore"
    assert tables.filled(text, ROOT) == text.replace("x<", "0.12<")
    with pytest.raises(ValueError, match="unpack"):
        tables.filled(text.replace("DEAR", "nobody"), ROOT)


def test_a_cell_in_a_line_is_that_of_its_table(tables, tmp_path):
    (tmp_path / "results/found.md").write_text("| a | b |\n| --- | --- |\n| x | 1 |\n| y | 2 |\n")
    text = "for <!-- cell: found a = y -> b -->old<!-- end --> of them"
    assert tables.filled(text, ROOT) == text.replace("old", "2")


@pytest.mark.parametrize("page", READ, ids=lambda p: p.name)
def test_a_page_has_only_plain_markdown(page):
    """What a repository's page shows as code: directives and roles, but for the menus."""
    text = re.sub(r"^```\{toctree\}.*?^```$", "", page.read_text("utf8"), flags=re.M | re.S)
    assert not re.findall(r"^[`:]{3,}\{.*|\{[\w:]+\}`[^`]*`", text, re.M)
    assert not re.findall(r"^ *<!-- (?:value|cell)", text, re.M), "a comment ends a paragraph"


def links(page):
    """The files that a page links to, relative to it."""
    found = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text("utf8"))
    return [page.parent / target for target in found]


@pytest.mark.parametrize("page", [*ROOT.glob("*.md"), *PAGES], ids=lambda p: p.name)
def test_linked_files_exist(page):
    missing = [str(target) for target in links(page) if not target.exists()]
    assert not missing


def headings(page):
    """What links to headings of a page end with, as GitHub and Sphinx make it."""
    lines = re.findall(r"^#+ (.*)$", page.read_text("utf8"), re.M)
    return {re.sub(r"[^\w -]", "", line.lower()).replace(" ", "-") for line in lines}


@pytest.mark.parametrize("page", [*READ, ROOT / "CHANGELOG.md", API], ids=lambda p: p.name)
def test_linked_headings_exist(page):
    found = re.findall(r"\]\(([^):\s]*\.md)?#([^)\s]+)\)", page.read_text("utf8"))
    missing = [(at, h) for at, h in found if h not in headings(page.parent / at if at else page)]
    assert not missing


@pytest.mark.parametrize("page", READ, ids=lambda p: p.name)
def test_a_page_that_shows_what_follows_links_the_conditions(page):
    """One caveat in one place: when it is an effect, and when an association."""
    text = page.read_text("utf8")
    if page.stem != "upgrading" and ("describe(" in text or ".plot(" in text):
        assert {"limits.md", "effects.md"} & {target.name for target in [page, *links(page)]}


PUBLIC = [f"dear_plugin{name}" for name in ("", ".rivals", ".paper", ".datasets", ".decoders")]
PUBLIC += ["dear_plugin.plots", "dear_plugin.testing", "dear_dice", "dear_alibi"]
# What runs for minutes, or downloads; notebooks and the benchmark do.
LONG = {"load_adult", "load_compas", "load_give_me_some_credit", "wrap_alibi"}


def public():
    """The classes and functions of the public modules, by name; not those of an absent host."""
    modules = [importlib.import_module(name) for name in PUBLIC if importlib.util.find_spec(name)]
    members = {name: getattr(module, name) for module in modules for name in module.__all__}
    return {
        name: of for name, of in members.items() if inspect.isroutine(of) or inspect.isclass(of)
    }


def test_every_public_class_and_function_has_an_example_that_runs():
    shown = " ".join(code for page in [*READ, API] for _, code, _ in blocks(page))
    used = {name for name in public() if re.search(rf"\b{name}[(.\n]", shown)}
    told = {name for name, of in public().items() if ">>>" in str(of.__doc__)}
    assert not public().keys() - used - told - LONG
