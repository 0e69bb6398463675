"""Plots: recourses become figures that can be saved, without side effects."""

import sys

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

from dear_plugin import DEAR, Constraints, Encoder, Kind, Schema
from dear_plugin.errors import ExtraError, InputError
from dear_plugin.plots import dots, front, largest_indirect, row
from dear_plugin.plots.ink import INDIRECT

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def recourses(mixed, fitted):
    return fitted.generate(mixed.refused(60))


@pytest.fixture
def axes():
    figure = Figure(figsize=(6, 4), layout="constrained")
    FigureCanvasAgg(figure)
    return figure.subplots()


def texts(axes):
    return [t.get_text() for t in axes.texts]


def written(axes):
    """All texts of a figure's panel: titles, headings, labels on both sides, and under it."""
    FigureCanvasAgg(axes.figure).draw()
    sides = [axes, *axes.child_axes]
    ticks = [label.get_text() for side in sides for label in side.get_yticklabels()]
    titles = [axes.get_title(loc) for loc in ("left", "center")]
    return "\n".join([*titles, *texts(axes), *ticks, axes.get_xlabel()])


def values(axes):
    """The texts to the right of the bars."""
    (right,) = axes.child_axes
    return [t.get_text() for t in right.get_yticklabels()]


def labels(axes):
    return [t.get_text() for t in axes.get_yticklabels()]


@pytest.fixture
def lines():
    rows = [("DEAR", 0.2, 0.1, 0.4), ("other", 0.5, 0.5, 0.5), ("none", *[np.nan] * 3)]
    own = pd.DataFrame(rows, columns=["method", "value", "low", "high"])
    far = own.set_index("method").mul([1.0, 90.0, 1.0], axis=0).reset_index()
    return pd.concat([own.assign(measure="effort"), far.assign(measure="seconds")])


def test_every_method_has_a_dot_and_its_interval(lines):
    figure = dots(lines, ("effort", "seconds"))
    left, right = figure.axes
    assert labels(left) == ["DEAR", "other", "none"] and labels(right) == [""] * 3
    drawn = [each.lines[0].get_xydata()[0].tolist() for each in left.containers]
    assert drawn[:2] == [[0.2, 0], [0.5, 1]] and np.isnan(drawn[2][0])
    (interval,) = left.containers[0].lines[2]
    assert interval.get_segments()[0][:, 0] == pytest.approx([0.1, 0.4])


class TestNothingToShow:
    """A figure without an action has the reason."""

    @pytest.fixture
    def refused(self, mixed):
        return mixed.refused(4)

    def test_a_row_without_recourse(self, mixed, fitted, refused, axes):
        frozen = Constraints(frozen=list(mixed.schema.mutable))
        result = fitted.generate(refused, within=frozen)
        result.plot(result.factuals.index[0], ax=axes)
        said = " ".join(texts(axes)[0].split())
        assert said == "no recourse found: nothing may be acted on"
        assert "→" not in written(axes)
        assert texts(result.plot())[0].startswith("no row has a recourse")

    def test_an_accepted_row(self, mixed, fitted, axes):
        accepted = mixed.frame.drop(mixed.refused(len(mixed.frame)).index).head(2)
        result = fitted.generate(accepted)
        result.plot(result.factuals.index[0], ax=axes)
        assert "already the wanted" in " ".join(texts(axes)[0].split())

    def test_a_result_without_rows_is_an_error(self, fitted, refused):
        result = fitted.generate(refused.iloc[:0])
        with pytest.raises(InputError, match="without rows"):
            result.plot()


class TestOverview:
    @pytest.mark.parametrize(("suffix", "kind"), [("png", PNG), ("svg", b"<svg")])
    def test_it_is_saved_without_a_warning(self, recourses, tmp_path, suffix, kind):
        recourses.plot().figure.savefig(tmp_path / f"overview.{suffix}")
        content = (tmp_path / f"overview.{suffix}").read_bytes()
        assert content.startswith(kind) if suffix == "png" else kind in content[:2000]
        assert len(content) > 20_000

    def test_axes_are_taken_and_returned_and_a_figure_of_its_own_has_the_caveat(
        self, recourses, axes
    ):
        label = recourses.factuals.index[0]
        assert recourses.plot(ax=axes) is axes
        assert recourses.plot(label, ax=axes) is axes
        assert axes.figure.get_supxlabel() == ""
        assert "not causal" in recourses.note
        for drawn in (recourses.plot(), recourses.plot(label)):
            assert isinstance(drawn.figure, Figure)
            assert drawn.figure.axes == [drawn]
            assert drawn.figure.get_supxlabel() == recourses.note


