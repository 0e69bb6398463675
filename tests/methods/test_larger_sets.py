"""LargerSets: rows that need several features get them; all others keep their answers."""

import logging

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, Autoencoder, Constraints, Design, Schema, Search, Training
from dear_plugin.decoders import collection

NAMES = list("abcdefgh")
# Most rows need three or four features to pass it.
BAR = 13.5
WEIGHTS = np.array([1.2, -0.7, 0.9, 1.1, -1.3, 0.6, 0.8, -1.0])


class Above(torch.nn.Module):
    """A linear model: the weighted sum of the features, in user units, must pass a bar."""

    def __init__(self, schema, bar):
        super().__init__()
        self.low = torch.tensor([f.bounds[0] for f in schema])
        self.weights = torch.tensor([f.width for f in schema]) * torch.tensor(WEIGHTS).float()
        self.bar = bar - float(self.low @ torch.tensor(WEIGHTS).float())

    def forward(self, x):
        return (x @ self.weights - self.bar)[:, None]


def margin(frame, bar):
    """The same of a frame."""
    return frame[NAMES].to_numpy() @ WEIGHTS - bar


@pytest.fixture(scope="module")
def frame():
    """Independent features."""
    return pd.DataFrame(np.random.default_rng(0).normal(size=(1500, 8)).round(2), columns=NAMES)


@pytest.fixture(scope="module")
def schema(frame):
    return Schema.infer(frame)


def least(frame, rejected):
    """(n,) the independent changes that each row needs, 9 where all do not suffice."""
    x, best = rejected.to_numpy(), np.where(WEIGHTS > 0, frame.max(), frame.min())
    gains = np.sort((best - x) * WEIGHTS, axis=1)[:, ::-1].cumsum(1)
    passed = margin(rejected, BAR)[:, None] + gains >= 0.05
    return np.where(passed.any(1), passed.argmax(1) + 1, 9)


@pytest.fixture(scope="module")
def model(schema):
    return Above(schema, BAR)


@pytest.fixture(scope="module")
def dear(model, schema, frame):
    return DEAR(model, schema).fit(frame)


@pytest.fixture(scope="module")
def rejected(frame):
    """36 rows that need 2, 3, 4 or 5 independent changes, nine each; and these numbers."""
    refused = frame[margin(frame, BAR) < 0]
    count = pd.Series(least(frame, refused), index=refused.index)
    some = pd.concat([count[count == k].iloc[:9] for k in (2, 3, 4, 5)])
    return frame.loc[some.index], some


def test_rows_with_recourse_in_two_to_five_features_get_it(dear, rejected):
    query, count = rejected
    assert len(query) == 36
    result = dear.generate(query)
    assert result.actions["success"].all()
    assert (margin(result.counterfactuals, BAR) > 0).all()
    acted = result.actions["acted_on"].str.count(r"\+") + 1
    assert acted.between(1, 5).all()
    # Indirect changes from sampling noise may cost or save one feature.
    assert (acted <= count + 1).all()


def test_smaller_sets_solve_fewer(dear, rejected):
    query, _ = rejected
    pairs = dear.with_search(Search.cheapest(max_features=2)).generate(query).actions
    assert pairs["success"].mean() < 0.5
    three = dear.with_search(Search.cheapest(max_features=3)).generate(query).actions
    assert pairs["success"].sum() < three["success"].sum() < len(query)
    assert three["acted_on"].str.count(r"\+").max() == 2


def test_rows_that_need_one_or_two_keep_their_answers(dear, rejected):
    query, _ = rejected
    pairs = dear.with_search(Search.cheapest(max_features=2)).generate(query)
    done = pairs.actions["success"]
    assert 0 < done.sum() < len(query)
    result = dear.with_search(Search.cheapest()).generate(query)
    pd.testing.assert_frame_equal(
        result.counterfactuals[done], pairs.counterfactuals[done], check_exact=True
    )
    pd.testing.assert_frame_equal(result.actions[done], pairs.actions[done], check_exact=True)


