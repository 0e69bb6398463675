"""DEAR's costs compared with the optimum, on tree ensembles.

Models are forests and boosted trees with their packages' default settings, trained on at most
20,000 rows. The data sets have their own `act_on`, `immutable`, `increasing` and `tiers`. Actions
are on single features.

The optimum of a row is the lowest price of an action on one feature. Candidates are all
categories, and all values of numbers that the constraints allow, between the smallest and the
largest training value, at steps of the feature's precision. If there are more than 2,000 values,
2,000 are taken: a third evenly spaced, a third at quantiles of the training values, and a third at
geometrically growing distances from the factual. Decoder, constraints, margin and criteria are
those of DEAR. Candidates that the model accepts are evaluated in order of price until one meets
all criteria. There is no pruning or bisection. The price is the cost, discounted by `prefer_alone`
if no indirect change is needed. DEAR's answers are candidates, too, so no answer costs less than
the optimum.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from dear_plugin.benchmark.metrics import Floats, decision
from dear_plugin.benchmark.runner import Option, Spec, grid
from dear_plugin.benchmark.splits import FORESTS, data_split, forest
from dear_plugin.benchmark.tables import Row, Table
from dear_plugin.data.numbers import amounts_of
from dear_plugin.methods.dear import DEAR
from dear_plugin.problem.feasible import Case
from dear_plugin.search import Search, SearchProblem
from dear_plugin.search import table as tried
from dear_plugin.search.criteria import criteria, margins
from dear_plugin.search.problem import answered, arrays, direct_cost
from dear_plugin.search.table import Actions, places
from dear_plugin.search.values import FeatureValues, admitted, singles

MOST_VALUES = 2_000
# The number of actions of a row whose criteria are evaluated at a time.
AT_ONCE = 16
# The smallest distance from the factual that is evaluated, as a share of the range.
LEAST = 1e-9
# The setting of each data set.
DATA: Mapping[str, str] = {"loan": "loan", "adult": "adult-full", "gmc": "gmc-own"}
# The packages of models that are not installed.
MISSING = tuple(name for name in ("xgboost", "lightgbm") if not find_spec(name))
PACKAGES = tuple(name for name in ("xgboost", "lightgbm") if name not in MISSING)
MODELS = tuple(name for name in FORESTS if name.lower() not in MISSING)
MOST_ROWS = 20_000
# The required mean and 90th percentile of the ratio.
MEAN, PERCENTILE_90 = 1.10, 1.3
SEARCHES: Mapping[str, Search] = {
    "cheapest": Search.cheapest(max_features=1),
    "default": Search(max_features=1),
}


def measure(folder: Path, *, data: str, model: str, search: str, rows: int) -> pd.DataFrame:
    """The prices of DEAR's answers and of the optimum, by rejected row."""
    dear, refused = _fitted(folder, data, model)
    return compared(dear.with_search(SEARCHES[search]), refused.iloc[:rows])


@lru_cache(maxsize=1)
def _fitted(folder: Path, name: str, kind: str) -> tuple[DEAR, pd.DataFrame]:
    """DEAR with an ensemble, and the test rows that it rejects."""
    data = data_split(folder, DATA[name])
    names, (train, test) = list(data.schema.names), data.parts
    sample = train.sample(min(MOST_ROWS, len(train)), random_state=0)
    model = forest(kind, sample[names], sample[data.data.target], 0)
    refused = test[~decision(model, data.schema)(test)][names]
    return DEAR(model, data.schema, act_on=data.act_on).fit(train), refused


def tables(found: pd.DataFrame) -> Iterator[tuple[str, Table]]:
    """The comparison with the optimum; ratios and excess are over rows that DEAR solves."""
    names = ["data", "model", "search"]
    parts = found.groupby(names, sort=False)
    lines = [{**dict(zip(names, key, strict=True)), **summary(own)} for key, own in parts]
    yield "trees", lines


def summary(own: pd.DataFrame) -> Row:
    """One line of the table, from the prices of all rows."""
    possible = own[np.isfinite(own["optimum"])]
    both = possible[np.isfinite(possible["dear"])]
    counts = {"rows": len(own), "solvable": len(possible), "missed": len(possible) - len(both)}
    if both.empty:
        return counts
    ratios = both["dear"] / both["optimum"]
    mean, percentile_90 = ratios.mean(), ratios.quantile(0.9)
    met = mean <= MEAN and percentile_90 <= PERCENTILE_90
    return {
        **counts,
        "optimal": (ratios <= 1.001).mean(),
        "mean": mean,
        "90th": percentile_90,
        "worst": ratios.max(),
        "excess": (both["dear"] - both["optimum"]).mean(),
        "requirement": "met" if met else "NOT MET",
    }


