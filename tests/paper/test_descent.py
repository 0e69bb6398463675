"""Descent: Algorithm 1 against known answers of a linear world; actions of size zero."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

from dear_plugin import (
    DEAR,
    ActionSets,
    Autoencoder,
    Constraints,
    DescentSchedule,
    Design,
    Encoder,
    Schema,
    Search,
    Target,
    Training,
)
from dear_plugin.decoders import Decoder, Decoders, Sample
from dear_plugin.errors import DearError, ModelError
from dear_plugin.models.classifier import Classifier
from dear_plugin.paper.closed_forms import direct_action
from dear_plugin.paper.descent import Objective, descend, descended
from dear_plugin.problem.constraints import admissible
from dear_plugin.problem.feasible import Reason
from dear_plugin.search import SearchProblem
from dear_plugin.search.problem import evaluate

LITERAL = Search.cheapest(solver="paper", max_features=1)
WEIGHT = torch.tensor([2.0, -1.0, 0.5])
FACTUAL = torch.tensor([[0.40, 0.50, 0.45], [0.45, 0.55, 0.50]], dtype=torch.float64)
# The change of the columns per change of a column of x_S.
SLOPES = torch.tensor([[1.0, 0.3, -0.2], [-0.4, 1.0, 0.1], [0.3, 0.0, 1.0]])


class Linear(Decoder):
    """`g(v, a) = x + (a - x) B` on the columns of S: a decoder whose Jacobian is constant."""

    def settings(self):
        return {}

    def fit(self, sample, acted, held):
        self.acted, own = list(acted), torch.zeros(3)
        own[self.acted] = 1.0
        # Features acted on together do not move each other.
        self.slopes = SLOPES * own[:, None] * (1.0 - own) + torch.diag(own)

    def encode(self, x, generator=None):
        return x[:, :0]

    def decode(self, x, v, values):
        acted = x[:, None].repeat(1, values.shape[1], 1)
        acted[..., self.acted] = values
        return x[:, None] + (acted - x[:, None]) @ self.slopes.to(x)

    def follow(self, x, v, a):
        return x + (a - x) @ self.slopes


@dataclass(frozen=True)
class Found:
    """What the descent finds: (2, s, w) values, (2, s) their cost, (2, s) whether they succeed."""

    values: Tensor
    cost: Tensor
    solved: Tensor


class World:
    """Two rows of three numbers in [0, 1], a linear model that refuses them, a linear decoder."""

    def __init__(self, act_on, bias=-0.7):
        numbers = np.random.default_rng(0).random((50, 3))
        frame = pd.DataFrame(np.vstack([np.zeros(3), np.ones(3), numbers]), columns=list("abc"))
        encoder = Encoder(Schema.infer(frame))
        self.sets = ActionSets.of(encoder.schema, act_on)
        model = nn.Linear(3, 1)
        with torch.no_grad():
            model.weight.copy_(WEIGHT[None])
            model.bias.fill_(bias)
        decoders = Decoders(Linear(), Sample(encoder.rows(frame), encoder), self.sets.members)
        can_hold = encoder.held(frame)
        feasible = admissible(Constraints(), FACTUAL, encoder, can_hold)
        self.problem = SearchProblem(
            FACTUAL,
            Target.of_class(1).resolve(2, None),
            feasible,
            self.sets,
            decoders,
            Classifier(model.eval(), encoder),
            feasible.limits.may_act(self.sets).numpy(),
        )
        self.score = FACTUAL.float() @ WEIGHT + bias
        self.jacobian = [decoders.of(each).slopes for each in self.sets.members]

    def last_action(self, weight, schedule):
        """(s, n, d) where the descent ends if the decision does not stop it."""
        *_, action = descend(Objective.of(self.problem), weight, schedule)
        return action

    def found(self, schedule):
        """The first success of each row and set, or where the descent comes nearest."""
        least = torch.full((2,), 1e-4)
        rows, sets, values = descended(self.problem, schedule, least)
        cost, margin = evaluate(self.problem, rows, sets, values)
        shape = 2, len(self.sets)
        return Found(values.view(*shape, -1), cost.view(shape), (margin >= 1e-4).view(shape))


SETS = {"singles": ["a", "b", "c"], "groups": [("a", "b"), ("c", "a", "b")]}


class TestKnownAnswers:
    @pytest.mark.parametrize("act_on", SETS)
    def test_without_a_cost_it_converges_to_the_closed_form_of_proposition_2(self, act_on):
        world = World(SETS[act_on])
        action = world.last_action(0.0, DescentSchedule(step=0.05, target=0.25, steps=800))
        for i, jacobian in enumerate(world.jacobian):
            w = (jacobian @ WEIGHT).expand(2, -1)
            expected = direct_action(0.25 - world.score, w, 0.0)
            torch.testing.assert_close(action[i], expected, atol=1e-4, rtol=1e-3)

    def test_the_l1_cost_keeps_the_score_below_the_target(self):
        """For one feature the minimum is `(m - lambda c / 2 |w|) / w`, c the l1 cost per unit."""
        world, weight = World(["a"]), 0.4
        action = world.last_action(weight, DescentSchedule(step=0.02, target=0.25, steps=2000))
        (jacobian,) = world.jacobian
        w, c = jacobian[0] @ WEIGHT, jacobian[0].abs().sum()
        expected = (0.25 - world.score - weight * c / (2.0 * w)) / w
        torch.testing.assert_close(action[0, :, 0], expected, atol=1e-4, rtol=1e-3)

    @pytest.mark.slow
    def test_with_the_target_on_the_boundary_small_steps_never_reach_it(self):
        """The loss of the paper has its minimum below the boundary for s = 0."""
        world = World(["a"])
        on = DescentSchedule(step=0.01, weights=(0.1,), target=0.0, steps=2000)
        assert not world.found(on).solved.any()
        assert world.found(replace(on, target=0.1)).solved.all()

    def test_a_large_step_overshoots_the_target(self):
        world = World(["a"])
        small, large = (
            world.found(DescentSchedule(step=step, target=0.1)).cost for step in (0.005, 0.2)
        )
        assert (large > 1.2 * small).all()


class TestTheLoop:
    def test_the_first_action_that_succeeds_is_the_answer(self):
        world, schedule = World(["a"]), DescentSchedule(step=0.02, target=0.5)
        found = world.found(schedule)
        w = world.jacobian[0] @ WEIGHT
        steps = descend(Objective.of(world.problem), schedule.weights[0], schedule)
        actions = torch.stack([each[0, :, 0] for each in steps])
        accepted = world.score + actions * w[0] >= 1e-4
        first = accepted.int().argmax(0)
        for row in range(2):
            assert not accepted[: first[row], row].any()
            assert found.values[row, 0, 0] == pytest.approx(
                float(FACTUAL[row, 0] + actions[first[row], row]), abs=1e-5
            )

    def test_later_weights_are_for_what_earlier_ones_do_not_solve(self):
        world = World(["a"])
        schedule = DescentSchedule(step=0.002, weights=(4.0, 0.01), steps=200)
        assert not world.found(replace(schedule, weights=(4.0,))).solved.any()
        found, alone = world.found(schedule), world.found(replace(schedule, weights=(0.01,)))
        assert found.solved.all()
        assert torch.equal(found.values, alone.values)

    def test_no_step_leaves_the_factual(self):
        found = World(["a"]).found(DescentSchedule(steps=0))
        assert not found.solved.any()
        torch.testing.assert_close(found.values[:, 0, 0], FACTUAL[:, 0])


SHORT = replace(LITERAL, schedule=DescentSchedule(step=0.05, steps=60))
NETWORKS = Autoencoder(Design(layers=(6, 3), reconstruct="paper"), Training(epochs=15))


@pytest.fixture(scope="module")
def literal(mixed):
    """DEAR with the paper's reconstruction, few steps."""
    return DEAR(mixed.net, mixed.schema, decoder=NETWORKS, search=SHORT).fit(mixed.frame)


