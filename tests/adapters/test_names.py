"""Any name of a column works on every route; no call takes them as keyword arguments."""

import re
from pathlib import Path

import dice_ml
import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from dear_alibi import DEAR as AlibiDEAR
from dear_dice import DiceDEAR
from dear_plugin import DEAR, Schema
from dear_plugin.__main__ import main

ROOT = Path(__file__).parents[2]
# Arguments of pandas, of this package and of the hosts; columns of its tables; formats.
NAMES = ["self", "index", "columns", "case", "rank", "frame", "success", "{x}", "%s", "a\nb"]
ROWS, RNG = 500, np.random.default_rng(0)


@pytest.fixture(params=NAMES)
def named(request):
    """Training rows of which one column is called so, a model of them, and refused rows."""
    debt, income = RNG.gamma(2, 30, ROWS).round(0), RNG.gamma(4, 9, ROWS).round(1)
    flags = RNG.integers(0, 2, ROWS)
    frame = pd.DataFrame({request.param: flags, "debt": debt, "income": income})
    wanted = (income - debt / 6 + 3 * flags + RNG.normal(0, 3, ROWS) > 27).astype(int)
    model = LogisticRegression(max_iter=500).fit(frame, wanted)
    return frame, pd.Series(wanted, name="y"), model, frame[model.predict(frame) == 0].head(2)


def test_in_python(named, tmp_path):
    frame, _, model, rows = named
    name = frame.columns[0]
    dear = DEAR(model, Schema.infer(frame), act_on=[name, "income"]).fit(frame)
    answers = dear.generate(rows)
    assert answers.actions["success"].all()
    answers.describe(), answers.letter(), answers.alternatives(2), answers.advice()
    answers.to_html(tmp_path / "answers.html")
    assert dear.apply(rows, {name: 1}).counterfactuals[name].eq(1).all()


def test_in_dice(named):
    frame, wanted, model, rows = named
    data = pd.concat([frame, wanted], axis=1)
    interface = dice_ml.Data(
        dataframe=data, continuous_features=["debt", "income"], outcome_name="y"
    )
    explainer = DiceDEAR(interface, dice_ml.Model(model=model, backend="sklearn"))
    assert explainer.generate_counterfactuals(rows, total_CFs=2).cf_examples_list


def test_as_the_outcome_of_dice(named):
    frame, wanted, _, rows = named
    name, *features = frame.columns
    data = pd.concat([frame[features], wanted.rename(name)], axis=1)
    interface = dice_ml.Data(dataframe=data, continuous_features=features, outcome_name=name)
    model = LogisticRegression(max_iter=500).fit(frame[features], wanted)
    explainer = DiceDEAR(interface, dice_ml.Model(model=model, backend="sklearn"))
    found = explainer.generate_counterfactuals(rows[features], total_CFs=1).cf_examples_list
    assert list(found[0].final_cfs_df) == [*features, name]


def test_in_alibi(named):
    frame, _, model, rows = named
    explainer = AlibiDEAR(
        lambda X: model.predict_proba(pd.DataFrame(X, columns=list(frame))),
        feature_names=list(frame),
        category_map={0: ["no", "yes"]},
    )
    found = explainer.fit(frame.to_numpy(float)).explain(rows.to_numpy(float))
    assert found.data["success"].all()


def test_at_the_command_line(named, tmp_path):
    frame, wanted, model, rows = named
    frame.assign(y=wanted).to_csv(tmp_path / "train.csv", index=False)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    joblib.dump(model, tmp_path / "model.joblib")
    train = [str(tmp_path / "train.csv"), "--target", "y"]
    assert main(["schema", *train]) == 0
    options = ["--model", tmp_path / "model.joblib", "--trust", "--train", tmp_path / "train.csv"]
    options += ["--schema", tmp_path / "train.toml", "--out", tmp_path / "out", "--unlabelled"]
    assert main(["letters", str(tmp_path / "rows.csv"), *map(str, options)]) == 0


def test_no_call_takes_them_as_keyword_arguments():
    """`frame.assign(**columns)` refuses "self"; tables with names of their own may use it."""
    own = ("benchmark", "datasets")
    files = [*(ROOT / "dear_plugin").rglob("*.py"), *(ROOT / "adapters").rglob("*.py")]
    calls = re.compile(r"\b(assign|agg|DataFrame|dict|rename)\(\*\*")
    found = [file for file in files if calls.search(file.read_text(encoding="utf8"))]
    assert [file for file in found if not {*own} & {*file.parts}] == []
