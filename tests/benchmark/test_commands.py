"""The commands on their quick presets, and what they measure."""

import pandas as pd
import pytest

from dear_plugin.benchmark.__main__ import SPECS, main
from dear_plugin.benchmark.splits import data_split
from dear_plugin.datasets import load_loan
from dear_plugin.demo.rivals import at_most


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What the contest measures on a few rows of the loan data."""
    out = tmp_path_factory.mktemp("contest")
    folders = ["--store", str(out), "--out", str(out)]
    assert main(["contest", "--quick", *folders]) == 0
    assert (out / "contest" / "contest.png").stat().st_size > 1_000
    return pd.read_csv(out / "contest.csv", na_values=["nan"])


@pytest.mark.ci
def test_all_methods_answer_the_same_rows(answers):
    rows = answers.groupby("method")["row"].apply(lambda own: tuple(sorted(own)))
    assert len(rows) == 3 and rows.nunique() == 1


def test_answers_are_held_to_copies_where_the_line_says_so(tmp_path):
    folders = ["--store", str(tmp_path), "--out", str(tmp_path)]
    what = ["--cells", "loan lr", "--lines", "copies", "--rows", "4"]
    assert main(["credible", *what, *folders]) == 0
    found = pd.read_csv(tmp_path / "credible.csv", na_values=["nan"])
    answers = found[found["group"] == "answers"]
    assert (answers["agreement"][answers["credible"].astype(bool)] == 1.0).all()
    assert len(answers) == 4


@pytest.mark.ci
def test_answers_of_the_known_equations_are_accepted_in_truth(tmp_path):
    folders = ["--store", str(tmp_path), "--out", str(tmp_path)]
    assert main(["causal", "--quick", "--rows", "20", "--searches", "least effort", *folders]) == 0
    found = pd.read_csv(tmp_path / "causal.csv", na_values=["nan"])
    assert len(found) == 20 and found["solved"].all()
    assert (found["truly accepted"] == 1.0).all()


@pytest.mark.slow
@pytest.mark.real_data
class TestAll:
    @pytest.fixture(scope="class")
    @classmethod
    def out(cls, tmp_path_factory, data_home):
        out = tmp_path_factory.mktemp("tables")
        assert main(["tables", "--quick", "--store", str(out), "--out", str(out / "tables")]) == 0
        return out

    def test_every_command_writes_its_tables(self, out):
        written = {path.parent.name for path in (out / "tables").rglob("*.md")}
        assert written == {"tables", *(spec.name for spec in SPECS)}
        assert all(len(pd.read_csv(out / f"{spec.name}.csv")) for spec in SPECS)

    def test_a_second_run_measures_nothing(self, out):
        before = {path: path.stat().st_mtime_ns for path in (out / "cells").rglob("*.csv")}
        again = out / "again"
        assert main(["tables", "--quick", "--store", str(out), "--out", str(again)]) == 0
        assert {p: p.stat().st_mtime_ns for p in (out / "cells").rglob("*.csv")} == before
        for path in again.rglob("*.md"):
            assert path.read_text() == (out / "tables" / path.relative_to(again)).read_text()


def test_the_own_protocol_has_the_constraints_of_the_data_set(tmp_path):
    data = data_split(tmp_path, "loan")
    constraints = {f.name: (f.immutable, f.direction) for f in data.schema}
    assert constraints["gender"] == (True, 0)
    assert constraints["savings"] == (False, 1)
    assert data.act_on == list(load_loan(10).act_on)


def test_an_endless_search_is_stopped():
    with pytest.raises(TimeoutError, match="CPU seconds"), at_most(0.05):
        while True:
            pass
