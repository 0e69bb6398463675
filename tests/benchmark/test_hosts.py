"""The tables beside DiCE and Alibi, made small: few rows, few steps, loans."""

import os
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin.benchmark import dice, dice_marks, matched, tables
from dear_plugin.benchmark.__main__ import main
from dear_plugin.benchmark.hosts import scene
from dear_plugin.benchmark.meter import Meter, in_fresh_process
from dear_plugin.benchmark.ruler import RULES, Ruler
from dear_plugin.benchmark.watched import at_most, differences
from dear_plugin.benchmark.wrappings import OnAlibi, OnDice
from dear_plugin.data.encoder import Encoder
from dear_plugin.datasets import load_loan
from dear_plugin.errors import DataError

LINES = [
    "DEAR, default",
    "DEAR, cheapest",
    "DEAR, default, on what people can act on",
    "DEAR, default, pairs too",
]


@pytest.fixture(scope="module")
def people():
    return scene(load_loan(1500), 3)


@pytest.fixture(scope="module")
def outcomes(people):
    pytest.importorskip("dice_ml")
    drawn = np.random.get_state()[1].copy(), torch.get_rng_state()
    found = list(dice.contest(people, ["random", "kdtree"]))
    assert (np.random.get_state()[1] == drawn[0]).all()
    assert (torch.get_rng_state() == drawn[1]).all()
    return found


class TestScene:
    def test_all_of_them_are_refused(self, people):
        encoder = Encoder(people.schema)
        with torch.no_grad():
            assert (people.model(encoder.encode(people.refused)) <= 0).all()
        assert 0.5 < people.accuracy < 1.0
        assert people.target not in people.refused

    def test_nobody_refused_is_said(self):
        data = load_loan(1500)
        rich = data.frame.assign(approved=1)
        with pytest.raises(DataError, match="refuses none"):
            scene(replace(data, frame=rich), 3)


class TestWrappings:
    def test_on_dice_takes_one_row_or_many_and_gives_one_column_or_two(self, people):
        width = people.schema.names
        x = torch.rand(5, len(width) + 1)  # gender takes two columns in DiCE
        one, two = (OnDice(people.model, people.schema, c) for c in (1, 2))
        assert one(x).shape == (5, 1) and two(x).shape == (5, 2) and one(x[0]).shape == (1,)
        torch.testing.assert_close(two(x)[:, 1:], one(x))
        torch.testing.assert_close(two(x).sum(1), torch.ones(5))

    def test_on_alibi_goes_there_and_back(self, people):
        predictor = OnAlibi(people.model, people.schema)
        rows = predictor.array(people.refused)
        pd.testing.assert_frame_equal(
            predictor.frame(rows, people.refused.index), people.refused, check_dtype=False
        )
        expected = predictor.encoder.rows(people.refused)
        assert torch.equal(predictor.rows(rows.astype(object)), expected)
        assert (predictor(rows).argmax(1) == 0).all()


class TestDice:
    def test_everyone_is_measured_by_the_same_code(self, people, outcomes):
        rows = [dice.row_of(outcome, outcomes[0]) for outcome in outcomes]
        names = [*LINES, "random", "kdtree"]
        assert [row["method"] for row in rows[:6]] == names
        assert all("pairs too, min_support=" in row["method"] for row in rows[6:])
        assert all(row["rows"] == 3 for row in rows)
        assert rows[0]["solved"] == 1.0
        for row, outcome in zip(rows, outcomes, strict=True):
            assert 0.0 <= row["support"] <= 1.0
            assert row["all_rows_cpu_s"] > 0.0
            assert len(outcome.calls) == 3
            kept = outcome.recourses.counterfactuals["gender"]
            assert (kept == people.refused["gender"]).all()
            assert row["both"] == (outcome.solved & outcomes[0].solved).sum()

    def test_dear_s_cost_is_the_engine_s_own(self, outcomes):
        dear = outcomes[0].recourses
        moved = dear.encoder.distance(dear.proposal.rows, dear.x).sum(1)
        np.testing.assert_allclose(outcomes[0].cost, moved)

    def test_a_held_feature_that_the_method_changes_counts(self, people):
        example = SimpleNamespace
        query = people.refused.iloc[:1]
        other = query.assign(gender="male" if query["gender"].iat[0] == "female" else "female")
        found = example(final_cfs_df=other, final_cfs_df_sparse=None)
        assert differences(query, found, ["gender"]) == 1
        assert differences(query, found, ["age"]) == 0
        nothing = example(final_cfs_df=None, final_cfs_df_sparse=None)
        assert differences(query, nothing, ["gender"]) == 0

    def test_what_answers_are_worth_is_told_of_all(self, outcomes):
        default, cheapest, *_ = outcomes
        rivals = [each for each in outcomes if each.method in dice.METHODS]
        for rival in rivals:
            assert rival.columns["confidence"] == rival.columns["alone"] == 1.0
        assert default.columns["confidence"] >= 0.9
        assert default.columns["plausible"] == 1.0
        assert cheapest.columns["confidence"] <= 1.0
        told = list(matched.differences([default.answers], [each.answers for each in rivals]))
        assert [row["rival"] for row in told] == ["random", "kdtree"]
        assert all(0 <= row["people"] <= 3 for row in told)

    def test_costs_are_compared_where_both_are_plausible(self):
        cost, where_to = np.array([1.0, 2.0, np.nan]), np.array([0.5, 0.5, np.nan])
        ours = matched.Answers("a", cost, where_to, np.array([True, True, False]))
        rival = matched.Answers("b", cost + 1.0, where_to, np.array([True, False, False]))
        (row,) = matched.differences([ours], [rival])
        assert (row["people"], row["cost"], row["rival's cost"]) == (1, 1.0, 2.0)
        assert row["difference"] == "-1.000 [-1.000, -1.000]" and row["cheaper"] == 1.0

    def test_marks_say_what_was_measured(self, outcomes):
        dear, random = outcomes[0], outcomes[4]
        gradient = replace(random, method="gradient", together=1000.0 * dear.together)
        found = {mark.mark: mark for mark in dice_marks.marks([dear, gradient, dear])}
        assert found["rows solved"].met and found["held features changed"].met
        assert found["CPU seconds a query, all rows in one call"].met
        assert "1000 times" in found["CPU seconds a query, all rows in one call"].measured
        slow = replace(gradient, together=dear.together)
        assert not list(dice_marks.marks([dear, slow, dear]))[-2].met

    def test_without_rivals_there_is_less_to_say(self, outcomes):
        assert [mark.mark for mark in dice_marks.marks(outcomes[:4])] == [
            "rows solved",
            "held features changed",
        ]

    def test_support_is_met(self, people):
        pytest.importorskip("dice_ml")
        found = dice.Contest(people, ("gender",)).supported(0.5)
        assert found.support >= 0.5

    def test_an_endless_search_is_stopped(self):
        with pytest.raises(TimeoutError, match="CPU seconds"), at_most(0.05):
            while True:
                pass