class TestRow:
    @pytest.fixture
    def position(self, recourses, axes):
        """The row with the largest indirect change, which is drawn."""
        recourses.plot(recourses.factuals.index[largest_indirect(recourses)], ax=axes)
        return largest_indirect(recourses)

    def test_every_changed_feature_has_a_bar_and_its_values(self, recourses, axes, position):
        changed = recourses.changed[position].numpy()
        names = np.array(recourses.encoder.schema.names)[changed]
        assert set(labels(axes)) == set(names)
        assert len(axes.patches) == len(names) == len(values(axes))
        assert all("→" in text for text in values(axes))

    def test_bars_are_as_long_as_the_change(self, recourses, axes, position):
        numbers = np.array([f.kind is Kind.NUMERIC for f in recourses.encoder.schema])
        step = (recourses.proposal.rows - recourses.x)[position] / recourses.encoder.unit
        names = list(recourses.encoder.schema.names)
        for bar, name in zip(axes.patches, labels(axes), strict=True):
            j = names.index(name)
            length = abs(float(step[j])) if numbers[j] else 1.0
            assert bar.get_width() == pytest.approx(length)

    def test_what_is_expected_has_its_range_for_people_like_the_row(
        self, recourses, axes, position
    ):
        ranges = recourses.select(torch.tensor([position])).worth
        direct, names = recourses.proposal.direct[position], recourses.encoder.schema.names
        follows = recourses.changed[position] & ~direct & (ranges.low[0] < ranges.high[0])
        drawn, names_at = {}, dict(zip(axes.get_yticks(), labels(axes), strict=True))
        for bars in axes.containers:
            if isinstance(bars, ErrorbarContainer):
                (line,) = bars.lines[2][0].get_segments()
                drawn[names_at[line[0, 1]]] = line[:, 0].tolist()
        step = (recourses.proposal.rows - recourses.x)[position].sign()
        ends = step * torch.stack([ranges.low[0], ranges.high[0]]) / recourses.encoder.width
        ends = ends.sort(dim=0).values
        at = follows.nonzero()[:, 0].tolist()
        expected = {names[j]: pytest.approx(ends[:, j].tolist()) for j in at}
        assert drawn == expected
        assert drawn

    def test_the_title_names_the_row_and_the_probabilities(self, recourses, axes, position):
        action = recourses.actions.iloc[position]
        before, after = action["score_before"], action["score_after"]
        title = axes.get_title("left")
        assert f"Row {recourses.factuals.index[position]}: probability" in title
        assert f"{before:.0%} → {after:.0%}" in title

    def test_no_text_covers_another_nor_leaves_the_figure(self, recourses):
        figure = recourses.plot(recourses.factuals.index[largest_indirect(recourses)]).figure
        FigureCanvasAgg(figure).draw()
        (panel,) = figure.axes
        (right,) = panel.child_axes
        parts = [*panel.texts, *panel.get_yticklabels(), *right.get_yticklabels()]
        boxes = [part.get_window_extent() for part in parts]
        width, height = figure.canvas.get_width_height()
        for i, box in enumerate(boxes):
            assert box.x0 >= 0
            assert box.x1 <= width
            assert box.y0 >= 0
            assert box.y1 <= height
            assert not any(box.overlaps(other) for other in boxes[i + 1 :])

    def test_more_features_than_a_panel_has_room_for_are_counted(self, axes):
        changes = pd.DataFrame(
            {
                "title": [f"f{i}" for i in range(14)],
                "values": "0 → 1",
                "kind": ["direct"] + ["indirect"] * 13,
                "size": 0.5,
                "low": 0.5,
                "high": 0.5,
            }
        )
        row(changes, axes)
        assert len(axes.patches) == 10
        assert "and 4 more features" in axes.get_xlabel()

    def test_what_is_done_comes_first_and_looks_different(self, recourses, axes, position):
        assert texts(axes) == ["Action", "Expected to follow (association)"]
        acted = recourses.actions["acted_on"].iloc[position].split(" + ")
        assert labels(axes)[: len(acted)] == acted
        hatches = [bar.get_hatch() for bar in axes.patches]
        assert hatches[: len(acted)] == [None] * len(acted)
        assert set(hatches[len(acted) :]) <= {INDIRECT["hatch"]}


