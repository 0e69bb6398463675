"""Links: which features have to do with what is acted on."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import ActionSets, Encoder, Schema
from dear_plugin.decoders import Transport
from dear_plugin.decoders.transport.relevance import links
from dear_plugin.decoders.transport.supports import Supports


def people(n, seed=0):
    """Five features of their own of every kind, and two that follow the hours."""
    rng = np.random.default_rng(seed)
    hours = rng.normal(40, 10, n).round()
    return pd.DataFrame(
        {
            "hours": hours,
            "age": rng.gamma(6, 7, n).round(),
            "late": rng.poisson(0.3, n),
            "coin": rng.choice(["heads", "tails"], n),
            "town": rng.choice(list("ABCDEF"), n),
            "mood": rng.normal(size=n),
            "pay": hours * 20 + rng.normal(0, 100, n),
            "tired": (hours + rng.normal(0, 10, n) > 50).astype(int),
        }
    )


OWN = ["age", "late", "coin", "town", "mood"]


def linked(gather, frame, act_on, given=()):
    crowd = gather(frame, act_on, given)
    supports = Supports.of(crowd.rows, crowd.encoder, torch.empty(0).long())
    return pd.DataFrame(links(crowd, supports).numpy(), columns=list(frame))


@pytest.mark.parametrize("n", [1000, 20_000])
def test_what_follows_is_told_from_what_does_not(gather, n):
    found = linked(gather, people(n), ["hours"])
    assert found.loc[0, ["pay", "tired"]].all()
    assert not found.loc[0, OWN].any()


def test_a_group_is_linked_to_what_any_of_its_features_is(gather):
    """A tree grown on the rows would seem to have to do with everything."""
    found = linked(gather, people(2000), [("hours", "mood"), ("age", "late")])
    assert found.loc[0, "pay"]
    assert not found.loc[1, ["pay", "tired", "coin", "town", "mood"]].any()


def test_what_only_the_given_has_in_common_is_no_link(gather):
    rng = np.random.default_rng(0)
    sex = rng.choice(["f", "m"], 6000)
    frame = people(6000).assign(sex=sex, late=rng.poisson(np.where(sex == "f", 0.3, 1.5)))
    frame["hours"] += np.where(sex == "f", 0.0, 8.0)
    assert linked(gather, frame, ["hours"]).loc[0, "late"]
    assert not linked(gather, frame, ["hours"], ["sex"]).loc[0, "late"]


@pytest.mark.parametrize("n", [1000, 30_000])
def test_nobody_is_told_that_noise_moves(n):
    """At most 2 % of people; it was 75 % at 1,000 rows, and 18 % at 30,000."""
    frame = people(n)
    encoder = Encoder(Schema.infer(frame))
    sets, rows = ActionSets.of(encoder.schema, ["hours", "town"]), encoder.rows(frame)
    decoder = Transport()
    decoder.fit(rows, encoder, sets)
    v, at = decoder.encode(rows[:1000]), list(encoder.schema.index(OWN))
    for which, feature in ((0, 0), (1, 4)):
        values = rows[
            torch.randperm(n, generator=torch.Generator().manual_seed(0))[:1000], feature
        ].view(-1, 1, 1)
        kept = [j for j in at if j != feature]
        made = decoder.decode(rows[:1000], v[:, which], values, torch.full((1000,), which))[:, 0]
        assert (made != rows[:1000])[:, kept].float().mean() <= 0.02
