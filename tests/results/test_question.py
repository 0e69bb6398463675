"""Question: a result selects what it was asked, and evaluates nothing again."""

import pytest
import torch

from dear_plugin import DEAR, Search


class Counting:
    """A black box that counts the rows that it scores."""

    def __init__(self, pipeline):
        self.pipeline, self.rows = pipeline, 0

    def __call__(self, frame):
        self.rows += len(frame)
        return self.pipeline.predict_proba(frame)

    def spent(self, action) -> int:
        before = self.rows
        action()
        return self.rows - before


@pytest.fixture(scope="module")
def model(mixed):
    return Counting(mixed.pipeline)


@pytest.fixture(scope="module")
def dear(model, mixed):
    dear = DEAR(model, mixed.schema, search=Search(max_features=1)).fit(mixed.frame)
    _ = dear.trained.scores, dear.trained.support
    # The consistency of a kind of change is computed once for each feature.
    _ = dear.generate(mixed.refused(30)).alternatives(3)
    return dear


def test_alternatives_of_a_selected_row_cost_one_row(dear, model, mixed):
    query = mixed.refused(30)
    one, many = dear.generate(query.iloc[[4]]), dear.generate(query)
    selected = many[[query.index[4]]]
    assert model.spent(lambda: selected.alternatives(3)) == model.spent(
        lambda: one.alternatives(3)
    )


def test_what_was_measured_is_not_evaluated_again(dear, model, mixed):
    result = dear.generate(mixed.refused(30))
    credible = dear.generate(result.factuals[result.actions["credible"]])
    # No search has seen these: sixteen resamples of each answer, and four shares of what follows.
    assert 0 < model.spent(lambda: credible.actions) <= 20 * len(credible)
    assert model.spent(credible.describe) == 0
    assert model.spent(lambda: credible.select(torch.arange(3)).actions) == 0
    assert model.spent(lambda: result.describe()) == 0
