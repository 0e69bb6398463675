"""The data interface as a schema: kinds, levels, precision and constraints."""

import dice_ml
import numpy as np
import pandas as pd
import pytest
from raiutils.exceptions import UserConfigValidationException

from dear_dice.interface import Interface
from dear_dice.query import check_vary
from dear_plugin import Kind


def read(frame, continuous, immutable=(), **options):
    data = dice_ml.Data(
        dataframe=frame, continuous_features=continuous, outcome_name="y", **options
    )
    return Interface(data, immutable=immutable)


def kinds(interface):
    return {column.name: column.kind for column in interface.schema.columns}


@pytest.fixture
def frame():
    n = 60
    return pd.DataFrame(
        {
            "word": ["a", "b", "c"] * (n // 3),
            "flag": [0, 1] * (n // 2),
            "number": np.arange(n),
            "y": [0, 1] * (n // 2),
            "rate": np.round(np.linspace(0.1, 0.7, n), 1),
            "code": [1, 2, 3] * (n // 3),
            "truth": [True, False] * (n // 2),
            "two": [0.0, 0.25] * (n // 2),
            "same": [7] * n,
        }
    )


def test_dice_says_what_is_continuous(frame):
    interface = read(frame, ["rate", "number", "two", "same"])
    assert interface.names == [name for name in frame.columns if name != "y"]
    assert kinds(interface) == {
        "word": Kind.CATEGORICAL,
        "flag": Kind.BINARY,
        "number": Kind.NUMERIC,
        "rate": Kind.NUMERIC,
        "code": Kind.CATEGORICAL,
        "truth": Kind.BINARY,
        "two": Kind.NUMERIC,
        "same": Kind.NUMERIC,
    }
    features = dict(zip(interface.names, interface.schema.columns, strict=True))
    assert features["flag"].categories == ("0", "1")
    assert features["truth"].categories == ("False", "True")
    assert (features["two"].bounds, features["two"].precision) == ((0.0, 0.25), 2)
    assert features["same"].immutable


def test_decimals_survive_dices_float32(frame):
    interface = read(frame, ["rate", "number"])
    assert set(interface.frame["rate"]) == set(frame["rate"])
    assert interface.schema.columns[interface.names.index("rate")].bounds == (0.1, 0.7)


def test_the_users_precision_counts(frame):
    interface = read(frame, ["rate"], continuous_features_precision={"rate": 3})
    assert interface.schema.columns[interface.names.index("rate")].precision == 3


def test_dummies_that_are_called_continuous_are_a_group_whatever_their_precision(frame):
    words = ["a", "b", "c"]
    frame = frame.assign(**{f"word_{w}": (frame["word"] == w).astype(int) for w in words})
    names = [f"word_{word}" for word in words]
    interface = read(frame, [*names, "rate"], continuous_features_precision={names[0]: 2})
    assert tuple(names) in interface.schema.exactly_one


def test_the_columns_of_a_group_may_be_what_varies(frame):
    """They were called immutable, as the group has another name."""
    names = [f"word_{word}" for word in "abc"]
    flags = {name: (frame["word"] == name[-1]).astype(int) for name in names}
    check_vary(names, read(frame.assign(**flags), ["rate"]))
    fixed = read(frame.assign(**flags), ["rate"], immutable=names)
    with pytest.raises(UserConfigValidationException, match="word_c'\\] are immutable"):
        check_vary(names, fixed)


def test_numbers_that_are_named_are_acted_on_though_they_look_like_identifiers():
    """Both were left out, and the error said that every feature is immutable."""
    frame = pd.DataFrame({"a": range(100), "b": np.random.default_rng(0).permutation(100)})
    frame["y"] = [0, 1] * 50
    assert read(frame, ["a", "b"]).schema.actionable == ("a", "b")


def test_the_sample_has_every_level():
    words = ["common"] * 999 + ["rare"]
    frame = pd.DataFrame({"x": np.arange(1000), "word": words, "y": [0, 1] * 500})
    assert set(read(frame, ["x"]).sample["word"]) == {"common", "rare"}


def test_a_mark_that_names_no_feature(frame):
    with pytest.raises(ValueError, match="numbr"):
        read(frame, ["number"], ["numbr"])


class TestConstraints:
    def test_levels_may_be_given_as_in_the_frame(self, frame):
        interface = read(frame, ["rate"])
        assert interface.text({"code": [1, 2], "rate": [0, 1]}) == {
            "code": ["1", "2"],
            "rate": [0, 1],
        }
        assert interface.text(None) is None

    def test_the_interfaces_range_may_change_between_calls(self, frame):
        interface = read(frame, ["rate"])
        interface.data.permitted_range = {"rate": [0.3, 0.4]}
        assert interface.constraints(interface.schema, None, interface.names).ranges == {
            "rate": (0.3, 0.4)
        }