def test_an_answer_does_not_depend_on_other_rows(dear, model, schema, frame, rejected):
    """Nor on the sets fitted before."""
    query = rejected[0].iloc[[10, 20, 35]]
    whole = dear.generate(rejected[0]).counterfactuals.loc[query.index]
    fresh = DEAR(model, schema).fit(frame)
    for label in query.index:
        one = fresh.generate(query.loc[[label]]).counterfactuals
        pd.testing.assert_frame_equal(one, whole.loc[[label]], check_exact=True)


def test_constraints_are_kept(dear, rejected, frame):
    query = rejected[0]
    top = float(frame["d"].quantile(0.98))
    within = Constraints(frozen=["e"], ranges={"d": (-9.0, top)})
    result = dear.generate(query, within=within)
    after = result.counterfactuals
    assert result.actions["acted_on"].str.count(r"\+").max() >= 3
    assert after["e"].equals(query["e"])
    assert (after["d"] <= np.maximum(top, query["d"])).all()


def test_only_what_may_be_acted_on_alone_is_combined(model, schema, frame, rejected):
    """A given group is acted on as it is, and is no part of another set."""
    query = rejected[0]
    act_on = ["a", "c", "d", "e", ("b", "h")]
    result = DEAR(model, schema, act_on=act_on).fit(frame).generate(query)
    acted = set(result.actions["acted_on"][result.actions["success"]])
    assert any(names.count("+") >= 2 for names in acted)
    for names in acted:
        assert set(names.split(" + ")) <= {"b", "h"} or not {"b", "h"} & set(names.split(" + "))


