"""Tables of hand-written rows: contest, credible, hosts, reproduce, trees."""

import numpy as np
import pandas as pd
import pytest

from dear_plugin.benchmark import contest_tables, credible_tables, hosts_tables, reproduce_tables
from dear_plugin.benchmark.credible_tables import requirements
from dear_plugin.benchmark.reproduce_tables import CELLS, PAPER, PRESET
from dear_plugin.benchmark.trees import summary as of_trees


def answers_of(method, costs, **columns):
    """Answers of one method of the contest on the rows 0, 1, ..."""
    known = {
        "cell": "loan lr",
        "method": method,
        "row": range(len(costs)),
        "success": True,
        "meets": True,
        "cost": costs,
        "direct_cost": np.asarray(costs) / 2.0,
        "zero_action": 0.0,
        "seconds": 0.1,
    }
    return pd.DataFrame({**known, **columns})


class TestContest:
    def test_the_difference_is_the_median_over_rows_that_both_meet(self):
        first = answers_of("DEAR", [1.0, 2.0, 3.0, 9.0])
        second = answers_of("Wachter", [2.0, 4.0, 6.0, 1.0], meets=[True, True, True, False])
        found = contest_tables.compared(first, second)
        value, low, high = found.difference
        assert (value, found.rows, found.cheaper) == (-2.0, 3, 1.0)
        assert low <= value <= high
        effort = contest_tables.compared(first, second, "direct_cost")
        assert effort.difference.value == -1.0

    @pytest.mark.parametrize(
        ("shift", "expected"), [(-1.0, "cheaper"), (0.0, "level"), (1.0, "dearer")]
    )
    def test_the_verdict_is_clear_only_where_the_interval_is(self, shift, expected):
        first = answers_of("DEAR", list(3.0 + shift + np.linspace(-0.5, 0.5, 41)))
        found = contest_tables.compared(first, answers_of("Wachter", [3.0] * 41))
        assert contest_tables.verdict(found) == expected
        few = found._replace(rows=contest_tables.FEWEST - 1)
        assert contest_tables.verdict(few) == "few rows"

    @pytest.fixture
    def cells(self):
        parts = []
        for cell, cost in (("a", 1.0), ("b", 5.0), ("c", 9.0)):
            own = answers_of("DEAR", [cost] * 10)
            other = answers_of("Wachter", [3.0] * 10, direct_cost=3.0)
            parts += [each.assign(cell=cell) for each in (own, other)]
        return pd.concat(parts)

    def test_the_summary_counts_cells_by_cost_and_by_effort(self, cells):
        (line,) = contest_tables.summary(contest_tables.differences(cells))
        assert line["cells"] == 3
        assert line["DEAR, cost"] == "1 / 0 / 2"
        assert line["DEAR, effort"] == "2 / 0 / 1"


class TestCredible:
    @pytest.fixture
    def rows(self):
        names = [*credible_tables.SHARES.values(), "outlier", "outlier_before", "unseen"]
        rows = pd.DataFrame({"row": range(4), "cell": "c", "success": True})
        rows = rows.assign(**dict.fromkeys([*names, "cost", "indirect_cost", "reliance"], 0.0))
        rows["promised_confidence"], rows["replicated_indirect"] = 1.0, [0.0, 1.0, None, None]
        return rows.assign(line="default")

    def test_differences_are_of_rows_of_both_lines(self, rows):
        base = rows.assign(line="cheapest")
        other = rows.iloc[:3].assign(replicated=0.5)
        (row,) = credible_tables.differences(pd.concat([base, other]))
        assert (row["rows"], row["replication"]) == (3, "0.50 [0.50, 0.50]")

    def test_tiers_are_with_without_and_the_difference(self, rows):
        without = {"cost": [1.0, 1.0, 1.0, 9.0], "success": [True, True, True, False]}
        other = rows.assign(line="without tiers", reliance=1.0, **without)
        found = list(credible_tables.tiers(pd.concat([rows, other])))
        assert [row["tiers"] for row in found] == ["with", "without", "with - without"]
        # Rows that are not solved have no cost.
        assert [row["cost"][:5] for row in found] == ["0.00 ", "1.00 ", "-1.00"]
        assert [row["reliance 0"][:5] for row in found] == ["1.00 ", "0.00 ", "1.00 "]
        assert found[0]["calibration error"] == "1.000"
        assert found[0]["of those that need it"] == "1.000 (n = 2)"
        assert not list(credible_tables.tiers(rows))

    def test_calibration_is_within_bins_of_confidence(self):
        found = pd.DataFrame({"promised_confidence": [1.0, 1.0, 0.5], "replicated": [1, 0, 1]})
        assert credible_tables.calibration_error(found) == pytest.approx(0.5)

    def test_a_requirement_names_the_cells_that_miss_it(self, rows):
        rows = rows.assign(credible=[True, True, True, False], joint=0.52, replicated=1.0)
        other = rows.assign(cell="d", replicated=[1.0, 0.0, 1.0, 1.0], joint=0.6, outlier=1.0)
        real = pd.DataFrame({"cell": ["c", "d"], "group": "anybody", "unseen": [0.0, 0.5]})
        table = requirements(pd.concat([rows, other]), real)
        found = {row["requirement"]: row for row in table}
        replication = found["replication: at least 0.9"]
        assert (replication["met in"], replication["from, to"]) == ("1 of 2 cells", "0.75, 1.00")
        assert replication["not met"].startswith("d 0.75 [")
        assert found["joint AUC: at most 0.53"]["not met"] == "d 0.600"
        outliers = found["outliers of credible answers above factuals: at most 0.03"]
        assert outliers["not met"] == "d 1.00 [1.00, 1.00]"
        assert not found["unseen pairs above held-out rows: at most 0.005"]["not met"]
        credible = found["rows with a credible answer"]
        assert (credible["met in"], credible["from, to"]) == ("", "0.75, 0.75")


