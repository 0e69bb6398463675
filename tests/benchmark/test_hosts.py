"""The comparisons with DiCE and Alibi on the loan data: few rows, few steps."""

import os
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin.benchmark import dice, dice_requirements, matched, tables
from dear_plugin.benchmark.__main__ import main
from dear_plugin.benchmark.alibi_metrics import RULES, AlibiMetrics
from dear_plugin.benchmark.experiment import make_experiment
from dear_plugin.benchmark.meter import Meter, in_fresh_process
from dear_plugin.benchmark.timed_explainer import at_most, differences
from dear_plugin.benchmark.wrappings import OnAlibi, OnDice
from dear_plugin.data.encoder import Encoder
from dear_plugin.datasets import load_loan
from dear_plugin.errors import DataError

DEAR_LINES = [
    "DEAR, default",
    "DEAR, cheapest",
    "DEAR, default, actionable features",
    "DEAR, default, pairs too",
]


@pytest.fixture(scope="module")
def experiment():
    return make_experiment(load_loan(1500), 3)


@pytest.fixture(scope="module")
def outcomes(experiment):
    pytest.importorskip("dice_ml")
    drawn = np.random.get_state()[1].copy(), torch.get_rng_state()
    found = list(dice.compare(experiment, ["random", "kdtree"]))
    assert (np.random.get_state()[1] == drawn[0]).all()
    assert (torch.get_rng_state() == drawn[1]).all()
    return found


class TestExperiment:
    def test_all_rows_are_rejected(self, experiment):
        encoder = Encoder(experiment.schema)
        with torch.no_grad():
            assert (experiment.model(encoder.encode(experiment.refused)) <= 0).all()
        assert 0.5 < experiment.accuracy < 1.0
        assert experiment.target not in experiment.refused

    def test_a_model_that_rejects_no_row_is_an_error(self):
        data = load_loan(1500)
        accepted = data.frame.assign(approved=1)
        with pytest.raises(DataError, match="rejects none"):
            make_experiment(replace(data, frame=accepted), 3)


class TestWrappings:
    def test_on_dice_accepts_one_row_or_many_and_returns_one_column_or_two(self, experiment):
        width = experiment.schema.names
        x = torch.rand(5, len(width) + 1)  # gender takes two columns in DiCE
        one, two = (OnDice(experiment.model, experiment.schema, c) for c in (1, 2))
        assert one(x).shape == (5, 1) and two(x).shape == (5, 2) and one(x[0]).shape == (1,)
        torch.testing.assert_close(two(x)[:, 1:], one(x))
        torch.testing.assert_close(two(x).sum(1), torch.ones(5))

    def test_on_alibi_round_trip(self, experiment):
        predictor = OnAlibi(experiment.model, experiment.schema)
        rows = predictor.array(experiment.refused)
        pd.testing.assert_frame_equal(
            predictor.frame(rows, experiment.refused.index), experiment.refused, check_dtype=False
        )
        expected = predictor.encoder.rows(experiment.refused)
        assert torch.equal(predictor.rows(rows.astype(object)), expected)
        assert (predictor(rows).argmax(1) == 0).all()


