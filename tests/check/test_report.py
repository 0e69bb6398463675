"""Report: the diagnostics of a fitted DEAR, as numbers and as text."""

import logging
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, Encoder, Schema
from dear_plugin.datasets import load_loan
from dear_plugin.decoders import Transport
from dear_plugin.paper import Autoencoder, Design, Training

SETS = ["income", "education", "age", ("income", "savings")]
TRAINED = {
    "autoencoder": lambda: Autoencoder(Design(layers=(12, 6)), Training(epochs=12)),
    "paper": lambda: Autoencoder(Autoencoder.paper((8, 10, 5)).design, Training(epochs=12)),
}


@pytest.fixture(scope="module")
def frames():
    frame = load_loan(9000, seed=0).features
    return frame.iloc[:6000], frame.iloc[6000:]


def report_of(decoder, frames):
    train, held = frames
    schema = Schema.infer(train, immutable=["gender"])
    dear = DEAR(torch.nn.Linear(7, 1), schema, act_on=SETS, decoder=decoder)
    return dear.fit(train).diagnose(held)


@pytest.fixture(scope="module")
def report(frames):
    return report_of(Transport(), frames)


@pytest.fixture(scope="module")
def reports(report, frames):
    others = {name: report_of(make(), frames) for name, make in TRAINED.items()}
    return {"transport": report, **others}


@pytest.mark.ci
class TestNumbers:
    def test_the_default_is_faithful_on_the_loan_data(self, report):
        assert report.fidelity >= 0.9
        assert report.distribution_fidelity >= 0.8
        assert report.round_trip < 1e-5
        assert report.joint == pytest.approx(0.5, abs=0.03)
        assert report.joint_independent >= report.joint + 0.03

    def test_entanglement_is_given_for_decoders_with_derivatives(self, reports):
        for name, found in reports.items():
            assert found.entanglement.index.tolist() == found.per_set["set"].tolist()
            assert found.entanglement.name == "entanglement"
            assert found.entanglement.isna().all() == (name == "transport")
        # Pushed towards zero by the Hessian penalty.
        assert (reports["paper"].entanglement.median()) <= 0.05


def test_the_frame_of_sets_is_tidy(report):
    table = report.per_set
    fidelities = ["dependence_fidelity", "standardised", "distribution_fidelity"]
    assert list(table) == ["set", *fidelities, "uncompared", "misfit"]
    assert table["set"].tolist() == ["income", "education", "age", "income + savings"]
    assert table.index.tolist() == [0, 1, 2, 3]
    assert set(map(str, table.dtypes.iloc[1:])) == {"float64"}
    # Every row is compared with rows of the same gender, which is held.
    assert (table["uncompared"] == 0.0).all()


def test_the_text_explains_the_scale_and_that_effects_are_not_causal(report):
    text = str(report)
    assert "0: features move independently" in text
    assert "1: they move as in the data" in text
    assert "Fidelity is of associations, not causal effects." in text


