"""Plots: recourses become figures that can be saved, without side effects."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib import rcParams
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

from dear_plugin import DEAR, Constraints, Encoder, Schema
from dear_plugin.plots import NOTE, front, overview, person, splits, telling
from dear_plugin.plots.ink import DIRECT, INDIRECT

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module", params=["loan", "mixed"])
def recourses(request, studies):
    study = studies[request.param]
    return DEAR(study.net, study.schema).fit(study.frame).generate(study.refused(60))


@pytest.fixture
def axes():
    figure = Figure(figsize=(6, 4), layout="constrained")
    FigureCanvasAgg(figure)
    return figure.subplots()


def texts(axes):
    return [t.get_text() for t in axes.texts]


def labels(axes):
    return [t.get_text() for t in axes.get_yticklabels()]


class TestNothingToShow:
    """A figure without an action has the reason."""

    @pytest.fixture
    def refused(self, mixed):
        return mixed.refused(4)

    def test_a_row_without_recourse(self, mixed, refused, axes):
        frozen = Constraints(frozen=list(mixed.schema.mutable))
        result = DEAR(mixed.net, mixed.schema).fit(mixed.frame).generate(refused, within=frozen)
        person(result, 0, axes)
        said = " ".join(texts(axes)[0].split())
        assert said == "no recourse found: nothing admissible to act on"
        figure = overview(result)
        assert texts(figure.axes[1])[0].startswith("no row has a recourse")

    def test_an_accepted_row(self, mixed, axes):
        accepted = mixed.frame.drop(mixed.refused(len(mixed.frame)).index).head(2)
        result = DEAR(mixed.net, mixed.schema).fit(mixed.frame).generate(accepted)
        person(result, 0, axes)
        assert "already the wanted" in " ".join(texts(axes)[0].split())

    def test_an_attempt_that_fails_is_called_one(self, mixed, refused, axes):
        never = DEAR(lambda frame: np.zeros(len(frame)), mixed.schema).fit(mixed.frame)
        person(never.generate(refused), 0, axes)
        assert "nearest attempt" in axes.get_title()


class TestOverview:
    def test_it_is_saved_as_a_png_without_a_warning(self, recourses, tmp_path):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            overview(recourses, "Recourse").savefig(tmp_path / "overview.png")
        content = (tmp_path / "overview.png").read_bytes()
        assert content.startswith(PNG)
        assert len(content) > 20_000

    def test_as_a_vector_graphic_too(self, recourses, tmp_path):
        overview(recourses).savefig(tmp_path / "overview.svg")
        assert "<svg" in (tmp_path / "overview.svg").read_text(encoding="utf8")[:2000]

    def test_it_has_a_title_two_panels_and_the_caveat(self, recourses):
        figure = overview(recourses, "What to do")
        assert isinstance(figure, Figure)
        assert figure.get_suptitle() == "What to do"
        assert figure.get_supxlabel() == NOTE
        assert "not causal" in NOTE
        assert len(figure.axes) == 2

    def test_neither_settings_nor_recourses_are_touched(self, recourses):
        settings, before = dict(rcParams), recourses.counterfactuals.copy(deep=True)
        overview(recourses)
        assert dict(rcParams) == settings
        assert recourses.counterfactuals.equals(before)

    def test_nothing_is_drawn_on_a_screen(self, recourses):
        """No pyplot: no window, no global list of figures."""
        import sys

        figure = overview(recourses)
        assert figure.number is None if hasattr(figure, "number") else True
        assert (
            "matplotlib.pyplot" not in sys.modules
            or not sys.modules["matplotlib.pyplot"].get_fignums()
        )


class TestPerson:
    def test_every_changed_feature_has_a_bar_and_its_values(self, recourses, axes):
        position = telling(recourses)
        person(recourses, position, axes)
        changed = recourses.changed[position].numpy()
        names = np.array(recourses.encoder.schema.names)[changed]
        assert set(labels(axes)) == set(names)
        assert len(axes.patches) == len(names)
        assert all("→" in text for text in texts(axes))

    def test_what_is_done_comes_first_and_looks_different(self, recourses, axes):
        position = telling(recourses)
        person(recourses, position, axes)
        acted = recourses.actions["acted_on"].iloc[position].split(" + ")
        assert labels(axes)[: len(acted)] == acted
        hatches = [bar.get_hatch() for bar in axes.patches]
        assert hatches[: len(acted)] == [None] * len(acted)
        assert set(hatches[len(acted) :]) <= {INDIRECT["hatch"]}

    def test_bars_are_as_long_as_the_change(self, recourses, axes):
        position = telling(recourses)
        person(recourses, position, axes)
        step = (recourses.proposal.rows - recourses.x)[position]
        names = list(recourses.encoder.schema.names)
        for bar, name in zip(axes.patches, labels(axes), strict=True):
            j = names.index(name)
            length = 1.0 if recourses.encoder.blocks[j] else float(step[j])
            assert bar.get_width() == pytest.approx(length)

    def test_what_is_expected_has_its_range_over_the_redraws(self, recourses, axes):
        position = telling(recourses)
        person(recourses, position, axes)
        spread = recourses.lazy_answers.spread(torch.tensor([position]))
        direct, names = recourses.proposal.direct[position], recourses.encoder.schema.names
        follows = recourses.changed[position] & ~direct & (spread.low[0] < spread.high[0])
        drawn = {}
        for bars in axes.containers:
            if isinstance(bars, ErrorbarContainer):
                (line,) = bars.lines[2][0].get_segments()
                drawn[labels(axes)[round(line[0, 1])]] = line[:, 0].tolist()
        expected = {
            names[j]: pytest.approx([float(spread.low[0, j]), float(spread.high[0, j])])
            for j in follows.nonzero()[:, 0].tolist()
        }
        assert drawn == expected
        assert drawn

    def test_the_title_names_the_row_and_the_probabilities(self, recourses, axes):
        position = telling(recourses)
        person(recourses, position, axes)
        row = recourses.actions.iloc[position]
        assert f"Row {recourses.factuals.index[position]}:" in axes.get_title()
        assert f"{row['score_before']:.0%} → {row['score_after']:.0%}" in axes.get_title()

    def test_a_telling_row_is_solved_and_moves_most(self, recourses):
        position = telling(recourses)
        solved = recourses.actions["success"].to_numpy()
        moved = recourses.changed.sum(1).numpy()
        assert solved[position]
        assert moved[position] == moved[solved].max()

    def test_every_row_can_be_drawn(self, recourses):
        for position in range(0, len(recourses), 7):
            figure = Figure(layout="constrained")
            person(recourses, position, figure.subplots())
            FigureCanvasAgg(figure).draw()


class TestSplits:
    def test_bars_are_the_median_costs_by_feature_acted_on(self, recourses, axes):
        splits(recourses.actions, axes)
        done = recourses.actions[recourses.actions["success"]]
        for i, label in enumerate(labels(axes)):
            name, count = label.rsplit("  ", 1)
            mine = done[done["acted_on"] == name]
            assert count == f"({len(mine)})"
            direct, indirect = axes.containers[0][i], axes.containers[1][i]
            assert direct.get_width() == pytest.approx(mine["direct_cost"].median())
            assert indirect.get_width() == pytest.approx(mine["indirect_cost"].median())
            assert indirect.get_x() == pytest.approx(direct.get_width())

    def test_the_commonest_comes_first(self, recourses, axes):
        splits(recourses.actions, axes)
        counts = [int(label.rsplit("(", 1)[1][:-1]) for label in labels(axes)]
        assert counts == sorted(counts, reverse=True)
        assert 1 <= len(counts) <= 10

    def test_the_legend_tells_direct_from_indirect(self, recourses, axes):
        splits(recourses.actions, axes)
        legend = [t.get_text() for t in axes.get_legend().get_texts()]
        assert legend == ["direct action", "expected indirect change"]

    def test_they_differ_in_black_and_white(self):
        assert "hatch" in INDIRECT
        assert "hatch" not in DIRECT


class TestOddResults:
    def test_accepted_rows_are_left_out(self, mixed, axes):
        dear = DEAR(mixed.net, mixed.schema).fit(mixed.frame)
        result = dear.generate(mixed.frame.iloc[:80])
        with torch.no_grad():
            refused = mixed.net(mixed.encoder.encode(mixed.frame.iloc[:80]))[:, 0] <= 0
        splits(result.actions, axes)
        solved = int((refused.numpy() & result.actions["success"].to_numpy()).sum())
        assert f"acted on in {solved} rows" in axes.get_title()

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
        person(result, 0, axes)
        FigureCanvasAgg(axes.figure).draw()
        overview(result).savefig(tmp_path / "money.png")
        assert "$a_{$" in labels(axes)
        assert "Row $x_{$" in axes.get_title()

    def test_labels_of_any_kind_and_a_single_row(self, mixed, tmp_path):
        one = mixed.refused(1).set_axis(["Ms $ Smith"])
        result = DEAR(mixed.net, mixed.schema).fit(mixed.frame).generate(one)
        overview(result).savefig(tmp_path / "one.png")
        assert (tmp_path / "one.png").stat().st_size > 10_000


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

    def test_a_star_marks_a_method_that_solves_less_than_half(self, table, axes):
        rare = table.assign(
            success=table["success"] & ~((table["method"] == "C") & (table["cost"] < 4))
        )
        front(rare, axes)
        assert axes.get_legend_handles_labels()[1] == ["A", "B", "C*"]

    def test_nothing_solved_gives_empty_axes(self, table, axes):
        front(table[table["method"] == "D"], axes)
        assert axes.get_legend_handles_labels()[1] == []