def test_categories_are_combined_with_numbers():
    """A town, a switch and two numbers, all four of them."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": rng.integers(0, 21, 2000),
            "b": rng.normal(size=2000).round(1),
            "town": rng.choice(list("ABCD"), 2000).astype(object),
            "ready": rng.integers(0, 2, 2000),
        }
    )

    def score(rows):
        reached = (rows["a"] / 20).clip(0, 1) + (rows["b"] / 2).clip(0, 1)
        reached = reached + (rows["town"] == "C") + rows["ready"]
        return 1 / (1 + np.exp(-8 * (reached - 3.9))).to_numpy()

    query = frame[(frame["a"] < 10) & (frame["b"] < 0) & (frame["town"] == "A")]
    query = query[query["ready"] == 0].iloc[:20]
    result = DEAR(score, Schema.infer(frame)).fit(frame).generate(query)
    assert len(query) == 20
    assert result.actions["success"].all()
    assert set(result.actions["acted_on"]) == {"a + b + town + ready"}


class TestReasons:
    """The reason of a failed row names the sets that were tried."""

    @pytest.mark.parametrize(
        ("options", "tried"),
        [
            ({}, "1 to 5 of the 8 actionable features"),
            ({"search": Search.cheapest(max_features=3)}, "1 to 3 of the 8 actionable features"),
            ({"search": Search.cheapest(max_features=2)}, "1 or 2 of the 8 actionable features"),
            (
                {"search": Search.cheapest(max_features=1)},
                "a single one of the 8 actionable features",
            ),
            (
                {"search": Search.cheapest(groups=False)},
                "a single one of the 8 actionable features",
            ),
            ({"act_on": ["a", "b", "c"]}, "1 to 3 of the 3 actionable features"),
            ({"act_on": ["a"]}, "the only actionable feature"),
            ({"act_on": [("a", "b")]}, "the given group"),
            ({"act_on": [("a", "b"), ("c", "d", "e")]}, "the 2 given groups"),
            (
                {"act_on": ["a", "b", ("c", "d")]},
                "1 or 2 of the 2 actionable features or of the given group",
            ),
        ],
        ids=str,
    )
    def test_they_count_what_may_be_acted_on(self, schema, frame, options, tried):
        reasons = (
            DEAR(Above(schema, 99.0), schema, **options)
            .fit(frame)
            .generate(frame.iloc[:5])
            .actions
        )
        words = f"no change of {tried} was found that reaches the target; acting on "
        assert reasons["reason"].str.startswith(words).all()
        assert reasons["reason"].str.endswith(" comes closest").all()

    def test_what_a_call_freezes_does_not_count(self, schema, frame):
        within = Constraints(frozen=[["a"], ["a", "b", "c", "d", "e", "f"], []])
        dear = DEAR(Above(schema, 99.0), schema).fit(frame)
        reasons = dear.generate(frame.iloc[:3], within=within).actions["reason"]
        counts = reasons.str.extract(r"no change of (.*) actionable")[0].tolist()
        assert counts == ["1 to 5 of the 7", "1 or 2 of the 2", "1 to 5 of the 8"]

    def test_no_larger_set_is_fitted_without_a_promising_one(self, schema, frame, caplog):
        with caplog.at_level(logging.INFO, "dear_plugin"):
            DEAR(Above(schema, 99.0), schema).fit(frame).generate(frame.iloc[:20])
        assert [r.message for r in caplog.records] == [
            "fitting 28 pairs of features for rows that no single one solves"
        ]


class TestFittedSets:
    def test_a_set_depends_on_the_training_rows_only(self, model, schema, frame):
        """The sets fitted before do not matter, nor does their order."""
        one, other = (DEAR(model, schema).fit(frame) for _ in range(2))
        other.decoders.of((0, 1, 4)), other.decoders.of((2, 3, 5, 6))
        x = one.encoder.rows(frame.iloc[:50])
        values = x.flip(0)[:, None, [0, 2, 3]]
        mine, theirs = (dear.decoders.of((0, 2, 3)) for dear in (one, other))
        assert torch.equal(*(d.decode(x, d.encode(x), values) for d in (mine, theirs)))

    def test_the_memory_of_fitted_sets_is_bounded(
        self, model, schema, frame, rejected, dear, monkeypatch
    ):
        few = rejected[0].iloc[9:15]
        roomy = dear.generate(few)
        assert len(dear.decoders._fitted) > 2
        monkeypatch.setattr(collection, "ENTRIES", 1)
        narrow = DEAR(model, schema).fit(frame)
        result = narrow.generate(few)
        assert len(narrow.decoders._fitted) == 1
        pd.testing.assert_frame_equal(result.actions, roomy.actions, check_exact=True)

    def test_another_model_uses_the_same_sets(self, dear, schema, rejected):
        dear.generate(rejected[0].iloc[9:15])
        other = dear.with_model(Above(schema, 13.4))
        assert other.decoders is dear.decoders
        assert other._larger_sets.pairs.classifier is other.classifier

    def test_a_new_fit_forgets_them(self, model, schema, frame, rejected):
        few, dear = rejected[0].iloc[9:15], DEAR(model, schema).fit(frame)
        dear.generate(few)
        before = dear.decoders
        assert dear.fit(frame.iloc[:1200]).decoders is not before
        anew = DEAR(model, schema).fit(frame.iloc[:1200])
        pd.testing.assert_frame_equal(dear.generate(few).actions, anew.generate(few).actions)

    def test_a_loaded_one_gives_the_same_answers(self, schema, frame, rejected, model, tmp_path):
        few = rejected[0].iloc[9:15]
        dear = DEAR(model, schema, search=Search.cheapest(max_features=4)).fit(frame)
        dear.save(tmp_path)
        loaded = DEAR.load(tmp_path, model)
        assert loaded.search.max_features == 4
        pd.testing.assert_frame_equal(
            loaded.generate(few).actions, dear.generate(few).actions, check_exact=True
        )


@pytest.mark.parametrize(
    "options",
    [
        {"decoder": Autoencoder(Design(layers=(6, 3)), Training(epochs=3))},
        {
            "decoder": Autoencoder(Design(layers=(6, 3)), Training(epochs=3)),
            "search": Search.cheapest(solver="paper"),
        },
        {"search": Search.cheapest(min_support=0.2)},
    ],
    ids=["autoencoder", "paper", "support"],
)
def test_every_decoder_solver_and_criterion_uses_larger_sets(
    model, schema, frame, rejected, options
):
    query = rejected[0].iloc[18:24]
    result = DEAR(model, schema, **options).fit(frame).generate(query)
    assert result.actions["success"].sum() >= 4
    assert result.actions["acted_on"].str.count(r"\+").max() >= 2
    assert (margin(result.counterfactuals[result.actions["success"]], BAR) > 0).all()
