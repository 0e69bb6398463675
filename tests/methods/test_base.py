"""RecourseMethod: what a subclass implements, and what the base class does."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from dear_plugin import DEAR, Encoder, RecourseMethod, Schema, Search, Target
from dear_plugin.errors import TargetError
from dear_plugin.results.proposal import Proposal


class Nearest(RecourseMethod):
    """A complete method: the nearest accepted training row, projected."""

    def _learn(self, rows):
        self.known = rows

    def _propose(self, case):
        scores = self.classifier.scores(self.known)
        distance = self.encoder.distance(self.known, case.x[:, None]).sum(2)
        goal = case.goal.select(torch.arange(len(case)).repeat_interleave(len(self.known)))
        accepted = goal.accepts(scores.repeat(len(case), 1)).view(distance.shape)
        at = torch.where(accepted, distance, torch.inf).argmin(1)
        every = torch.arange(len(case))
        rows = case.feasible.project(case.x, self.known[at][:, None], every)[:, 0]
        return Proposal(rows, rows != case.x, torch.zeros(len(case)), [""] * len(case))


class Unchanged(Nearest):
    """Proposes the factual itself as a success, and counts its calls."""

    calls = 0

    def _propose(self, case):
        self.calls += 1
        stay = torch.zeros(case.x.shape, dtype=torch.bool)
        return Proposal(case.x, stay, torch.zeros(len(case)), [""] * len(case))


class Writer(Nearest):
    """Overwrites the rows of its case."""

    def _propose(self, case):
        proposal = super()._propose(case)
        case.x.copy_(proposal.rows)
        return Proposal(case.x, proposal.direct, proposal.suppressed, proposal.reasons)


@pytest.fixture(scope="module")
def nearest(mixed) -> Nearest:
    return Nearest(mixed.net, mixed.schema).fit(mixed.frame)


class TestRowsOffTheGrid:
    """Rows with decimals in a column of integers: the cost is that of the displayed row."""

    @pytest.mark.parametrize("own", [22.05, 22.04, -3.05, 3.14159])
    @pytest.mark.parametrize("cut", [0.35, 4.0, 9.95])
    def test_the_cost_is_that_of_the_returned_row(self, own, cut):
        frame = pd.DataFrame({"a": [0.0, 1.0, 16.9, 14.7, 4.7]})
        accepts = (lambda f: f["a"] < cut) if own > cut else (lambda f: f["a"] > cut)
        dear = DEAR(lambda f: accepts(f).to_numpy(float), Schema.infer(frame)).fit(frame)
        query = pd.DataFrame({"a": [own]})
        result = dear.generate(query)
        (moved,) = (result.counterfactuals["a"] - query["a"]).abs() / 16.9
        assert result.actions["success"].all()
        assert result.actions["cost"].tolist() == pytest.approx([moved], abs=1e-6)
        for at, found in result.alternatives(2).groupby("rank"):
            distance = (found["a"] - own).abs() / 16.9
            assert found["cost"].tolist() == pytest.approx(distance.tolist(), abs=1e-6), at


@pytest.fixture(scope="module")
def counts():
    """Training rows in whole years and tenths."""
    rng, n = np.random.default_rng(0), 2000
    z = rng.normal(size=n)
    return pd.DataFrame(
        {
            "age": np.clip(np.round(40 + 10 * z + rng.normal(0, 5, n)), 18, 90),
            "rate": (0.5 + 0.1 * z + 0.1 * rng.normal(size=n)).round(1),
            "income": np.round(100 * np.exp(3 + 0.5 * z)),
        }
    )


@pytest.fixture(scope="module")
def fractional(counts):
    """Rows with fractions of years and of tenths."""
    rng, query = np.random.default_rng(1), counts.iloc[:60].copy()
    query["age"] += rng.uniform(-0.5, 0.5, 60)
    query["rate"] += rng.uniform(-0.05, 0.05, 60)
    return query


class Box:
    """A module as a black box on frames."""

    def __init__(self, model, encoder):
        self.model, self.encoder = model, encoder

    def __call__(self, frame):
        with torch.no_grad():
            return torch.sigmoid(self.model(self.encoder.encode(frame)))[:, 0].double().numpy()


def linear(frame):
    """A module on the encoded tensor that accepts three of ten, and its black box."""
    encoder = Encoder(Schema.infer(frame))
    module, weights = torch.nn.Sequential(torch.nn.Linear(3, 1)), torch.tensor([[1.0, 3.0, 6.0]])
    with torch.no_grad():
        module[0].weight.copy_(weights)
        module[0].bias.copy_(-(encoder.encode(frame) @ weights[0]).quantile(0.7))
    return module, Box(module, encoder)


@pytest.mark.parametrize("name", ["age", "rate", "income"])
class TestRowsFinerThanTheTrainingRows:
    """The search evaluates the rows that the user will see."""

    @pytest.fixture
    def fitted(self, name, counts, fractional):
        module, model = linear(counts)
        schema, search = model.encoder.schema, Search.cheapest(max_features=1)
        box = DEAR(model, schema, act_on=[name], search=search).fit(counts)
        return model, box, box.with_model(module), fractional[model(fractional) <= 0.5]

    def test_all_are_solved_alike_by_a_module_and_a_black_box(self, fitted):
        _, box, module, query = fitted
        result, same = (each.generate(query) for each in (box, module))
        assert result.actions["success"].all()
        assert np.allclose(result.actions["cost"], same.actions["cost"], atol=5e-3)

    def test_changed_values_lie_on_the_grid_and_others_stay(self, fitted):
        _, _, module, query = fitted
        after = module.generate(query).counterfactuals
        for feature in module.schema:
            now, before = after[feature.name], query[feature.name]
            on = (now - now.round(feature.precision)).abs() < 1e-9
            assert (on | (now == before)).all()
        assert (after["age"] != query["age"]).any()

    def test_they_do_not_change_other_answers(self, fitted, counts):
        model, box, _, query = fitted
        others = counts.iloc[60:260]
        others = others[model(others) <= 0.5]
        alone, together = box.generate(others), box.generate(pd.concat([query, others]))
        own = together.counterfactuals.iloc[len(query) :]
        pd.testing.assert_frame_equal(alone.counterfactuals, own)


class TestTwoMethodsAreEnough:
    def test_accepted_rows_are_not_proposed_for(self, mixed):
        method = Unchanged(mixed.net, mixed.schema).fit(mixed.frame)
        accepted = mixed.frame.drop(mixed.refused(len(mixed.frame)).index)
        actions = method.generate(accepted).actions
        assert method.calls == 0
        assert set(actions["reason"]) == {"already accepted"}

    @pytest.mark.parametrize("accepted", [0, 1], ids=["all refused", "one accepted"])
    def test_a_method_may_overwrite_the_rows_of_its_case(self, nearest, mixed, accepted):
        writer = Writer(mixed.net, mixed.schema).fit(mixed.frame)
        others = mixed.frame.drop(mixed.refused(len(mixed.frame)).index)
        query = pd.concat([mixed.refused(6), others.iloc[:accepted]])
        wanted, got = (each.generate(query) for each in (nearest, writer))
        pd.testing.assert_frame_equal(wanted.counterfactuals, got.counterfactuals)
        pd.testing.assert_frame_equal(wanted.actions, got.actions)


class TestRejectedProposals:
    def test_a_row_that_the_model_rejects_is_no_success(self, mixed):
        method = Unchanged(mixed.net, mixed.schema).fit(mixed.frame)
        refused = mixed.refused(3)
        result = method.generate(refused)
        assert set(result.actions["reason"]) == {"the model refused the rounded row"}
        assert not result.actions["success"].any()
        pd.testing.assert_frame_equal(result.counterfactuals, refused)


def test_a_class_has_no_range(nearest, mixed):
    with pytest.raises(TargetError, match=r"got .*low=0.5.* with output='logits'"):
        nearest.generate(mixed.frame.iloc[:3], Target.of_range(0.5))


class TestAdvice:
    """Answers that count on indirect changes, without an order of causes."""

    def answers(self, mixed, tiers=()):
        """A method whose answers succeed only with their indirect changes."""
        schema = replace(mixed.schema, tiers=tiers)
        method = Nearest(mixed.net, schema).fit(mixed.frame)
        spread, whole = method._spread, torch.ones
        method._spread = lambda case, proposal: replace(
            spread(case, proposal), reliance=whole(len(case), dtype=torch.float64)
        )
        return method

    def test_the_log_names_the_argument_once(self, mixed, caplog):
        method = self.answers(mixed)
        for _ in range(2):
            _ = method.generate(mixed.refused(3)).actions
        assert [r.getMessage().count("tiers=[[...], [...]]") for r in caplog.records] == [1]

    def test_with_tiers_there_is_none(self, mixed, caplog):
        _ = self.answers(mixed, [["age"]]).generate(mixed.refused(3)).actions
        assert not caplog.records


def test_a_fit_warns_of_columns_that_the_model_was_not_trained_on(caplog):
    frame = pd.DataFrame({"a": np.arange(40.0), "decision": np.arange(40) > 20})
    model = LogisticRegression().fit(frame[["a"]], frame["decision"])
    Nearest(model, Schema.infer(frame, target="decision")).fit(frame)
    assert "not trained on" not in caplog.text
    Nearest(model, Schema.infer(frame)).fit(frame)
    assert "the model was not trained on ['decision']: Schema.infer(frame, target" in caplog.text