def test_without_matplotlib_one_error_says_what_to_install(recourses, monkeypatch):
    for name in [n for n in sys.modules if n.startswith("dear_plugin.plots")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("dear_plugin.plots")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ExtraError, match=r'pip install "dear-plugin\[plots\]"'):
        recourses.plot(recourses.factuals.index[0])


class TestOddResults:
    def test_dollar_signs_are_money_and_no_formula(self, mixed, axes, tmp_path):
        frame = mixed.frame.replace({"town": {"A": "under $5_{", "B": "over $6^{"}})
        frame = frame.rename(columns={"town": "$a_{$", "income": "$\\frac$"})
        schema = Schema.infer(frame)
        model = torch.nn.Linear(Encoder(schema).d, 1)
        with torch.no_grad():
            model.weight.zero_()
            model.bias.fill_(-0.5)
            model.weight[0, list(Encoder(schema).starts)[7] + 4] = 1.0
        dear = DEAR(model, schema, act_on=["$a_{$", "$\\frac$"]).fit(frame)
        query = frame[frame["$a_{$"] == "under $5_{"].iloc[:1].set_axis(["$x_{$"])
        result = dear.generate(query)
        result.plot(result.factuals.index[0], ax=axes)
        FigureCanvasAgg(axes.figure).draw()
        result.plot().figure.savefig(tmp_path / "money.png")
        assert "$a_{$" in labels(axes)
        assert "Row $x_{$" in axes.get_title("left")

    def test_long_names_and_categories_are_shortened(self, mixed, axes):
        town, job = "the_town_as_declared_in_the_application_form", "b" * 60
        frame = mixed.frame.rename(columns={"town": town}).replace(
            {town: {"A": "a" * 60, "B": job}}
        )
        schema = Schema.infer(frame)
        dear = DEAR(lambda f: (f[town] == job).to_numpy().astype(float), schema, act_on=[town])
        result = dear.fit(frame).generate(frame[frame[town] == "a" * 60].iloc[:1])
        result.plot(result.factuals.index[0], ax=axes)
        FigureCanvasAgg(axes.figure).draw()
        assert f"{'a' * 29}… → {'b' * 29}…" in " ".join(values(axes)).replace("\n", " ")
        assert all(len(line) <= 26 for text in labels(axes) for line in text.split("\n"))


class TestFront:
    """Cost against plausibility, a point for each method."""

    @pytest.fixture
    def table(self):
        """Medians (plausibility, cost): A (.2, 1), B (.4, 2), C (.3, 3); D solves nothing."""
        points = {"A": (0.2, 1.0), "B": (0.4, 2.0), "C": (0.3, 3.0), "D": (np.nan, 9.0)}
        lines = [
            {
                "method": name,
                "needed": i < 3,
                "success": name != "D" and (name != "C" or i != 1),
                "plausibility": plausibility + 0.1 * (i - 1),
                "cost": cost + (i - 1) if i < 3 else 0.0,
            }
            for name, (plausibility, cost) in points.items()
            for i in range(4)
        ]
        return pd.DataFrame(lines)

    def test_methods_are_at_their_medians_over_solved_rows(self, table, axes):
        front(table, axes)
        handles, names = axes.get_legend_handles_labels()
        assert names == ["A", "B", "C"]
        at = [handle[0].get_xydata()[0].tolist() for handle in handles]
        np.testing.assert_allclose(at, [[0.2, 1.0], [0.4, 2.0], [0.3, 3.0]])

    def test_the_line_joins_the_methods_without_a_superior(self, table, axes):
        front(table, axes)
        line = axes.lines[0].get_xydata()
        np.testing.assert_allclose(line, [[0.2, 1.0], [0.4, 2.0]])