def opposed(n):
    """b rises by a in one group and falls by a in the other."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"g": rng.integers(0, 2, n), "a": rng.normal(size=n)})[["a", "g"]]
    return frame.assign(b=np.where(frame["g"], 1.0, -1.0) * frame["a"] + rng.normal(size=n))


class TestContradictions:
    @pytest.fixture(scope="class")
    @staticmethod
    def found():
        """b rises by a in one group and falls by a in the other; one slope is told to both."""
        frame = opposed(9_000)
        schema = Schema.infer(frame, immutable=["g"], tiers=[["g"], ["a"], ["b"]])
        sets = ["a", ("a", "b")]
        dear = DEAR(torch.nn.Linear(3, 1), schema, act_on=sets)
        other = dear.fit(frame[:6_000].assign(b=frame["b"].sample(frac=1, ignore_index=True)))
        return other.diagnose(frame[6_000:])

    def test_the_misfit_is_named_with_set_feature_group_and_size(self, found):
        (row,) = found.misfits.to_dict("records")
        assert (row["set"], row["feature"], row["of"]) == ("a", "b", "mean")
        assert row["within"] == "g"
        assert row["misfit"] == pytest.approx(0.5**0.5, abs=0.06)

    def test_the_set_has_it_and_one_of_several_tiers_is_not_tested(self, found):
        own, several = found.per_set["misfit"]
        assert own == found.misfits["misfit"].max()
        assert np.isnan(several)

    def test_the_verdict_the_text_and_the_notebook_say_it(self, found):
        text = f"b after a (mean off by {found.misfits['misfit'][0]:.2f} sd, within groups of g)"
        assert found.contradicted == (text,)
        assert found.verdict.endswith(f"Contradicted by these rows: {text}.")
        assert f"\ncontradicted: {text}\n" in str(found)
        assert text in found._repr_html_()

    def test_where_nothing_is_contradicted_it_says_what_so_few_rows_may_miss(self, found):
        none = replace(found, misfits=found.misfits[:0], visible=0.117)
        end = "no error in them; errors below 0.12 standard deviations may be missed."
        assert none.verdict.endswith(end)
        assert 0.05 < found.visible < 0.5

    @pytest.mark.parametrize("least", [1.0, 9.0])
    def test_a_description_says_it_until_the_next_fit(self, least):
        """A line through the rows of one group is told to the rows of both."""
        frame = opposed(6_000)
        train = frame.assign(b=frame["a"] + np.random.default_rng(1).normal(size=6_000))
        schema = Schema.infer(train, immutable=["g"])
        dear = DEAR(lambda rows: 0.1 + 0.8 * (rows["a"] > least), schema, act_on=["a"]).fit(train)
        acted = {"a": 1.5}
        before = dear.apply(frame[:1], acted).describe(0)
        dear.diagnose(frame)
        said = dear.apply(frame[:1], acted).describe(0)
        assert "contradict" not in before
        assert said.endswith(f" Held-out rows contradict {dear.diagnose(frame).contradicted[0]}.")
        assert "contradict" not in dear.fit(train).apply(frame[:1], acted).describe(0)


@pytest.mark.parametrize(
    ("fidelity", "words"),
    [(0.95, "closely"), (0.7, "in part"), (0.2, "do not rely"), (np.nan, "do not depend")],
)
def test_the_verdict_goes_by_the_dependence_fidelity(report, fidelity, words):
    assert words in replace(report, fidelity=fidelity, standardised=np.nan).verdict


def independent(n=3000, **more):
    rng = np.random.default_rng(0)
    return pd.DataFrame({name: rng.random(n) for name in "abc"} | more)


def diagnosed(frame, **options):
    """The report on the last third of a frame, by a DEAR that was fitted on the rest."""
    whole, cut = Schema.infer(frame), 2 * len(frame) // 3
    dear = DEAR(torch.nn.Linear(Encoder(whole).d, 1), whole, **options).fit(frame.iloc[:cut])
    return dear.diagnose(frame.iloc[cut:])


def test_where_nothing_follows_fidelities_are_nan_and_the_text_explains_it():
    found = diagnosed(independent())
    assert np.isnan([found.fidelity, found.distribution_fidelity, found.standardised]).all()
    fidelities = found.per_set[["dependence_fidelity", "distribution_fidelity"]]
    assert fidelities.isna().all(axis=None)
    text = " ".join(str(found).split())
    assert "dependence fidelity: none to measure" in text
    assert "features do not depend on each other by clearly more than chance" in text
    assert "expect no indirect changes" in text
    assert "nan" not in text
    assert max(map(len, str(found).splitlines())) <= 110


def test_the_text_names_the_features_that_depend_on_nothing():
    frame = independent()
    follows = frame["a"] + np.random.default_rng(1).normal(0, 0.3, 3000)
    found = diagnosed(frame.assign(e=follows))
    assert found.independent == ("b", "c")
    assert "no feature clearly follows b, c: expect no indirect" in str(found)


def test_unreadable_rows_are_left_out_with_a_warning(caplog):
    rng = np.random.default_rng(0)
    kind = rng.choice(list("xyz"), 2000)
    frame = pd.DataFrame({"kind": kind, "size": rng.normal(size=2000) + (kind == "x")})
    dear = DEAR(torch.nn.Linear(4, 1), Schema.infer(frame)).fit(frame.iloc[:1200])
    held, new = frame.iloc[1200:], [1300, 1400, 1999]
    with caplog.at_level(logging.WARNING, "dear_plugin"):
        found = dear.diagnose(held.assign(kind=held["kind"].mask(held.index.isin(new), "new")))
    assert "3 of 800 rows cannot be read and are left out" in caplog.text
    pd.testing.assert_frame_equal(found.per_set, dear.diagnose(held.drop(new)).per_set)
    assert found.rows == 797
