"""The house: a room imports only from rooms above it, and an adapter only through the front door.

Imports are read with `ast`, so that one inside a function or behind TYPE_CHECKING counts as well.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import dear_plugin

ROOT = Path(__file__).parents[1]
ENGINE = ROOT / "dear_plugin"
ADAPTERS = ROOT / "adapters"

# Each room sees those before it. A new module needs its place here, chosen on purpose.
LADDER = (
    "_version",
    "errors",
    "lazy",
    "memory",
    "settings",
    "shapes",
    "feature",
    "sensitive",
    "inspection",
    "inference",
    "schema",
    "levels",
    "labels",
    "columns",
    "units",
    "encoding",
    "rules",
    "goals",
    "target",
    "evaluation",
    "chain",
    "ending",
    "models",
    "classifier",
    "actions",
    "limits",
    "per_row",
    "constraints",
    "decoders",
    "possible",
    "costs",
    "neighbours",
    "support",
    "plausibility",
    "cutoffs",
    "wording",
    "search",
    "options",
    "plan",
    "case",
    "spread",
    "recourses",
    "unreadable",
    "metrics",
    "excess",
    "judged",
    "fidelity",
    "diagnostics",
    "method",
    "moves",
    "redrawn",
    "shares",
    "what_if",
    "wider",
    "alternatives",
    "jacobians",
    "persistence",
)
METHODS = ("dear", "baselines")
FRONT_DOOR = "__init__"

SEES = {room: set(LADDER[:rung]) for rung, room in enumerate(LADDER)}
SEES |= {room: set(LADDER) for room in METHODS}
SEES["plots"] = {*LADDER, *METHODS}
SEES["datasets"] = {"errors"}
SEES["persistence"] = {"errors"}
SEES[FRONT_DOOR] = {*LADDER, *METHODS, "plots", "datasets"}
SEES["benchmark"] = SEES[FRONT_DOOR] | {FRONT_DOOR}
SEES["demo"] = SEES["benchmark"] | {"benchmark"}
SEES["__main__"] = SEES["demo"] | {"demo"}

HOSTS = {"dear_dice": "dice_ml", "dear_alibi": "alibi"}
MEET_HOSTS = {"benchmark", "demo", "__main__"}
MAY_PRINT = {"__main__.py", "demo.py", "demo", "benchmark/__main__.py"}


def sources(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def room_of(path: Path) -> str:
    return path.relative_to(ENGINE).parts[0].removesuffix(".py")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def package(path: Path) -> list[str]:
    """The dotted name of the package that holds a source file, as a list."""
    base = ADAPTERS if path.is_relative_to(ADAPTERS) else ROOT
    return list(path.relative_to(base).parent.parts)


def imports(path: Path) -> Iterator[tuple[str, str | None]]:
    """Every import of a source file as (module, name), the name None for a plain `import`."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            here = package(path)
            start = here[: len(here) - node.level + 1] if node.level else []
            module = ".".join([*start, *([node.module] if node.module else [])])
            yield from ((module, alias.name) for alias in node.names)


def top_level(path: Path) -> set[str]:
    return {module.partition(".")[0] for module, _ in imports(path)}


def rooms_seen(path: Path) -> set[str]:
    """The rooms of the engine that a source file imports from; `__version__` belongs to none."""
    seen = set()
    for module, member in imports(path):
        head, *rest = module.split(".")
        if head != "dear_plugin" or (not rest and member == "__version__"):
            continue
        through_the_front_door = member if member in SEES else FRONT_DOOR
        seen.add(rest[0] if rest else through_the_front_door)
    return seen


ENGINE_SOURCES = pytest.mark.parametrize("path", sources(ENGINE), ids=name)
ADAPTER_SOURCES = pytest.mark.parametrize("path", sources(ADAPTERS), ids=name)
ALL_SOURCES = pytest.mark.parametrize("path", sources(ENGINE) + sources(ADAPTERS), ids=name)


@ENGINE_SOURCES
def test_every_module_has_a_room(path):
    assert room_of(path) in SEES, f"{name(path)}: give it a place in the map of rooms above"


@ENGINE_SOURCES
def test_a_room_imports_only_from_rooms_above_it(path):
    room = room_of(path)
    below = rooms_seen(path) - SEES.get(room, set()) - {room}
    assert not below, f"{name(path)} imports from {sorted(below)}"


@ENGINE_SOURCES
def test_matplotlib_is_imported_in_plots_alone(path):
    assert room_of(path) == "plots" or "matplotlib" not in top_level(path)


@ENGINE_SOURCES
def test_the_engine_knows_no_host(path):
    if room_of(path) not in MEET_HOSTS:
        assert not top_level(path) & {*HOSTS, *HOSTS.values()}


@ADAPTER_SOURCES
def test_an_adapter_comes_through_the_front_door(path):
    public = set(getattr(dear_plugin, "__all__", ()))
    hidden = {
        f"{module}.{member}" if member else module
        for module, member in imports(path)
        if module.partition(".")[0] == "dear_plugin"
        if module != "dear_plugin" or (member is not None and member not in public)
    }
    assert not hidden, f"{name(path)} imports {sorted(hidden)}, not public in dear_plugin"


@ADAPTER_SOURCES
def test_an_adapter_knows_only_its_own_host(path):
    mine = path.relative_to(ADAPTERS).parts[0]
    others = {*HOSTS, *HOSTS.values()} - {mine, HOSTS[mine]}
    assert not top_level(path) & others


@ALL_SOURCES
def test_a_mistake_raises_a_real_error(path):
    lines = [node.lineno for node in ast.walk(tree(path)) if isinstance(node, ast.Assert)]
    assert not lines, f"{name(path)}: `assert` on lines {lines}"


@ALL_SOURCES
def test_only_commands_print(path):
    lines = [
        node.lineno
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call)
        if isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    inside = path.relative_to(ENGINE if path.is_relative_to(ENGINE) else ADAPTERS)
    may = inside.as_posix() in MAY_PRINT or inside.parts[0] in MAY_PRINT
    assert may or not lines, f"{name(path)}: `print` on lines {lines}"


def test_adapters_is_a_folder_and_no_package():
    assert not (ADAPTERS / "__init__.py").exists(), "it would hide the package `adapters` of PyPI"


@pytest.mark.parametrize("folder", [ENGINE, *(ADAPTERS / adapter for adapter in HOSTS)], ids=name)
def test_a_package_says_that_it_is_typed(folder):
    assert (folder / "py.typed").is_file()


def test_the_engine_imports_without_any_extra():
    absent = ["dice_ml", "alibi", "matplotlib", "dask", "distributed"]
    code = f"import sys; sys.modules.update(dict.fromkeys({absent})); import dear_plugin"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
