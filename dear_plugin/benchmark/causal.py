"""Causal recourse through the known equations of the loan data, compared with DEAR.

In Karimi et al. (2021), an action sets some features, and the others follow by the equations with
the row's own noise, which is abducted. Search and model are those of DEAR; the equations replace
the decoder. The simulator then applies the actions of all answers, and the model decides again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from dear_plugin.benchmark.hosts import DEAR_LINES
from dear_plugin.benchmark.metrics import solved, where
from dear_plugin.benchmark.runner import Option, Spec, grid
from dear_plugin.benchmark.splits import TREES, case_of
from dear_plugin.benchmark.tables import Table, wide
from dear_plugin.datasets import loan
from dear_plugin.decoders import Decoder, Members, Sample
from dear_plugin.methods.dear import DEAR
from dear_plugin.results.recourses import Recourses
from dear_plugin.rivals.intervals import line
from dear_plugin.search import Search

KNOWN, TIERS, NONE, FROZEN = "known equations", "DEAR, with the order", "DEAR, no order", "frozen"
SEARCHES: Mapping[str, Search] = {
    "default": Search(),
    "least effort": DEAR_LINES["DEAR, least effort"],
    "cheapest": Search.cheapest(),
}
MEASURES = {name: name for name in ("solved", "truly accepted", "effort", "alone")}
APPLICANTS, SEED = 4_000, 7


class Equations(Decoder):
    """The decoder of the equations of the loan data, with the noise of each row."""

    def settings(self) -> dict[str, Any]:
        """No settings."""
        return {}

    def fit(self, sample: Sample, acted: Members, held: Members) -> None:
        """Keep the encoder and the set; nothing is learned."""
        self._encoder, self._acted = sample.encoder, list(acted)

    def encode(self, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """The rows, (m, p), from which their noise is computed."""
        return x

    def decode(self, x: Tensor, v: Tensor, values: Tensor) -> Tensor:
        """(m, c, p) the rows after interventions."""
        (m, c, _), names = values.shape, self._encoder.schema.names
        before = v[:, None].expand(m, c, -1).flatten(0, 1)
        after = before.clone()
        after[:, self._acted] = values.flatten(0, 1)
        frames = [self._encoder.frame(rows) for rows in (before, after)]
        fixed = {names[j]: frames[1][names[j]].to_numpy() for j in self._acted}
        follows = loan.solve(loan.noise_of(frames[0]), fixed)
        rows = self._encoder.rows(follows).to(v.dtype).view(m, c, -1)
        rows[..., self._acted] = values
        return rows


def measure(folder: Path, *, method: str, search: str, rows: int) -> pd.DataFrame:
    """One line per rejected row: the answer, and whether the true row is accepted."""
    data, _ = case_of(folder, "loan lr")
    model = data.model(TREES)
    noise = loan.noises(APPLICANTS, np.random.default_rng(SEED))
    rows_before = loan.solve(noise)[list(data.schema.names)]
    at = np.flatnonzero(~model.accepts(rows_before))[:rows]
    schema = replace(data.schema, tiers=() if method == NONE else data.schema.tiers)
    how = replace(SEARCHES[search], max_reliance=0.0 if method == FROZEN else 1.0)
    decoder = Equations() if method == KNOWN else "transport"
    dear = DEAR(model.model, schema, act_on=data.act_on, search=how, decoder=decoder)
    answers = dear.fit(data.parts[0]).generate(rows_before.iloc[at])
    done, actions = solved(answers), answers.actions
    found = {
        "solved": done,
        "truly accepted": where(done, model.accepts(truth(answers, noise, at))),
        "effort": where(done, actions["direct_cost"]),
        "alone": where(done, actions["reliance"] == 0.0),
    }
    return pd.DataFrame(found)


def truth(answers: Recourses, noise: Mapping[str, Any], at: np.ndarray[Any, Any]) -> pd.DataFrame:
    """The true rows after the actions of answers; `at` are the positions of rows in the noise."""
    names, direct = answers.encoder.schema.names, answers.proposal.direct.numpy()
    after = answers.counterfactuals
    parts = []
    for i, position in enumerate(at):
        fixed = {
            n: after[n].to_numpy()[[i]] for n, acts in zip(names, direct[i], strict=True) if acts
        }
        parts.append(loan.solve({n: u[[position]] for n, u in noise.items()}, fixed))
    return pd.concat(parts)[list(names)].set_axis(answers.factuals.index)


def tables(found: pd.DataFrame) -> Iterator[tuple[str, Table]]:
    """The means of all measures with their intervals, as lines, and a row for each method."""
    parts = found.groupby(["search", "method"], sort=False)
    lines = pd.DataFrame(
        {"search": search, "method": method, **line(name, own[name])}
        for (search, method), own in parts
        for name in MEASURES
    )
    yield "causal", lines
    yield "causal", [row for _, row in wide(lines, ["search", "method"], MEASURES)]


CAUSAL = Spec(
    "causal",
    "causal recourse through the known equations of the loan data, compared with DEAR",
    {
        "methods": Option("what follows", (KNOWN,), (FROZEN, NONE, TIERS, KNOWN)),
        "searches": Option("settings of the search", ("default",), SEARCHES),
        "rows": Option("refused applicants", 4, preset=300),
    },
    lambda options: grid(search=options.searches, method=options.methods, rows=[options.rows]),
    measure,
    tables,
)
