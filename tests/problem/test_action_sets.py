"""ActionSets: the sets of features S that a search may act on."""

import numpy as np
import pandas as pd
import pytest

from dear_plugin import ActionSets, Schema
from dear_plugin.errors import ConstraintError, SchemaError


class TestActOn:
    def test_by_default_every_mutable_feature_alone(self, mixed):
        sets = ActionSets.of(mixed.schema)
        assert sets.names == tuple((n,) for n in mixed.schema.mutable)

    def test_names_and_groups_may_be_mixed(self, mixed):
        sets = ActionSets.of(mixed.schema, ["debt", ("income", "job")])
        assert sets.names == (("debt",), ("income", "job"))
        assert sets.members == ((2,), (1, 6))
        assert sets.labels == ("debt", "income + job")

    def test_all_pairs(self, mixed):
        assert len(ActionSets.pairs(mixed.schema)) == 7 * 6 // 2
        names = ActionSets.pairs(mixed.schema, ["debt", "income", "job"]).labels
        assert names == ("income + debt", "debt + job", "income + job")


class TestAsTensors:
    def test_masks_and_positions_are_the_features_of_each_set(self, mixed):
        """Positions of a shorter set repeat its first."""
        sets = ActionSets.of(mixed.schema, ["debt", ("income", "job")])
        assert [row.nonzero()[:, 0].tolist() for row in sets.masks] == [[2], [1, 6]]
        assert sets.positions.tolist() == [[2, 2], [1, 6]]


@pytest.mark.parametrize(
    ("act_on", "match", "error"),
    [
        ("debt", "must be a list of features, got 'debt'", ConstraintError),
        ([], "nothing to act on: act_on is empty", ConstraintError),
        ([()], "distinct features", ConstraintError),
        ([("debt", "debt")], "distinct features, .*'debt', 'debt'", ConstraintError),
        ([("debt", "job"), ("job", "debt")], "a set twice", ConstraintError),
        (["gender"], r"\['gender'\] cannot be acted on: immutable", ConstraintError),
        (["dept"], r"'dept' \(did you mean 'debt'\?\)", SchemaError),
    ],
)
def test_what_is_no_set_is_refused(mixed, act_on, match, error):
    with pytest.raises(error, match=match):
        ActionSets.of(mixed.schema, act_on)


def test_the_error_says_which_features_are_constant_and_which_are_stated():
    frame = pd.DataFrame({"one": 1.0, "age": np.arange(60) % 7.0, "debt": np.arange(60) % 9.0})
    schema = Schema.infer(frame, immutable=["age"])
    with pytest.raises(ConstraintError, match=r"acted on: immutable, \['one'\] as constant in"):
        ActionSets.of(schema, ["one"])
    with pytest.raises(ConstraintError, match=r"\['age'\] cannot be acted on: immutable$"):
        ActionSets.of(schema, ["age"])
