"""DiCE's and Alibi's own methods keep the constraints of a schema, for both kinds of models."""

import numpy as np
import pandas as pd
import pytest

from dear_plugin import DEAR, Constraints, Encoder, Schema, compare
from dear_plugin.datasets import load_loan
from dear_plugin.demo.classifiers import Recipe, trained
from dear_plugin.demo.rivals import of_alibi, of_dice

ACT_ON = ["loan_amount", "duration", "savings"]


class Balance:
    """A model of frames: more savings than the loan."""

    classes_ = (0, 1)

    def predict_proba(self, frame):
        score = 1.0 / (1.0 + 2.0 ** (frame["loan_amount"] - frame["savings"]))
        return pd.concat([1.0 - score, score], axis=1).to_numpy()


@pytest.fixture(scope="module")
def loans():
    return load_loan(600)


@pytest.fixture(scope="module")
def schema(loans):
    rules = {"immutable": ["gender"], "increasing": ["age", "savings"]}
    return Schema.infer(loans.frame, target="approved", **rules)


def network(loans, schema):
    x = Encoder(schema).encode(loans.features)
    return trained("lr", x, x[:, 0] > 2.0, Recipe(64, 1, 0.01))


def answers(method, model, loans, schema):
    """What a method answers where DEAR refuses nobody."""
    methods = {"DEAR": DEAR(model, schema).fit(loans.frame), "other": method}
    rows, within = loans.features.head(12), Constraints(act_on=ACT_ON)
    return compare(methods, rows, within=within, progress=False).results["other"]


def holds(result):
    """Whether the constraints of the schema and of the call hold."""
    before, after = result.factuals, result.counterfactuals
    kept = [name for name in before if name not in ACT_ON]
    assert after[kept].equals(before[kept])
    assert (after["savings"] >= before["savings"]).all()


@pytest.mark.parametrize("name", ["random", "kdtree"])
def test_dice_keeps_what_the_schema_says(name, loans, schema):
    pytest.importorskip("dice_ml")
    method = of_dice(name, Balance(), schema, loans.frame, target="approved")
    found = answers(method, Balance(), loans, schema)
    holds(found)
    assert name == "kdtree" or found.actions["success"].mean() > 0.5


@pytest.mark.ci
def test_alibi_keeps_what_the_schema_says(loans, schema):
    pytest.importorskip("alibi")
    model = Balance()
    found = answers(of_alibi(model, schema, loans.frame, steps=20), model, loans, schema)
    holds(found)


@pytest.mark.ci
def test_a_module_of_our_encoding_is_taken_by_both(loans, schema):
    pytest.importorskip("dice_ml")
    pytest.importorskip("alibi")
    net = network(loans, schema)
    for method in (
        of_dice("gradient", net, schema, loans.frame, target="approved"),
        of_alibi(net, schema, loans.frame, steps=5),
    ):
        assert len(method.generate(loans.features.head(1))) == 1


class Flagged:
    """A model of a flag of 36 or 60, a boolean and an amount, with classes of its own names."""

    classes_ = ("no", "yes")

    def predict_proba(self, frame):
        assert frame["term"].dtype == "int64"
        assert frame["owner"].dtype == bool
        score = frame["amount"] / 100.0 + 0.3 * frame["owner"] - 0.2 * (frame["term"] == 60)
        score = score.clip(0.01, 0.99)
        return pd.concat([1.0 - score, score], axis=1).to_numpy()

    def predict(self, frame):
        return np.array(self.classes_)[self.predict_proba(frame).argmax(1)]


@pytest.fixture(scope="module")
def flagged():
    rng = np.random.default_rng(0)
    columns = {"amount": rng.integers(1, 90, 500), "term": rng.choice([36, 60], 500)}
    frame = pd.DataFrame({**columns, "owner": rng.random(500) < 0.5})
    return frame.assign(loan=Flagged().predict(frame))


def are_own(result, frame):
    """Whether answers hold known values, and the model's own scores."""
    after = result.counterfactuals.assign(owner=lambda f: f["owner"].astype(str) == "True")
    own = after.astype({"term": int})
    assert set(own["term"]) <= {36, 60}
    solved = result.actions["success"]
    assert (Flagged().predict(own[solved][["amount", "term", "owner"]]) == "yes").all()
    return solved.mean()


@pytest.mark.parametrize("name", ["random", "kdtree"])
def test_dice_takes_flags_that_are_numbers_and_named_classes(name, flagged):
    pytest.importorskip("dice_ml")
    schema = Schema.infer(flagged, target="loan")
    method = of_dice(name, Flagged(), schema, flagged, target="loan")
    query = flagged[flagged["loan"] == "no"].drop(columns="loan").head(6)
    methods = {"DEAR": DEAR(Flagged(), schema).fit(flagged), "other": method}
    found = compare(methods, query, "yes", progress=False).results["other"]
    assert are_own(found, query) > 0.5


@pytest.mark.ci
def test_alibi_takes_flags_that_are_numbers_and_named_classes(flagged):
    pytest.importorskip("alibi")
    schema = Schema.infer(flagged, target="loan")
    method = of_alibi(Flagged(), schema, flagged, steps=20)
    query = flagged[flagged["loan"] == "no"].drop(columns="loan").head(6)
    are_own(method.generate(query, "yes"), query)