class TestHosts:
    @pytest.fixture
    def lines(self):
        rows = {"row": range(4), "data": "d", "needed": True, "support": 0.4, "credible": False}
        rows |= {"alone": 1.0, "seconds": [0.1, 0.1, 0.3, 0.3], "fit_cpu_s": 2.0}
        done = np.array([True, True, True, False])
        plausible = {"DEAR": done, "random": np.array([True, True, False, False])}
        found = []
        for name, more in (("DEAR", 0.0), ("random", 1.0)):
            cost = np.where(done, [1.0, 2.0, 3.0, 0.0], np.nan) + more
            own = pd.DataFrame({**rows, "success": done, "cost": cost, "direct_cost": cost / 2.0})
            found.append(own.assign(method=name, plausible=plausible[name]))
        return hosts_tables.measured(pd.concat(found)).set_index(["method", "measure"])

    def test_measures_are_of_all_rows_or_of_solved_ones(self, lines):
        measures = ("solved", "plausible", "effort", "cost", "seconds", "fit")
        found = [lines.loc[("random", name), "value"] for name in measures]
        assert found == pytest.approx([0.75, 0.5, 1.5, 3.0, 0.2, 2.0])
        assert (lines.loc[("random", "seconds"), ["low", "high"]] == [0.1, 0.3]).all()
        assert lines.loc[("random", "effort"), "rows"] == 3

    def test_efforts_are_compared_where_both_are_plausible(self, lines):
        found = lines.loc[("random", hosts_tables.LESS)]
        assert found[["value", "low", "high", "rows"]].tolist() == [0.5, 0.5, 0.5, 2]


def rows_of(cell, ynn, *, line=PRESET, success=(1, 1, 1, 1), zero=(0, 0, 0, 0)):
    """Four rows of a line of `reproduce`."""
    done = np.array(success, dtype=bool)
    known = {"success": done, "zero": np.array(zero, dtype=bool), "violations": 0, "line": line}
    known |= {"cost": [0.1, 0.2, 0.3, 0.4], "ynn": np.where(done, ynn, np.nan)}
    dataset, kind = cell
    return pd.DataFrame(known).assign(dataset=dataset, classifier=kind, autoencoders="trained")


def all_cells(shift, line=PRESET):
    reported = {cell: PAPER["DEAR"][i][2] for i, cell in enumerate(CELLS)}
    return [rows_of(cell, reported[cell] - shift, line=line) for cell in CELLS]


def test_cells_near_the_paper_are_counted():
    rows = pd.concat([*all_cells(0.05), *all_cells(0.2, "lambda 0")])
    paper, near, far = reproduce_tables.sweep(rows)
    assert paper["adult lr"] == "1.00 0.84"
    assert (near["within .1"], far["within .1"]) == ("6 of 6", "0 of 6")
    assert near["adult lr"] == "1.00 0.79 0.25 0.00"


def test_rows_that_cannot_be_solved_are_not_missed():
    found = pd.DataFrame({"dear": [2.0, np.inf, np.inf], "optimum": [1.0, 1.0, np.inf]})
    line = of_trees(found)
    assert (line["solvable"], line["missed"], line["mean"], line["excess"]) == (2, 1, 2.0, 1.0)
