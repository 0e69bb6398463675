"""The columns confidence, reliance, plausibility and credible of answers."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from dear_plugin import DEAR, Schema, Search
from dear_plugin.datasets import load_loan
from dear_plugin.decoders import Decoders
from dear_plugin.rivals import NearestAccepted
from tests.evaluation.test_trained import by_definition
from tests.still import Still


@pytest.fixture(scope="module")
def dear(mixed):
    """The default settings without pairs."""
    return DEAR(mixed.net, mixed.schema, search=Search(max_features=1)).fit(mixed.frame)


@pytest.fixture(scope="module")
def factuals(mixed):
    return mixed.refused(40)


@pytest.fixture(scope="module")
def result(dear, factuals):
    return dear.generate(factuals)


def loan_model(frame, schema):
    columns = make_column_transformer((OneHotEncoder(), ["gender"]), remainder=StandardScaler())
    model = make_pipeline(columns, LogisticRegression())
    return model.fit(frame[[*schema.names]], frame["approved"])


def plausible(study, rows):
    """(m,) the conformal p-values of rows, by brute force."""
    return by_definition(rows, study.encoder.rows(study.frame), study.encoder)


class TestTheColumns:
    def test_credible_rows_meet_all_criteria(self, result, mixed):
        actions = result.actions
        own = plausible(mixed, result.x).clamp_max(0.05).numpy()
        numbers = (actions["confidence"] >= 0.9) & (actions["plausibility"] >= own - 1e-6)
        lacks = actions["reason"].str.contains("no credible action|required margin")
        assert actions["credible"].tolist() == (actions["success"] & numbers & ~lacks).tolist()
        assert actions["credible"].mean() > 0.5

    def test_the_confidence_is_that_of_resamples_that_the_search_has_not_seen(
        self, dear, result, monkeypatch
    ):
        asked, resample = [], Decoders.resample

        def spied(self, acted, x, values, draws):
            asked.append(draws)
            return resample(self, acted, x, values, draws)

        monkeypatch.setattr(Decoders, "resample", spied)
        again = dear.generate(result.factuals[result.actions["credible"]])
        assert again.actions["confidence"].notna().all()
        unseen = [bool((draws > 16).all()) for draws in asked]
        # First those of the search, and then, once for each set, those that are reported.
        assert unseen == sorted(unseen) and any(unseen) and not all(unseen)
        assert torch.cat(asked).unique().tolist() == list(range(1, 33))

    def test_an_answer_that_fails_under_them_is_not_credible_and_says_so(self, dear, mixed):
        actions = dear.generate(mixed.refused(300)).actions
        low = actions["success"] & (actions["confidence"] < 0.9 - 1e-6)
        assert low.any()
        assert not actions["credible"][low].any()
        assert actions["reason"][low].str.contains("confidence").all()

    def test_where_the_search_saw_enough_nothing_stands_in_the_way(self):
        data = load_loan()
        frame, others = data.split()
        facts = {"immutable": ["gender"], "increasing": ["age", "education"]}
        schema = Schema.infer(frame, target=data.target, **facts)
        model = loan_model(frame, schema)
        dear = DEAR(model, schema, act_on=["loan_amount", "duration", "savings", "income"])
        row = others.loc[[7327], [*schema.names]]
        result = dear.fit(frame).generate(row)
        (reason,) = result.actions["reason"]
        assert "though in enough of those that the search saw; an alternative may be" in reason
        assert not result.in_the_way.any() and "stands in the way" not in result.letter(7327)
        assert result.alternatives(4)["credible"].any()

    def test_the_reason_has_the_numbers_of_the_columns(self, dear, mixed):
        strict = Search(min_confidence=1.0, min_plausibility=0.6, max_features=1)
        actions = dear.with_search(strict).generate(mixed.refused(120)).actions
        texts = actions["reason"].str.extract(r"confidence ([\d.]+), at least 1 is required")[0]
        some = texts.dropna().astype(float)
        lacking = actions.loc[some.index]
        assert not lacking["credible"].any()
        assert np.allclose(some, lacking["confidence"], atol=0.006)
        unusual = (
            actions["reason"].str.extract(r"plausibility ([\d.e-]+),")[0].dropna().astype(float)
        )
        assert np.allclose(unusual, actions.loc[unusual.index, "plausibility"], rtol=0.06)
        assert min(len(some), len(unusual)) > 0


def test_a_baseline_s_answers_have_reliance_zero(mixed, factuals):
    result = NearestAccepted(mixed.net, mixed.schema).fit(mixed.frame).generate(factuals)
    done = result.actions["success"]
    assert done.any()
    assert (result.actions["confidence"][done] == 1.0).all()
    assert (result.actions["reliance"][done] == 0.0).all()
    expected = plausible(mixed, result.proposal.rows)[torch.tensor(done.to_numpy())]
    difference = np.abs(result.actions["plausibility"][done] - expected.numpy())
    assert difference.max() <= 2.0 / len(mixed.frame)
    own = plausible(mixed, result.x).clamp_max(0.05).numpy()
    meets = done & (result.actions["plausibility"] >= own - 1e-6)
    assert result.actions["credible"].tolist() == meets.tolist()


def test_what_an_order_forces_is_not_relied_on():
    """The larger amount follows by the order, whatever the decoder predicts."""
    rng = np.random.default_rng(0)
    paid = rng.random(800).round(3)
    frame = pd.DataFrame({"paid": paid, "due": (paid + 0.3 * rng.random(800)).round(3)})
    schema = Schema.infer(frame)
    assert schema.orders == (("paid", "due"),)

    def model(rows):
        return np.where(rows["paid"] > 0.6, 0.9, 0.1)

    dear = DEAR(model, schema, act_on=["paid"], decoder=Still(), search=Search.cheapest())
    refused = frame[(frame["paid"] < 0.4) & (frame["due"] < 0.5)].head(20)
    found = dear.fit(frame).generate(refused)
    assert found.actions["success"].all()
    assert (found.counterfactuals["due"] > refused["due"]).all()
    assert (found.actions["reliance"] == 0.0).all()
