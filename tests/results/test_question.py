"""Question: a result selects what it was asked, and evaluates nothing again."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, Proposal, RecourseMethod, Schema, Search


class Counting:
    """A black box that counts its calls and the rows that it scores."""

    def __init__(self, pipeline):
        self.pipeline, self.rows, self.calls = pipeline, 0, 0

    def __call__(self, frame):
        self.rows += len(frame)
        self.calls += 1
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
    _ = dear.trained.scored
    # The consistency of a kind of change is computed once for each feature.
    _ = dear.generate(mixed.refused(30)).alternatives(3)
    return dear


def test_alternatives_of_a_selected_row_cost_one_row(dear, model, mixed):
    """A selection is searched from the start; the alternatives of a result continue its search."""
    query = mixed.refused(30)
    one, many = dear.generate(query.iloc[[4]]), dear.generate(query)
    selected = many[[query.index[4]]]
    whole = model.spent(lambda: dear.generate(query.iloc[[4]], k=3))
    assert model.spent(lambda: selected.alternatives(3)) <= 1.2 * whole
    assert model.spent(lambda: one.alternatives(3)) < whole / 2


def test_ranks_are_written_and_measured_together_with_the_values_of_each(dear, model, mixed):
    query = mixed.refused(30)
    before = model.calls
    first = dear.generate(query)
    one = model.calls - before
    every = dear.generate(query, k=4)
    assert len(every) > len(query)
    assert model.calls - before - one <= 2 * one
    kept = every.actions[every.rank == 0].drop(columns=["rank", "kind"])
    pd.testing.assert_frame_equal(kept, first.actions)


def test_k_answers_are_of_one_search(dear, model, mixed, monkeypatch):
    """Software that loops over single rows pays for every call of its model."""
    searches, own = [], DEAR._searching
    monkeypatch.setattr(DEAR, "_searching", lambda *a: searches.append(a) or own(*a))
    row = mixed.refused(1)
    first = dear.generate(row)
    ways = dear.generate(row, k=4)
    assert len(searches) == 2
    pd.testing.assert_frame_equal(ways.counterfactuals[:1], first.counterfactuals)
    table = first.alternatives(4)
    assert len(searches) == 2
    assert table["acted_on"].tolist() == ways.actions["acted_on"].tolist()


def test_what_was_measured_is_not_evaluated_again(dear, model, mixed):
    result = dear.generate(mixed.refused(30))
    assert model.spent(lambda: result.select(torch.arange(3)).letter()) == 0
    assert model.spent(lambda: [result.actions, result.changes, result.describe()]) == 0
    label = result.factuals.index[0]
    assert model.spent(lambda: [result.record(label), result.advice(), result.obstacles]) == 0


class SecondTry(RecourseMethod):
    """Its first search has two ranks that the model refuses, its second one three."""

    searches = 0

    def _learn(self, rows):
        self.searches = 0

    def _propose(self, case):
        return self._alternatives(case, 1)[0]

    def _alternatives(self, case, k):
        self.searches += 1
        value, ranks = 3.0 if self.searches == 1 else 10.0, []
        for j in range(min(k, self.searches + 1)):
            rows, direct = case.x.clone(), torch.zeros(case.x.shape, dtype=torch.bool)
            rows[:, j], direct[:, j] = value, True
            ranks.append(Proposal(rows, direct, torch.zeros(len(rows)), [""] * len(rows)))
        return ranks


def test_rows_that_are_searched_again_have_the_ranks_of_the_second_search():
    frame = pd.DataFrame(np.random.default_rng(0).integers(0, 11, (40, 4)), columns=list("abcd"))
    row = pd.DataFrame([[1, 1, 1, 1]], columns=list("abcd"))
    method = SecondTry(lambda f: 1.0 * (f.max(axis=1) == 10), Schema.infer(frame)).fit(frame)
    ways = method.generate(row, k=9)
    assert method.searches == 2
    assert ways.actions["acted_on"].tolist() == ["a", "b", "c"]
    assert ways.actions["success"].all()
    first = method.fit(frame).generate(row)
    assert method.searches == 2
    pd.testing.assert_frame_equal(ways.counterfactuals[:1], first.counterfactuals)
