"""Agreement: members' mean change, shrunk as far as they disagree."""

import torch

from dear_plugin.decoders.autoencoder.agreement import agreed

# One number, one category of three columns.
FEATURE_OF = torch.tensor([0, 1, 1, 1])


def made(*changes):
    """One person, one other value: every member starts at 0 and changes so."""
    there = torch.tensor(changes, dtype=torch.float64)
    return torch.stack([torch.zeros_like(there), there])[None]


def change(*changes):
    return agreed(made(*changes), FEATURE_OF)[0, 1]


def test_one_member_is_believed():
    told = [[0.3, 0.1, -0.2, 0.1]]
    assert change(*told).tolist() == told[0]


def test_members_that_agree_are_believed():
    told = [0.3, 0.1, -0.2, 0.1]
    torch.testing.assert_close(change(*[told] * 4), torch.tensor(told, dtype=torch.float64))


def test_a_change_no_larger_than_its_spread_is_none():
    assert change([0.3, 0, 0, 0], [-0.2, 0, 0, 0])[0] == 0.0


def test_in_between_it_is_the_mean_less_its_noise():
    moved = change([0.3, 0, 0, 0], [0.2, 0, 0, 0], [0.1, 0, 0, 0])[0]
    # Mean .2, variance .01: 1 - .01 / .04 of it is left.
    torch.testing.assert_close(float(moved), 0.2 * 0.75)


def test_the_columns_of_a_category_are_shrunk_alike_and_their_changes_cancel():
    members = [[0.0, 0.4, -0.1, -0.3], [0.0, 0.2, 0.1, -0.3], [0.0, 0.3, -0.1, -0.2]]
    moved, mean = change(*members)[1:], torch.tensor(members, dtype=torch.float64).mean(0)[1:]
    torch.testing.assert_close(float(moved.sum()), 0.0)
    shares = moved / mean
    torch.testing.assert_close(shares, shares[:1].expand(3))
    assert 0.0 < float(shares[0]) < 1.0


def test_people_and_values_are_taken_one_by_one():
    many = torch.randn(5, 1 + 3, 4, 4, generator=torch.Generator().manual_seed(0))
    together = agreed(many, FEATURE_OF)
    for i in range(5):
        assert torch.equal(agreed(many[i : i + 1], FEATURE_OF)[0], together[i])
        for c in range(1, 4):
            one = agreed(many[i : i + 1, [0, c]], FEATURE_OF)
            assert torch.equal(one[0, 1], together[i, c])
