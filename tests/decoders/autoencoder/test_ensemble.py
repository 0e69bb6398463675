"""Ensemble: the mean change of members, shrunk as far as they disagree."""

import torch

from dear_plugin.decoders.autoencoder.ensemble import shrunk_mean

# One number, one category of three columns.
FEATURE_OF = torch.tensor([0, 1, 1, 1])


def outputs(*changes):
    """One row and one other value: every member starts at 0 and changes by so much."""
    end = torch.tensor(changes, dtype=torch.float64)
    return torch.stack([torch.zeros_like(end), end])[None]


def change(*changes):
    return shrunk_mean(outputs(*changes), FEATURE_OF)[0, 1]


def test_the_change_of_a_single_member_is_not_shrunk():
    single = [[0.3, 0.1, -0.2, 0.1]]
    assert change(*single).tolist() == single[0]


def test_the_change_of_members_that_agree_is_not_shrunk():
    same = [0.3, 0.1, -0.2, 0.1]
    torch.testing.assert_close(change(*[same] * 4), torch.tensor(same, dtype=torch.float64))


def test_a_change_no_larger_than_its_spread_becomes_zero():
    assert change([0.3, 0, 0, 0], [-0.2, 0, 0, 0])[0] == 0.0


def test_other_changes_are_shrunk_in_proportion_to_the_noise():
    moved = change([0.3, 0, 0, 0], [0.2, 0, 0, 0], [0.1, 0, 0, 0])[0]
    # Mean .2, variance .01: shrunk by 1 - .01 / .04.
    torch.testing.assert_close(float(moved), 0.2 * 0.75)


def test_the_columns_of_a_category_are_shrunk_alike_and_their_changes_cancel():
    members = [[0.0, 0.4, -0.1, -0.3], [0.0, 0.2, 0.1, -0.3], [0.0, 0.3, -0.1, -0.2]]
    moved, mean = change(*members)[1:], torch.tensor(members, dtype=torch.float64).mean(0)[1:]
    torch.testing.assert_close(float(moved.sum()), 0.0)
    factors = moved / mean
    torch.testing.assert_close(factors, factors[:1].expand(3))
    assert 0.0 < float(factors[0]) < 1.0


def test_rows_and_values_do_not_depend_on_each_other():
    many = torch.randn(5, 1 + 3, 4, 4, generator=torch.Generator().manual_seed(0))
    together = shrunk_mean(many, FEATURE_OF)
    for i in range(5):
        assert torch.equal(shrunk_mean(many[i : i + 1], FEATURE_OF)[0], together[i])
        for c in range(1, 4):
            one = shrunk_mean(many[i : i + 1, [0, c]], FEATURE_OF)
            assert torch.equal(one[0, 1], together[i, c])
