"""Explore: the page, of a data set of the demo or of a saved DEAR."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

from dear_plugin import DEAR, Constraints
from dear_plugin.demo.experiment import Demo, make_experiment
from dear_plugin.errors import InputError


@dataclass(frozen=True)
class Explore:
    """The settings of the page.

    Attributes:
        dataset: a data set of the demo.
        saved: the folder of a saved DEAR, in the place of a data set.
        model: of the saved DEAR, as `module:attribute`.
        applicants: the rows of a saved DEAR, a file of comma-separated values.
        rows: the largest number of applicants.
        port: 0 takes a free one.
        browser: whether a browser opens the page.
    """

    dataset: str = "loan"
    saved: Path | None = None
    model: str = ""
    applicants: Path | None = None
    rows: int = 200
    port: int = 0
    browser: bool = True


def explore(settings: Explore) -> None:
    """Serve the page on this machine until it is interrupted."""
    dear, rows, within = subject(settings)
    page = dear.explore(rows.head(settings.rows), within=within)
    page.show(settings.port, open_browser=settings.browser)


def subject(settings: Explore) -> tuple[DEAR, pd.DataFrame, Constraints]:
    """A fitted DEAR, the applicants, and the constraints to start from.

    Raises:
        InputError: an argument of a saved DEAR is missing or cannot be read.
    """
    if settings.saved is None:
        experiment = make_experiment(Demo(settings.dataset, rows=settings.rows))
        dear = DEAR(experiment.model, experiment.schema, **experiment.how)
        return dear.fit(experiment.train), experiment.refused, experiment.within
    if settings.applicants is None or not settings.model:
        raise InputError("--saved needs --model module:attribute and --applicants file.csv")
    dear = DEAR.load(settings.saved, _attribute(settings.model))
    try:
        rows = pd.read_csv(settings.applicants)
    except (OSError, ValueError) as error:
        raise InputError(f"--applicants {settings.applicants}: {error}") from error
    return dear, rows, Constraints()


def _attribute(path: str) -> Any:
    """The attribute of a module, which may lie in the present folder."""
    module, _, name = path.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"--model {path}: expected module:attribute; {error}") from error
    finally:
        sys.path.pop(0)
