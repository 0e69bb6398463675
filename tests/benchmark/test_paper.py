"""The paper's experiment: a table by hand, and the quick command on real data."""

import json

import numpy as np
import pandas as pd
import pytest

from dear_plugin.benchmark import summary
from dear_plugin.benchmark.__main__ import main
from dear_plugin.benchmark.contenders import CONTENDERS

CELL = {"dataset": "gmc", "classifier": "ann", "seed": 0, "rows": 4, "accuracy": 0.9, "plateau": 0}


def people(method, cost, ynn, success=(True, True, True, True)):
    """Four people's lines as a run leaves them."""
    known = CONTENDERS[method]
    lines = pd.DataFrame({"row": range(4), "success": success, "cost": cost, "ynn": ynn})
    for name in ("direct_cost", "indirect_cost", "suppressed_cost", "l0", "l2", "linf"):
        lines[name] = lines["cost"]
    return lines.assign(
        method=method,
        family=known.family,
        violations=0,
        support=lines["ynn"],
        redundancy=0.0,
        fit_cpu_s=1.0,
        cpu_s=0.01,
        **CELL,
    )


OURS = pd.concat(
    [
        people("DEAR", [1, 1, 1, 1], [0.2] * 4),
        people("DEAR, support 0.6", [2, 2, 2, 2], [0.7] * 4),
        people("DEAR, support 1", [3, 3, 3, 3], [1.0] * 4),
    ]
)


@pytest.fixture(scope="module")
def out(tmp_path_factory, data_home):
    out = tmp_path_factory.mktemp("paper")
    assert main(["paper", "--quick", "--out", str(out)]) == 0
    return out


class TestContest:
    def test_of_the_lines_supported_enough_the_cheapest_counts(self):
        rival = people("REVISE", [2.5] * 4, [0.65] * 4)
        (line,) = summary.contest(pd.concat([OURS, rival]), "DEAR")
        assert (line["ours"], line["cost"], line["rival_cost"]) == ("DEAR, support 0.6", 2.0, 2.5)
        assert line["ahead"] == "yes"

    def test_it_is_said_where_the_rival_is_cheaper(self):
        rival = people("REVISE", [1.5] * 4, [0.65] * 4)
        (line,) = summary.contest(pd.concat([OURS, rival]), "DEAR")
        assert line["ahead"] == "NO"

    def test_no_support_to_match_is_not_being_ahead(self):
        rival = people("REVISE", [9.0] * 4, [1.1] * 4)
        (line,) = summary.contest(pd.concat([OURS, rival]), "DEAR")
        assert (line["ours"], line["matched"], line["ahead"]) == ("DEAR, support 1", False, "NO")

    def test_only_people_whom_both_solve_count(self):
        nan = np.nan
        rival = people("CLUE", [0.5, 9, 9, 9], [0.1, nan, nan, nan], (True, False, False, False))
        (line,) = summary.contest(pd.concat([OURS, rival]), "DEAR")
        assert (line["both"], line["rival_cost"], line["starred"]) == (1, 0.5, "*")

    def test_a_rival_that_solves_nobody_is_there(self):
        rival = people("CLUE", [9] * 4, [np.nan] * 4, (False,) * 4)
        (line,) = summary.contest(pd.concat([OURS, rival]), "DEAR")
        assert line["rival_success"] == 0.0 and line["starred"] == "*"


class TestTables:
    def test_the_papers_values_stand_beside_ours(self):
        rival = people("REVISE", [1] * 4, [0.5] * 4)
        first, *_, last = summary.reliability(pd.concat([OURS, rival]))
        assert first["gmc ann"] == "1.00 0.00 0.20 (1.00 - 0.94)"
        assert last["gmc ann"] == "1.00 0.00 0.50 (1.00 - 0.95)"

    def test_costs_are_of_those_solved(self):
        rival = people("CLUE", [1, 3, 99, 99], [0.5] * 4, (True, True, False, False))
        (line,) = summary.measures(rival)
        assert line["success"] == 0.5 and line["cost_median"] == 2.0

    def test_every_rival_of_the_paper_has_a_row_there(self):
        assert {c.paper for c in CONTENDERS.values()} - {""} == set(summary.PAPER)


@pytest.mark.real_data
class TestQuick:
    def test_every_contender_is_in_every_cell(self, out):
        lines = pd.read_csv(out / "reliability.csv")
        assert list(lines["method"]) == list(CONTENDERS)
        assert lines.notna().all(axis=None)

    def test_our_success_is_whole_and_nothing_is_violated(self, out):
        told = pd.read_csv(out / "measures.csv")
        ours = told[told["method"].str.startswith("DEAR")]
        assert (ours["success"] == 1.0).all() and (ours["violations"] == 0.0).all()
        assert (told["violations"].fillna(0.0) == 0.0).all()

    def test_nobody_is_dropped(self, out):
        told = pd.read_csv(out / "people.csv", keep_default_na=False)
        assert (told.groupby(["classifier", "method"]).size() == 50).all()
        assert (told.loc[told["success"] == "False", "reason"] != "").all()

    def test_a_second_time_reads_what_is_there(self, out, capsys):
        records = {path: path.stat().st_mtime_ns for path in out.rglob("record.json")}
        before = pd.read_csv(out / "measures.csv")
        assert main(["paper", "--quick", "--out", str(out)]) == 0
        assert {path: path.stat().st_mtime_ns for path in out.rglob("record.json")} == records
        pd.testing.assert_frame_equal(pd.read_csv(out / "measures.csv"), before)

    def test_a_run_says_how_it_was_made(self, out):
        record = json.loads((out / "runs/compas-lr-0/revise/record.json").read_text())
        assert record["method"] == "REVISE" and record["seed"] == 0
        assert "torch" in record["made_with"]

    def test_the_figures_are_there(self, out):
        drawn = {path.stem for path in (out / "figures").glob("*.png")}
        wanted = {"frontier", "costs-compas", "splits-compas", "pairs-compas"}
        assert wanted | {"entanglement-compas"} == drawn
