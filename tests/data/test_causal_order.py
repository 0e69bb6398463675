"""CausalOrder: what stays when a set is acted on, what of it is conditioned on, in which parts."""

import pandas as pd
import pytest

from dear_plugin import Schema

NAMES = ["sex", "age", "school", "wage", "debt"]
FRAME = pd.DataFrame({name: [(i * k) % 20 for i in range(40)] for k, name in enumerate(NAMES, 1)})
GRAPH = {"school": ["sex", "age"], "wage": ["age", "school"], "debt": ["wage"]}


def schema(immutable=(), **order) -> Schema:
    return Schema.infer(FRAME, immutable=immutable, **order)


def named(of: Schema, positions) -> list[str]:
    return [of.names[j] for j in positions]


# What is acted on; what stays; which of it is conditioned on.
FOLLOWING = {
    "what follows a cause moves": (["age"], ["sex"], []),
    "its causes are conditioned on": (["school"], ["sex", "age"], ["sex", "age"]),
    "earlier features that are no causes are not": (["wage"], NAMES[:3], ["age", "school"]),
    "nothing follows what is no cause": (["debt"], NAMES[:4], ["wage"]),
    "what follows any of a set moves": (["school", "age"], ["sex"], ["sex"]),
}


@pytest.mark.parametrize("what", FOLLOWING)
def test_a_graph_says_what_follows_and_what_is_conditioned_on(what):
    acted, held, conditioned = FOLLOWING[what]
    of = schema(causes=GRAPH)
    members = of.index(acted)
    assert named(of, of.causal_order.held(members)) == held
    assert named(of, of.causal_order.conditioned(members)) == conditioned


BESIDE = {**GRAPH, "debt": ["wage", "school", "sex"]}
IMMUTABLE = {
    "what follows only through it stays": (GRAPH, ["wage", "debt"], ["sex", "age"]),
    "where an effect would pass it, it and its causes are conditioned on": (
        {**BESIDE, "school": ["age"]},
        ["wage"],
        ["age", "wage"],
    ),
    "a consequence of what is acted on alone is not": (
        {"debt": ["school"], "wage": ["school", "debt"]},
        ["sex", "age", "wage"],
        [],
    ),
}


@pytest.mark.parametrize("what", IMMUTABLE)
def test_an_immutable_feature_stops_what_follows(what):
    causes, stays, conditioned = IMMUTABLE[what]
    of = schema(immutable=["wage"], causes=causes)
    school = of.index(["school"])
    assert set(stays) <= {*named(of, of.causal_order.held(school))}
    assert named(of, of.causal_order.conditioned(school)) == conditioned


@pytest.mark.parametrize("tiers", [[], [["sex", "age"], ["school"]], [[name] for name in NAMES]])
def test_with_tiers_and_without_an_order_all_that_stays_is_conditioned_on(tiers):
    of = schema(immutable=["sex"], tiers=tiers)
    for members in ((1,), (2,), (4,), (3, 4)):
        assert of.causal_order.conditioned(members) == of.causal_order.held(members)


def test_an_immutable_feature_after_all_others_is_not_conditioned_on():
    of = schema(immutable=["debt"], tiers=[[name] for name in NAMES])
    assert named(of, of.causal_order.conditioned([2])) == ["sex", "age"]


def test_tiers_of_one_feature_each_are_the_graph_in_which_every_earlier_one_is_a_cause():
    graph = schema(["age"], causes={name: NAMES[:i] for i, name in enumerate(NAMES)}).causal_order
    tiers = schema(["age"], tiers=[[name] for name in NAMES]).causal_order
    for members in ((0,), (2,), (3,), (4,), (0, 2), (2, 4), (4, 3, 0)):
        for question in ("held", "conditioned", "parts"):
            assert getattr(graph, question)(members) == getattr(tiers, question)(members)


PARTS = {
    "of no order": ({}, ["debt", "wage"], [["debt", "wage"]]),
    "of one tier": ({"tiers": [["wage", "debt"]]}, ["debt", "wage"], [["debt", "wage"]]),
    "a cause first": ({"causes": GRAPH}, ["debt", "school"], [["school"], ["debt"]]),
    "as one, where none follows from another": (
        {"causes": GRAPH},
        ["wage", "age", "sex"],
        [["age", "sex"], ["wage"]],
    ),
}


@pytest.mark.parametrize("what", PARTS)
def test_the_parts_of_a_set(what):
    order, acted, parts = PARTS[what]
    of = schema(**order)
    found = of.causal_order.parts(of.index(acted))
    assert [named(of, part) for part in found] == parts
