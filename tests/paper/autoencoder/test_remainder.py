"""Remainder: rows plus the change of g, categories by maximal coupling of its probabilities."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import Encoder, Schema
from dear_plugin.decoders import Sample
from dear_plugin.decoders.protocol import MIDDLE
from dear_plugin.paper import Autoencoder, Design, Training
from dear_plugin.paper.autoencoder.remainder import add_change


@pytest.fixture(scope="module")
def fitted():
    """A number, one with an atom at its least value, an integer, a binary and three levels."""
    rng, n = np.random.default_rng(0), 400
    frame = pd.DataFrame(
        {
            "free": rng.normal(size=n),
            "gain": np.where(rng.random(n) < 0.8, 0.0, rng.uniform(900, 1100, n)),
            "whole": rng.integers(0, 11, n),
            "flag": rng.integers(0, 2, n),
            "town": rng.choice(list("ABC"), n),
        }
    )
    encoder = Encoder(Schema.infer(frame))
    decoder = Autoencoder(Design(layers=(4, 2)), Training(epochs=1))
    decoder.fit(Sample(encoder.rows(frame), encoder), (FREE,), ())
    return decoder.networks, encoder.rows(frame)


FREE, GAIN, WHOLE, FLAG, TOWN = range(5)


def shifted(fitted, column, by, tie=MIDDLE, rows=None):
    """The shift of one feature, and the first row after and before, when g changes by so much.

    Shifts are shares of the range.
    """
    networks, all_rows = fitted
    x = (all_rows if rows is None else rows)[:1, None]
    outputs = torch.full((1, 2, networks.encoder.d), 0.25)
    outputs[:, 1, networks.encoder.starts[column]] += by
    out = add_change(networks, x, outputs, torch.full(x.shape, tie))
    by = (out[0, 0] - x[0, 0]) / networks.encoder.width
    return float(by[column]), out[0, 0], x[0, 0]


class TestAddChange:
    def test_a_number_moves_by_the_difference_and_nothing_else_moves(self, fitted):
        by, after, before = shifted(fitted, FREE, 0.01)
        assert by == pytest.approx(0.01, abs=1e-6)
        assert torch.equal(after[1:], before[1:])

    def test_at_a_drawn_tie_it_moves_in_whole_steps_and_right_on_average(self, fitted):
        # Rows whose integer can go up and down.
        ties, rows = (torch.arange(100) + 0.25) / 100, fitted[1][fitted[1][:, WHOLE] == 5.0]
        steps = [shifted(fitted, WHOLE, 0.04, float(t), rows=rows)[0] for t in ties]
        assert {round(s, 4) for s in steps} == {0.0, 0.1}
        assert np.mean(steps) == pytest.approx(0.04, abs=0.002)

    def test_a_row_at_an_atom_jumps_or_stays(self, fitted):
        networks, rows = fitted
        at_atom, off_atom = rows[rows[:, GAIN] == 0], rows[rows[:, GAIN] > 0]
        jump = float(networks.scaler.jump[0, 0, GAIN])
        assert shifted(fitted, GAIN, 0.4 * jump, rows=at_atom)[0] == 0.0
        assert shifted(fitted, GAIN, 0.6 * jump, rows=at_atom)[0] == pytest.approx(jump)
        assert shifted(fitted, GAIN, -0.1, rows=off_atom)[0] == pytest.approx(-0.1, abs=1e-6)

    def test_no_row_leaves_the_bounds_but_one_outside_may_stay_there(self, fitted):
        networks, rows = fitted
        high = float(networks.encoder.high[FREE])
        after = shifted(fitted, FREE, 9.0)[1]
        assert float(after[FREE]) == high
        outside = rows[:1].clone()
        outside[0, FREE] = high + 1.4
        assert shifted(fitted, FREE, 9.0, rows=outside)[0] == 0.0

    def test_a_category_follows_its_probabilities(self, fitted):
        networks, rows = fitted
        x = rows[rows[:, TOWN] == 0][:1, None]
        outputs = torch.full((1, 3, networks.encoder.d), 0.25)
        outputs[..., -3:] = torch.tensor([[0.8, 0.1, 0.1], [0.5, 0.4, 0.1], [0.3, 0.1, 0.6]])
        out = add_change(networks, x, outputs, torch.full(x.shape, MIDDLE))
        assert out[0, :, TOWN].tolist() == [0.0, 2.0]

    def test_outputs_below_0_and_above_1_are_clipped(self, fitted):
        """The linear output of a binary feature has no bounds."""
        networks, rows = fitted
        outputs = torch.full((1, 2, networks.encoder.d), 0.25)
        outputs[0, :, networks.encoder.starts[FLAG]] = torch.tensor([-0.2, 1.3])
        for own, tie in product((0.0, 1.0), (0.0, 0.9)):
            x = rows[rows[:, FLAG] == own][:1, None]
            out = add_change(networks, x, outputs, torch.full(x.shape, tie))
            assert float(out[0, 0, FLAG]) in (0.0, 1.0)
