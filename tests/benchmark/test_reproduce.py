"""The paper to the letter: tables of hand-written rows, and the quick command on real data."""

import json
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dear_plugin.benchmark import reproduce_tables
from dear_plugin.benchmark.__main__ import main
from dear_plugin.benchmark.reproduce import LINE_SEARCH, PRESET, SWEEP, Variant
from dear_plugin.benchmark.summary import CELLS, PAPER

# The paper's yNN of DEAR by cell.
REPORTED = {cell: PAPER["DEAR"][i][2] for i, cell in enumerate(CELLS)}


def rows_of(cell, ynn, *, variant=PRESET.name, seed=0, success=(1, 1, 1, 1), zero=(0, 0, 0, 0)):
    """Four rows of a variant on a cell."""
    dataset, kind = cell
    done = np.array(success, dtype=bool)
    return pd.DataFrame(
        {
            "success": done,
            "zero": np.array(zero, dtype=bool),
            "cost": [0.1, 0.2, 0.3, 0.4],
            "violations": 0,
            "ynn": np.where(done, ynn, np.nan),
            "variant": variant,
            "dataset": dataset,
            "classifier": kind,
            "seed": seed,
        }
    )


def all_cells(shift, variant=PRESET.name):
    return [rows_of(cell, REPORTED[cell] - shift, variant=variant) for cell in CELLS]


class TestPreset:
    def test_the_mean_over_seeds_has_the_least_and_the_largest(self):
        cell = ("gmc", "ann")
        rows = pd.concat([rows_of(cell, 0.90), rows_of(cell, 0.96, seed=1)])
        (line,) = reproduce_tables.preset(rows)
        assert line["ynn"] == "0.93 (0.90 to 0.96)"
        assert line["within .1"] == "yes" and line["paper_ynn"] == 0.94

    def test_zero_actions_are_a_share_of_the_successes_and_left_out_of_acting(self):
        rows = rows_of(("adult", "lr"), 0.5, success=(1, 1, 1, 0), zero=(1, 0, 0, 0))
        rows.loc[0, "ynn"] = 1.0
        (line,) = reproduce_tables.preset(rows)
        assert (line["success"], line["zero_actions"]) == ("0.75", "0.33")
        assert (line["acting_success"], line["acting_ynn"]) == ("0.50", "0.50")
        assert (line["median_cost"], line["acting_median_cost"]) == ("0.20", "0.25")

    def test_a_cell_that_is_far_is_marked(self):
        (line,) = reproduce_tables.preset(rows_of(("adult", "lr"), 0.84 - 0.11))
        assert line["within .1"] == "no"


class TestSweep:
    def test_cells_near_the_paper_are_counted(self):
        rows = pd.concat([*all_cells(0.05), *all_cells(0.2, "lambda 0")])
        paper, near, far = reproduce_tables.sweep(rows)
        assert paper["adult lr"] == "1.00 0.84"
        assert (near["within .1"], far["within .1"]) == ("6 of 6", "0 of 6")
        assert near["adult lr"] == "1.00 0.79 0.25 0.00"

    def test_the_requirement_names_the_nearest_setting(self):
        rows = pd.concat([*all_cells(0.2), *all_cells(0.05, "lambda 0")])
        literal, best = reproduce_tables.requirement(rows)
        assert not literal.met and literal.measured == "0 cells"
        assert best.met and best.requirement.endswith("lambda 0")

    def test_the_accelerated_line_is_no_setting_of_the_sweep(self):
        rows = pd.concat([*all_cells(0.2), *all_cells(0.0, LINE_SEARCH.name)])
        assert not any(each.met for each in reproduce_tables.requirement(rows))

    def test_all_names_differ_and_so_do_the_settings(self):
        variants = (PRESET, LINE_SEARCH, *SWEEP)
        assert len({variant.name for variant in variants}) == len(variants)
        unnamed = [replace(variant, name="") for variant in variants]
        assert all(a != b for i, a in enumerate(unnamed) for b in unnamed[:i])

    def test_the_fit_is_named_by_what_it_depends_on(self):
        assert PRESET.fit_name == LINE_SEARCH.fit_name == Variant("other").fit_name
        trained = [v.fit_name for v in SWEEP if v.hessian != PRESET.hessian or v.training]
        assert len(set(trained)) == len(trained) and PRESET.fit_name not in trained


@pytest.fixture(scope="module")
def out(tmp_path_factory, data_home):
    out = tmp_path_factory.mktemp("reproduce")
    assert main(["reproduce", "--quick", "--out", str(out)]) == 0
    return out


@pytest.mark.real_data
@pytest.mark.slow
class TestQuick:
    def test_every_line_is_in_the_tables(self, out):
        lines = pd.read_csv(out / "literal.csv")
        assert list(lines["line"]) == [PRESET.name, LINE_SEARCH.name]
        assert len(pd.read_csv(out / "literal-sweep.csv")) == 1 + 2 + 2

    def test_only_the_accelerated_line_has_no_zero_actions(self, out):
        zero = pd.read_csv(out / "literal.csv").set_index("line")["zero_actions"]
        assert zero[LINE_SEARCH.name] == 0.0

    def test_the_training_is_recorded(self, out):
        (line,) = pd.read_csv(out / "literal-training.csv").to_dict("records")
        assert line["stopped"].startswith("no better for") or line["stopped"] == "all steps taken"
        assert 0.0 < line["round_trip"] < 0.05

    def test_a_second_run_reads_what_is_stored(self, out):
        before = {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("*.csv")}
        start = time.process_time()
        assert main(["reproduce", "--quick", "--out", str(out)]) == 0
        assert time.process_time() - start < 30
        assert {p: p.stat().st_mtime_ns for p in (out / "runs").rglob("*.csv")} == before
        assert json.loads(next((out / "fits").rglob("training.json")).read_text())["seed"] == 0
