"""`python -m dear_plugin.benchmark credible`: on the loan data, which need no download."""

import pandas as pd
import pytest
import torch

from dear_plugin import Encoder, Schema
from dear_plugin.benchmark import credible_tables
from dear_plugin.benchmark.__main__ import main
from dear_plugin.benchmark.answer_metrics import CONFIGURATIONS, Fits
from dear_plugin.benchmark.bootstrap import retrained
from dear_plugin.benchmark.classifiers import Recipe, accuracy, trained
from dear_plugin.benchmark.credible import ANSWERS, RunPlan
from dear_plugin.benchmark.data_splits import CELLS, SETTINGS, DataSplit
from dear_plugin.datasets import load_loan

ARGUMENTS = ["credible", "--cells", "loan lr", "--lines", "cheapest", "--splits", "2"]


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    out = tmp_path_factory.mktemp("credible")
    assert main([*ARGUMENTS, "--rows", "30", "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="module")
def values(out):
    table = pd.read_csv(out / "credible-values.csv")
    return table.set_index("metric")


@pytest.mark.ci
class TestTheCommand:
    def test_one_line_per_cell_and_configuration(self, out):
        table = pd.read_csv(out / "credible.csv")
        assert table[["cell", "line", "splits", "rows"]].to_numpy().tolist() == [
            ["loan lr", "cheapest", 2, 60]
        ]
        assert (out / "credible.md").read_text("utf8").startswith("| cell | line |")

    def test_shares_are_in_their_intervals(self, values):
        for metric in ("success", "replication", "alone", "noise 1,000", "retrained"):
            row = values.loc[metric]
            assert 0.0 <= row["low"] <= row["value"] <= row["high"] <= 1.0

    def test_joint_auc_of_answers_and_of_independent_changes(self, values):
        joint, independent = values.loc[["joint AUC", "joint AUC, independent"], "value"]
        assert 0.45 < joint < independent < 0.75

    def test_stored_runs_are_not_repeated(self, out):
        kept = {path: path.stat().st_mtime_ns for path in (out / "runs").rglob(ANSWERS)}
        assert len(kept) == 2
        assert main([*ARGUMENTS, "--rows", "30", "--out", str(out)]) == 0
        assert {path: path.stat().st_mtime_ns for path in kept} == kept

    def test_stored_runs_can_be_printed(self, out):
        arguments = ["credible", "--rows", "30", "--out", str(out), "--kept"]
        assert main(arguments) == 0
        assert len(pd.read_csv(out / "credible.csv")) == 1

    def test_kept_without_stored_runs_is_an_error(self, tmp_path, capsys):
        assert main(["credible", "--out", str(tmp_path), "--kept"]) == 2
        assert "has no stored run of this size" in capsys.readouterr().err

    @pytest.mark.slow
    def test_another_number_of_rows_is_another_run(self, out):
        (one,) = (out / "runs" / "loan-lr-0").rglob(ANSWERS)
        before = len(pd.read_csv(one))
        arguments = ["credible", "--cells", "loan lr", "--lines", "cheapest", "--splits", "1"]
        assert main([*arguments, "--rows", "10", "--out", str(out)]) == 0
        assert (before, len(pd.read_csv(one))) == (30, 10)


class TestDifferences:
    def test_are_of_rows_of_both_lines(self):
        names = ["cost", *credible_tables.SHARES.values(), "outlier", "unseen"]
        rows = pd.DataFrame({"row": range(4), "split": 0, "cell": "c"})
        base = rows.assign(line="cheapest", **dict.fromkeys(names, 0.0))
        other = rows.iloc[:3].assign(line="other", **dict.fromkeys(names, 0.5))
        (row,) = credible_tables.differences(pd.concat([base, other]))
        assert row["rows"] == 3
        assert row["replication"] == "0.50 [0.50, 0.50]"


class TestTiers:
    def lines(self, **columns):
        rows = pd.DataFrame({"row": range(4), "split": 0, "cell": "c", "success": True})
        zeros = ["cost", "indirect_cost", "reliance", "outlier", "outlier_before", "credible"]
        rows = rows.assign(**dict.fromkeys([*zeros, "still_accepted", "replicated"], 0.0))
        rows["promised_confidence"], rows["replicated_indirect"] = 1.0, [0.0, 1.0, None, None]
        other = rows.assign(line="without tiers", **columns)
        return pd.concat([rows.assign(line="default"), other])

    def test_with_without_and_the_difference(self):
        found = list(credible_tables.tiers(self.lines(cost=0.5, reliance=1.0)))
        assert [row["tiers"] for row in found] == ["with", "without", "with - without"]
        assert [row["cost"][:5] for row in found] == ["0.00 ", "0.50 ", "-0.50"]
        assert [row["reliance 0"][:5] for row in found] == ["1.00 ", "0.00 ", "1.00 "]

    def test_calibration_is_also_that_of_answers_that_need_the_indirect_change(self):
        first = next(credible_tables.tiers(self.lines()))
        assert first["calibration error"] == "1.000"
        assert first["of those that need it"] == "1.000 (n = 2)"

    def test_unsolved_rows_have_no_cost(self):
        rows = self.lines(success=[True, True, True, False], cost=[1.0, 1.0, 1.0, 9.0])
        assert [row["cost"][:4] for row in credible_tables.tiers(rows)][1] == "1.00"

    def test_a_cell_with_one_of_the_lines_is_left_out(self):
        rows = self.lines()
        assert not list(credible_tables.tiers(rows[rows["line"] == "default"]))

    def test_the_line_without_tiers_is_fitted_without_them(self, tmp_path):
        data = DataSplit(SETTINGS["loan"], 0, tmp_path)
        fits = [Fits(data, CONFIGURATIONS[n].spec) for n in ("default", "without tiers")]
        assert [bool(each.whole.schema.tiers) for each in fits] == [True, False]

    def test_the_papers_protocol_has_none_to_leave_out(self, tmp_path):
        plan = RunPlan(["adult lr", "loan lr"], ["without tiers"], 1, 1, 10, tmp_path)
        assert [run.key["cell"] for run in plan.runs()] == ["loan lr"]


class TestDataSplits:
    def test_cells_cover_the_paper_own_constraints_trees_and_loans(self):
        assert len(CELLS) == 14
        assert {setting.own for setting in SETTINGS.values()} == {True, False}

    def test_the_own_protocol_has_the_constraints_of_the_data_set(self, tmp_path):
        data = DataSplit(SETTINGS["loan"], 0, tmp_path)
        constraints = {f.name: (f.immutable, f.direction) for f in data.schema}
        assert constraints["gender"] == (True, 0)
        assert constraints["savings"] == (False, 1)
        assert data.act_on == list(load_loan(10).act_on)

    @pytest.mark.ci
    def test_a_model_read_from_its_file_is_the_same(self, tmp_path):
        first, again = (DataSplit(SETTINGS["loan"], 0, tmp_path).model("lr") for _ in range(2))
        test = DataSplit(SETTINGS["loan"], 0, tmp_path).parts[1]
        assert (first.accepts(test) == again.accepts(test)).all()
        assert first.refused.equals(again.refused)
        assert not first.accepts(first.refused).any()
        assert len(first.retrained) == 5
        assert any((other(test) != first.accepts(test)).any() for other in first.retrained)


@pytest.mark.ci
class TestRetrained:
    def test_accuracies_are_those_of_single_training(self):
        data = load_loan(3000)
        encoder = Encoder(Schema.infer(data.features))
        x, labels = encoder.encode(data.features), torch.tensor(data.labels.to_numpy())
        state = torch.random.get_rng_state()
        settings = Recipe(64, 20, 0.02)
        nets = retrained("lr", x, labels, settings, count=3, seed=0)
        assert torch.equal(state, torch.random.get_rng_state())
        single = accuracy(trained("lr", x, labels, settings), x, labels)
        assert [accuracy(net, x, labels) for net in nets] == pytest.approx([single] * 3, abs=0.02)
        with torch.no_grad():
            scores = torch.cat([net(x[:200]) for net in nets], 1)
        assert (scores.std(1) > 1e-3).all()