@pytest.mark.slow
class TestDice:
    def test_all_methods_have_the_same_columns(self, experiment, outcomes):
        rows = [dice.row_of(outcome, outcomes[0]) for outcome in outcomes]
        names = [*DEAR_LINES, "random", "kdtree"]
        assert [row["method"] for row in rows[:6]] == names
        plain, pairs = (f"{name}, min_support=" for name in (dice.DEFAULT, dice.PAIRS))
        assert all(row["method"].startswith((plain, pairs)) for row in rows[6:])
        assert any(row["method"].startswith(plain) for row in rows[6:])
        assert any(row["method"].startswith(pairs) for row in rows[6:])
        assert all(row["rows"] == 3 for row in rows)
        assert rows[0]["solved"] == 1.0
        for row, outcome in zip(rows, outcomes, strict=True):
            assert 0.0 <= row["support"] <= 1.0
            assert row["all_rows_cpu_s"] > 0.0
            assert len(outcome.calls) == 3
            gender = outcome.recourses.counterfactuals["gender"]
            assert (gender == experiment.refused["gender"]).all()
            assert row["both"] == (outcome.solved & outcomes[0].solved).sum()

    def test_cost_of_dear_is_that_of_the_engine(self, outcomes):
        dear = outcomes[0].recourses
        moved = dear.encoder.distance(dear.proposal.rows, dear.x).sum(1)
        np.testing.assert_allclose(outcomes[0].cost, moved)

    def test_changed_frozen_features_are_counted(self, experiment):
        example = SimpleNamespace
        query = experiment.refused.iloc[:1]
        other = query.assign(gender="male" if query["gender"].iat[0] == "female" else "female")
        found = example(final_cfs_df=other, final_cfs_df_sparse=None)
        assert differences(query, found, ["gender"]) == 1
        assert differences(query, found, ["age"]) == 0
        nothing = example(final_cfs_df=None, final_cfs_df_sparse=None)
        assert differences(query, nothing, ["gender"]) == 0

    def test_all_methods_have_metrics_of_their_answers(self, outcomes):
        default, cheapest, *_ = outcomes
        baselines = [each for each in outcomes if each.method in dice.METHODS]
        for baseline in baselines:
            assert baseline.columns["confidence"] == baseline.columns["alone"] == 1.0
        assert default.columns["confidence"] >= 0.9
        assert default.columns["plausible"] == 1.0
        assert cheapest.columns["confidence"] <= 1.0
        differences = [each.answers for each in baselines]
        table = list(matched.differences([default.answers], differences))
        assert [row["baseline"] for row in table] == ["random", "kdtree"]
        assert all(0 <= row["rows"] <= 3 for row in table)

    def test_costs_are_compared_where_both_are_plausible(self):
        cost, plausibility = np.array([1.0, 2.0, np.nan]), np.array([0.5, 0.5, np.nan])
        support = np.array([0.4, 0.6, np.nan])
        both, first = np.array([True, True, False]), np.array([True, False, False])
        dear = matched.Answers("a", cost, plausibility, support, both)
        baseline = matched.Answers("b", cost + 1.0, plausibility, support, first)
        (row,) = matched.differences([dear], [baseline])
        assert (row["rows"], row["cost"], row["baseline cost"]) == (1, 1.0, 2.0)
        assert row["difference"] == "-1.000 [-1.000, -1.000]" and row["cheaper"] == 1.0
        assert row["support"] == row["baseline support"] == 0.4

    def test_of_a_family_the_first_with_the_support_of_the_baseline_is_compared(self):
        def answers(name, support):
            ones = np.ones(3)
            return matched.Answers(name, ones, ones, support * ones, ones.astype(bool))

        family = [answers("low", 0.2), answers("enough", 0.6), answers("high", 1.0)]
        for support, name in ((0.1, "low"), (0.6, "enough"), (1.1, "high")):
            assert matched.supported(family, answers("b", support)).method == name
        (row,) = matched.differences([], [answers("b", 0.6)], [family])
        assert len([*matched.differences(family, [answers("b", 0.6)], [family])]) == 3
        assert (row["DEAR"], row["support"], row["baseline support"]) == ("enough", 0.6, 0.6)

    def test_requirements_have_the_measured_values(self, outcomes):
        dear, random = outcomes[0], outcomes[4]
        gradient = replace(random, method="gradient", together=1000.0 * dear.together)
        measured = dice_requirements.requirements([dear, gradient, dear])
        found = {each.requirement: each for each in measured}
        assert found["rows solved"].met and found["frozen features changed"].met
        assert found["CPU seconds a query, all rows in one call"].met
        assert "1000 times" in found["CPU seconds a query, all rows in one call"].measured
        slow = replace(gradient, together=dear.together)
        assert not list(dice_requirements.requirements([dear, slow, dear]))[-2].met

    def test_requirements_without_baselines(self, outcomes):
        assert [each.requirement for each in dice_requirements.requirements(outcomes[:4])] == [
            "rows solved",
            "frozen features changed",
        ]

    def test_support_is_reached(self, experiment):
        pytest.importorskip("dice_ml")
        found = dice.DiceComparison(experiment, ("gender",)).supported(0.5)
        assert found.support >= 0.5

    def test_an_endless_search_is_stopped(self):
        with pytest.raises(TimeoutError, match="CPU seconds"), at_most(0.05):
            while True:
                pass


