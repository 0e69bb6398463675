"""Answers on simulated tables with the traits of tables that the method was not built on."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from dear_plugin import DEAR, Schema


def loans(n: int, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    """Loans whose rate and duration follow the amount; the model looks at these most."""
    rng = np.random.default_rng(seed)
    amount = rng.gamma(4, 5, n).round(1)
    frame = pd.DataFrame(
        {
            "amount": amount,
            "duration": (6 + 1.5 * amount + rng.normal(0, 6, n)).clip(3).round(),
            "rate": (4 + 0.2 * amount + rng.normal(0, 1, n)).round(2),
        }
    )
    score = 7 - 0.02 * amount - 0.08 * frame["duration"] - 0.4 * frame["rate"]
    return frame, (score + rng.logistic(0, 0.5, n) > 0).astype(int)


@pytest.mark.parametrize("rows", [500, 2000])
def test_what_is_said_of_answers_that_rely_on_what_follows_holds_in_other_data(rows):
    frame, label = loans(2 * rows)
    model = LogisticRegression(max_iter=2000).fit(frame, label)
    schema = Schema.infer(frame, tiers=[["amount"], ["duration", "rate"]])
    dear, other = (
        DEAR(model, schema, act_on=["amount"]).fit(part)
        for part in (frame.iloc[:rows], frame.iloc[rows:])
    )
    new = loans(1000, seed=1)[0]
    result = dear.generate(new[model.predict(new) == 0].head(120))
    told = result.actions[result.actions["credible"] & (result.actions["reliance"] > 0)]
    assert len(told) > 40
    direct, factuals = result.direct.loc[told.index], result.factuals.loc[told.index]
    again = other.apply(factuals, direct).actions["success"].mean()
    assert again >= 0.9
    assert abs(again - told["confidence"].mean()) <= 0.08
