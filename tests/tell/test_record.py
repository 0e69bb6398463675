"""The record of an answer: enough to check it and to repeat it."""

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from dear_plugin import DEAR, Constraints, Schema, Search, __version__
from dear_plugin.datasets import load_loan
from dear_plugin.search.settings import CRITERIA

DATA = load_loan(1_500)


def model(rows):
    return rows["savings"] / 60


def asked(frame=DATA.frame, by=model, **how):
    known = {"target": "approved", "immutable": ["gender"], "increasing": ["income"]}
    schema = Schema.infer(DATA.frame, **known, tiers=DATA.tiers)
    return DEAR(by, schema, act_on=["income", "savings"], **how).fit(frame)


@pytest.fixture(scope="module")
def dear():
    return asked()


@pytest.fixture(scope="module")
def result(dear):
    within = Constraints(frozen=["education"], ranges={"savings": (0, 45)}, costs={"income": 2.0})
    return dear.generate(DATA.frame.head(20), within=within)


@pytest.fixture(scope="module")
def label(result):
    return result.actions.query("success and acted_on != ''").index[0]


def test_json_holds_it(result, label):
    record = result.record(label)
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert record["version"] == __version__


def test_its_row_and_limits_give_the_same_answer_again(dear, result, label):
    record = result.record(label)
    row = pd.DataFrame([record["row"]], index=[record["answer"]["label"]])
    again = dear.generate(row[list(DATA.frame)], within=Constraints(**record["limits"]))
    own = again.record(label)
    assert own["answer"] == record["answer"]
    assert own["limits"] == record["limits"]


def test_its_limits_name_what_the_method_acts_on(result, label):
    """They named all that may change, whatever `act_on` of the method was."""
    assert result.record(label)["limits"]["act_on"] == ["income", "savings"]


def test_it_has_every_criterion_with_its_value_and_bound(result, label):
    record, actions = result.record(label), result.actions.loc[label]
    assert record["criteria"].keys() == {*CRITERIA, "margin"}
    for name in ("confidence", "plausibility", "consistency", "reliance"):
        assert record["criteria"][name]["value"] == pytest.approx(actions[name])
    required = [each for each in record["criteria"].values() if not each["met"]]
    assert bool(required) <= (not actions["credible"])
    assert "at_most" in record["criteria"]["reliance"]


def test_what_was_assumed_is_told(result, label):
    assumed = result.record(label)["assumed"]
    assert assumed["tiers"] == [list(tier) for tier in DATA.tiers]
    assert assumed["settings"]["decoder"] == "Transport"
    assert result.record(label)["limits"]["costs"]["income"] == 2.0


def test_another_model_other_rows_and_another_search_have_other_hashes(result, label):
    own = result.record(label)["hashes"]
    others = {
        "model": asked(by=lambda rows: rows["savings"] / 61),
        "data": asked(DATA.frame.head(1_400)),
        "settings": asked(search=Search(min_confidence=0.8)),
    }
    for name, dear in others.items():
        hashes = dear.generate(DATA.frame.head(20)).record(label)["hashes"]
        assert hashes[name] != own[name]
        assert hashes["settings"] == own["settings"] or name == "settings"


def test_the_training_rows_are_hashed_once_for_all_rows(dear, result, label):
    known = dear.trained.digests
    every = [result.record(each)["hashes"] for each in result.factuals.index[:2]]
    assert dear.trained.digests is known
    assert all(each.items() > known.items() for each in every)


@pytest.mark.ci
def test_a_fresh_process_makes_the_same(result, label):
    plain = asked().generate(DATA.frame.head(20)).record(label)
    code = (
        "import json\nfrom tests.tell.test_record import asked, DATA\n"
        f"print(json.dumps(asked().generate(DATA.frame.head(20)).record({label})))"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True
    )
    assert json.loads(done.stdout) == plain
