"""Aliases: frames that write labels in another way have the same rows, and are written so."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, Encoder, Schema

WORDS, CODES, TRUTHS = ["a", "b", "c"], ["1", "2", "10"], ["False", "True", "True"]
TRAIN = pd.DataFrame({"word": WORDS, "code": CODES, "truth": TRUTHS, "rate": [0.1, 0.2, 0.5]})
SCHEMA = Schema.infer(pd.concat([TRAIN] * 8, ignore_index=True))
FRAMES = {
    "whole numbers": {"code": "int16"},
    "floats": {"code": float},
    "categories": {"word": "category", "code": pd.CategoricalDtype([1, 2])},
    "objects": {"code": object},
}


def frame(**dtypes):
    shown = pd.DataFrame({"word": ["a", "b"], "code": [2, 1], "truth": [True, True], "rate": 0.5})
    return shown.astype(dtypes)


@pytest.mark.parametrize("name", FRAMES)
def test_rows_are_those_of_the_text(name):
    shown = frame(**FRAMES[name])
    as_text = shown.assign(word=["a", "b"], code=["2", "1"], truth=["True", "True"])
    rows = Encoder(SCHEMA.as_written(shown)).rows(shown)
    assert torch.equal(rows, Encoder(SCHEMA).rows(as_text))


@pytest.mark.parametrize("name", FRAMES)
def test_labels_that_the_frame_does_not_show_are_written_as_those_that_it_does(name):
    shown = frame(**FRAMES[name])
    written = Encoder(SCHEMA.as_written(shown)).frame(Encoder(SCHEMA).rows(TRAIN))
    assert written["truth"].tolist() == [False, True, True]
    assert [str(c).removesuffix(".0") for c in written["code"]] == CODES
    assert set(map(type, written["code"])) == set(map(type, shown["code"].astype(object)))


def test_a_label_that_is_no_value_of_the_frames_kind_stays_text():
    features = SCHEMA.as_written(frame().assign(word=[1, 2])).features
    assert features[0].categories == ("a", "b", "c")


def test_a_fitted_method_answers_such_frames_in_their_own_values():
    rng = np.random.default_rng(0)
    train = pd.DataFrame({name: rng.choice(TRAIN[name], 400) for name in TRAIN})
    index = train["code"].map({"1": 0.3, "2": 0.1, "10": 0.7})
    train = train.assign(index=index)  # by definition, also in the frames that are asked
    model = lambda rows: (rows["code"].astype(float) > 5) * 1.0  # noqa: E731
    dear = DEAR(model, Schema.infer(train), act_on=["code"]).fit(train)
    asked = frame(code=int).assign(index=[0.1, 0.3])
    found = dear.with_schema(dear.schema.as_written(asked)).generate(asked)
    assert found.counterfactuals["code"].tolist() == [10, 10]
    assert found.counterfactuals["index"].tolist() == [0.7, 0.7]
    assert found.counterfactuals.dtypes.equals(asked.dtypes)
