"""DiCE's and Alibi's own methods keep the constraints of a schema, for both kinds of models."""

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
    assert name == "kdtree" or found.outcome["success"].mean() > 0.5


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
