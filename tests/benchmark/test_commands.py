"""The commands on their quick presets, and what they measure."""

import os

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import Encoder, Schema
from dear_plugin.benchmark.__main__ import SPECS, main
from dear_plugin.benchmark.causal import Equations
from dear_plugin.benchmark.contest import DIALS, METHODS
from dear_plugin.benchmark.contest_tables import DEFAULT, OWN, PLAUSIBLE
from dear_plugin.benchmark.fits import fits_of
from dear_plugin.benchmark.meter import Meter, in_fresh_process
from dear_plugin.benchmark.metrics import decision
from dear_plugin.benchmark.models import retrained
from dear_plugin.benchmark.splits import CELLS, SETTINGS, DataSplit, data_split, scored_model
from dear_plugin.datasets import load_loan
from dear_plugin.decoders import Sample
from dear_plugin.demo.classifiers import Recipe, accuracy, trained
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
class TestContest:
    def test_all_methods_answer_the_same_rows(self, answers):
        rows = answers.groupby(["method", "dial"])["row"].apply(lambda own: tuple(sorted(own)))
        assert len(rows) == 6 and rows.nunique() == 1

    def test_answers_that_meet_a_requirement_have_its_plausibility(self, answers):
        least = DIALS[PLAUSIBLE]["min_plausibility"]
        own = answers[answers["dial"] == PLAUSIBLE]
        assert own["meets"].any()
        assert (own.loc[own["meets"], "plausibility"] >= least - 1e-6).all()

    def test_dear_has_replication_at_the_default(self, answers):
        measured = answers[answers["replicated"].notna()]
        assert set(measured["method"]) == {"DEAR"} and set(measured["dial"]) == {DEFAULT}


def test_answers_are_held_to_copies_where_the_line_says_so(tmp_path):
    folders = ["--store", str(tmp_path), "--out", str(tmp_path)]
    what = ["--cells", "loan lr", "--lines", "copies", "--splits", "1", "--rows", "4"]
    assert main(["credible", *what, *folders]) == 0
    found = pd.read_csv(tmp_path / "credible.csv", na_values=["nan"])
    answers = found[found["who"] == "answers"]
    assert (answers["agreement"][answers["credible"].astype(bool)] == 1.0).all()
    assert len(answers) == 4


@pytest.mark.ci
def test_answers_of_the_known_equations_are_accepted_in_truth(tmp_path):
    folders = ["--store", str(tmp_path), "--out", str(tmp_path)]
    assert main(["causal", "--quick", "--rows", "20", "--searches", "least effort", *folders]) == 0
    found = pd.read_csv(tmp_path / "causal.csv", na_values=["nan"])
    assert len(found) == 20 and found["solved"].all()
    assert (found["truly accepted"] == 1.0).all()


def test_the_equations_decode_to_what_follows_in_the_simulator():
    frame = load_loan(200).features
    encoder, (at,) = (
        Encoder(schema := Schema.infer(frame)),
        Schema.infer(frame).index(["loan_amount"]),
    )
    decoder, x = Equations(), encoder.rows(frame)
    decoder.fit(Sample(x, encoder), (at,), ())
    values = torch.stack([x[:, at], x[:, at] - 0.1], 1)[..., None]
    stays, less = decoder.decode(x, decoder.encode(x), values).unbind(1)
    assert torch.allclose(stays, x, atol=1e-5)
    told = encoder.frame(less)
    # The term of a loan falls by two months for each thousand euros, all else is no consequence.
    fall = 2.0 * (frame["loan_amount"] - told["loan_amount"])
    assert ((frame["duration"] - told["duration"]) - fall).abs().max() < 1.01
    same = [name for name in schema.names if name not in ("loan_amount", "duration")]
    assert torch.allclose(less[:, schema.index(same)], x[:, schema.index(same)], atol=1e-5)


def test_every_baseline_takes_part():
    assert set(OWN) == {name for name in METHODS if name.startswith("DEAR")}
    assert len(METHODS) >= len(OWN) + 8


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


class TestSplits:
    def test_cells_cover_the_paper_own_constraints_trees_and_loans(self):
        assert len(CELLS) == 14
        assert {setting.own for setting in SETTINGS.values()} == {True, False}

    def test_the_own_protocol_has_the_constraints_of_the_data_set(self, tmp_path):
        data = data_split(tmp_path, "loan", 0)
        constraints = {f.name: (f.immutable, f.direction) for f in data.schema}
        assert constraints["gender"] == (True, 0)
        assert constraints["savings"] == (False, 1)
        assert data.act_on == list(load_loan(10).act_on)

    def test_a_line_without_tiers_is_fitted_without_them(self, tmp_path):
        data = data_split(tmp_path, "loan", 0)
        fits = [fits_of(data, tiers=tiers).whole.schema.tiers for tiers in (True, False)]
        assert [bool(tiers) for tiers in fits] == [True, False]

    @pytest.mark.ci
    def test_a_model_read_from_its_file_is_the_same(self, tmp_path):
        splits = [DataSplit(SETTINGS["loan"], 0, tmp_path) for _ in range(2)]
        first, again = (scored_model(data, "lr") for data in splits)
        test = splits[0].parts[1]
        assert (first.accepts(test) == again.accepts(test)).all()
        assert first.refused.equals(again.refused)
        assert not first.accepts(first.refused).any()
        assert len(first.retrained) == 5
        assert any((other(test) != first.accepts(test)).any() for other in first.retrained)
        copies = [decision(model, first.schema)(test) for model in first.copies]
        assert len(copies) == 5
        assert not any((one == other(test)).all() for one in copies for other in first.retrained)

    @pytest.mark.ci
    def test_accuracies_of_retrained_networks_are_those_of_single_training(self):
        data = load_loan(3000)
        x = Encoder(Schema.infer(data.features)).encode(data.features)
        labels, settings = torch.tensor(data.outcome.to_numpy()), Recipe(64, 20, 0.02)
        state = torch.random.get_rng_state()
        nets = retrained("lr", x, labels, settings, count=3, seed=0)
        assert torch.equal(state, torch.random.get_rng_state())
        single = accuracy(trained("lr", x, labels, settings), x, labels)
        assert [accuracy(net, x, labels) for net in nets] == pytest.approx([single] * 3, abs=0.02)
        with torch.no_grad():
            scores = torch.cat([net(x[:200]) for net in nets], 1)
        assert (scores.std(1) > 1e-3).all()


class TestMeter:
    @pytest.mark.ci
    def test_a_fresh_process(self):
        assert in_fresh_process(os.getpid) != os.getpid()

    def test_time_and_memory_are_measured(self):
        with Meter() as meter:
            block = np.ones(8 << 20)
            sum(range(200_000))
        assert len(block) and meter.cpu_s > 0.0
        assert meter.peak_mib > 60.0

    def test_an_endless_search_is_stopped(self):
        with pytest.raises(TimeoutError, match="CPU seconds"), at_most(0.05):
            while True:
                pass
