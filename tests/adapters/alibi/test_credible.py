"""Credibility of answers: criteria in the constructor, results in the explanation."""

import numpy as np
import pytest

import dear_plugin
from dear_plugin import Search
from dear_plugin.problem.reasons import Reason

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
    search = Search(max_reliance=0.0, min_confidence=0.5, min_plausibility=0.01)
    explainer = fit(search=search)
    assert explainer.engine.search == search
    found = explainer.explain(refused, 1)
    assert found.credible.mean() > 0.5
    assert (found.reliance[found.credible] == 0.0).all()


@pytest.mark.ci
def test_an_answer_that_is_not_credible_has_a_reason(fit, refused):
    found = fit(search=Search(min_confidence=1.0, min_plausibility=1.0)).explain(refused[:40], 1)
    poor = np.flatnonzero(found.success & ~found.credible)
    assert len(poor)
    reasons = found.action["reason"]
    # Criteria that are not met, or only the margin.
    known = ("no credible action was found; the nearest has ", Reason.LESS_MARGIN)
    assert all(reasons[i].startswith(known) for i in poor)


def test_an_invalid_search_is_refused(fit):
    with pytest.raises(dear_plugin.errors.SettingError, match="search"):
        fit(search="cheapest")
