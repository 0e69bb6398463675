"""Report: the diagnostics of a fitted DEAR, as numbers and as text."""

import logging
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, Encoder, Schema
from dear_plugin.datasets import load_loan
from dear_plugin.decoders import Autoencoder, Design, Training, Transport
from dear_plugin.errors import InputError

SETS = ["income", "education", "age", ("income", "savings")]
DECODERS = {
    "transport": Transport,
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
    trained = {name: make for name, make in DECODERS.items() if name != "transport"}
    others = {name: report_of(make(), frames) for name, make in trained.items()}
    return {"transport": report, **others}


@pytest.mark.ci
class TestNumbers:
    def test_the_default_is_faithful_on_the_loan_data(self, report):
        assert report.fidelity >= 0.9
        assert report.distribution_fidelity >= 0.8
        assert report.round_trip < 1e-5
        assert report.identity >= 0.7
        assert report.joint == pytest.approx(0.5, abs=0.03)
        assert report.joint_independent >= report.joint + 0.03

    def test_the_independence_penalty_improves_the_autoencoder(self, reports):
        """The paper's penalty leaves x_S in the latents, so that decoded rows hardly change."""
        assert reports["autoencoder"].fidelity >= 0.6
        assert reports["paper"].fidelity <= reports["autoencoder"].fidelity - 0.3

    def test_rows_are_reconstructed_with_the_remainder_only(self, reports):
        assert reports["autoencoder"].round_trip < 1e-5
        assert reports["paper"].round_trip > 1e-3

    def test_entanglement_is_given_for_decoders_with_derivatives(self, reports):
        for name, found in reports.items():
            assert found.entanglement.index.tolist() == found.per_set["set"].tolist()
            assert found.entanglement.name == "entanglement"
            assert found.entanglement.isna().all() == (name == "transport")
        # Pushed towards zero by the Hessian penalty.
        assert (reports["paper"].entanglement.median()) <= 0.05


class TestPerSet:
    def test_the_frame_is_tidy(self, report):
        table = report.per_set
        fidelities = ["dependence_fidelity", "standardised", "distribution_fidelity"]
        assert list(table) == ["set", *fidelities, "identity", "uncompared", "misfit"]
        assert table["set"].tolist() == ["income", "education", "age", "income + savings"]
        assert table.index.tolist() == [0, 1, 2, 3]
        assert set(map(str, table.dtypes.iloc[1:])) == {"float64"}
        # Every row is compared with rows of the same gender, which is held.
        assert (table["uncompared"] == 0.0).all()

    def test_the_total_lies_between_its_sets(self, report):
        for column, whole in (
            ("dependence_fidelity", report.fidelity),
            ("distribution_fidelity", report.distribution_fidelity),
        ):
            assert report.per_set[column].min() <= whole <= report.per_set[column].max()
        assert report.per_set["identity"].mean() == pytest.approx(report.identity)


class TestText:
    @pytest.mark.ci
    def test_a_few_lines_that_fit_a_terminal(self, reports):
        for found in reports.values():
            lines = str(found).splitlines()
            assert 2 <= len(lines) <= 10
            assert max(map(len, lines)) <= 110

    def test_it_explains_the_scale_and_that_effects_are_not_causal(self, report):
        text = str(report)
        assert "0: features move independently" in text
        assert "1: they move as in the data" in text
        assert "Fidelity is of associations, not causal effects." in text

    def test_it_names_its_numbers(self, report):
        text = str(report)
        assert f"dependence fidelity {report.fidelity:.2f}" in text
        assert f"distribution fidelity {report.distribution_fidelity:.2f}" in text.replace(
            "\n", " "
        )
        assert f"identity {report.identity:.2f}" in text
        assert f"AUC {report.joint:.3f}" in text


class TestContradictions:
    @pytest.fixture(scope="class")
    @staticmethod
    def found():
        """b rises by a in one group and falls by a in the other; one slope is told to both."""
        rng = np.random.default_rng(0)
        group = rng.integers(0, 2, 9_000)
        frame = pd.DataFrame({"a": rng.normal(size=9_000), "g": group})
        frame["b"] = np.where(group, 1.0, -1.0) * frame["a"] + rng.normal(size=9_000)
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

    @pytest.mark.parametrize("least", [1.0, 9.0])
    def test_a_description_says_it_until_the_next_fit(self, least):
        """A line through the rows of one group is told to the rows of both."""
        rng = np.random.default_rng(0)
        group = rng.integers(0, 2, 6_000)
        frame = pd.DataFrame({"a": rng.normal(size=6_000), "g": group})
        frame["b"] = np.where(group, 1.0, -1.0) * frame["a"] + rng.normal(size=6_000)
        train = frame.assign(b=frame["a"] + rng.normal(size=6_000))
        schema = Schema.infer(train, immutable=["g"])
        dear = DEAR(lambda rows: 0.1 + 0.8 * (rows["a"] > least), schema, act_on=["a"]).fit(train)
        acted = {"a": 1.5}
        before = dear.apply(frame[:1], acted).describe(0)
        dear.diagnose(frame)
        said = dear.apply(frame[:1], acted).describe(0)
        assert "contradict" not in before
        assert said.endswith(f" Held-out rows contradict {dear.diagnose(frame).contradicted[0]}.")
        assert "contradict" not in dear.fit(train).apply(frame[:1], acted).describe(0)

    def test_without_one_nothing_is_said(self, report):
        assert report.misfits.empty
        assert (report.per_set["misfit"] == 0.0).all()
        assert "ontradicted" not in report.verdict + str(report)


class TestVerdict:
    @pytest.mark.parametrize(
        ("fidelity", "words"),
        [(0.95, "closely"), (0.7, "in part"), (0.2, "do not rely"), (np.nan, "do not depend")],
    )
    def test_it_goes_by_the_dependence_fidelity(self, report, fidelity, words):
        assert words in replace(report, fidelity=fidelity, standardised=np.nan).verdict

    def test_without_one_it_goes_by_that_of_standardised_columns(self, report):
        assert "closely" in replace(report, fidelity=np.nan, standardised=0.95).verdict

    def test_the_table_of_a_notebook_begins_with_it(self, report):
        html = report._repr_html_()
        assert report.verdict in html
        assert "income + savings" in html
        assert f"{report.rows:,} rows" in html


class TestDiagnose:
    @pytest.fixture(scope="module")
    @staticmethod
    def dear(frames):
        train, _ = frames
        return DEAR(torch.nn.Linear(7, 1), Schema.infer(train), act_on=SETS[:2]).fit(train)

    def test_the_same_seed_gives_the_same_report(self, dear, frames):
        _, held = frames
        one, other, third = (dear.diagnose(held.iloc[:1000], seed=s) for s in (0, 0, 1))
        assert str(one) == str(other)
        pd.testing.assert_frame_equal(one.per_set, other.per_set)
        assert one.fidelity != third.fidelity

    def test_an_invalid_frame_is_rejected(self, dear, frames):
        with pytest.raises(InputError, match="missing columns"):
            dear.diagnose(frames[1].drop(columns="income"))


def independent(n=3000, **more):
    rng = np.random.default_rng(0)
    return pd.DataFrame({name: rng.random(n) for name in "abc"} | more)


def diagnosed(frame, **options):
    """The report on the last third of a frame, by a DEAR that was fitted on the rest."""
    whole, cut = Schema.infer(frame), 2 * len(frame) // 3
    dear = DEAR(torch.nn.Linear(Encoder(whole).d, 1), whole, **options).fit(frame.iloc[:cut])
    return dear.diagnose(frame.iloc[cut:])


class TestIndependentFeatures:
    @pytest.fixture(scope="class")
    @staticmethod
    def found():
        return diagnosed(independent())

    def test_fidelities_are_nan(self, found):
        assert np.isnan([found.fidelity, found.distribution_fidelity]).all()
        assert np.isnan([found.shown, found.standardised]).all()
        fidelities = found.per_set[["dependence_fidelity", "distribution_fidelity"]]
        assert fidelities.isna().all(axis=None)

    def test_the_text_explains_it(self, found):
        text = " ".join(str(found).split())
        assert "dependence fidelity: none to measure" in text
        assert "features do not depend on each other by clearly more than chance" in text
        assert "expect nothing to follow an action" in text
        assert "nan" not in text
        assert max(map(len, str(found).splitlines())) <= 110

    def test_it_states_the_number_of_rows(self, found):
        assert found.rows == 1000
        assert "(in 1,000 rows)" in str(found)
        assert "(in 300 rows; more rows may show some)" in str(diagnosed(independent(900)))

    def test_the_other_numbers_are_finite(self, found):
        assert found.identity > 0.95
        assert found.joint == pytest.approx(0.5, abs=0.04)
        assert found.joint == pytest.approx(found.joint_independent, abs=0.02)
        assert found.independent == ("a", "b", "c")

    def test_nothing_is_logged(self, caplog):
        with caplog.at_level(logging.WARNING):
            diagnosed(independent())
        assert not caplog.text


class TestSomeIndependentFeatures:
    """a and e depend on each other, b and c on nothing."""

    @pytest.fixture(scope="class")
    @staticmethod
    def found():
        frame = independent()
        return diagnosed(
            frame.assign(e=frame["a"] + np.random.default_rng(1).normal(0, 0.3, 3000))
        )

    def test_only_their_fidelity_is_nan(self, found):
        ratios = found.per_set.set_index("set")["dependence_fidelity"]
        assert ratios[["a", "e"]].between(0.7, 1.3).all()
        assert ratios[["b", "c"]].isna().all()
        assert found.fidelity == pytest.approx(1.0, abs=0.2)

    def test_the_text_names_them(self, found):
        assert found.independent == ("b", "c")
        assert "no feature clearly follows b, c: expect nothing to" in str(found)

    def test_many_are_counted(self):
        many = independent(
            **{f"n{i}": np.random.default_rng(9 + i).random(3000) for i in range(9)}
        )
        e = many["a"] + np.random.default_rng(1).normal(0, 0.2, 3000)
        text = str(diagnosed(many.assign(e=e)))
        assert "no feature clearly follows b, c, n0 and 8 more: expect nothing to" in text

    def test_a_missing_number_is_a_dash_with_an_explanation(self, found):
        text = str(replace(found, distribution_fidelity=float("nan")))
        assert "distribution fidelity -\n" in text
        assert "-: too little dependence in these 1,000 rows to measure it" in text


class TestUnknownCategories:
    @pytest.fixture(scope="class")
    @staticmethod
    def frame():
        rng = np.random.default_rng(0)
        kind = rng.choice(list("xyz"), 2000)
        return pd.DataFrame({"kind": kind, "size": rng.normal(size=2000) + (kind == "x")})

    @pytest.fixture(scope="class")
    @staticmethod
    def dear(frame):
        schema = Schema.infer(frame)
        return DEAR(torch.nn.Linear(4, 1), schema).fit(frame.iloc[:1200])

    def test_unreadable_rows_are_left_out_with_a_warning(self, dear, frame, caplog):
        held = frame.iloc[1200:]
        changed = held.assign(kind=held["kind"].mask(held.index.isin([1300, 1400, 1999]), "new"))
        with caplog.at_level(logging.WARNING, "dear_plugin"):
            found = dear.diagnose(changed)
        assert "3 of 800 rows cannot be read and are left out" in caplog.text
        pd.testing.assert_frame_equal(
            found.per_set, dear.diagnose(held.drop([1300, 1400, 1999])).per_set
        )
        assert found.rows == 797

    def test_other_errors_are_raised(self, dear, frame):
        held = frame.iloc[1200:].assign(kind="new")
        with pytest.raises(InputError, match="column 'kind' has values never seen"):
            dear.diagnose(held)
        held.loc[1300:, "kind"] = "x"
        with pytest.raises(InputError, match="column 'size' has missing or infinite values"):
            dear.diagnose(held.assign(size=np.inf))
