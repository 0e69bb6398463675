"""Gradient search: Algorithm 1 against the line search, and its requirements."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from dear_plugin import DEAR, Constraints, Encoder, Kind, Search
from dear_plugin.decoders import Autoencoder, Design, Training
from dear_plugin.errors import DearError, ModelError

LINE = Search.cheapest(groups=False)
GRADIENT = replace(LINE, solver="gradient")
GROUPS = {
    "loan": [("income", "loan_amount"), ("duration", "savings", "education")],
    "mixed": [("income", "debt"), ("town", "income"), "job"],
}


def autoencoder():
    return Autoencoder(Design(layers=(8, 4)), Training(epochs=15))


def fitted(study, act_on=None, search=GRADIENT, model=None):
    model = study.net if model is None else model
    return DEAR(model, study.schema, act_on=act_on, decoder=autoencoder(), search=search).fit(
        study.frame
    )


@pytest.fixture(scope="module", params=["loan", "mixed"])
def study(request, studies):
    return studies[request.param]


@pytest.fixture(scope="module")
def single(study):
    """Algorithm 1 on single features."""
    return fitted(study)


@pytest.fixture(scope="module")
def both(study, single):
    """The answers of the line search and of Algorithm 1 with the same autoencoder."""
    line = fitted(study, search=LINE)
    return [dear.generate(study.refused(200)) for dear in (line, single)]


@pytest.fixture(scope="module")
def descent(mixed):
    """Algorithm 1 on single features of the mixed study."""
    return fitted(mixed)


class TestAgainstTheLineSearch:
    def test_it_solves_nearly_all_rows_that_the_line_search_solves(self, both):
        line, gradient = (r.actions["success"] for r in both)
        assert line.mean() >= 0.95
        assert gradient[line].mean() >= 0.97

    def test_it_costs_the_same(self, both):
        line, gradient = (r.actions for r in both)
        solved = line["success"] & gradient["success"]
        ratio = gradient["cost"][solved] / line["cost"][solved]
        assert 0.95 <= ratio.median() <= 1.05
        assert ratio.quantile(0.9) <= 1.15

    def test_mostly_on_the_same_feature(self, both):
        line, gradient = (r.actions for r in both)
        solved = line["success"] & gradient["success"]
        assert (line["acted_on"] == gradient["acted_on"])[solved].mean() >= 0.7


@pytest.fixture(scope="module")
def grouped(mixed):
    """Groups, one with a category of six levels, and a category by itself."""
    factuals = mixed.refused(200)
    line = fitted(mixed, GROUPS["mixed"], LINE)
    gradient = fitted(mixed, GROUPS["mixed"])
    return factuals, line.generate(factuals), gradient.generate(factuals)


class TestGroupsAndCategories:
    def test_groups_solve_as_many_rows_as_without_derivatives(self, grouped):
        _, line, gradient = grouped
        assert gradient.actions["success"].mean() >= line.actions["success"].mean() - 0.02
        assert gradient.actions["acted_on"].str.contains("income").mean() > 0.5

    def test_at_about_the_same_cost(self, grouped):
        _, line, gradient = grouped
        solved = line.actions["success"] & gradient.actions["success"]
        ratio = (gradient.actions["cost"] / line.actions["cost"])[solved]
        assert 0.9 <= ratio.median() <= 1.05

    def test_success_is_the_model_s_decision(self, grouped, mixed):
        _, _, gradient = grouped
        with torch.no_grad():
            logits = mixed.net(mixed.encoder.encode(gradient.counterfactuals))[:, 0]
        assert gradient.actions["success"].tolist() == (logits > 0).tolist()

    def test_a_category_may_be_acted_on(self, mixed):
        """The model accepts town B."""
        encoder = mixed.encoder
        (j,) = mixed.schema.index(["town"])
        model = nn.Linear(encoder.d, 1)
        with torch.no_grad():
            model.weight.zero_()
            model.weight[0, encoder.starts[j] + 1], model.bias[0] = 4.0, -2.0
        elsewhere = mixed.frame[mixed.frame["town"] != "B"].iloc[:50]
        recourses = fitted(mixed, ["town", ("town", "income")], model=model).generate(elsewhere)
        assert recourses.actions["success"].all()
        assert set(recourses.counterfactuals["town"]) == {"B"}
        assert recourses.actions["acted_on"].str.contains("town").all()


class TestConstraints:
    @pytest.mark.parametrize("act_on", ["singles", "groups"])
    def test_directions_ranges_and_immutables_hold_exactly(self, study, studies, single, act_on):
        name = next(n for n, s in studies.items() if s is study)
        factuals = study.refused(30)
        dear = single if act_on == "singles" else fitted(study, GROUPS[name])
        after = dear.generate(factuals).counterfactuals
        for feature in study.schema:
            old, new = factuals[feature.name], after[feature.name]
            if feature.immutable:
                assert (old == new).all()
            if feature.direction:
                step = new.astype(float) - old.astype(float)
                assert (feature.direction * step >= 0).all()
            if feature.kind is Kind.NUMERIC:
                low, high = feature.limits or feature.bounds
                assert new.between(np.minimum(low, old) - 1e-9, np.maximum(high, old) + 1e-9).all()

    def test_constraints_of_a_call_hold(self, mixed, descent):
        factuals = mixed.refused(30)
        within = Constraints(frozen=["job"], ranges={"income": (20.0, 50.0)})
        recourses = descent.generate(factuals, within=within)
        after = recourses.counterfactuals
        assert (after["job"] == factuals["job"]).all()
        inside = factuals["income"].between(20.0, 50.0)
        assert after["income"][inside].between(20.0, 50.0).all()
        assert not recourses.actions["acted_on"].str.contains("job").any()


class TestRequirements:
    def test_a_decoder_without_derivatives_is_rejected(self, mixed):
        dear = DEAR(mixed.net, mixed.schema, search=GRADIENT).fit(mixed.frame)
        with pytest.raises(DearError, match="no derivatives; use decoder='autoencoder'"):
            dear.generate(mixed.refused(3))

    def test_a_black_box_is_rejected(self, mixed, descent):
        dear = descent.with_model(mixed.pipeline)
        refused = mixed.frame[mixed.pipeline.predict(mixed.frame) == 0].iloc[:3]
        with pytest.raises(ModelError, match="black box has no gradient; use solver='line'"):
            dear.generate(refused)


class TestSideEffects:
    def test_model_gradients_mode_and_random_state_are_unchanged(self, mixed, descent):
        mixed.net.train()
        weights = [w.detach().clone() for w in mixed.net.parameters()]
        gradients = [w.grad.clone() for w in mixed.net.parameters()]
        state = torch.random.get_rng_state()
        descent.generate(mixed.refused(10))
        assert mixed.net.training
        mixed.net.eval()
        after = list(mixed.net.parameters())
        assert all(map(torch.equal, weights, after))
        assert all(map(torch.equal, gradients, [w.grad for w in after]))
        assert torch.equal(state, torch.random.get_rng_state())

    def test_equal_queries_have_equal_answers(self, mixed, descent):
        one, other = (descent.generate(mixed.refused(10)) for _ in range(2))
        assert one.counterfactuals.equals(other.counterfactuals)


def test_a_flat_model_leads_to_failures_without_nan(mixed, descent):
    """Algorithm 1 cannot leave a plateau."""

    class Flat(nn.Module):
        def forward(self, x):
            return x[:, :1] * 0.0 - 1.0

    recourses = descent.with_model(Flat()).generate(mixed.frame.iloc[:5])
    assert not recourses.actions["success"].any()
    assert recourses.actions["reason"].str.len().gt(0).all()
    assert not recourses.counterfactuals.isna().any(axis=None)
    assert Encoder(mixed.schema).rows(recourses.counterfactuals).isfinite().all()
