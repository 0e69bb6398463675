"""Categories that are numbers or truths in the user's frame, and text in DiCE's data."""

from types import SimpleNamespace

import dice_ml
import pandas as pd
import pytest
from raiutils.exceptions import UserConfigValidationException
from sklearn.linear_model import LogisticRegression

from dear_dice import DiceDEAR
from dear_plugin import Constraints, Target
from tests.adapters.dice.asked import answers, examples

LEVELS = {"housing": [1, 2, 10], "gender": [True, False]}


@pytest.fixture(scope="module")
def typed(loan):
    """A model that knows only numbers and truths, and ignores other levels; how to explain it."""
    homes = loan.features["housing"].map({"rented": 1, "shared": 2, "own": 10})
    features = loan.features.assign(gender=loan.features["gender"] == "male", housing=homes)
    model = loan.pipeline(features, loan.labels, LogisticRegression(max_iter=2000), loan.words)
    model[0].named_transformers_["onehotencoder"].set_params(handle_unknown="ignore")

    def explain(data=None, **options):
        frame = features.assign(approved=loan.labels)
        interface = loan.interface(frame, **({"permitted_range": data} if data else {}))
        return DiceDEAR(interface, dice_ml.Model(model=model, backend="sklearn"), **options)

    refused = features[model.predict(features) == 0].head(6)
    return SimpleNamespace(model=model, explain=explain, refused=refused)


@pytest.fixture(scope="module")
def explainer(typed):
    return typed.explain()


@pytest.mark.parametrize("of_call", [True, False], ids=["of a call", "of the data"])
@pytest.mark.parametrize("as_text", [True, False])
@pytest.mark.parametrize("permitted", [{"housing": [1, 2]}, {"gender": [True]}], ids=str)
def test_a_permitted_range_has_them_as_the_frame_or_as_text(permitted, as_text, of_call, typed):
    (name, levels), query = next(iter(permitted.items())), typed.refused
    given = {name: [*map(str, levels)]} if as_text else permitted
    explainer = typed.explain(None if of_call else given)
    free = answers(typed.explain(), query, 3)
    found = answers(explainer, query, 3, permitted_range=given if of_call else None)
    for frame, own in zip(found, query[name], strict=True):
        assert frame is None or frame[name].isin([*levels, own]).all()
        assert frame is None or (typed.model.predict(frame[list(query)]) == 1).all()
    assert any(frame is not None for frame in found)
    assert any((~frame[name].isin(levels)).any() for frame in free)


def test_a_call_may_narrow_the_range_of_the_data(typed):
    explainer = typed.explain({"housing": [1, 2]})
    for frame in answers(explainer, typed.refused, 3, permitted_range={"housing": [1]}):
        assert frame is not None
    with pytest.raises(UserConfigValidationException, match=r"category 10 does not occur"):
        answers(explainer, typed.refused, 1, permitted_range={"housing": [10]})


def test_the_engine_reads_the_rows_of_the_last_query(typed, explainer):
    """As text this model would not know them, and its answers would be others."""
    query, target, names = typed.refused, Target.of_class(1), list(typed.refused)
    found = examples(explainer, query, 3)
    own = explainer.dear.generate(query, target, k=3)
    both = pd.concat([example.final_cfs_df[names] for example in found])
    assert own.counterfactuals[names].values.tolist() == both.values.tolist()
    texts = [text for example in found for text in example.describe()]
    assert [own.describe_row(i) for i in range(len(both))] == texts
    within = Constraints(categories={"housing": [1, 2]})
    kept = explainer.dear.generate(query, target, within=within).counterfactuals
    assert kept["housing"].isin([1, 2]).sum() >= query["housing"].isin([1, 2]).sum()
    letter = explainer.dear.generate(query, target, k=8).letter(query.index[0])
    assert "decision" in letter


def test_what_is_stated_of_them_may_be_as_in_the_frame(typed):
    named = {"gender": {True: "be a man", False: "be a woman"}}
    explainer = typed.explain(labels=named, excluded={"housing": [10]})
    features = {feature.name: feature for feature in explainer.dear.schema}
    assert features["housing"].excluded == ("10",)
    assert features["gender"].called_level("True") == "be a man"
    for frame, own in zip(
        answers(explainer, typed.refused, 3), typed.refused["housing"], strict=True
    ):
        assert frame["housing"].isin([1, 2, own]).all()


def test_dates_are_text_in_dices_data_and_come_back_as_they_are(loan):
    days = pd.Series(pd.date_range("2020-01-01", periods=len(loan.features)), loan.features.index)
    features = loan.features.assign(since=days)
    model = LogisticRegression(max_iter=2000)
    model = loan.pipeline(features.drop(columns="since"), loan.labels, model, loan.words)
    explainer = loan.dear(model, features, loan.labels)
    query = features[model.predict(features) == 0].head(3)
    for frame, day in zip(answers(explainer, query, 2), query["since"], strict=True):
        assert (frame["since"] == day).all() and frame["since"].dtype == query["since"].dtype
        assert (model.predict(frame) == 1).all()
