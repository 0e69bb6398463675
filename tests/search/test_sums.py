"""Sums: what is tried on several features is predicted by addition."""

from collections import Counter

import numpy as np
import pandas as pd

from dear_plugin import DEAR, Schema


def test_where_no_combination_promises_anything_few_sets_are_fitted():
    values = np.random.default_rng(0).normal(size=(400, 8))
    frame = pd.DataFrame(values, columns=list("abcdefgh"))
    dear = DEAR(lambda rows: np.full(len(rows), 0.1), Schema.infer(frame)).fit(frame)
    dear.generate(frame.head(1))
    assert Counter(len(acted) for acted, _ in dear.decoders._fitted) == {1: 8} | dict.fromkeys(
        (2, 3, 4, 5), 2
    )


def test_a_set_is_fitted_if_an_action_on_it_is_expected_to_be_nearly_accepted():
    """Neither g nor h alone moves this model, so that no sum promises anything."""
    values = np.random.default_rng(0).normal(size=(400, 8)).round(2)
    frame = pd.DataFrame(values, columns=list("abcdefgh"))

    def model(rows):
        return 1.0 / (1.0 + np.exp(2.4 - 2.0 * rows[["g", "h"]].min(axis=1)))

    dear = DEAR(model, Schema.infer(frame)).fit(frame)
    result = dear.generate(frame[model(frame) < 0.5].iloc[[1]])
    assert result.outcome["acted_on"].tolist() == ["g + h"]
