"""benchmark contest: every method with the same dials on the same rejected rows."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dear_plugin.benchmark import contest, contest_tables
from dear_plugin.benchmark.__main__ import main
from dear_plugin.benchmark.contestants import CONTESTANTS, DEFAULT, DIALS, PLAUSIBLE, SUPPORTED
from dear_plugin.datasets import Dataset, load_loan

ARGUMENTS = ["contest", "--settings", "loan", "--splits", "1", "--seeds", "1", "--rows", "12"]
METHODS = ["DEAR", "growing spheres", "nearest accepted"]


def small_loan() -> Dataset:
    return load_loan(1_500)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("contest")
    assert main([*ARGUMENTS, "--methods", *METHODS, "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="module")
def answers(out: Path) -> pd.DataFrame:
    return pd.concat([pd.read_csv(path) for path in out.rglob("answers.csv")])


def answers_of(method: str, costs: list[float], **columns: object) -> pd.DataFrame:
    """Answers of one method on the rows 0, 1, ... of split 0."""
    n = len(costs)
    known = {
        "cell": "loan lr",
        "dial": DEFAULT,
        "method": method,
        "split": 0,
        "row": range(n),
        "seed": 0,
        "success": True,
        "meets": True,
        "cost": costs,
        "zero_action": 0.0,
        "cpu_s": 0.1,
    }
    return pd.DataFrame({**known, **columns})


@pytest.mark.slow
def test_every_method_has_every_dial_and_row_once(answers):
    counts = answers.groupby(["method", "dial"])["row"].agg(["size", "nunique"])
    assert set(counts.index) == {(m, d) for m in METHODS for d in DIALS}
    assert (counts["size"] == counts["nunique"]).all()
    assert counts["size"].nunique() == 1


def test_all_methods_answer_the_same_rows(answers):
    rows = answers.groupby(["method", "dial"])["row"].apply(lambda own: tuple(sorted(own)))
    assert rows.nunique() == 1


def test_answers_that_meet_a_dial_have_its_support(answers):
    for dial in (SUPPORTED, "support 1"):
        met = answers[answers["meets"] & (answers["dial"] == dial)]
        assert len(met)
        assert (met["support"] >= DIALS[dial]["min_support"] - 1e-6).all()


def test_baselines_have_no_replication_and_dear_has_it_at_the_default(answers):
    measured = answers[answers["replicated"].notna()]
    assert set(measured["method"]) == {"DEAR"}
    assert set(measured["dial"]) == {DEFAULT}


def test_tables_and_fronts_are_written(out):
    table, differences = (pd.read_csv(out / f"{n}.csv") for n in ("contest", "differences"))
    assert set(table["method"]) == set(METHODS)
    assert set(differences["method"]) == set(METHODS) - {"DEAR"}
    for measure in ("plausibility", "support", "still_accepted"):
        assert len(pd.read_csv(out / f"front-{measure}.csv"))
        assert (out / "figures" / f"front-{measure}.png").stat().st_size > 1_000


def test_a_second_run_reads_the_first(out, monkeypatch):
    def _fails(*_):
        raise AssertionError("measured again")

    monkeypatch.setattr(contest.Bench, "answers", _fails)
    assert main([*ARGUMENTS, "--methods", *METHODS, "--out", str(out)]) == 0


@pytest.mark.ci
def test_another_number_of_rows_is_another_run(out, monkeypatch):
    measured: list[str] = []
    own = contest.Bench.answers
    monkeypatch.setattr(
        contest.Bench,
        "answers",
        lambda self, name, dials: measured.append(name) or own(self, name, dials),
    )
    other = [*ARGUMENTS[:-1], "5", "--methods", METHODS[-1], "--out", str(out)]
    assert main(other) == 0
    assert measured == [METHODS[-1]]


@pytest.mark.ci
def test_any_dataset_can_be_compared_on(tmp_path):
    arguments = ["--data", f"{__name__}:small_loan", "--models", "lr", "--out", str(tmp_path)]
    size = ["--splits", "1", "--seeds", "1", "--rows", "5"]
    assert main(["contest", *arguments, *size, "--methods", METHODS[-1]]) == 0
    assert set(pd.read_csv(tmp_path / "contest.csv")["cell"]) == {"loan lr"}


def test_a_text_that_names_no_function_is_an_error(tmp_path, capsys):
    assert main([*ARGUMENTS, "--data", "json", "--out", str(tmp_path)]) == 2
    assert "--data: expected module:function" in capsys.readouterr().err


def test_the_difference_is_the_median_over_rows_that_both_meet():
    first = answers_of("DEAR", [1.0, 2.0, 3.0, 9.0])
    second = answers_of("Wachter", [2.0, 4.0, 6.0, 1.0], meets=[True, True, True, False])
    found, rows, cheaper = contest_tables.difference(first, second)
    assert (found.value, rows, cheaper) == (-2.0, 3, 1.0)
    assert found.low <= found.value <= found.high


def test_seeds_of_a_split_are_averaged_before_the_median():
    seeds = [
        answers_of("DEAR", costs, seed=seed) for seed, costs in enumerate([[1.0, 5.0], [3.0, 5.0]])
    ]
    others = [answers_of("Wachter", [4.0, 4.0], seed=seed) for seed in (0, 1)]
    found, rows, _ = contest_tables.difference(pd.concat(seeds), pd.concat(others))
    # Row 0: mean of 1 - 4 and 3 - 4; row 1: 5 - 4.
    assert (found.value, rows) == (np.median([-2.0, 1.0]), 2)


def test_an_action_of_size_zero_is_no_answer():
    first = answers_of("DEAR", [0.0, 2.0], zero_action=[1.0, 0.0])
    _, rows, _ = contest_tables.difference(first, answers_of("Wachter", [1.0, 1.0]))
    assert rows == 1


@pytest.mark.parametrize(
    ("shift", "expected"), [(-1.0, "cheaper"), (0.0, "level"), (1.0, "dearer")]
)
def test_the_verdict_is_clear_only_where_the_interval_is(shift, expected):
    noise = np.linspace(-0.5, 0.5, 41)
    first = answers_of("DEAR", list(3.0 + shift + noise))
    found, rows, _ = contest_tables.difference(first, answers_of("Wachter", [3.0] * 41))
    assert contest_tables.verdict(found, rows) == expected
    assert contest_tables.verdict(found, contest_tables.FEWEST - 1) == "few rows"


def test_the_summary_counts_cells():
    parts = []
    for cell, cost in (("a", 1.0), ("b", 1.0), ("c", 9.0)):
        for dial in (PLAUSIBLE, SUPPORTED, DEFAULT):
            own = answers_of("DEAR", [cost] * 10)
            other = answers_of("Wachter", [3.0] * 10)
            parts += [each.assign(cell=cell, dial=dial) for each in (own, other)]
    (line,) = contest_tables.summary(pd.concat(parts))
    assert line["cells"] == 3
    assert line[f"DEAR, {DEFAULT}"] == "2 / 0 / 1"


def test_every_baseline_takes_part():
    own = {name for name in CONTESTANTS if name.startswith("DEAR")}
    assert own == set(contest_tables.OWN)
    assert len(CONTESTANTS) >= len(own) + 8
