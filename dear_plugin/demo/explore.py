"""The page of a data set of the demo, or of a saved DEAR."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from dear_plugin import DEAR, Constraints
from dear_plugin.demo.experiment import Demo, make_experiment
from dear_plugin.errors import InputError
from dear_plugin.tell.files import model_of, on_its_columns, read_cases, wanted_class


@dataclass(frozen=True)
class Explore:
    """The settings of the page.

    Attributes:
        dataset: a data set of the demo.
        saved: the folder of a saved DEAR, instead of a data set.
        model: the model of the saved DEAR: a file of joblib, pickle or skops, or
            `module:attribute`.
        trust: whether code in the model's file may run.
        applicants: a CSV file of rows for a saved DEAR.
        index: the column of case numbers; "" for the number of the row.
        want: the wanted class; "" for class 1.
        rows: the largest number of rows.
        port: the port of the page; 0 takes a free one.
        browser: whether a browser opens the page.
    """

    dataset: str = "loan"
    saved: Path | None = None
    model: str = ""
    trust: bool = False
    applicants: Path | None = None
    index: str = ""
    want: str = ""
    rows: int = 200
    port: int = 0
    browser: bool = True


def explore(settings: Explore) -> None:
    """Serve the page on this machine until it is interrupted; it first prints the address."""
    port = settings.port or _free_port()
    what = f"a model of {settings.dataset}" if settings.saved is None else str(settings.saved)
    print(
        f"{'Training' if settings.saved is None else 'Loading'} {what}; the page will be at"
        f" http://localhost:{port} (Ctrl+C ends it)",
        flush=True,
    )
    dear, rows, within = subject(settings)
    target = wanted_class(dear, settings.want)
    page = dear.explore(rows.head(settings.rows), target, within=within)
    page.show(port, open_browser=settings.browser)


def _free_port() -> int:
    """A free port of this machine."""
    with socket.socket() as place:
        place.bind(("localhost", 0))
        return int(place.getsockname()[1])


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
        raise InputError("got --saved alone; it needs --model and --applicants file.csv, too")
    model = on_its_columns(model_of(settings.model, trust=settings.trust))
    dear = DEAR.load(settings.saved, model)
    rows = read_cases(settings.applicants, "--applicants", settings.index, dear.schema)
    return dear, rows, Constraints()
