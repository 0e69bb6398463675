"""`compare`: one line per method and row, a summary, and differences at equal plausibility."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, Comparison, Constraints, Proposal, RecourseMethod, Schema, compare
from dear_plugin.errors import NotFittedError, SchemaError, SettingError
from dear_plugin.rivals import GrowingSpheres, NearestAccepted

NAMES = ["nearest", "DEAR", "spheres", "none"]


class Nothing(RecourseMethod):
    """A method that finds no answer."""

    def _learn(self, rows):
        pass

    def _propose(self, case):
        n = len(case)
        nowhere = torch.zeros_like(case.x, dtype=torch.bool)
        return Proposal(case.x.clone(), nowhere, torch.zeros(n), ["nothing tried"] * n)


@pytest.fixture(scope="module")
def methods(mixed):
    kinds = dict(zip(NAMES, (NearestAccepted, DEAR, GrowingSpheres, Nothing), strict=True))
    return {n: kind(mixed.net, mixed.schema).fit(mixed.frame) for n, kind in kinds.items()}


@pytest.fixture(scope="module")
def frame(mixed):
    """Refused rows, an accepted one and an unreadable one, with an index of words."""
    refused = mixed.refused(20)
    accepted = mixed.frame.drop(mixed.refused(len(mixed.frame)).index).head(1)
    rows = pd.concat([refused, accepted, refused.tail(1).assign(age=np.nan)])
    return rows.set_axis([f"row {i}" for i in range(len(rows))])


@pytest.fixture(scope="module")
def found(methods, frame):
    return compare(methods, frame, reference="DEAR", progress=False)


def test_a_line_for_each_method_and_row_in_order(found, frame):
    assert found.table["method"].unique().tolist() == NAMES
    for name in NAMES:
        assert found.table.loc[found.table["method"] == name, "row"].tolist() == list(frame.index)
    assert list(found.summary.index) == NAMES
    assert list(found.differences.index) == [n for n in NAMES if n != "DEAR"]
    assert isinstance(found, Comparison) and len(found) == len(frame)


def test_estimates_agree_with_the_summary_and_have_intervals(found):
    lines = found.estimates.set_index(["measure", "method"])
    for measure, column in {"solved": "success", "cost": "cost", "alone": "alone"}.items():
        assert lines.loc[measure, "value"].tolist() == pytest.approx(
            found.summary[column].tolist(), nan_ok=True
        )
    known = lines.dropna()
    assert ((known["low"] <= known["value"]) & (known["value"] <= known["high"])).all()
    assert lines.loc[("effort", "none"), "rows"] == 0
    assert lines.loc[("solved", "DEAR"), "rows"] == found.summary.loc["DEAR", "rows"]
    assert len(found.dots().axes) == 5


def test_the_lines_are_those_of_generate(found, methods, frame):
    for name, lines in found.table.groupby("method"):
        result = methods[name].generate(frame)
        for column in ("success", "credible", "reason", "cost", "direct_cost", "indirect_cost"):
            assert lines[column].tolist() == result.actions[column].tolist()
        for column in ("confidence", "reliance", "plausibility"):
            np.testing.assert_array_equal(lines[column], result.actions[column])
        success = lines["success"].to_numpy()
        np.testing.assert_array_equal(
            lines["support"], result.support.where(success, np.nan).to_numpy()
        )
        assert lines["changed"].tolist() == result.changed.sum(1).tolist()
        pd.testing.assert_frame_equal(found.results[name].counterfactuals, result.counterfactuals)


def test_an_accepted_row_needs_no_recourse_and_an_unreadable_row_counts_as_a_failure(found):
    by_row = found.table.groupby("row")[["needed", "success"]].agg(["sum"])
    assert by_row.loc["row 20"].tolist() == [0, len(NAMES)]
    assert by_row.loc["row 21"].tolist() == [len(NAMES), 0]
    assert (found.summary["rows"] == 21).all()
    assert found.summary.loc["nearest", "success"] == pytest.approx(20 / 21)


def test_a_method_without_an_answer_stays_in_the_tables(found):
    line = found.summary.loc["none"]
    assert (line["rows"], line["success"], line["credible"]) == (21, 0.0, 0.0)
    measured = ["cost", "cost_low", "cost_high", "plausibility", "support", "alone"]
    assert line[measured].isna().all() and line["cpu_ms"] >= 0.0
    assert found.differences.loc["none", "rows"] == 0
    assert found.differences.drop(columns="rows").loc["none"].isna().all()


def test_costs_are_compared_where_both_answers_are_plausible(found):
    table = found.table.set_index(["row", "method"])
    usable = (table["plausible"] & table["needed"]).unstack()
    cost = table["cost"].unstack()
    for name, line in found.differences.iterrows():
        both = usable["DEAR"] & usable[name]
        step = (cost["DEAR"] - cost[name])[both]
        assert line["rows"] == len(step)
        if len(step):
            assert line["difference"] == pytest.approx(step.median())
            assert line["cheaper"] == pytest.approx((step < 0).mean())


def test_constraints_hold_for_every_method(methods, frame):
    free = compare(methods, frame, progress=False)
    kept = compare(methods, frame, within=Constraints(frozen=["income"]), progress=False)
    changed = {
        name: (result.counterfactuals["income"] != frame["income"]).any()
        for name, result in free.results.items()
    }
    assert changed["DEAR"] and changed["nearest"]
    for result in kept.results.values():
        assert (result.counterfactuals["income"] == frame["income"]).all()


def test_it_displays_both_tables(found):
    html = found._repr_html_()
    assert html.count("<table") == 2 and "DEAR compared with" in html
    assert "nan" not in html
    line = found.summary.loc["DEAR"]
    assert f"{line['cost']:.2f} [{line['cost_low']:.2f}, {line['cost_high']:.2f}]" in html
    assert repr(found) == "Comparison(4 methods, 22 rows, reference 'DEAR')"


class TestArguments:
    @pytest.mark.parametrize("methods", [{}, [], None, ["DEAR"]])
    def test_methods_are_a_mapping(self, methods, frame):
        with pytest.raises(SettingError, match="mapping of names to fitted methods, got"):
            compare(methods, frame)

    def test_an_explainer_has_to_be_wrapped(self, methods, frame):
        with pytest.raises(SettingError, match=r"methods\['x'\].*got object; wrap"):
            compare({**methods, "x": object()}, frame)

    def test_the_reference_is_a_method(self, methods, frame):
        with pytest.raises(SettingError, match="did you mean 'DEAR'"):
            compare(methods, frame, reference="DEER")

    def test_all_are_fitted(self, methods, mixed, frame):
        with pytest.raises(NotFittedError):
            compare({**methods, "new": DEAR(mixed.net, mixed.schema)}, frame)

    def test_all_have_the_same_features(self, methods, loan, frame):
        other = NearestAccepted(loan.net, loan.schema).fit(loan.frame)
        with pytest.raises(SchemaError, match=r"same features: .*'nearest' and 'loan'"):
            compare({**methods, "loan": other}, frame)

    def test_all_have_the_same_scales(self, methods, mixed, frame):
        half = mixed.frame[mixed.frame["income"] < mixed.frame["income"].median()]
        other = NearestAccepted(mixed.pipeline, Schema.infer(half)).fit(half)
        with pytest.raises(SchemaError, match=r"scale features alike.*'income'"):
            compare({**methods, "half": other}, frame)
