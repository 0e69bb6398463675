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
# first are the engine: what DEAR's own calls, texts and saves need.
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
    # The text for an analyst is made from the answers, as are those for others.
    "dear_plugin/results/recourses.py": {
        "plots": {"plot"},
        "results": {"describe", "describe_row", "plot"},
        "tell": {"_repr_html_", "advice", "letter", "record", "to_html"},
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
# the rooms, before a text for applicants or a guess is asked for, and what is beside them, at any
# time.
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
found.describe(i), found.actions, found.changes
with tempfile.TemporaryDirectory() as folder:
    dear.save(folder), DEAR.load(folder, model).generate(refused)
print(imported(%r))
Schema.infer(frame), dear.diagnose(frame), found.advice(), found.letter(i)
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


# One name for each idea: what was folded into others does not come back under its old name.
FOLDED = {
    *("Agreement", "Candidates", "Entries", "Optimizer", "Parts", "Plausibility", "Ranked"),
    *("SearchTable", "Support", "TriedActions", "Trying", "Valued", "Waves"),
}
# A group of dummies is one feature.
GROUPS = {
    *("OneHot", "Group", "one_hot.py", "subjects", "leveled", "keep_groups", "Resolution"),
    *("with_whole_groups", "_with_whole_groups", "infer_groups"),
}
FOLDED_FILES = {
    "data": {"evidence", "switched"},
    "problem": {"range_goal"},
    "search": {"actions", "closer", "grow", "ranks", "waves"},
    "evaluation": {"agreement", "neighbours", "plausibility", "support"},
    "methods": {"optimizer", "trying"},
    "results": {"descriptions", "jobs", "rows", "said", "wording"},
}
# What is told is made of lines of `changes` and of `actions`.
FOLDED |= {"Answered", "Claim", "Move", "RowKey", "Rows", "Said", "Written"}


@pytest.mark.parametrize("folder", FOLDED_FILES)
def test_the_search_and_the_facts_of_training_rows_have_one_home(folder):
    files = sources(ENGINE / folder)
    assert not FOLDED_FILES[folder] & {path.stem for path in files}
    trees = [ast.parse(path.read_text()) for path in files]
    classes = {each.name for t in trees for each in ast.walk(t) if isinstance(each, ast.ClassDef)}
    # `costs.Parts` are the parts of a cost.
    assert FOLDED & classes <= ({"Parts"} if folder == "evaluation" else set())


# What says of a column which kind it is.
KIND = {"is_number", "holds_numbers"}


def test_no_column_is_asked_whether_it_is_a_number():
    asked = {
        name(path)
        for path in [*sources(ENGINE), *sources(ADAPTERS)]
        for each in ast.walk(tree(path))
        if isinstance(each, ast.Attribute) and each.attr in KIND
    }
    assert not asked


# Likewise whether it has labels: what differs is an attribute of features, such as `has_order`, or
# a mask of the encoder. Of a user's `Constraints`, and of options of a command, they are something
# else.
LABELS, OTHERS = {"choices", "categories"}, {"within", "option"}


def truth_tested(found: ast.AST) -> Iterator[ast.AST]:
    """What a node asks to be true."""
    if isinstance(found, ast.If | ast.IfExp | ast.While):
        yield found.test
    elif isinstance(found, ast.comprehension):
        yield from found.ifs
    elif isinstance(found, ast.UnaryOp) and isinstance(found.op, ast.Not):
        yield found.operand
    elif isinstance(found, ast.BoolOp):
        yield from found.values
    elif isinstance(found, ast.Call) and ast.unparse(found.func) in ("bool", "any"):
        yield from found.args
    elif isinstance(found, ast.Compare) and "0" in map(ast.unparse, found.comparators):
        yield found.left


def asks_for_labels(found: ast.AST) -> Iterator[str]:
    """The labels that a node asks to be there, also by their number."""
    for each in truth_tested(found):
        is_len = isinstance(each, ast.Call) and ast.unparse(each.func) == "len"
        of = each.args[0] if is_len else each
        is_asked = isinstance(of, ast.Attribute) and of.attr in LABELS
        if is_asked and ast.unparse(of.value) not in OTHERS:
            yield ast.unparse(of)


@pytest.mark.parametrize(
    "code",
    ["f.choices or own", "any(f.choices)", "own if len(f.choices) else 0", "len(f.choices) > 0"],
)
def test_labels_are_asked_for_in_many_ways(code):
    found = [each for node in ast.walk(ast.parse(code)) for each in asks_for_labels(node)]
    assert found == ["f.choices"]


def test_no_column_is_asked_whether_it_has_labels():
    asked = {
        (name(path), each)
        for path in [*sources(ENGINE), *sources(ADAPTERS)]
        if not any(path.is_relative_to(ENGINE / each) for each in ("data", "look"))
        and path != ENGINE / "tell" / "schemas.py"
        for found in ast.walk(tree(path))
        for each in asks_for_labels(found)
    }
    assert not asked


# What became a smaller idea under another name.
GONE = {
    "Between",
    "Rounds",
    "FeasibleSet",
    "_Builder",
    "PER_ROW",
    "Relations",
    "QueryFormat",
    "Labelled",
    "Answers",
    "Told",
}
# A column is one class: what its kind decides are its attributes, and functions of `cells`.
GONE |= {"ColumnKind", "Codes", "SpecialLevels", "NewLabels", "Column", "Layout"}
GONE |= {"Labels", "Levels", "Ordinal", "Dummies", "coarser", "either", "_new_values"}
# A label that no training row has has a position after those of the others.
GONE |= {"NEW", "MOST_KEPT", "has_new", "expand_new", "values_of_new"}
# Its negation is `known`.
GONE |= {"is_special"}
# What follows an action is known to `Trained`, not to private functions of a method.
GONE |= {"_flip_probabilities", "Neighbourhood", "Store"}
# Classes with one subclass.
GONE |= {"DecoderMethod", "Estimator"}
# Decoders and solvers are passed as classes; what a decoder has no derivatives for it says itself.
GONE |= {"DifferentiableDecoder", "LATER", "SOLVERS", "REGISTRY", "maker"}
# An adapter scores no rows itself, and what is given by row is read by `per_row`.
GONE |= {"remembering", "check_index"}
# A category, or a number, does as well.
GONE |= {"Cyclic", "cyclic"}
# Rules are one kind of object, and are applied to all rows at once.
GONE |= {"Formula", "Sum", "Order", "Computed", "MIXED"}
GONE |= {"_computed_ones", "_tries", "_is_log", "_near", "has_dtype"}


# An answer is two frames, complete when `generate` returns it.
COMPLETE = {
    *("Batch", "Joinable", "Attempt", "Spread", "Ranges", "Shares", "Credibility", "Method"),
    *("Result", "of_ranks", "ranked", "ranks", "ways", "settled"),
}
# What a letter states of an answer stands in its lines: one record.
COMPLETE |= {"Saying", "sayings", "needs"}
ROOM_FILES = {
    "": {"command"},
    "results": {
        "advice",
        "html",
        "letter",
        "needs",
        "record",
        "result",
        "sayings",
        "stated",
        "writing",
    },
    "data": {"toml", "exclusion", "summary"},
    "evaluation": {"excess", "fidelity", "joint", "misfit", "report", "usual"},
}


def test_answers_are_data():
    kernel = [path for path in sources(ENGINE) if folder_of(path) not in BESIDE]
    defined = {
        each.name
        for path in kernel
        for each in ast.walk(tree(path))
        if isinstance(each, ast.ClassDef | ast.FunctionDef)
    }
    assert COMPLETE & defined <= {"ranked", "ranks"}  # of a search, and of tables
    for folder, names in ROOM_FILES.items():
        assert not names & {path.stem for path in (ENGINE / folder).iterdir()}


# A number is written as text by `number` alone.
WRITTEN = {"_amount", "change_of", "grouped"}


def test_a_number_is_written_as_text_by_one_function():
    told = [path for path in sources(ENGINE) if folder_of(path) in ("results", "tell", "page")]
    made = {
        each.name
        for path in told
        for each in ast.walk(tree(path))
        if isinstance(each, ast.FunctionDef)
    }
    assert not WRITTEN & made


def test_rules_have_no_exception_and_other_ways_no_lines_of_their_own():
    relation, run = (ENGINE / each for each in ("data/relations.py", "search/search.py"))
    stated = [each for each in ast.walk(tree(relation)) if isinstance(each, ast.AnnAssign)]
    assert "mixed" not in {ast.unparse(each.target) for each in stated}
    used = {each.id for each in ast.walk(tree(run)) if isinstance(each, ast.Name)}
    assert not {"WAYS", "untried"} & used
    kernel = [path for path in sources(ENGINE) if folder_of(path) not in BESIDE]
    every = {e.name for p in kernel for e in ast.walk(tree(p)) if isinstance(e, ast.ClassDef)}
    assert "Requirement" not in every


def names_in(files):
    """The names of classes, functions and variables in source files."""
    return {
        getattr(each, "name", None) or getattr(each, "id", None)
        for path in files
        for each in ast.walk(tree(path))
        if isinstance(each, ast.ClassDef | ast.FunctionDef | ast.Name)
    }


def test_removed_classes_do_not_come_back():
    files = sources(ENGINE) + sources(ADAPTERS)
    assert not GONE & names_in(files)
    beside = {*BESIDE, "__main__"}  # where it is the name of a choice, or of a sentence
    assert "NONE" not in names_in([path for path in files if not beside & {*path.parts}])


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


@ENGINE_SOURCES
def test_dummies_are_known_to_the_columns_alone(path):
    used = {each.id for each in ast.walk(tree(path)) if isinstance(each, ast.Name)}
    used |= {each.attr for each in ast.walk(tree(path)) if isinstance(each, ast.Attribute)}
    made = (ast.FunctionDef, ast.ClassDef)
    used |= {each.name for each in ast.walk(tree(path)) if isinstance(each, made)}
    assert not GROUPS & {*used, path.name}


@pytest.mark.parametrize("path", [*sources(ENGINE), *sources(ADAPTERS)], ids=name)
def test_a_module_s_docstring_begins_with_a_sentence_that_says_what_it_is_for(path):
    first = (ast.get_docstring(tree(path)) or "").partition("\n\n")[0]
    assert first.endswith((".", "::")), first
    assert not re.search(r"\b(in|out)[;,.]", first.removesuffix(" in.")), first


# One table of attributes of features, and guesses that are arguments: what they took the place of.
TAKEN = {"ARGUMENTS", "RULES", "Given", "Inferred", "infer_relations"}
TAKEN_FILES = {"lint", "definitions", "special_values"}


def test_attributes_are_one_table_and_guesses_arguments():
    files = [*sources(ENGINE / "data"), *sources(ENGINE / "tell"), *sources(ENGINE / "look")]
    assert not TAKEN_FILES & {path.stem for path in files}
    assert not TAKEN & names_in(files)
