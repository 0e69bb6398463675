"""Missing values: those that DiCE's data keep are the engine's; a row keeps them."""

import logging

import dice_ml
import numpy as np
import pandas as pd
import pytest
from raiutils.exceptions import UserConfigValidationException
from sklearn.ensemble import HistGradientBoostingClassifier

from dear_dice import DiceDEAR, Explanations

rng = np.random.default_rng(0)
N = 800
AMOUNTS = {"debt": rng.gamma(3, 4, N).round(1), "hours": rng.integers(10, 60, N)}
WHOLE = pd.DataFrame(AMOUNTS | {"job": rng.choice(["cook", "judge", "nurse"], N)})
SCORE = 0.3 * WHOLE["debt"] + 0.1 * WHOLE["hours"] + 1.5 * (WHOLE["job"] == "judge")
LABEL = (SCORE.median() < SCORE).astype(int).rename("y")
GAPS = {name: rng.random(N) < 0.15 for name in ("debt", "job")}
FRAME = WHOLE.mask(pd.DataFrame(GAPS).reindex(columns=WHOLE.columns, fill_value=False))
FRAME = FRAME.astype({"job": "category", "hours": int})


def data_of(frame):
    amounts = ["debt", "hours"]
    return dice_ml.Data(
        dataframe=frame.assign(y=LABEL), continuous_features=amounts, outcome_name="y"
    )


def explainer_of(frame):
    return DiceDEAR(data_of(frame), dice_ml.Model(model=MODEL, backend="sklearn"))


# DiCE makes text of pandas categories, too, with pandas 3.
KEPT = [name for name in GAPS if data_of(FRAME).data_df[name].isna().any()]


MODEL = HistGradientBoostingClassifier(max_iter=30, categorical_features="from_dtype")
MODEL.fit(FRAME, LABEL)


@pytest.mark.parametrize("gaps", [[], KEPT, *([name] for name in KEPT)])
def test_a_row_with_missing_values_has_an_answer_and_keeps_them(gaps):
    refused = FRAME[MODEL.predict(FRAME) == 0]
    other = [name for name in ("debt", "job") if name not in gaps]
    query = refused[refused[gaps].isna().all(axis=1) & refused[other].notna().all(axis=1)].head(3)
    assert len(query)
    result = explainer_of(FRAME).generate_counterfactuals(query, 2, desired_class=1)
    answers = [example.final_cfs_df[list(FRAME)] for example in result.cf_examples_list]
    for answer in answers:
        assert (answer.dtypes == query.dtypes).all()
        assert (MODEL.predict(answer) == 1).all()
        assert answer[gaps].isna().all(axis=None) and answer[other].notna().all(axis=None)
    (shares,) = (
        explainer_of(FRAME).local_feature_importance(query[:1], total_CFs=10).local_importance
    )
    assert max(shares.values()) > 0 and not any(shares[name] for name in gaps)
    read = Explanations.from_json(result.to_json()).cf_examples_list[0].final_cfs_df
    assert read["hours"].tolist() == answers[0]["hours"].tolist()


def test_where_dices_data_have_none_the_error_names_the_columns():
    complete = FRAME.assign(debt=WHOLE["debt"])
    query = complete.head(2).assign(debt=[np.nan, 1.0])
    explainer = explainer_of(complete)
    for call in (explainer.generate_counterfactuals, explainer.local_feature_importance):
        with pytest.raises(UserConfigValidationException, match=r"missing values in \['debt'\]"):
            call(query, total_CFs=10, desired_class=1)


def test_a_missing_value_that_stays_is_no_change(capsys):
    query = FRAME[(MODEL.predict(FRAME) == 0) & FRAME["debt"].isna() & FRAME["job"].notna()]
    explainer_of(FRAME).generate_counterfactuals(query.head(1), 2).visualize_as_list(
        show_only_changes=True
    )
    assert "nan" not in capsys.readouterr().out.split("Counterfactual set")[1]


@pytest.mark.parametrize("gap", [None, np.nan])
def test_missing_text_that_dice_made_a_category_is_told(caplog, gap):
    text = FRAME["job"].astype(object)
    frame = FRAME.assign(job=text.where(text.notna(), gap))
    with caplog.at_level(logging.WARNING, "dear_dice"):
        explainer = explainer_of(frame)
    assert "makes of missing text" in caplog.text
    with pytest.raises(UserConfigValidationException, match=r"missing values in \['job'\]"):
        explainer.generate_counterfactuals(frame[text.isna()].head(2), 1, desired_class=1)
