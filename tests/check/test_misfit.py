"""Misfit: held-out rows name what is told wrongly, and nothing that is told rightly."""

import numpy as np
import pytest
import torch

from dear_plugin import DEAR, Schema
from dear_plugin.benchmark.fits import reject_all
from dear_plugin.benchmark.systems import SYSTEMS
from dear_plugin.benchmark.traits import WITH_TRAITS
from dear_plugin.check.report import misfits
from dear_plugin.decoders import Decoder, Transport


class Straight(Decoder):
    """One line in x_S and the held features for all rows: no bend, no interaction."""

    def settings(self):
        return {}

    def fit(self, sample, acted, held):
        self.acted, x = list(acted), sample.rows.double()
        columns = torch.cat([torch.ones(len(x), 1), x[:, [*acted, *held]]], 1)
        self.slope = torch.linalg.lstsq(columns, x).solution[1 : len(acted) + 1]
        self.slope[:, list(held)] = 0.0

    def encode(self, x, generator=None):
        return x[:, :0]

    def decode(self, x, v, values):
        moved = x[:, None] + (values - x[:, None, self.acted]) @ self.slope
        moved[..., self.acted] = values
        return moved


class Frozen(Straight):
    """Nothing follows."""

    def fit(self, sample, acted, held):
        self.acted, self.slope = list(acted), torch.zeros(len(acted), sample.encoder.p).double()


class Unconditional(Transport):
    """The default decoder, which does not condition on what it holds."""

    def fit(self, sample, acted, held):
        self.kept = list(held)
        super().fit(sample, acted, ())

    def decode(self, x, v, values):
        moved = super().decode(x, v, values)
        moved[..., self.kept] = x[:, None, self.kept]
        return moved


def fitted(system, decoder, seed=0, rows=4_000):
    """A fit on a draw of a system, and held-out rows."""
    rng = np.random.default_rng(seed)
    train, held_out = (system.solve(system.noise(n, rng), {}) for n in (system.rows, rows))
    schema = Schema.infer(train, immutable=system.immutable, tiers=system.tiers)
    act_on = list(system.acted) or None
    return DEAR(reject_all, schema, act_on=act_on, decoder=decoder).fit(train), held_out


def found(dear, held_out):
    return misfits(dear.decoders, dear.sets, dear.encoder.rows(held_out))[0]


class TestFaults:
    @pytest.mark.parametrize(
        ("trait", "decoder", "feature", "of", "least"),
        [
            ("spread by group", Unconditional, "z", "spread", 0.1),
            ("heavy value", Straight, "y", "mean", 0.5),
            ("crossed confounding", Straight, "y", "mean", 0.2),
            ("effect by group", Straight, "y", "mean", 0.4),
            ("many held numbers", Unconditional, "y", "mean", 0.15),
        ],
    )
    @pytest.mark.parametrize("columns", ["smooth", "rounded"])
    def test_each_is_named_with_its_size(self, trait, decoder, feature, of, least, columns):
        dear, held_out = fitted(WITH_TRAITS[f"{trait}, {columns}"], decoder())
        named = found(dear, held_out).set_index(["feature", "of"])
        assert named.loc[(feature, of), "set"] == "x"
        assert least < named.loc[(feature, of), "misfit"] < 2.0

    def test_an_effect_that_differs_is_named_with_the_feature_it_differs_by(self):
        """One line says .5 a unit for all, true are 2 and -1: 1.5 a unit of deviation 1 within."""
        dear, held_out = fitted(WITH_TRAITS["effect by group, smooth"], Straight())
        (row,) = found(dear, held_out).to_dict("records")
        assert (row["set"], row["feature"], row["within"]) == ("x", "y", "g")
        assert row["misfit"] == pytest.approx(1.5 / held_out["y"].std(), abs=0.15)

    def test_a_slope_of_nothing_is_off_by_the_whole_effect(self):
        """y = .6 x + ..., where x has deviation 1 given h."""
        system = WITH_TRAITS["linear, smooth"]
        dear, held_out = fitted(system, Straight())
        dear.decoders.of((1,)).slope[:, 2] = 0.0
        (row,) = found(dear, held_out).to_dict("records")
        assert row["misfit"] == pytest.approx(0.6 / held_out["y"].std(), abs=0.04)
        assert row["within"] == ""

    def test_an_effect_that_differs_by_a_crossing_is_named_with_both(self):
        dear, held_out = fitted(WITH_TRAITS["effect by crossing, as it is"], Straight())
        (row,) = found(dear, held_out).to_dict("records")
        assert (row["feature"], row["within"]) == ("y", "p x q")

    def test_numbers_that_may_be_missing_are_compared_where_they_are_known(self):
        dear, held_out = fitted(WITH_TRAITS["often missing later, as it is"], Frozen())
        (row,) = found(dear, held_out).to_dict("records")
        assert row["feature"] == "y" and row["misfit"] > 0.15

    def test_fewer_rows_show_less(self):
        dear, held_out = fitted(WITH_TRAITS["linear, smooth"], Straight())
        some = (dear.encoder.rows(held_out[:n]) for n in (4_000, 1_000))
        visible = [misfits(dear.decoders, dear.sets, x)[1] for x in some]
        assert 0.05 < visible[0] < 0.6 * visible[1] + 0.05 < 0.5


class TestFalseAlarms:
    @pytest.mark.parametrize("rows", [500, 4_000])
    @pytest.mark.parametrize("name", ["linear, smooth", "many held numbers, smooth"])
    def test_what_is_told_rightly_is_not_named(self, name, rows):
        named = [
            len(found(*fitted(WITH_TRAITS[name], Straight(), seed, rows))) for seed in range(10)
        ]
        assert sum(named) == 0

    @pytest.mark.ci
    @pytest.mark.parametrize("name", list(SYSTEMS))
    def test_the_default_decoder_is_not_contradicted_on_known_systems(self, name):
        assert found(*fitted(SYSTEMS[name], Transport())).empty
