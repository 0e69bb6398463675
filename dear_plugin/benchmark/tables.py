"""Tables: writes rows as CSV and Markdown, with the versions and the machine."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from dear_plugin._version import __version__

Row = Mapping[str, Any]


def write(name: str, rows: Iterable[Row], folder: Path, packages: Sequence[str] = ()) -> str:
    """Write a table as CSV and Markdown; one without rows is not written.

    Args:
        name: of the files, without ending.
        rows: the table.
        folder: created if missing.
        packages: further packages whose versions are noted.

    Returns:
        The Markdown.
    """
    table = pd.DataFrame(list(rows))
    if table.empty:
        return "no rows\n"
    folder.mkdir(parents=True, exist_ok=True)
    table.to_csv(folder / f"{name}.csv", index=False)
    text = f"{_markdown(table)}\n\n{made_with(packages)}\n"
    (folder / f"{name}.md").write_text(text, encoding="utf8")
    return text


def made_with(packages: Sequence[str] = ()) -> str:
    """The versions and the machine."""
    hosts = "".join(f" {package} {version(package)}," for package in packages)
    return (
        f"dear-plugin {__version__},{hosts} torch {torch.__version__}, numpy {np.__version__},"
        f" pandas {pd.__version__}, Python {platform.python_version()}, {platform.machine()},"
        f" {torch.get_num_threads()} threads"
    )


def _markdown(table: pd.DataFrame) -> str:
    """A Markdown table with numbers to three decimals or digits, empty for NaN."""
    shown = table.astype(object).map(_cell)
    lines = [list(table.columns), ["---"] * len(table.columns), *shown.to_numpy().tolist()]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def _cell(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    if np.isnan(value):
        return ""
    return f"{value:.3g}" if 0.0 < abs(value) < 0.1 else f"{value:.3f}"
