"""Redraws: the decoder as other samples of the same population might have given it."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import ActionSets, Encoder, Schema
from dear_plugin.datasets import load_loan
from dear_plugin.decoders import Refitted, Transport
from dear_plugin.decoders.still import Still
from dear_plugin.decoders.transport import redraws as of_tables
from dear_plugin.decoders.transport.redraws import TableRedraws

EVERY = torch.arange(16)
ACT_ON = ["income", "education", "savings", ("income", "savings")]


class Fitted:
    """A fitted decoder, and rows with new values of x_S taken from other rows."""

    def __init__(self, frame, act_on=None, immutable=(), count=60, **settings):
        self.encoder = Encoder(Schema.infer(frame, immutable=immutable))
        self.sets = ActionSets.of(self.encoder.schema, act_on)
        self.rows = self.encoder.rows(frame)
        self.decoder = Transport(**settings)
        self.decoder.fit(self.rows, self.encoder, self.sets)
        self.x, donors = self.rows[:count], self.rows[count : 2 * count]
        self.which = torch.arange(count) % len(self.sets)
        positions = self.sets.positions[self.which]
        self.own, self.values = self.x.gather(1, positions), donors.gather(1, positions)

    def redraws(self):
        return self.decoder.redraws(self.rows, self.encoder, self.sets)

    def decoded(self):
        v = self.decoder.encode(self.x)[torch.arange(len(self.x)), self.which]
        return self.decoder.decode(self.x, v, self.values[:, None], self.which)[:, 0]

    def redrawn(self, redraws=None):
        return (redraws or self.redraws()).decode(self.x, self.values, self.which, EVERY)


def mixed(n, seed=0):
    """Numbers with and without atoms, a binary, a category, and one column of noise."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 12, n)
    return pd.DataFrame(
        {
            "a": a,
            "b": a // 2 + rng.integers(0, 6, n),
            "smooth": a + 3.0 * rng.normal(size=n),
            "kind": np.array(list("xyz"))[
                np.clip((a + 4.0 * rng.normal(size=n)) // 4, 0, 2).astype(int)
            ],
            "flag": np.where(a + rng.normal(size=n) * 4 > 6, "yes", "no"),
            "group": np.array(["north", "south"])[rng.integers(0, 2, n)],
            "noise": rng.integers(0, 9, n),
        }
    )


def scattered(n, seed):
    """Eight gains far apart, most rows have none; each gain has its own share of `married`."""
    rng = np.random.default_rng(seed)
    amounts, share = np.sort(rng.uniform(1.0, 100.0, 8).round(2)), rng.random(8)
    which = rng.integers(0, 8, n)
    gain = np.where(rng.random(n) < 0.7, 0.0, amounts[which])
    married = rng.random(n) < np.where(gain > 0.0, share[which], 0.4)
    return pd.DataFrame({"gain": gain, "married": np.where(married, "yes", "no")})


CASES = {
    "one by one": {"act_on": ["a", "b", "kind", "smooth"]},
    "pairs": {"act_on": ["a", ("a", "kind"), ("b", "smooth")]},
    "given": {"act_on": ["a", "kind", ("a", "flag")], "immutable": ["group", "b"]},
    "scored ties": {"act_on": ["a", "kind"], "ties": "score"},
}


@pytest.fixture(scope="module", params=CASES, ids=list(CASES))
def fitted(request):
    return Fitted(mixed(3000), **CASES[request.param])


class TestProperties:
    def test_at_their_own_values_rows_are_returned_bit_for_bit(self, fitted):
        out = fitted.redraws().decode(fitted.x, fitted.own, fitted.which, EVERY)
        assert out.shape == (60, 16, 7)
        assert (out == fitted.x[:, None]).all()

    def test_features_acted_on_take_the_new_values_and_given_ones_stay(self, fitted):
        out, given = fitted.redrawn(), fitted.decoder.given_features
        positions = fitted.sets.positions[fitted.which]
        for redraw in out.unbind(1):
            assert (redraw.gather(1, positions) == fitted.values).all()
            assert (redraw[:, given] == fitted.x[:, given]).all()

    def test_redraws_differ_and_are_reproducible(self, fitted):
        first = fitted.redrawn()
        assert (first == fitted.redrawn()).all()
        assert len({tuple(redraw.flatten().tolist()) for redraw in first.unbind(1)}) == 16

    def test_a_batch_equals_single_rows_and_redraws_in_any_order(self, fitted):
        whole, redraws = fitted.redrawn(), fitted.redraws()
        for i in reversed(range(len(fitted.x))):
            which = EVERY.flip(0)[i % 3 : i % 3 + 5]
            one = fitted.x[i : i + 1], fitted.values[i : i + 1], fitted.which[i : i + 1]
            assert (redraws.decode(*one, which)[0] == whole[i, which]).all()

    def test_an_independent_column_never_moves(self, fitted):
        noise = fitted.encoder.schema.index(["noise"])[0]
        assert (fitted.redrawn()[..., noise] == fitted.x[:, None, noise]).all()

    def test_values_are_those_of_training_rows(self, fitted):
        out = fitted.redrawn()
        for name in ("a", "b", "kind", "flag"):
            (j,) = fitted.encoder.schema.index([name])
            assert torch.isin(out[..., j], fitted.rows[:, j]).all()

    def test_the_decoder_and_the_global_generator_are_unchanged(self, fitted):
        before, tensors = fitted.decoded(), fitted.decoder.tensors()
        kept = {name: tensor.clone() for name, tensor in tensors.items()}
        torch.manual_seed(3)
        state = torch.get_rng_state()
        with torch.inference_mode():
            fitted.redrawn()
        assert (torch.get_rng_state() == state).all()
        assert (fitted.decoded() == before).all()
        for name, tensor in fitted.decoder.tensors().items():
            torch.testing.assert_close(tensor, kept[name], rtol=0, atol=0, equal_nan=True)

    def test_linear_copies_of_a_column_stay_on_their_line(self):
        frame = mixed(2000).assign(twin=lambda f: 2 * f["a"] + 1)
        case = Fitted(frame, act_on=["a"])
        a, twin = case.encoder.schema.index(["a", "twin"])
        out = case.redrawn()
        assert torch.allclose(out[..., twin], out[..., a], atol=1e-6)


class TestSpread:
    def test_with_very_many_rows_redraws_agree_with_the_decoder(self):
        few, many = (Fitted(mixed(n), act_on=["a"], count=200) for n in (1000, 200_000))
        gaps = [
            (case.redrawn() - case.decoded()[:, None]).abs().mean().item() for case in (few, many)
        ]
        moved = (many.decoded() - many.x).abs().mean().item()
        assert gaps[1] < 0.25 * gaps[0]
        assert gaps[1] < 0.05 * moved

    @pytest.mark.parametrize("act_on", ["a", ("a", "kind")], ids=str)
    def test_the_spread_is_that_of_refits(self, act_on):
        case = Fitted(mixed(1500), act_on=[act_on], count=300)
        refitted = Refitted(case.decoder, case.rows, case.encoder, sets=case.sets, count=16)
        spread = {
            kind: self.quantiles(case, case.redrawn(redraws))
            for kind, redraws in (("redrawn", case.redraws()), ("refitted", refitted))
        }
        for redrawn, expected in zip(*spread.values(), strict=True):
            assert 0.6 * expected < redrawn < 1.6 * expected

    @pytest.mark.parametrize("seed", [0, 1])
    def test_where_values_are_far_apart_redraws_are_refits_on_the_same_samples(self, seed):
        """With the same bins for all redraws, the spread was 0 to 26 % of that of refits."""
        case = Fitted(scattered(4000, seed), act_on=["gain"], count=300)
        refitted = Refitted(case.decoder, case.rows, case.encoder, sets=case.sets, count=16)
        assert (case.redrawn() == case.redrawn(refitted)).float().mean() > 0.99

    @staticmethod
    def quantiles(case, out):
        """The upper quantiles of how far redraws lie from their own mean, of two features."""
        columns = list(case.encoder.schema.index(["b", "smooth"]))
        off = (out - out.mean(1, keepdim=True))[..., columns].abs()
        return [float(off[..., i].quantile(q)) for i in (0, 1) for q in (0.75, 0.95)]


class TestMemory:
    def test_the_cache_is_bounded_and_results_do_not_depend_on_it(self, monkeypatch):
        case = Fitted(mixed(2000), act_on=["a", "b", "kind", "smooth"])
        whole = case.redrawn()
        monkeypatch.setattr(of_tables, "MAX_ENTRIES", 20_000)
        small = case.redraws()
        assert isinstance(small, TableRedraws)
        assert (case.redrawn(small) == whole).all()
        assert small.kept_entries <= 20_000
        assert (case.redrawn(small) == whole).all()

    def test_many_features_and_sets_stay_below_the_bound(self, monkeypatch):
        rng = np.random.default_rng(0)
        shared = rng.integers(0, 9, (600, 1))
        table = (shared + rng.integers(0, 9, (600, 25))).astype(float)
        case = Fitted(pd.DataFrame(table, columns=[f"f{i}" for i in range(25)]), count=50)
        monkeypatch.setattr(of_tables, "MAX_ENTRIES", 500_000)
        redraws = case.redraws()
        case.redrawn(redraws)
        assert redraws.kept_entries <= of_tables.MAX_ENTRIES


class TestRefitted:
    def test_any_decoder_has_redraws(self):
        frame = load_loan(500, seed=0).features
        encoder = Encoder(Schema.infer(frame))
        sets, rows = ActionSets.of(encoder.schema, ACT_ON), encoder.rows(frame)
        still = Still()
        still.fit(rows, encoder, sets)
        redraws = still.redraws(rows, encoder, sets)
        assert isinstance(redraws, Refitted)
        which = torch.arange(40) % len(sets)
        values = rows[40:80].gather(1, sets.positions[which])
        out = redraws.decode(rows[:40], values, which, torch.arange(redraws.count))
        expected = rows[:40].scatter(1, sets.positions[which], values)
        assert (out == expected[:, None]).all()

    def test_each_is_a_refit_on_a_bootstrap_sample(self):
        case = Fitted(mixed(1200), act_on=["a", "kind"])
        redraws = Refitted(case.decoder, case.rows, case.encoder, sets=case.sets)
        which = torch.tensor([2, 0])
        state = torch.get_rng_state()
        with torch.inference_mode():
            out = redraws.decode(case.x, case.values, case.which, which)
        assert (torch.get_rng_state() == state).all()
        assert (out[:, 0] != out[:, 1]).any()
        again = Refitted(case.decoder, case.rows, case.encoder, sets=case.sets)
        one = again.decode(case.x[:1], case.values[:1], case.which[:1], which.flip(0))
        assert (one[0].flip(0) == out[0]).all()
