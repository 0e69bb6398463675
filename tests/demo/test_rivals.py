"""DiCE's and Alibi's own methods keep the constraints of a schema, for both kinds of models."""

import numpy as np
import pandas as pd
import pytest

from dear_plugin import DEAR, Constraints, Encoder, Schema, compare
from dear_plugin.datasets import load_loan
from dear_plugin.demo.classifiers import Recipe, trained
from dear_plugin.demo.rivals import of_alibi, of_dice
from tests.asked import Scored

ACT_ON = ["loan_amount", "duration", "savings"]


# More savings than the loan.
BALANCE = Scored(lambda rows: 1.0 / (1.0 + 2.0 ** (rows["loan_amount"] - rows["savings"])))
LOANS = load_loan(600)
SCHEMA = Schema.infer(
    LOANS.frame, target="approved", immutable=["gender"], increasing=["age", "savings"]
)


OTHERS = ["random", "kdtree", pytest.param("alibi", marks=pytest.mark.ci)]


def of_host(name, model, schema, frame):
    """A method of DiCE, or Alibi's, for a frame with a label."""
    if name == "alibi":
        pytest.importorskip("alibi")
        return of_alibi(model, schema, frame, steps=20)
    pytest.importorskip("dice_ml")
    return of_dice(name, model, schema, frame, target=frame.columns[-1])


@pytest.mark.parametrize("name", OTHERS)
def test_a_host_s_method_keeps_what_the_schema_and_the_call_say(name):
    method = of_host(name, BALANCE, SCHEMA, LOANS.frame)
    methods = {"DEAR": DEAR(BALANCE, SCHEMA).fit(LOANS.frame), "other": method}
    rows, within = LOANS.features.head(12), Constraints(act_on=ACT_ON)
    found = compare(methods, rows, within=within, progress=False).results["other"]
    before, after = found.factuals, found.counterfactuals
    kept = [name for name in before if name not in ACT_ON]
    assert after[kept].equals(before[kept])
    assert (after["savings"] >= before["savings"]).all()
    assert name != "random" or found.actions["success"].mean() > 0.5


@pytest.mark.ci
def test_a_module_of_our_encoding_is_taken_by_both():
    pytest.importorskip("dice_ml")
    pytest.importorskip("alibi")
    x = Encoder(SCHEMA).encode(LOANS.features)
    net = trained("lr", x, x[:, 0] > 2.0, Recipe(64, 1, 0.01))
    for method in (
        of_dice("gradient", net, SCHEMA, LOANS.frame, target="approved"),
        of_alibi(net, SCHEMA, LOANS.frame, steps=5),
    ):
        assert len(method.generate(LOANS.features.head(1))) == 1


def flag(frame):
    """The probability of a flag of 36 or 60, a boolean and an amount."""
    assert frame["term"].dtype == "int64"
    assert frame["owner"].dtype == bool
    score = frame["amount"] / 100.0 + 0.3 * frame["owner"] - 0.2 * (frame["term"] == 60)
    return score.clip(0.01, 0.99)


FLAGGED = Scored(flag, ["no", "yes"])


@pytest.fixture(scope="module")
def flagged():
    rng = np.random.default_rng(0)
    columns = {"amount": rng.integers(1, 90, 500), "term": rng.choice([36, 60], 500)}
    frame = pd.DataFrame({**columns, "owner": rng.random(500) < 0.5})
    return frame.assign(loan=FLAGGED.predict(frame))


@pytest.mark.parametrize("name", OTHERS)
def test_flags_that_are_numbers_and_named_classes_are_taken(name, flagged):
    """Answers hold known values, and the model's own decisions."""
    method = of_host(name, FLAGGED, Schema.infer(flagged, target="loan"), flagged)
    query = flagged[flagged["loan"] == "no"].drop(columns="loan").head(6)
    found = method.generate(query, "yes")
    own = found.counterfactuals.assign(owner=lambda f: f["owner"].astype(str) == "True")
    own, solved = own.astype({"term": int}), found.actions["success"]
    assert set(own["term"]) <= {36, 60}
    assert (FLAGGED.predict(own[solved][["amount", "term", "owner"]]) == "yes").all()
    assert name == "alibi" or solved.mean() > 0.5
