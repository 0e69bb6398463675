"""Credibility of answers: criteria in the constructor, results in the explanation."""

import numpy as np
import pytest

import dear_plugin
from dear_alibi import DEAR
from dear_plugin import Search
from dear_plugin.results.wording import LESS_MARGIN

WORTH = ("confidence", "reliance", "plausibility", "credible")


def test_answers_are_credible_by_default(explainer, refused):
    assert explainer.engine.search == Search()
    found = explainer.explain(refused, 1)
    assert found.credible.mean() > 0.5
    assert (found.confidence[found.credible] >= 0.9 - 1e-6).all()
    own = explainer.recourses(refused, 1).actions
    for name in WORTH:
        assert (found.data[name][:, 0] == own[name].to_numpy()).all()


def test_criteria_reach_the_search(fit, refused):
    explainer = fit(max_reliance=0.0, min_confidence=0.5, min_plausibility=0.01)
    expected = Search(max_reliance=0.0, min_confidence=0.5, min_plausibility=0.01)
    assert explainer.engine.search == expected
    params = explainer.params
    assert (params["max_reliance"], params["min_confidence"]) == (0.0, 0.5)
    assert (params["min_plausibility"], params["pairs"]) == (0.01, False)
    found = explainer.explain(refused, 1)
    assert found.credible.mean() > 0.5
    assert (found.reliance[found.credible] == 0.0).all()


@pytest.mark.ci
def test_an_answer_that_is_not_credible_has_a_reason(fit, refused):
    found = fit(min_confidence=1.0, min_plausibility=1.0).explain(refused[:40], 1)
    poor = np.flatnonzero(found.success & ~found.credible)
    assert len(poor)
    reasons = found.action["reason"]
    # Criteria that are not met, or only the margin.
    known = ("no credible action was found; the nearest has ", LESS_MARGIN)
    assert all(reasons[i].startswith(known) for i in poor)


def test_pairs_from_the_start(fit, data, refused):
    names = ["savings", "duration"]
    explainer = fit(act_on=names, pairs=True)
    assert set(explainer.engine.sets.names) == {("savings",), ("duration",), tuple(names)}
    assert explainer.params["pairs"] is True
    every = fit(pairs=True, immutable_features=["gender"]).engine.sets.names
    p = len(data.names) - 1
    assert len(every) == p + p * (p - 1) // 2


def test_criteria_are_saved(fit, predictor, refused, tmp_path):
    explainer = fit(max_reliance=0.0, pairs=True, act_on=["savings", "duration"])
    explainer.save(tmp_path)
    loaded = DEAR.load(tmp_path, predictor)
    assert loaded.params == explainer.params
    assert loaded.engine.search == Search(max_reliance=0.0)
    a, b = (each.explain(refused[:20], 1) for each in (explainer, loaded))
    assert a.to_json() == b.to_json()


def test_a_search_excludes_single_criteria(predictor, data):
    with pytest.raises(dear_plugin.errors.SettingError, match="search= together with min_conf"):
        DEAR(predictor, **data.description(), search=Search(), min_confidence=0.5)


@pytest.mark.parametrize(
    ("option", "value"),
    [("min_confidence", 2.0), ("max_reliance", -1), ("pairs", "yes"), ("search", "cheapest")],
)
def test_an_invalid_argument_is_refused(predictor, data, option, value):
    with pytest.raises(dear_plugin.errors.SettingError, match=option):
        DEAR(predictor, **data.description(), **{option: value})