@pytest.mark.slow
class TestAlibi:
    def test_the_command_writes_its_tables(self, tmp_path, capsys):
        pytest.importorskip("alibi")
        arguments = ["--rows", "20", "--steps", "5", "--epochs", "1", "--many", "200"]
        assert main(["alibi", "--dataset", "loan", *arguments, "--out", str(tmp_path)]) == 0
        table = pd.read_csv(tmp_path / "alibi.csv").set_index("method")
        many = "DEAR, default, 200 rows in one call"
        changed = "DEAR, default, education immutable and savings increasing too"
        supported = [f"DEAR, default, min_support={share}" for share in ("0.6", "0.8", "1")]
        dears = ["DEAR, default", changed, "DEAR, cheapest", *supported, many]
        assert list(table.index) == [*dears, "CFRL, 5 steps"]
        dear = table.loc[dears]
        assert (dear["validity"] == 1.0).all() and (dear["violations"] == 0).all()
        assert table.loc[changed, "fit_cpu_s"] == 0.0
        whole = table["direct_mean"] + table["indirect_mean"]
        np.testing.assert_allclose(table["cost_mean"][:6], whole[:6], rtol=1e-4)
        assert (table[["cpu_ms_a_row", "fit_peak_mib"]] >= 0).all(axis=None)
        assert "alibi 0.9" in capsys.readouterr().out
        assert table.loc["DEAR, default", "confidence"] >= 0.9
        differences = pd.read_csv(tmp_path / "alibi-matched.csv")
        assert differences["baseline"].tolist() == ["CFRL, 5 steps"] * 3
        table = pd.read_csv(tmp_path / "alibi-requirements.csv")
        met = table.set_index("requirement")["met"]
        assert met["validity"] == met["violations"] == "met"

    def test_violations_are_counted(self, experiment):
        metrics, rules = AlibiMetrics.of(experiment), RULES["loan"][0]
        before = metrics.refused
        gender, age, income = (
            experiment.schema.names.index(n) for n in ("gender", "age", "income")
        )
        after = before.copy()
        after[:, income] += 5.0
        assert metrics.violations(before, after, rules) == 0
        after[0, gender] = 1 - after[0, gender]
        after[:2, age] -= 1
        assert metrics.violations(before, after, rules) == 2
        assert (metrics.cost(before, after)[0] > 1.0).all()


class TestMeterAndTables:
    def test_a_fresh_process(self):
        assert in_fresh_process(os.getpid) != os.getpid()

    def test_time_and_memory_are_measured(self):
        with Meter() as meter:
            block = bytearray(64 << 20)
            sum(range(200_000))
        assert len(block) and meter.cpu_s > 0.0
        assert meter.peak_mib > 60.0

    def test_a_table_is_written_as_csv_and_markdown(self, tmp_path):
        rows = [{"a": 1, "b": 0.5, "c": float("nan")}, {"a": 2, "b": 0.012345, "c": "x"}]
        text = tables.write("t", rows, tmp_path, ["numpy"])
        assert "| 1 | 0.500 |  |" in text and "| 2 | 0.0123 | x |" in text
        assert f"numpy {np.__version__}" in text
        assert (tmp_path / "t.md").read_text() == text
        assert pd.read_csv(tmp_path / "t.csv")["a"].tolist() == [1, 2]