@pytest.fixture(scope="module")
def answers(mixed, literal):
    return literal.generate(mixed.refused(120))


@pytest.fixture(scope="module")
def zero(answers):
    """(n,) bool, the successes of size zero."""
    return answers.actions["success"].to_numpy() & answers.actions["acted_on"].eq("").to_numpy()


@pytest.mark.ci
class TestZeroActions:
    def test_an_accepted_reconstruction_ends_the_loop_before_its_first_step(self, answers, zero):
        assert 0 < zero.sum() < len(zero)
        actions = answers.actions[zero]
        assert (actions["direct_cost"] == 0.0).all()
        assert (actions["indirect_cost"] > 0.0).all()
        assert (actions["acted_on"] == "").all()

    def test_they_are_named_and_never_credible(self, answers, zero):
        actions = answers.actions
        assert (actions.loc[zero, "reason"] == Reason.NO_ADVICE).all()
        others = actions[~zero & actions["success"]]
        assert ((others["reason"] == "") == others["credible"]).all()
        assert not others["reason"].str.contains(Reason.NO_ADVICE, regex=False).any()
        assert not actions.loc[zero, "credible"].any()
        assert (answers.describe()[zero] == f"no action: {Reason.NO_ADVICE}").all()

    @pytest.mark.parametrize("change", [{"solver": "line"}, {"min_support": 0.2}], ids=str)
    def test_no_other_solver_and_no_criterion_counts_them_as_success(self, mixed, literal, change):
        other = literal.with_search(replace(literal.search, **change))
        found = other.generate(mixed.refused(60))
        assert found.actions["success"].any()
        assert found.actions.query("success")["acted_on"].ne("").all()

    def test_a_kept_remainder_has_none(self, mixed):
        kept = Autoencoder(Design(layers=(6, 3)), Training(epochs=15))
        dear = DEAR(mixed.net, mixed.schema, decoder=kept, search=SHORT).fit(mixed.frame)
        found = dear.generate(mixed.refused(60))
        assert found.actions["success"].any()
        assert found.actions.query("success")["acted_on"].ne("").all()


