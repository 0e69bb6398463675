"""One-hot tables: binary columns of which exactly one is 1 are levels of one category."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, ActionSets, Constraints, Schema, Search
from dear_plugin.errors import ConstraintError, InputError, SchemaError
from dear_plugin.methods.base import RecourseMethod
from dear_plugin.rivals import GrowingSpheres, NearestAccepted

JOBS = ["other", "civil", "sales", "nurse", "cook", "driver"]
COLUMNS = [f"job_{job}" for job in JOBS]
ROWS = 1_500


def _people() -> pd.DataFrame:
    """Education 1 to 4, and a job as six dummies, of which one is more frequent with education."""
    rng = np.random.default_rng(0)
    edu = rng.integers(1, 5, ROWS)
    job = rng.choice(JOBS, ROWS, p=[0.35, 0.25, 0.15, 0.1, 0.1, 0.05])
    job[(edu == 4) & (rng.random(ROWS) < 0.6)] = "civil"
    dummies = pd.get_dummies(pd.Series(job), prefix="job").astype(int)[COLUMNS]
    return pd.concat([pd.DataFrame({"edu": edu}), dummies], axis=1)


PEOPLE = _people()


def _score(frame: pd.DataFrame) -> pd.Series:
    """Education helps, and any job but "other", with which it does not suffice."""
    edu, other = frame["edu"].astype(float), frame["job_other"].astype(float)
    return 1.0 / (1.0 + np.exp(-(edu - 1.5 - 4.0 * other)))


@pytest.fixture(scope="module", params=[int, bool])
def dear(request: pytest.FixtureRequest) -> DEAR:
    frame = PEOPLE.astype(dict.fromkeys(COLUMNS, request.param))
    return DEAR(_score, Schema.infer(frame)).fit(frame)


@pytest.fixture
def refused(dear: DEAR) -> pd.DataFrame:
    frame = PEOPLE[_score(PEOPLE) < 0.5].drop_duplicates()
    return frame.astype({column.name: column.dtype for column in dear.schema.columns})


def _sums(frame: pd.DataFrame) -> list[int]:
    return frame[COLUMNS].astype(int).sum(axis=1).unique().tolist()


def test_the_group_is_found(dear: DEAR) -> None:
    _, job = dear.schema
    assert dear.schema.exactly_one == (tuple(COLUMNS),)
    assert (job.name, job.categories) == ("job", tuple(JOBS))
    assert dear.sets.labels == ("edu", "job")


def test_an_action_that_leaves_none_is_refused(dear: DEAR, refused: pd.DataFrame) -> None:
    row = refused[refused["job_other"] == 1].head(1)
    (reason,) = dear.apply(row, {"job_other": 0}).actions["reason"]
    assert reason == "exactly one column of job has to be 1"


@pytest.mark.parametrize("kind", [GrowingSpheres, NearestAccepted])
def test_other_methods_keep_exactly_one(kind: type[RecourseMethod]) -> None:
    method = kind(_score, Schema.infer(PEOPLE)).fit(PEOPLE)
    result = method.generate(PEOPLE[_score(PEOPLE) < 0.5].head(8))
    assert _sums(result.counterfactuals) == [1]
    assert result.actions["success"].all()


@pytest.mark.parametrize("rows", [ROWS, 40])
def test_numbers_that_are_0_or_1_are_a_group_though_a_host_calls_them_amounts(rows: int) -> None:
    """DiCE's continuous_features often name every number; Alibi's category_map lacks dummies."""
    frame = PEOPLE.astype(float).tail(rows)
    dear = DEAR(_score, Schema.infer(frame, numeric=COLUMNS)).fit(frame)
    result = dear.generate(frame[_score(frame) < 0.5].head(20))
    assert _sums(result.counterfactuals) == [1]
    assert _sums(result.alternatives(4)) == [1]
    assert _sums(dear.apply(frame, {"edu": 4}).counterfactuals) == [1]
    assert result.actions["acted_on"].eq("job").any()


@pytest.mark.parametrize("kind", [int, bool, float])
def test_a_level_that_no_training_row_has_is_kept(kind: type) -> None:
    """Its column is 0 in every training row, and so no part of the group that is found."""
    frame = PEOPLE[PEOPLE["job_driver"] == 0].astype(dict.fromkeys(COLUMNS, kind))
    row = PEOPLE[PEOPLE["job_driver"] == 1].head(1).assign(edu=1)
    row = row.astype(dict.fromkeys(COLUMNS, kind))
    dear = DEAR(lambda f: _score(f) * (f["job_driver"] != 1), Schema.infer(frame)).fit(frame)
    assert _sums(dear.generate(row).counterfactuals) == [1]
    assert _sums(dear.apply(row, {"edu": 4}).counterfactuals) == [1]
    (reason,) = dear.apply(row, {"job_civil": 1}).actions["reason"]
    assert reason == "job may not be acted on"


def test_one_column_holds_its_group() -> None:
    schema = Schema.infer(PEOPLE, immutable=["job_cook"])
    assert schema.mutable == ("edu",)
    schema = Schema.infer(PEOPLE, tiers=[["job_cook"], ["edu"]])
    assert schema.tiers == (("job",), ("edu",))
    with pytest.raises(SchemaError, match="several tiers"):
        Schema.infer(PEOPLE, tiers=[["job_cook"], ["edu", "job_nurse"]])


@pytest.mark.parametrize("name", ["job", "job_cook"])
def test_a_group_is_named_by_itself_or_a_column(
    dear: DEAR, refused: pd.DataFrame, name: str
) -> None:
    assert ActionSets.of(dear.schema, [name, "edu"]).labels == ("job", "edu")
    kept = dear.generate(refused, within=Constraints(frozen=[name])).counterfactuals
    pd.testing.assert_frame_equal(kept[COLUMNS], refused[COLUMNS])
    acted = dear.generate(refused, within=Constraints(act_on=[name])).actions["acted_on"]
    assert set(acted) <= {"", "job"}
    with pytest.raises(ConstraintError, match="jub"):
        dear.generate(refused, within=Constraints(act_on=["jub"]))


def test_levels_that_may_not_be_taken_are_left_out(dear: DEAR, refused: pd.DataFrame) -> None:
    within = Constraints(act_on=["job"], categories={name: [0] for name in COLUMNS[1:-1]})
    row = refused[(refused["edu"] == 4) & (refused["job_other"] == 1)].head(1)
    after = dear.generate(row, within=within).counterfactuals
    assert after["job_driver"].astype(int).tolist() == [1]


def test_groups_are_stated_left_out_saved_and_checked(dear: DEAR, tmp_path: Path) -> None:
    assert Schema.infer(PEOPLE, exactly_one=[]).exactly_one == ()
    stated = Schema.infer(PEOPLE.head(5), exactly_one=[COLUMNS[:2]])
    assert stated.features[1].categories == ("other", "civil")
    dear.save(tmp_path)
    assert DEAR.load(tmp_path, _score).schema == dear.schema
    for wrong in ([["edu", "job_cook"]], [COLUMNS, ["job_cook"]], [["job_cook"]], ["job_cook"]):
        with pytest.raises(SchemaError, match="exactly_one"):
            Schema.infer(PEOPLE, exactly_one=wrong)


def test_columns_that_exclude_each_other_by_less_are_no_group() -> None:
    dropped = PEOPLE.drop(columns="job_civil")
    assert Schema.infer(dropped).exactly_one == ()
    both = PEOPLE.copy()
    both.loc[0, COLUMNS] = [1, 1, 0, 0, 0, 0]
    assert Schema.infer(both).exactly_one == ()


@pytest.mark.parametrize("kind", [bool, float, str])
def test_a_group_is_found_whatever_its_host_calls_0_and_1(kind):
    """Through DiCE and Alibi dummies are words: "0" and "1", or "False" and "True"."""
    job = np.arange(60) % 3
    columns = {f"job_{i}": pd.Series(job == i).astype(kind) for i in range(3)}
    frame = pd.DataFrame({**columns, "z": np.linspace(0, 1, 60)})
    assert Schema.infer(frame).exactly_one == (("job_0", "job_1", "job_2"),)


@pytest.mark.parametrize("search", [Search(), Search.cheapest()])
def test_answers_are_those_of_a_column_of_labels(search: Search) -> None:
    job = PEOPLE[COLUMNS].idxmax(axis=1).str.removeprefix("job_").astype("category")
    labels = PEOPLE[["edu"]].assign(job=job.cat.set_categories(JOBS))

    def of_labels(frame: pd.DataFrame) -> pd.Series:
        return _score(frame.assign(job_other=frame["job"] == "other"))

    rows = PEOPLE.index[_score(PEOPLE) < 0.5][:200]
    many = DEAR(_score, Schema.infer(PEOPLE), search=search).fit(PEOPLE).generate(PEOPLE.loc[rows])
    one = DEAR(of_labels, Schema.infer(labels), search=search).fit(labels)
    told = one.generate(labels.loc[rows])
    after = many.counterfactuals[COLUMNS].idxmax(axis=1).str.removeprefix("job_")
    assert after.tolist() == told.counterfactuals["job"].tolist()
    pd.testing.assert_frame_equal(many.actions, told.actions)
    pd.testing.assert_frame_equal(many.changes, told.changes)
    assert {"job"} <= {*many.changes["feature"]}
    assert many.describe_row(0) == told.describe_row(0)


@pytest.mark.parametrize("flags", [[0] * 6, [1, 1, 0, 0, 0, 0]])
def test_a_row_with_none_or_several_keeps_its_columns(flags: list[int]) -> None:
    dear = DEAR(_score, Schema.infer(PEOPLE)).fit(PEOPLE)
    row = PEOPLE.head(1).assign(edu=1, **dict(zip(COLUMNS, flags, strict=True)))
    result = dear.generate(row)
    assert result.counterfactuals[COLUMNS].to_numpy().tolist() == [flags]
    assert result.actions["score_before"].tolist() == pytest.approx(_score(row).tolist())
    encoded = dear.encoder.expand(dear.encoder.rows(row, torch.ones(1, 2) > 0))
    assert encoded[0, 1:].tolist() == flags
    with pytest.raises(InputError, match=r"exactly one of .*'job_other'.* has to be 1"):
        DEAR(_score, Schema.infer(PEOPLE)).fit(pd.concat([PEOPLE, row]))


def test_what_is_said_of_one_column_excludes_its_level_or_holds_for_all() -> None:
    for stated in ({"decreasing": ["job_civil"]}, {"excluded": {"job_civil": [1]}}):
        assert Schema.infer(PEOPLE, **stated).features[1].excluded == ("civil",)
    with pytest.raises(SchemaError, match=r"'job_civil'.*decreasing= excludes"):
        Schema.infer(PEOPLE, increasing=["job_civil"])


def test_labels_of_columns_are_those_of_levels_or_of_the_feature() -> None:
    one = Schema.infer(PEOPLE, labels={"job_civil": "civil servant"}).features[1]
    assert (one.called, one.called_level("civil"), one.called_level("cook")) == (
        *("job", "civil servant", ""),
    )
    every = Schema.infer(PEOPLE, labels=dict.fromkeys(COLUMNS, "the work"))
    assert every.features[1].called == "the work"


def test_an_action_names_the_level_or_a_column(dear: DEAR, refused: pd.DataFrame) -> None:
    row = refused[refused["job_other"] == 1].head(1)
    by_level = dear.apply(row, {"job": "civil"}).counterfactuals
    assert by_level["job_civil"].astype(int).tolist() == _sums(by_level) == [1]
    pd.testing.assert_frame_equal(by_level, dear.apply(row, {"job_civil": 1}).counterfactuals)


def test_columns_that_are_apart_in_the_frame_stay_where_they_are() -> None:
    order = [COLUMNS[0], "edu", *COLUMNS[1:]]
    dear = DEAR(_score, Schema.infer(PEOPLE[order])).fit(PEOPLE[order])
    rows = PEOPLE[order][_score(PEOPLE) < 0.5].head(5)
    assert dear.schema.names == ("job", "edu")
    result = dear.generate(rows)
    assert list(result.counterfactuals) == list(result.direct) == order
    assert _sums(result.counterfactuals) == [1]


@pytest.mark.parametrize("level", ["unknown", "nan", "?"])
def test_no_action_enters_or_leaves_a_level_that_is_not_known(level: str, tmp_path: Path) -> None:
    """A letter said "change the job from civil to nan"."""
    frame = PEOPLE.rename(columns={"job_civil": f"job_{level}"})
    unknown = frame[f"job_{level}"]

    def score(rows: pd.DataFrame) -> pd.Series:
        """Not to say what one does is what the model likes best."""
        cook, none = rows["job_cook"].astype(float), rows[f"job_{level}"].astype(float)
        return 1.0 / (1.0 + np.exp(3.0 - rows["edu"] - 4.0 * none - 3.0 * cook))

    schema = Schema.infer(frame)
    assert schema.features[1].special == (level,)
    schema.to_toml(tmp_path / "schema.toml")
    assert Schema.from_toml(tmp_path / "schema.toml", frame) == schema
    found = DEAR(score, schema).fit(frame).generate(frame[score(frame) < 0.5].head(40))
    assert found.actions["success"].all()
    assert found.counterfactuals[f"job_{level}"].equals(unknown[found.counterfactuals.index])
    ordinary = Schema.infer(frame, special={"job": []})
    assert not ordinary.features[1].special
