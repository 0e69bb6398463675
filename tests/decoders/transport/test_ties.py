"""Ties: who comes first among people with the same value, by what else is known of them."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import ActionSets, Encoder, Schema
from dear_plugin.decoders import Transport
from dear_plugin.errors import DearError

N = 6000
SCHOOL, WAGE, OWNER, TOWN = range(4)


def people(seed=0) -> pd.DataFrame:
    """Owners have high wages for their schooling, and so do those from C."""
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
    """A decoder whose people act on their schooling."""

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
    return people()


@pytest.fixture(scope="module")
def scored(frame):
    return Fitted(frame, "score")


@pytest.fixture(scope="module")
def middle(frame):
    return Fitted(frame, "middle")


def at(frame, school):
    return torch.tensor((frame["school"] == school).to_numpy())


class TestStandings:
    def test_the_score_tells_apart_who_the_middle_does_not(self, frame, scored, middle):
        same = at(frame, 4)
        assert len(middle.v[same, OWNER].unique()) == 2
        assert len(scored.v[same, OWNER].unique()) > 20

    def test_nobody_leaves_the_stretch_of_their_value(self, frame, scored):
        """Of those with four years of school, all who do not own stand below all who do."""
        same, owner = at(frame, 4), torch.tensor((frame["owner"] == "yes").to_numpy())
        assert scored.v[same & ~owner, OWNER].max() <= scored.v[same & owner, OWNER].min()

    def test_who_is_expected_to_own_stands_higher(self, frame, scored):
        for owner in ("no", "yes"):
            same = at(frame, 4).numpy() & (frame["owner"] == owner).to_numpy()
            order = pd.Series(scored.v[same, OWNER].numpy())
            wages = frame["wage"][same].reset_index(drop=True)
            assert order.corr(wages, method="spearman") > 0.8

    def test_they_are_as_independent_of_x_s_as_random_ones(self, frame, scored):
        for school in range(9):
            v = scored.v[at(frame, school)]
            assert v[:, OWNER].mean().item() == pytest.approx(0.5, abs=0.03)
            assert v[:, OWNER].std().item() == pytest.approx(12**-0.5, abs=0.03)

    def test_people_never_seen_have_them_too(self, scored):
        strange = scored.rows[:50] + torch.tensor([0.0, 5.0, 0.0, 0.0])
        v = scored.decoder.encode(strange)
        assert ((v > 0) & (v < 1)).all()

    def test_what_cannot_change_does_not_count(self, frame):
        blind = Fitted(frame, "score", immutable=["wage", "town"])
        same = at(frame, 4)
        assert len(blind.v[same, OWNER].unique()) <= 2 + 1

    def test_a_batch_of_many_equals_batches_of_one(self, scored):
        alone = torch.cat([scored.decoder.encode(row[None]) for row in scored.rows[:20]])
        torch.testing.assert_close(alone[:, 0], scored.v[:20], atol=1e-6, rtol=0.0)


class TestWhatPeopleSee:
    @pytest.mark.parametrize("school", [1, 4, 7])
    def test_as_many_own_as_do_there(self, frame, scored, school):
        made = scored.moved(school / 8)[:, OWNER].mean().item()
        there = (frame["owner"] == "yes")[frame["school"] == school].mean()
        assert made == pytest.approx(there, abs=0.03)

    @pytest.mark.parametrize("school", [1, 4, 7])
    def test_as_many_live_in_each_town(self, frame, scored, school):
        made = torch.bincount(scored.moved(school / 8)[:, TOWN].long(), minlength=3) / N
        there = frame["town"][frame["school"] == school].value_counts(normalize=True).sort_index()
        assert made.tolist() == pytest.approx(there.tolist(), abs=0.04)

    def test_middle_ties_show_all_or_none(self, frame, middle):
        """From 4 to 8 years of school, nobody or everybody with the same schooling changes."""
        same = at(frame, 4)
        made, own = middle.moved(1.0)[same, OWNER], middle.rows[same, OWNER]
        assert len(made[own == 0].unique()) == 1

    def test_the_first_to_change_are_those_who_are_expected_to(self, frame, scored):
        same = at(frame, 4)
        new = (scored.moved(1.0)[:, OWNER] > scored.rows[:, OWNER])[same].numpy()
        stay = (frame["owner"] == "no")[same.numpy()].to_numpy() & ~new
        wages = frame["wage"][same.numpy()].to_numpy()
        assert new.sum() > 50
        assert wages[new].mean() > wages[stay].mean() + 2.0

    def test_at_ones_own_value_one_is_oneself_exactly(self, scored):
        sets = torch.zeros(N, dtype=torch.int64)
        own = scored.rows[:, None, :1]
        back = scored.decoder.decode(scored.rows, scored.v, own, sets)[:, 0]
        assert torch.equal(back, scored.rows)


def test_it_is_chosen_by_name_and_handed_over(frame, scored):
    heir = Transport.with_settings(scored.decoder.settings())
    sets = ActionSets.of(scored.encoder.schema, ["school"])
    heir.load_state(scored.decoder.tensors(), scored.encoder, sets)
    assert torch.equal(heir.encode(scored.rows[:99])[:, 0], scored.v[:99])


def test_another_name_is_refused():
    with pytest.raises(DearError, match=r"'scores'.*did you mean 'score'"):
        Transport(ties="scores")