class TestRequirements:
    def test_sets_of_several_tiers_are_left_out(self, mixed):
        first, *others = mixed.schema.mutable
        schema = replace(mixed.schema, tiers=((first,), tuple(others)))
        pairs = replace(LITERAL, max_features=2)
        dear = DEAR(mixed.net, schema, decoder=NETWORKS, search=pairs).fit(mixed.frame)
        acted_on = dear.generate(mixed.refused(10)).actions["acted_on"]
        assert not acted_on.str.contains(rf"^{first} \+", regex=True).any()

    def test_a_decoder_without_derivatives_is_rejected(self, mixed):
        dear = DEAR(mixed.net, mixed.schema, search=LITERAL).fit(mixed.frame)
        with pytest.raises(DearError, match=r"no derivatives.* use decoder='autoencoder'"):
            dear.generate(mixed.refused(3))

    def test_a_black_box_is_rejected(self, mixed, literal):
        dear = literal.with_model(mixed.pipeline)
        refused = mixed.frame[mixed.pipeline.predict(mixed.frame) == 0].iloc[:3]
        with pytest.raises(ModelError, match="black box has no gradient; use solver='line'"):
            dear.generate(refused)


def test_a_saved_schedule_is_the_same(mixed, literal, answers, tmp_path):
    literal.save(tmp_path)
    loaded = DEAR.load(tmp_path, mixed.net)
    assert loaded.search == literal.search
    found = loaded.generate(mixed.refused(120))
    pd.testing.assert_frame_equal(found.counterfactuals, answers.counterfactuals)


def test_a_plateau_leads_to_failures_without_nan(mixed, literal):
    class Flat(nn.Module):
        def forward(self, x):
            return x[:, :1] * 0.0 - 1.0

    found = literal.with_model(Flat()).generate(mixed.frame.iloc[:5])
    assert not found.actions["success"].any()
    assert found.actions["reason"].str.len().gt(0).all()
    assert Encoder(mixed.schema).rows(found.counterfactuals).isfinite().all()
