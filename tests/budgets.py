"""Counts of the code and of its work, and the file that holds them, `budgets.toml`.

    python -m tests.budgets

writes the counts of this checkout into the file. A number only goes down; one that a fault's mend
raises has the fault's name beside it.
"""

import ast
import io
import sys
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import tomlkit

from dear_plugin.benchmark.work import loan, steps

ROOT = Path(__file__).parents[1]
FILE = Path(__file__).with_suffix(".toml")
# Folders beside the engine, and its rooms, which are counted by themselves.
BESIDE = (
    *("rivals", "paper", "page", "demo", "plots", "testing", "datasets", "benchmark"),
    *("look", "tell", "check"),
)
# What a count may exceed its number by, since processors round differently; what it may fall
# below it before the number has to be lowered.
ABOVE, BELOW = 1.03, 0.9
NO_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE),
    *(tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
}
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def code_lines(path: Path) -> int:
    """The lines of a file that hold code: no docstring, no comment, no blank."""
    source = path.read_text(encoding="utf-8")
    documented: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            documented.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    used: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            used.update(range(token.start[0], token.end[0] + 1))
    return len(used - documented)


def size() -> dict[str, dict[str, int]]:
    """Code lines and files of the kernel, of its rooms, of the adapters and of the tests."""
    parts: dict[str, list[Path]] = {"kernel": [], "look": [], "tell": [], "check": []}
    for path in sorted((ROOT / "dear_plugin").rglob("*.py")):
        folder = path.relative_to(ROOT / "dear_plugin").parts[0]
        if folder in parts or folder not in BESIDE:
            parts[folder if folder in parts else "kernel"].append(path)
    for name in ("adapters", "tests"):
        parts[name] = sorted((ROOT / name).rglob("*.py"))
    return {
        name: {"lines": sum(map(code_lines, paths)), "files": len(paths)}
        for name, paths in parts.items()
    }


def work() -> dict[str, dict[str, float]]:
    """The counts of the bundled case, by step; without those of hosts that are not installed."""
    hosts = all(map(find_spec, ("dice_ml", "alibi")))
    case = loan() if hosts else replace(loan(), target=None)
    return dict(steps(case))


def complaints(
    numbers: Mapping[str, Mapping[str, float]], counted: Mapping[str, Mapping[str, float]]
) -> Iterator[str]:
    """What a table of numbers allows no more, or has not been told of yet."""
    for part, own in counted.items():
        for name, count in own.items():
            number = numbers[part][name]
            if count > number * ABOVE:
                yield f"{part}: {count} {name}, more than {number}: take it back"
            elif count < number * BELOW:
                yield f"{part}: {count} {name}, less than {number}: lower the number"


def main() -> None:
    """Write the counts into the file; comments stay."""
    held = tomlkit.parse(FILE.read_text(encoding="utf-8"))
    for table, counted in (("size", size()), ("work", work())):
        for part, own in counted.items():
            for name, count in own.items():
                held[table][part][name] = count
    FILE.write_text(tomlkit.dumps(held), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
