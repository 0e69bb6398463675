"""Ties: the order of rows with the same value, by a score of their other features."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import ActionSets, Encoder, Schema
from dear_plugin.decoders import Transport
from dear_plugin.errors import DearError

N = 6000
SCHOOL, WAGE, OWNER, TOWN = range(4)


def make_frame(seed=0) -> pd.DataFrame:
    """Owners, and rows with town C, have high wages for their schooling."""
    rng = np.random.default_rng(seed)
    school = rng.integers(0, 9, N)
    luck = rng.normal(size=N)
    owner = luck + 0.4 * school + rng.normal(size=N) > 2.5
    town = np.digitize(luck + 0.2 * school + rng.normal(size=N), [-0.5, 1.5])
    return pd.DataFrame(
        {
            "school": school,
            "wage": 20 + 2 * school + 5 * luck,
            "owner": np.where(owner, "yes", "no"),
            "town": np.array(list("ABC"))[town],
        }
    )


class Fitted:
    """A decoder for actions on schooling."""

    def __init__(self, frame, ties, **marks):
        self.encoder = Encoder(Schema.infer(frame, **marks))
        self.rows = self.encoder.rows(frame)
        self.decoder = Transport(ties=ties, given=())
        self.decoder.fit(self.rows, self.encoder, ActionSets.of(self.encoder.schema, ["school"]))
        self.v = self.decoder.encode(self.rows)[:, 0]

    def moved(self, value):
        n = len(self.rows)
        sets = torch.zeros(n, dtype=torch.int64)
        return self.decoder.decode(self.rows, self.v, torch.full((n, 1, 1), value), sets)[:, 0]


@pytest.fixture(scope="module")
def frame():
    return make_frame()


@pytest.fixture(scope="module")
def scored(frame):
    return Fitted(frame, "score")


@pytest.fixture(scope="module")
def middle(frame):
    return Fitted(frame, "middle")


def at(frame, school):
    return torch.tensor((frame["school"] == school).to_numpy())


class TestRanks:
    def test_the_score_orders_rows_that_the_middle_does_not(self, frame, scored, middle):
        same = at(frame, 4)
        assert len(middle.v[same, OWNER].unique()) == 2
        assert len(scored.v[same, OWNER].unique()) > 20

    def test_ranks_stay_in_the_range_of_their_value(self, frame, scored):
        """With four years of school, all rows that do not own rank below all that do."""
        same, owner = at(frame, 4), torch.tensor((frame["owner"] == "yes").to_numpy())
        assert scored.v[same & ~owner, OWNER].max() <= scored.v[same & owner, OWNER].min()

    def test_rows_with_a_higher_score_have_higher_ranks(self, frame, scored):
        for owner in ("no", "yes"):
            same = at(frame, 4).numpy() & (frame["owner"] == owner).to_numpy()
            order = pd.Series(scored.v[same, OWNER].numpy())
            wages = frame["wage"][same].reset_index(drop=True)
            assert order.corr(wages, method="spearman") > 0.8

    def test_ranks_are_as_independent_of_x_s_as_random_ones(self, frame, scored):
        for school in range(9):
            v = scored.v[at(frame, school)]
            assert v[:, OWNER].mean().item() == pytest.approx(0.5, abs=0.03)
            assert v[:, OWNER].std().item() == pytest.approx(12**-0.5, abs=0.03)

    def test_rows_outside_the_training_range_have_ranks(self, scored):
        outside = scored.rows[:50] + torch.tensor([0.0, 5.0, 0.0, 0.0])
        v = scored.decoder.encode(outside)
        assert ((v > 0) & (v < 1)).all()

    def test_immutable_features_are_not_in_the_score(self, frame):
        fitted = Fitted(frame, "score", immutable=["wage", "town"])
        same = at(frame, 4)
        assert len(fitted.v[same, OWNER].unique()) <= 2 + 1

    def test_a_batch_equals_single_rows(self, scored):
        alone = torch.cat([scored.decoder.encode(row[None]) for row in scored.rows[:20]])
        torch.testing.assert_close(alone[:, 0], scored.v[:20], atol=1e-6, rtol=0.0)


class TestDecoding:
    @pytest.mark.parametrize("school", [1, 4, 7])
    def test_the_share_of_owners_is_the_conditional_one(self, frame, scored, school):
        made = scored.moved(school / 8)[:, OWNER].mean().item()
        there = (frame["owner"] == "yes")[frame["school"] == school].mean()
        assert made == pytest.approx(there, abs=0.03)

    @pytest.mark.parametrize("school", [1, 4, 7])
    def test_the_shares_of_towns_are_the_conditional_ones(self, frame, scored, school):
        made = torch.bincount(scored.moved(school / 8)[:, TOWN].long(), minlength=3) / N
        there = frame["town"][frame["school"] == school].value_counts(normalize=True).sort_index()
        assert made.tolist() == pytest.approx(there.tolist(), abs=0.04)

    def test_middle_ties_change_all_rows_or_none(self, frame, middle):
        """From 4 to 8 years of school, no row or every row with the same value changes."""
        same = at(frame, 4)
        made, own = middle.moved(1.0)[same, OWNER], middle.rows[same, OWNER]
        assert len(made[own == 0].unique()) == 1

    def test_the_rows_with_the_highest_scores_change_first(self, frame, scored):
        same = at(frame, 4)
        new = (scored.moved(1.0)[:, OWNER] > scored.rows[:, OWNER])[same].numpy()
        stay = (frame["owner"] == "no")[same.numpy()].to_numpy() & ~new
        wages = frame["wage"][same.numpy()].to_numpy()
        assert new.sum() > 50
        assert wages[new].mean() > wages[stay].mean() + 2.0

    def test_rows_are_unchanged_at_their_own_value(self, scored):
        sets = torch.zeros(N, dtype=torch.int64)
        own = scored.rows[:, None, :1]
        back = scored.decoder.decode(scored.rows, scored.v, own, sets)[:, 0]
        assert torch.equal(back, scored.rows)


def test_tensors_can_be_loaded(frame, scored):
    loaded = Transport.with_settings(scored.decoder.settings())
    sets = ActionSets.of(scored.encoder.schema, ["school"])
    loaded.load_state(scored.decoder.tensors(), scored.encoder, sets)
    assert torch.equal(loaded.encode(scored.rows[:99])[:, 0], scored.v[:99])


def test_an_unknown_name_is_refused():
    with pytest.raises(DearError, match=r"'scores'.*did you mean 'score'"):
        Transport(ties="scores")
