"""The paper's experiment: tables of hand-written runs, and the quick command on real data."""

import json

import numpy as np
import pandas as pd
import pytest

from dear_plugin.benchmark import summary
from dear_plugin.benchmark.__main__ import main
from dear_plugin.benchmark.method_specs import METHOD_SPECS
from dear_plugin.benchmark.paper import ROWS

CELL = {"dataset": "gmc", "classifier": "ann", "seed": 0, "rows": 4, "accuracy": 0.9, "plateau": 0}


def run_rows(method, cost, ynn, success=(True, True, True, True)):
    """Four rows of a stored run."""
    known = METHOD_SPECS[method]
    lines = pd.DataFrame({"row": range(4), "success": success, "cost": cost, "ynn": ynn})
    for name in ("direct_cost", "indirect_cost", "suppressed_cost", "l0", "l2", "linf"):
        lines[name] = lines["cost"]
    return lines.assign(
        method=method,
        family=known.family,
        violations=0,
        zero=False,
        support=lines["ynn"],
        redundancy=0.0,
        fit_cpu_s=1.0,
        cpu_s=0.01,
        **CELL,
    )


DEAR_RUNS = pd.concat(
    [
        run_rows("DEAR", [1, 1, 1, 1], [0.2] * 4),
        run_rows("DEAR, support 0.6", [2, 2, 2, 2], [0.7] * 4),
        run_rows("DEAR, support 1", [3, 3, 3, 3], [1.0] * 4),
    ]
)


@pytest.fixture(scope="module")
def out(tmp_path_factory, data_home):
    out = tmp_path_factory.mktemp("paper")
    assert main(["paper", "--quick", "--out", str(out)]) == 0
    return out


class TestComparison:
    def test_the_cheapest_line_with_enough_support_is_compared(self):
        baseline = run_rows("REVISE", [2.5] * 4, [0.65] * 4)
        (line,) = summary.comparison(pd.concat([DEAR_RUNS, baseline]), "DEAR")
        assert (line["dear"], line["cost"], line["baseline_cost"]) == (
            "DEAR, support 0.6",
            2.0,
            2.5,
        )
        assert line["cheaper"] == "yes"

    def test_a_cheaper_baseline_is_reported(self):
        baseline = run_rows("REVISE", [1.5] * 4, [0.65] * 4)
        (line,) = summary.comparison(pd.concat([DEAR_RUNS, baseline]), "DEAR")
        assert line["cheaper"] == "NO"

    def test_without_enough_support_it_is_not_cheaper(self):
        baseline = run_rows("REVISE", [9.0] * 4, [1.1] * 4)
        (line,) = summary.comparison(pd.concat([DEAR_RUNS, baseline]), "DEAR")
        assert (line["dear"], line["matched"], line["cheaper"]) == ("DEAR, support 1", False, "NO")

    def test_only_rows_that_both_solve_count(self):
        nan = np.nan
        baseline = run_rows(
            "CLUE", [0.5, 9, 9, 9], [0.1, nan, nan, nan], (True, False, False, False)
        )
        (line,) = summary.comparison(pd.concat([DEAR_RUNS, baseline]), "DEAR")
        assert (line["both"], line["baseline_cost"], line["starred"]) == (1, 0.5, "*")

    def test_a_baseline_without_success_is_in_the_table(self):
        baseline = run_rows("CLUE", [9] * 4, [np.nan] * 4, (False,) * 4)
        (line,) = summary.comparison(pd.concat([DEAR_RUNS, baseline]), "DEAR")
        assert line["baseline_success"] == 0.0 and line["starred"] == "*"


class TestTables:
    def test_the_papers_values_are_in_brackets(self):
        baseline = run_rows("REVISE", [1] * 4, [0.5] * 4)
        first, *_, last = summary.reliability(pd.concat([DEAR_RUNS, baseline]))
        assert first["gmc ann"] == "1.00 0.00 0.20 (1.00 - 0.94)"
        assert last["gmc ann"] == "1.00 0.00 0.50 (1.00 - 0.95)"

    def test_costs_are_of_solved_rows(self):
        baseline = run_rows("CLUE", [1, 3, 99, 99], [0.5] * 4, (True, True, False, False))
        (line,) = summary.measures(baseline)
        assert line["success"] == 0.5 and line["cost_median"] == 2.0

    def test_the_share_of_zero_actions_is_of_successes(self):
        name = "DEAR, the paper to the letter"
        rows = run_rows(name, [1] * 4, [0.5] * 4, (True, True, True, False))
        rows["zero"] = [True, False, False, False]
        (line,) = summary.measures(rows)
        assert line["zero_actions"] == pytest.approx(1 / 3)

    def test_every_method_of_the_paper_has_its_values(self):
        assert {c.paper for c in METHOD_SPECS.values()} - {""} == set(summary.PAPER)


@pytest.mark.real_data
@pytest.mark.slow
class TestQuick:
    def test_every_method_is_in_every_cell(self, out):
        lines = pd.read_csv(out / "reliability.csv")
        assert list(lines["method"]) == list(METHOD_SPECS)
        assert lines.notna().all(axis=None)

    def test_dear_solves_all_rows_but_by_gradients_and_no_method_violates(self, out):
        table = pd.read_csv(out / "measures.csv")
        by_gradient = table["method"].str.startswith("DEAR, the paper")
        dear = table[table["method"].str.startswith("DEAR") & ~by_gradient]
        assert (dear["success"] == 1.0).all() and (dear["violations"] == 0.0).all()
        assert (table["violations"].fillna(0.0) == 0.0).all()

    def test_only_the_literal_line_has_zero_actions(self, out):
        table = pd.read_csv(out / "measures.csv").set_index("method")["zero_actions"]
        assert (table.drop("DEAR, the paper to the letter").fillna(0.0) == 0.0).all()
        assert (table["DEAR, the paper to the letter"] > 0.0).any()

    def test_no_row_is_dropped(self, out):
        rows = pd.read_csv(out / ROWS, keep_default_na=False)
        assert (rows.groupby(["classifier", "method"]).size() == 20).all()
        assert (rows.loc[rows["success"] == "False", "reason"] != "").all()

    def test_a_second_run_reads_stored_runs(self, out, capsys):
        records = {path: path.stat().st_mtime_ns for path in out.rglob("record.json")}
        before = pd.read_csv(out / "measures.csv")
        assert main(["paper", "--quick", "--out", str(out)]) == 0
        assert {path: path.stat().st_mtime_ns for path in out.rglob("record.json")} == records
        pd.testing.assert_frame_equal(pd.read_csv(out / "measures.csv"), before)

    def test_a_run_has_a_record(self, out):
        record = json.loads((out / "runs/compas-lr-0/revise/record.json").read_text())
        assert record["method"] == "REVISE" and record["seed"] == 0
        assert "torch" in record["made_with"]

    def test_all_figures_are_drawn(self, out):
        drawn = {path.stem for path in (out / "figures").glob("*.png")}
        parts = ("cost-splits", "splits-compas", "pairs-compas")
        wanted = {"frontier", "costs-compas", *parts, *(f"{name}-literal" for name in parts)}
        assert wanted | {"entanglement-compas"} == drawn
