"""Shares that add up to 100 before each is rounded: their sum stays within those of rows."""

import numpy as np
import pandas as pd
import pytest

from dear_plugin import DEAR, Schema

ROWS = 1500


def shares(count: int, unit: float) -> pd.DataFrame:
    """Rows with shares that are multiples of a unit, and two other numbers."""
    rng = np.random.default_rng(0)
    parts = rng.dirichlet(np.linspace(4, 1, count), ROWS) * 100
    frame = pd.DataFrame((parts / unit).round() * unit, columns=[f"part{i}" for i in range(count)])
    return frame.round(2).assign(age=rng.integers(18, 90, ROWS), score=rng.integers(0, 99, ROWS))


@pytest.mark.parametrize("stated", [False, True], ids=["found", "stated"])
@pytest.mark.parametrize(("count", "unit"), [(4, 1), (4, 5), (6, 1), (12, 1), (12, 0.1), (12, 5)])
def test_no_answer_leaves_the_sums_of_training_rows(count, unit, stated):
    frame = shares(count, unit)
    first, *others = frame.filter(like="part")
    whole = frame.filter(like="part").sum(axis=1)
    least = frame[first].quantile(0.85)

    def score(rows):
        return 1 / (1 + np.exp(-(rows[first].to_numpy(float) - least) / 3))

    schema = Schema.infer(frame, definitions={first: others} if stated else None)
    (relation,) = [each for each in schema.relations if {*each.members} == {first, *others}]
    assert not relation.is_definition
    rows = frame[score(frame) < 0.4].head(20)
    found = DEAR(score, schema, act_on=[first]).fit(frame).generate(rows)
    after = found.counterfactuals.filter(like="part").sum(axis=1)
    assert found.actions["success"].mean() > 0.8
    assert after.min() >= whole.min() - 1e-6 and after.max() <= whole.max() + 1e-6


def test_numbers_that_are_no_parts_of_a_whole_are_left():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.poisson(8, (ROWS, 6)), columns=list("abcdef"))
    flags = pd.get_dummies(rng.integers(0, 5, ROWS), prefix="flag", dtype=int).iloc[:, :4]
    assert not Schema.infer(frame.join(flags)).relations
