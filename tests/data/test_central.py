"""The central values of a number: its unit of cost, its usual step, and where actions stay."""

import numpy as np
import pandas as pd
import pytest

from dear_plugin import Encoder, Feature, Kind, Schema
from dear_plugin.errors import SchemaError

N = 2_000
RNG = np.random.default_rng(0)


def feature(values, **given):
    """The feature of a column beside another one."""
    frame = pd.DataFrame({"x": values, "y": RNG.normal(size=len(values))})
    return Schema.infer(frame, **given).features[0]


class TestUnitOfCost:
    def test_it_is_the_range_of_the_central_98_percent(self):
        values = RNG.gamma(2.0, 100.0, N).round(1)
        low, high = np.quantile(values, (0.01, 0.99), method="inverted_cdf")
        assert feature(values).central == (low, high)
        assert feature(values).unit_of_cost == pytest.approx(high - low)

    def test_it_is_the_standard_deviation_where_nearly_all_are_equal(self):
        values = np.where(np.arange(5_000) < 45, RNG.gamma(2.0, 50.0, 5_000).round(2), 0.0)
        assert feature(values).central == (0.0, 0.0)
        assert feature(values).unit_of_cost == pytest.approx(values.std())

    def test_it_is_the_whole_range_of_few_even_values(self):
        counts = np.minimum(RNG.poisson(0.3, N), 6)
        counts[:2] = 6
        assert feature(counts).unit_of_cost == 6.0
        assert feature(counts).central[1] < 6.0

    def test_a_code_far_beyond_few_values_is_no_part_of_it(self):
        counts = np.minimum(RNG.poisson(3.0, N), 12)
        counts[:3] = 98
        assert feature(counts).unit_of_cost <= 12.0

    def test_special_and_missing_values_are_no_part_of_it(self):
        values = RNG.uniform(0.0, 50.0, N).round(2)
        values[:400], values[400:600] = -999.0, np.nan
        assert feature(values, special={"x": [-999.0]}).unit_of_cost < 50.0

    def test_central_1_is_the_unit_of_the_paper(self):
        values = np.append(RNG.gamma(2.0, 100.0, N), 1e5)
        assert feature(values, central=1.0).unit_of_cost == np.ptp(values)

    @pytest.mark.parametrize("central", [0.0, 1.5, "all", True])
    def test_another_share_is_refused(self, central):
        with pytest.raises(SchemaError, match="central must be a share above 0, at most 1, got"):
            feature(RNG.normal(size=N), central=central)


class TestSteps:
    @pytest.mark.parametrize(
        ("unit", "precision", "step"),
        [
            (100.0, 2, 1.0),
            (99.0, 2, 0.5),
            (942_456.0, 0, 5_000.0),
            (20.0, 0, 1.0),
            (0.5, None, 0.005),
            (3_000.0, -3, 1_000.0),
            (2.0, 2, 0.02),
        ],
    )
    def test_the_usual_one_is_at_most_a_hundredth_and_no_finer_than_the_last_decimal(
        self, unit, precision, step
    ):
        own = Feature("x", Kind.NUMERIC, (0.0, unit), precision=precision)
        assert own.action_step == pytest.approx(step)

    def test_a_stated_one_counts_and_none_is_any_value(self):
        values = RNG.gamma(2.0, 5_000.0, N).round(0)
        assert feature(values, steps={"x": 500}).action_step == 500.0
        assert feature(values, steps={"x": None}).action_step == 0.0

    @pytest.mark.parametrize(
        ("steps", "said"),
        [
            ({"x": -1.0}, "step must be a finite number from 0"),
            ({"x": "big"}, "step must be a finite number from 0"),
            ({"x": 0.25}, "must be a multiple of its last decimal, 0.1"),
            ({"z": 1.0}, "steps: unknown features"),
            ({"job": 1.0}, "expected a numeric feature"),
            (500, "steps must be"),
        ],
    )
    def test_one_that_cannot_be_taken_is_refused(self, steps, said):
        frame = pd.DataFrame(
            {"x": RNG.uniform(0, 99, N).round(1), "job": RNG.choice(["a", "b"], N)}
        )
        with pytest.raises(SchemaError, match=said):
            Schema.infer(frame, steps=steps)

    def test_the_ends_of_what_actions_set_are_multiples(self):
        frame = pd.DataFrame({"x": RNG.normal(1_003.0, 100.0, N).round(1)})
        encoder = Encoder(Schema.infer(frame, steps={"x": 5.0}))
        low, high = (float(end[0]) for end in encoder.central)
        (first, last) = encoder.schema.features[0].central
        assert first <= low < first + 5.0 and last - 5.0 < high <= last
        assert low % 5.0 == high % 5.0 == 0.0

    def test_multiples_are_the_doubles_that_print_alike(self):
        from dear_plugin.data.numbers import in_steps

        assert in_steps(np.array([0.31, 0.69]), np.array(0.1)).tolist() == [0.3, 0.7]
