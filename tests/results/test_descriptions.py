"""Descriptions: short texts on tables with many features that move together."""

import numpy as np
import pandas as pd
import pytest

from dear_plugin import DEAR, Schema

FEATURES = [f"f{i:02}" for i in range(30)]


@pytest.fixture(scope="module")
def wide() -> pd.DataFrame:
    """30 numbers that share three causes; a few rows lie far from the others in one column."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(600, 3)) @ rng.normal(size=(3, 30))
    frame = pd.DataFrame((values + rng.normal(size=(600, 30)) / 2).round(2), columns=FEATURES)
    frame.loc[:3, "f07"] = 1000.0
    return frame


@pytest.fixture(scope="module")
def result(wide):
    def model(rows):
        return 1.0 / (1.0 + np.exp(-rows["f00"] - rows["f01"]))

    dear = DEAR(model, Schema.infer(wide), act_on=["f00"]).fit(wide)
    return dear.generate(wide[model(wide) < 0.4].tail(8))


def test_the_three_largest_changes_in_standard_deviations_are_named(result, wide):
    solved = result[result.actions["success"].to_numpy()]
    usual = wide.quantile(0.95) - wide.quantile(0.05)  # one outlier does not count
    steps = (solved.counterfactuals - solved.factuals).abs() / usual
    for label, text in solved.describe().items():
        others = steps.loc[label].drop("f00")
        largest = others.nlargest(3).index
        assert (others > 0).sum() > 3
        assert f"(and {(others > 0).sum() - 3} more)" in text
        assert all(f"{name} " in text for name in largest)
        assert sum(f"{n} " in text for n in FEATURES) == 4


def test_the_page_and_the_frame_have_all_changes(result, tmp_path):
    result.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    changed = (result.counterfactuals != result.factuals).any()
    assert all(f"{name}: " in page for name in changed.index[changed])
    assert changed.sum() > 4
