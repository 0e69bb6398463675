"""Tables and figures as files, with the versions and the machine that made them."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import numpy as np
import pandas as pd
import torch

from dear_plugin._version import __version__
from dear_plugin.rivals.intervals import Estimate

if TYPE_CHECKING:
    from dear_plugin.plots.ink import Figure

Row = Mapping[str, Any]
Table: TypeAlias = Union[Iterable[Row], pd.DataFrame, "Figure"]
# The number of colours of a stored figure.
COLOURS = 48


def write(name: str, table: Table, folder: Path, packages: Sequence[str] = ()) -> str:
    """Write rows as Markdown, a frame as CSV, or a figure as an image that is small enough.

    Args:
        name: the name of the file, without ending.
        table: rows, a frame or a figure; no file is written for no rows.
        folder: the folder, which is created if missing.
        packages: further packages whose versions are noted.

    Returns:
        The Markdown, or the path of the file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if hasattr(table, "savefig"):
        path = folder / f"{name}.png"
        _draw(table, path)
        return f"{name}: {path}\n"
    if isinstance(table, pd.DataFrame):
        path = folder / f"{name}.csv"
        table.to_csv(path, index=False, float_format="%.4g")
        return f"{name}: {path}\n"
    rows = pd.DataFrame(list(table))
    if rows.empty:
        return f"{name}: no rows\n"
    text = f"{_markdown(rows)}\n\n{made_with(packages)}\n"
    (folder / f"{name}.md").write_text(text, encoding="utf8")
    return f"{name}\n\n{text}"


def wide(
    lines: pd.DataFrame, keys: Sequence[str], headings: Mapping[str, str]
) -> Iterator[tuple[pd.DataFrame, Row]]:
    """The row of each group, with measures and intervals, and the lines that it is made from.

    Args:
        lines: the keys, `measure, value, low, high, rows`.
        keys: columns that name a group.
        headings: the headings of the measures in the row.
    """
    for names, own in lines.groupby(list(keys), sort=False):
        known = own.set_index("measure")
        ends = known.reindex(headings)[["value", "low", "high"]]
        cells = {headings[name]: str(Estimate(*each)) for name, *each in ends.itertuples()}
        yield known, {**dict(zip(keys, names, strict=True)), **cells}


def made_with(packages: Sequence[str] = ()) -> str:
    """A line with the versions, the commit and the machine."""
    hosts = "".join(f" {package} {version(package)}," for package in packages)
    at = f" (commit {commit()})" if commit() else ""
    return (
        f"dear-plugin {__version__}{at},{hosts} torch {torch.__version__}, numpy"
        f" {np.__version__}, pandas {pd.__version__}, Python {platform.python_version()},"
        f" {platform.machine()}, {torch.get_num_threads()} threads"
    )


def with_ends(found: Sequence[float]) -> str:
    """An estimate and its interval as text; "" for NaN."""
    value, low, high = found
    return "" if np.isnan(value) else f"{value:.2f} [{low:.2f}, {high:.2f}]"


def shown(value: float | None, places: int = 2) -> str:
    """A number as text; "-" for None or NaN."""
    return "-" if value is None or np.isnan(value) else f"{value:.{places}f}"


@cache
def commit() -> str:
    """The commit of the checkout on the first call; "" outside of one."""
    git = which("git")
    if git is None:
        return ""
    command = [git, "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def _draw(figure: Any, path: Path) -> None:
    """Store a figure in few colours."""
    from PIL import Image  # comes with matplotlib

    figure.savefig(path, dpi=90)
    with Image.open(path) as image:
        image.convert("RGB").quantize(COLOURS).save(path, optimize=True)


def _markdown(table: pd.DataFrame) -> str:
    """A Markdown table with numbers to three decimals or digits, empty for NaN."""
    cells = table.astype(object).map(_cell).to_numpy().tolist()
    lines = [list(table.columns), ["---"] * len(table.columns), *cells]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def _cell(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    if np.isnan(value):
        return ""
    return f"{value:.3g}" if 0.0 < abs(value) < 0.1 else f"{value:.3f}"
