import json

import numpy as np
import pytest
from alibi.api.interfaces import Explanation

from dear_alibi import DEFAULT_DATA_DEAR, DEFAULT_META_DEAR

RESERVED = {"name", "type", "explanations", "params", "version", "meta", "data", "to_json"}


@pytest.fixture(scope="module")
def explanation(explainer, refused):
    return explainer.explain(refused, 1, [{"income": [0, 40]}])


def strict(text):
    def refuse(constant):
        raise AssertionError(constant)

    return json.loads(text, parse_constant=refuse)


def test_the_keys_are_the_defaults_and_none_is_reserved(explanation):
    assert explanation.data.keys() == DEFAULT_DATA_DEAR.keys()
    assert explanation.meta.keys() == DEFAULT_META_DEAR.keys()
    assert not RESERVED & set(explanation.data)


def test_shapes_and_dtypes(explanation, refused):
    n, p = refused.shape
    for part in (explanation.orig, explanation.cf):
        assert part["X"].shape == (n, p)
        assert (part["class"].shape, part["class"].dtype) == ((n, 1), np.int64)
        assert (part["proba"].shape, part["proba"].dtype) == ((n, 2), np.float64)
    assert (explanation.target.shape, explanation.target.dtype) == ((n, 1), np.int64)
    assert (explanation.success.shape, explanation.success.dtype) == ((n, 1), bool)
    for name in ("confidence", "reliance", "plausibility", "consistency"):
        assert (explanation.data[name].shape, explanation.data[name].dtype) == ((n, 1), np.float64)
    assert (explanation.credible.shape, explanation.credible.dtype) == ((n, 1), bool)
    action = explanation.action
    assert len(action["direct_features"]) == len(action["reason"]) == n
    assert action["direct"].shape == action["indirect"].shape == (n, p)
    for name in ("cost", "direct_cost", "indirect_cost", "suppressed_cost"):
        assert (action[name].shape, action[name].dtype) == ((n, 1), np.float64)


def test_direct_and_indirect_changes_make_up_the_difference(explanation, data):
    action, moved = explanation.action, explanation.cf["X"] - explanation.orig["X"]
    assert (action["direct"] + action["indirect"] == moved).all()
    assert (action["indirect"] != 0).any()
    # Without an order of causes all of it is an association.
    assert (action["association"] == action["indirect"]).all()
    for named, direct in zip(action["direct_features"], action["direct"], strict=True):
        assert named == [data.names[j] for j in np.flatnonzero(direct)]
    assert np.allclose(action["cost"], action["direct_cost"] + action["indirect_cost"])


def test_each_row_says_what_is_the_action_what_follows_and_how_sure_that_is(explanation, data):
    action, kinds = explanation.action, {"direct": "direct", "indirect": "indirect"}
    for row, lines in enumerate(explanation.changes):
        for kind, part in kinds.items():
            moved = {data.names[j] for j in np.flatnonzero(action[part][row])}
            assert {line["feature"] for line in lines if line["kind"] == kind} == moved
        assert {line["link"] for line in lines} <= {"", "association"}
        followed = [line for line in lines if line["kind"] == "indirect"]
        assert all(0 <= line["agree"] <= line["redraws"] == 16 for line in followed)
        amounts = [line for line in followed if line["low"] is not None]
        assert all(line["low"] <= line["high"] for line in amounts)
        assert all(line["low_one"] <= line["high_one"] for line in amounts)
    words = [line["old"] for lines in explanation.changes for line in lines]
    assert any(isinstance(word, str) for word in words) or not data.maps


def test_json_is_strict_and_comes_back(explanation):
    text = explanation.to_json()
    back = Explanation.from_json(text)
    assert strict(text) == {"meta": back.meta, "data": back.data}
    assert back.meta == explanation.meta
    assert back.cf["X"] == explanation.cf["X"].tolist()
    assert back.success == explanation.success.tolist()
    assert back.condition == [{"income": [0, 40]}]


def test_a_failed_row_keeps_its_last_attempt_and_says_why_in_strict_json(fit, predictor, refused):
    found = fit(act_on=["duration"]).explain(refused.astype(object), 1, [{"duration": (-1, 0)}])
    lost = ~found.success[:, 0]
    assert lost.any()
    assert (found.cf["X"][lost] != refused[lost]).any()
    assert (found.cf["class"][lost] == 0).all()
    assert (predictor(found.cf["X"][lost].astype(float)).argmax(1) == 0).all()
    assert all(np.array(found.action["reason"])[lost])
    assert (found.confidence[lost] == 0).all() and (found.plausibility[lost] == 0).all()
    assert (found.reliance[lost] == 1).all() and not found.credible[lost].any()
    assert strict(found.to_json())["data"]["condition"] == [{"duration": [-1, 0]}]


def test_meta_is_complete_and_not_shared(explainer, explanation, data):
    params = explanation.meta["params"]
    assert explanation.meta == explainer.meta
    assert params is not explainer.meta["params"]
    assert params["feature_names"] == data.names
    assert params["category_map"] == {str(j): words for j, words in data.maps.items()}
    assert params["immutable_features"] == ["gender"]
    assert params["ranges"] == {"age": [0.0, 1.0]}
    assert params["tiers"] == []
    assert params["causes"] == {}
    assert params["fitted_rows"] == len(data.X)
    assert (explanation.name, explanation.type) == ("DEAR", ["blackbox"])
    assert explainer.params is explainer.meta["params"]
    explanation.meta["params"]["ranges"]["age"] = None
    assert explainer.meta["params"]["ranges"] == {"age": [0.0, 1.0]}
    params["ranges"]["age"] = [0.0, 1.0]
