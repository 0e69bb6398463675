"""Relevance: which features are associated with which action sets."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import ActionSets, Encoder, Schema
from dear_plugin.decoders import Transport
from dear_plugin.decoders.transport.relevance import linked_features
from dear_plugin.decoders.transport.supports import Supports


def make_frame(n, seed=0):
    """Five independent features of every kind, and two that follow the hours."""
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


INDEPENDENT = ["age", "late", "coin", "town", "mood"]


def linked(training_sample, frame, act_on, given=()):
    sample = training_sample(frame, act_on, given)
    supports = Supports.of(sample.rows, sample.encoder, torch.empty(0).long())
    return pd.DataFrame(linked_features(sample, supports).numpy(), columns=list(frame))


@pytest.mark.parametrize("n", [1000, 20_000])
def test_dependent_features_are_linked_and_others_are_not(training_sample, n):
    found = linked(training_sample, make_frame(n), ["hours"])
    assert found.loc[0, ["pay", "tired"]].all()
    assert not found.loc[0, INDEPENDENT].any()


def test_a_group_is_linked_to_the_features_that_a_member_is_linked_to(training_sample):
    """A tree fitted to the rows would appear to be associated with everything."""
    found = linked(training_sample, make_frame(2000), [("hours", "mood"), ("age", "late")])
    assert found.loc[0, "pay"]
    assert not found.loc[1, ["pay", "tired", "coin", "town", "mood"]].any()


def test_an_association_through_given_features_is_no_link(training_sample):
    rng = np.random.default_rng(0)
    sex = rng.choice(["f", "m"], 6000)
    frame = make_frame(6000).assign(sex=sex, late=rng.poisson(np.where(sex == "f", 0.3, 1.5)))
    frame["hours"] += np.where(sex == "f", 0.0, 8.0)
    assert linked(training_sample, frame, ["hours"]).loc[0, "late"]
    assert not linked(training_sample, frame, ["hours"], ["sex"]).loc[0, "late"]


@pytest.mark.parametrize("n", [1000, 30_000])
def test_independent_features_do_not_change(n):
    """In at most 2 % of the rows; without the tests it was 75 % at 1,000 rows, 18 % at 30,000."""
    frame = make_frame(n)
    encoder = Encoder(Schema.infer(frame))
    sets, rows = ActionSets.of(encoder.schema, ["hours", "town"]), encoder.rows(frame)
    decoder = Transport()
    decoder.fit(rows, encoder, sets)
    v, at = decoder.encode(rows[:1000]), list(encoder.schema.index(INDEPENDENT))
    for i, feature in ((0, 0), (1, 4)):
        values = rows[
            torch.randperm(n, generator=torch.Generator().manual_seed(0))[:1000], feature
        ].view(-1, 1, 1)
        kept = [j for j in at if j != feature]
        made = decoder.decode(rows[:1000], v[:, i], values, torch.full((1000,), i))[:, 0]
        assert (made != rows[:1000])[:, kept].float().mean() <= 0.02
