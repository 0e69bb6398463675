"""Plausibility: how odd a row is among all training rows, as a conformal p-value."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import Encoder, Schema
from dear_plugin.evaluation.neighbours import Neighbours
from dear_plugin.evaluation.plausibility import MOST_ROWS, Plausibility


@pytest.fixture(scope="module")
def rows(mixed):
    return mixed.encoder.rows(mixed.frame)


@pytest.fixture(scope="module")
def plausibility(mixed, rows):
    return Plausibility(rows, mixed.encoder)


@pytest.fixture(scope="module")
def strange(mixed, rows):
    """(120, p) rows between two people each, some of them beyond both."""
    one, other = rows[:120], rows[200:320]
    number = torch.tensor([not f.categories for f in mixed.schema])
    share = torch.linspace(-1.0, 3.0, 120)[:, None]
    return torch.where(number, one + share * (other - one), one)


def by_definition(rows, crowd, encoder, k=5):
    """(m,) `(1 + #{i: d_i >= d}) / (n + 1)` from all distances."""
    far = {"compute_mode": "donot_use_mm_for_euclid_dist"}
    here, there = encoder.expand(rows).double(), encoder.expand(crowd).double()
    own = torch.cdist(there, there, **far).fill_diagonal_(torch.inf)
    expected = own.topk(k, largest=False).values.mean(1)
    away = torch.cdist(here, there, **far).topk(k, largest=False).values.mean(1)
    # Sums of the same distances may be rounded otherwise.
    odder = (expected >= away[:, None] - 1e-12).sum(1)
    return (1.0 + odder) / (len(crowd) + 1.0)


class TestDefinition:
    def test_it_is_the_share_of_training_rows_at_least_as_odd(
        self, mixed, rows, plausibility, strange
    ):
        came = plausibility.of(strange)
        expected = by_definition(strange, rows, mixed.encoder).to(came)
        torch.testing.assert_close(came, expected, atol=2.0 / len(rows), rtol=0.0)
        assert came.min() < 0.01
        assert came.max() > 0.3

    def test_a_known_answer(self):
        """Ten people on a line: both ends are as odd as each other, the next ones less so."""
        frame = pd.DataFrame({"x": np.arange(10.0)})
        encoder = Encoder(Schema.infer(frame))
        plausibility = Plausibility(encoder.rows(frame), encoder)
        # Means of the five nearest, themselves left out, in steps of 1: 3, 11/5, 9/5, 9/5, 9/5
        # and back. Who comes to stand on 4.5 has 13/10; beyond the end, on 11, it is 4.
        at = encoder.rows(pd.DataFrame({"x": [4.5, 11.0]}))
        assert plausibility.of(at).tolist() == pytest.approx([1.0, 1 / 11])

    def test_training_rows_leave_themselves_out(self, mixed, rows, plausibility):
        """Else every one of them would look odder among the others than it is."""
        near = Neighbours(rows, mixed.encoder)
        expected = near.distance(rows, skip=1).sort().values
        torch.testing.assert_close(plausibility._calibration, expected)

    def test_it_lies_above_nought_and_is_one_at_most(self, mixed, rows, plausibility):
        far = rows[:3].clone()
        far[:, 1] = 1e6
        assert plausibility.of(far).tolist() == pytest.approx([1.0 / (len(rows) + 1)] * 3)
        assert (plausibility.of(rows) <= 1.0).all()

    def test_of_people_like_the_training_rows_a_share_p_is_at_most_p(self, mixed, rows):
        """What makes it a p-value; the people are new ones."""
        odd, even = rows[1::2], rows[::2]
        came = Plausibility(even, mixed.encoder).of(odd)
        for p in (0.05, 0.2, 0.5):
            assert p - 0.1 <= (came <= p).double().mean() <= p + 0.03

    def test_labels_and_models_play_no_part(self, plausibility):
        assert not {"classifier", "model", "labels"} & set(vars(plausibility))


class TestAtLeast:
    @pytest.mark.parametrize("least", [0.0, 0.01, 0.05, 0.3, 0.9, 1.0])
    def test_who_passes_has_the_same_share_as_with_of(self, plausibility, strange, least):
        enough = torch.full((len(strange),), least)
        whole, some = plausibility.of(strange).double(), plausibility.at_least(strange, enough)
        passes = whole >= enough
        torch.testing.assert_close(some[passes], whole[passes])
        assert ((some == 0.0) | (some == whole)).all()
        assert (some[~passes] < least + 1e-9).all()

    def test_where_nobody_is_near_it_is_zero_without_a_look_at_more(self, plausibility, rows):
        far = rows[:4].clone()
        far[:, 1] = 1e6
        assert plausibility.at_least(far, torch.full((4,), 0.05)).tolist() == [0.0] * 4

    def test_every_row_may_need_another_share(self, plausibility, strange):
        whole = plausibility.of(strange)
        for ask in (whole, (whole + 0.05).clamp_max(1.0), whole / 2.0):
            some = plausibility.at_least(strange, ask)
            passes = whole >= ask
            torch.testing.assert_close(some[passes], whole[passes].double())


class TestManyRows:
    def test_so_many_stand_for_all_and_are_drawn_once(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(rng.normal(size=(MOST_ROWS + 3000, 2)), columns=["x", "y"])
        encoder = Encoder(Schema.infer(frame))
        rows = encoder.rows(frame)
        people = encoder.rows(pd.DataFrame(rng.normal(size=(200, 2)), columns=["x", "y"]))
        one, other = Plausibility(rows, encoder), Plausibility(rows, encoder)
        assert len(one._calibration) == MOST_ROWS
        assert torch.equal(one.of(rows[:50]), other.of(rows[:50]))
        whole = by_definition(people, rows, encoder)
        assert (one.of(people) - whole).abs().mean() <= 0.1
        assert torch.corrcoef(torch.stack([one.of(people).double(), whole.double()]))[0, 1] > 0.8

    def test_the_global_random_numbers_are_left_alone(self, mixed, rows):
        before = torch.random.get_rng_state()
        Plausibility(rows, mixed.encoder).of(rows[:3])
        assert torch.equal(before, torch.random.get_rng_state())


def test_what_a_row_gets_does_not_depend_on_the_others(plausibility, strange):
    whole = plausibility.of(strange)
    least = torch.linspace(0.0, 1.0, len(strange))
    enough = plausibility.at_least(strange, least)
    for i in range(0, len(strange), 11):
        assert torch.equal(plausibility.of(strange[[i]]), whole[[i]])
        assert torch.equal(plausibility.at_least(strange[[i]], least[[i]]), enough[[i]])


def test_copies_of_a_row_are_their_own_neighbours():
    """Six people alike: none of them is odd, however far away the others are."""
    frame = pd.DataFrame({"x": [0.0] * 6 + [1.0, 3.0, 5.0, 7.0, 9.0, 10.0]})
    encoder = Encoder(Schema.infer(frame))
    plausibility = Plausibility(encoder.rows(frame), encoder)
    assert plausibility.of(encoder.rows(frame.iloc[:1])).item() == 1.0


def test_where_everybody_has_copies_copies_are_plausible_and_nobody_else_is():
    """Three coins, thrown 300 times: the limit is a distance of zero."""
    frame = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (300, 2)), columns=["p", "q"])
    frame["r"] = frame["p"]
    encoder = Encoder(Schema.infer(frame))
    plausibility = Plausibility(encoder.rows(frame), encoder)
    rows = encoder.rows(pd.DataFrame({"p": [0, 1, 1], "q": [0, 0, 1], "r": [0, 1, 0]}))
    least = torch.full((3,), 0.05)
    expected = [1.0, 1.0, 1.0 / 301.0]
    assert plausibility.of(rows).tolist() == pytest.approx(expected)
    assert plausibility.at_least(rows, least).tolist() == pytest.approx([1.0, 1.0, 0.0])