class TestAlibi:
    def test_the_command_writes_both_tables(self, tmp_path, capsys):
        pytest.importorskip("alibi")
        told = ["--rows", "20", "--steps", "5", "--epochs", "1", "--many", "200"]
        assert main(["alibi", "--dataset", "loan", *told, "--out", str(tmp_path)]) == 0
        table = pd.read_csv(tmp_path / "alibi.csv").set_index("method")
        many = "DEAR, default, 200 rows in one call"
        changed = "DEAR, default, education held and savings growing too"
        names = ["DEAR, default", changed, "DEAR, cheapest", many, "CFRL, 5 steps"]
        assert list(table.index) == names
        dear = table.iloc[:4]
        assert (dear["validity"] == 1.0).all() and (dear["violations"] == 0).all()
        assert table.loc[changed, "fit_cpu_s"] == 0.0
        whole = table["direct_mean"] + table["indirect_mean"]
        np.testing.assert_allclose(table["cost_mean"][:3], whole[:3], rtol=1e-4)
        assert (table[["cpu_ms_a_row", "fit_peak_mib"]] >= 0).all(axis=None)
        assert "alibi 0.9" in capsys.readouterr().out
        assert table.loc["DEAR, default", "confidence"] >= 0.9
        matched = pd.read_csv(tmp_path / "alibi-matched.csv")
        assert matched["rival"].tolist() == ["CFRL, 5 steps"] * 2
        marks = pd.read_csv(tmp_path / "alibi-marks.csv").set_index("mark")["met"]
        assert marks["validity"] == marks["violations"] == "met"

    def test_a_broken_rule_is_seen(self, people):
        ruler, rules = Ruler.of(people), RULES["loan"][0]
        before = ruler.refused
        gender, age, income = (people.schema.names.index(n) for n in ("gender", "age", "income"))
        after = before.copy()
        after[:, income] += 5.0
        assert ruler.violations(before, after, rules) == 0
        after[0, gender] = 1 - after[0, gender]
        after[:2, age] -= 1
        assert ruler.violations(before, after, rules) == 2
        assert (ruler.cost(before, after)[0] > 1.0).all()


class TestMeterAndTables:
    def test_a_process_of_its_own(self):
        assert in_fresh_process(os.getpid) != os.getpid()

    def test_time_and_memory_are_seen(self):
        with Meter() as meter:
            block = bytearray(64 << 20)
            sum(range(200_000))
        assert len(block) and meter.cpu_s > 0.0
        assert meter.peak_mib > 60.0

    def test_a_table_is_written_twice(self, tmp_path):
        rows = [{"a": 1, "b": 0.5, "c": float("nan")}, {"a": 2, "b": 0.012345, "c": "x"}]
        text = tables.write("t", rows, tmp_path, ["numpy"])
        assert "| 1 | 0.500 |  |" in text and "| 2 | 0.0123 | x |" in text
        assert f"numpy {np.__version__}" in text
        assert (tmp_path / "t.md").read_text() == text
        assert pd.read_csv(tmp_path / "t.csv")["a"].tolist() == [1, 2]
