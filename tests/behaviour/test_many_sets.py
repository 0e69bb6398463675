"""Many features: few values of each are tried; answers are as cheap as with one feature."""

import numpy as np
import pandas as pd
import pytest

from dear_plugin import DEAR, Schema

COLUMNS, ROWS = 60, 8
COMMON = np.random.default_rng(0).normal(size=(1_000, 5))
TABLE = pd.DataFrame(
    COMMON @ np.random.default_rng(1).normal(size=(5, COLUMNS))
    + np.random.default_rng(2).normal(size=(1_000, COLUMNS)),
    columns=[f"x{i}" for i in range(COLUMNS)],
).round(2)
SCHEMA = Schema.infer(TABLE)
REFUSED = TABLE[TABLE.iloc[:, :6].sum(axis=1) < 0.0].head(ROWS)
scored = []


def model(rows):
    scored.append(len(rows))
    return 1.0 / (1.0 + np.exp(-rows.iloc[:, :6].sum(axis=1).to_numpy()))


@pytest.fixture(scope="module")
def answers():
    dear = DEAR(model, SCHEMA).fit(TABLE)
    scored.clear()
    found = dear.generate(REFUSED).actions
    return found, sum(scored)


def test_a_row_is_scored_at_few_values_of_each_feature(answers):
    # Of 128 and up to 12 near the factual, resamples of answers included.
    assert answers[1] < ROWS * COLUMNS * 100


def test_no_answer_is_much_dearer_than_if_its_feature_alone_might_be_acted_on(answers):
    # Of few features more values are listed.
    found = answers[0]
    assert found["success"].all()
    for i, row in found.iterrows():
        alone = DEAR(model, SCHEMA, act_on=[row["acted_on"]]).fit(TABLE)
        assert row["cost"] <= 1.05 * alone.generate(TABLE.loc[[i]]).actions["cost"].item()
