"""Applicants for the page, and pages that are served."""

import socket

import numpy as np
import pandas as pd
import pytest

from dear_plugin import DEAR, Schema
from tests.labelled import DATA, TEXTS, loan_schema


def loan_score(rows):
    """A score that falls with the term and rises with savings."""
    odds = 0.25 * (rows["savings"] - 30) - 0.3 * (rows["duration"] - 60)
    return 1 / (1 + np.exp(-odds))


@pytest.fixture(scope="package")
def loans():
    """A fitted DEAR of loans, and refused applicants."""
    schema, acted = loan_schema(**TEXTS), ["loan_amount", "savings", "income"]
    dear = DEAR(loan_score, schema, act_on=acted).fit(DATA.frame)
    refused = DATA.features[loan_score(DATA.frame) < 0.5].head(60)
    return dear, refused


@pytest.fixture(scope="package")
def wide():
    """40 features, and 2,000 applicants."""
    rng = np.random.default_rng(0)
    level = rng.normal(size=(4_000, 1))
    values = np.round(50 + 10 * (0.5 * level + rng.normal(size=(4_000, 40))), 1)
    frame = pd.DataFrame(values, columns=[f"amount {at:02}" for at in range(40)])
    score = lambda rows: 1 / (1 + np.exp(-(rows.iloc[:, :8].mean(axis=1) - 52) / 2))  # noqa: E731
    dear = DEAR(score, Schema.infer(frame)).fit(frame)
    return dear, frame[score(frame) < 0.5].head(2_000)


@pytest.fixture(scope="package")
def people():
    """People by their names, whom a model prefers with less schooling, and with gaps."""
    rng, n = np.random.default_rng(0), 3_000
    hours = rng.integers(10, 50, n)
    amounts = {name: (10 * hours + rng.normal(0, 40, n)).round() for name in FOLLOWING}
    frame = pd.DataFrame(
        {
            "race": rng.choice(["black", "white"], n),
            "education": rng.integers(5, 18, n),
            "gaps": rng.choice(["no", "yes"], n),
            "hours": hours,
            **amounts,
        },
        pd.Index([f"{name} {at}" for at, name in enumerate(rng.choice(["Ada", "Ben"], n))]),
    ).rename_axis("firstname")

    def score(rows):
        odds = (
            0.3 * (rows["hours"] - 35)
            - 0.4 * (rows["education"] - 10)
            + 2 * (rows["gaps"] == "yes")
        )
        return 1 / (1 + np.exp(-odds))

    acts = ["education", "gaps", "hours"]
    labels = {name: f"the {name}" for name in frame}
    tiers = [["race"], ["education", "gaps"], ["hours"]]
    schema = Schema.infer(frame, immutable=["race"], tiers=tiers, labels=labels)
    dear = DEAR(score, schema, act_on=acts).fit(frame)
    return dear, frame[(score(frame) < 0.4) & (frame["gaps"] == "no")].head(30)


FOLLOWING = ("pay", "rent", "meals", "travel", "parking")


def free_port():
    with socket.socket() as place:
        place.bind(("localhost", 0))
        return place.getsockname()[1]


@pytest.fixture(scope="package")
def serve():
    """A function that serves a page in a thread, and gives its address."""
    threads = []

    def _serve(page):
        port = free_port()
        threads.append(page.show(port, open_browser=False, threaded=True))
        return f"http://localhost:{port}"

    yield _serve
    for thread in threads:
        thread.stop()