def compared(dear: DEAR, frame: pd.DataFrame) -> pd.DataFrame:
    """The prices of DEAR's answers that meet all criteria, and of the optimum, by row.

    Args:
        dear: a fit on single features, with `max_features=1`.
        frame: n rejected rows.

    Returns:
        (n, 2) `dear, optimum`, infinite without an answer.
    """
    search, answers = dear.search, dear.generate(frame)
    actions = answers.actions
    price = actions["cost"].to_numpy(dtype=float)
    alone = (actions["reliance"] == 0.0).to_numpy()
    price = np.where(alone, price / (1.0 + search.prefer_alone), price)
    valid = actions["credible"] if search.has_criteria else actions["success"]
    found = np.where(valid, price, np.inf)
    with torch.inference_mode():
        optimum = np.minimum(found, _optimum(dear, answers.question.case, found))
    return pd.DataFrame({"dear": found, "optimum": optimum})


def _optimum(dear: DEAR, case: Case, known: Floats) -> Floats:
    """(n,) the lowest price below known ones, (n,), or infinite."""
    search = dear.search
    problem = replace(SearchProblem.of(case, dear.sets, dear.trained), in_steps=search.in_steps)
    enough = margins(case, search, dear.trained)
    wanted, _ = criteria(problem, search, dear.trained if search.has_criteria else None)
    values = FeatureValues.of(dear.decoders.sample, steps=search.in_steps)
    table = tried.Table(
        problem,
        lambda _: (wanted, wanted),
        aim=case.aim.numpy(),
        enough=enough.numpy(),
        discount=search.prefer_alone,
    )
    # An upper bound of the cost of cheaper answers, for those without an indirect change too.
    limit = (known * (1.0 + search.prefer_alone)).astype(np.float32)
    others, _ = singles(problem, values)
    for row, sets, new in chain(_numbers(problem, dear.trained.rows), [others]):
        some = direct_cost(problem, row, sets, new) < limit[row]
        answered(problem.scores, table.trying((row[some], sets[some], new[some])))
    return _least_price(table)


def _least_price(table: tried.Table) -> Floats:
    """(n,) the lowest price of the actions of a table that meet all criteria."""
    while True:
        # No action is skipped.
        at, bound = table.hits[table.met[table.hits] < 0.0], table.bound(1, table.passed)
        row = table.row[at]
        at = at[(table.margin[at] >= table.enough[row]) & (table.price[at] < bound[row])]
        if not len(at):
            return bound.astype(float)
        at = table.sorted(at, table.price[at])
        some = at[places(table.row[at]) < AT_ONCE]
        answered(table.problem.scores, table.vetting(some, table.wanted))


def _numbers(problem: SearchProblem, train: Tensor) -> Iterator[Actions]:
    """The candidate values of all numeric features, set by set."""
    encoder = problem.classifier.encoder
    for at, (feature, *_) in enumerate(problem.sets.members):
        amounts = encoder.amounts(problem.x[:, feature], at=feature)
        rows = torch.from_numpy(problem.may_act[:, at] & amounts.numpy()).nonzero()[:, 0]
        if not len(rows):
            continue
        low, width = (float(each[feature]) for each in (encoder.low, encoder.width))
        own, column = (
            encoder.scaled(each[:, feature], feature) for each in (problem.x[rows], train)
        )
        step = float(problem.feasible.limits.grid.step[feature]) / width
        values = low + width * _values(own[:, None], column, step)
        each = arrays(rows, torch.full_like(rows, at), values[..., None])
        yield admitted(problem, *each)[0]


def _values(own: Tensor, column: Tensor, step: float) -> Tensor:
    """(m, c) candidate values of a numeric feature for m rows.

    Args:
        own: (m, 1) the factual values.
        column: (n,) the training values.
        step: the precision.
    """
    count = round(1.0 / step) + 1 if step else MOST_VALUES + 1
    if count <= MOST_VALUES:
        return torch.linspace(0.0, 1.0, count).double().expand(len(own), -1)
    third = MOST_VALUES // 3
    known = amounts_of(column).unique()
    quantiles = known[torch.linspace(0, len(known) - 1, third).long()]
    least = max(step, LEAST)
    away = least * (1.0 / least) ** (torch.arange(third // 2) / (third // 2 - 1))
    shared = torch.cat([torch.linspace(0.0, 1.0, third).double(), quantiles])
    near = own + torch.cat([-away, away])
    return torch.cat([shared.expand(len(own), -1), near], 1)


TREES = Spec(
    "trees",
    "costs compared with the optimum, on forests and boosted trees",
    {
        "data": Option("data sets", ("loan",), DATA),
        "models": Option("ensembles", ("HistGradientBoosting",), FORESTS, MODELS),
        "rows": Option("rejected rows of each model", 4, preset=40),
    },
    lambda options: grid(
        data=options.data, model=options.models, search=SEARCHES, rows=[options.rows]
    ),
    measure,
    tables,
    ("scikit-learn", *PACKAGES),
)
