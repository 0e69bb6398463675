"""What if: given actions and their outcome; nothing is searched."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, Constraints, Schema, Search
from dear_plugin.errors import ConstraintError, InputError
from dear_plugin.paper import Autoencoder, Design, Training

SMALL = Autoencoder(Design(layers=(6, 3)), Training(epochs=3))
DECODERS = {"transport": "transport", "autoencoder": SMALL}
COLUMNS = [
    *("success", "direct_cost", "indirect_cost", "cost", "suppressed_cost", "score_before"),
    *("score_after", "acted_on"),
]


@pytest.fixture
def query(mixed):
    return mixed.refused(20)


@pytest.mark.parametrize("decoder", DECODERS)
def test_answers_with_every_kind_of_column_are_reproduced(mixed, decoder):
    dear = DEAR(mixed.net, mixed.schema, decoder=DECODERS[decoder]).fit(mixed.frame)
    result = dear.generate(mixed.refused(200))
    again = dear.apply(mixed.refused(200), result.direct)
    # A network rounds differently in batches of another size.
    room = {"rtol": 0.0, "atol": 1e-5 * (decoder == "autoencoder")}
    pd.testing.assert_frame_equal(again.counterfactuals, result.counterfactuals, **room)
    pd.testing.assert_frame_equal(again.actions[COLUMNS], result.actions[COLUMNS])
    torch.testing.assert_close(again.proposal.rows, result.proposal.rows, **room)


class TestTheActionAlone:
    def test_integers_and_truth_values_are_nullable_and_the_rest_keeps_its_dtype(
        self, fitted, query
    ):
        direct, after = fitted.generate(query).direct, fitted.generate(query).counterfactuals
        assert str(direct["age"].dtype) == "Int64"
        assert str(direct["owner"].dtype) == "Int64"
        assert str(direct["member"].dtype) == "boolean"
        for name in ("income", "debt", "job", "town"):
            assert direct[name].dtype == after[name].dtype


class TestOutcome:
    def test_success_is_the_models_decision(self, fitted, mixed, query):
        result = fitted.apply(query, {"income": 45.0})
        with torch.no_grad():
            logits = mixed.net(mixed.encoder.encode(result.counterfactuals))[:, 0]
        success = result.actions["success"].to_numpy()
        assert (success == (logits > 0).numpy()).all()
        assert success.any()
        assert not success.all()
        reasons, credible = result.actions["reason"], result.actions["credible"].to_numpy()
        assert (reasons[credible] == "").all()
        assert (reasons[success & ~credible] != "").all()
        assert (reasons[~success] == "the decision is not the wanted one").all()

    def test_it_is_credible_by_the_definition_of_answers_of_a_search(self, fitted, query):
        """What reached the boundary but not the margin was credible; its reason was empty."""
        near = fitted.with_search(Search.cheapest()).generate(query).direct
        told = fitted.apply(query, near)
        goal = told.question.case.goal
        asked = fitted.search.margin * goal.unit(fitted.trained.scored[1])
        short = (told.success & (goal.margin(told.scores) < asked)).numpy()
        short &= told.actions["acted_on"].ne("").to_numpy()
        assert short.any()
        assert not told.actions["credible"][short].any()
        margin = "accepted, but by less than the required margin"
        assert margin in set(told.actions["reason"][short])
        at = told.actions.index[told.actions["reason"] == margin][0]
        assert told.describe(at).startswith("Weak answer: ")
        assert told.letter(at).startswith("We cannot say if this change is enough")
        again = fitted.apply(query, fitted.generate(query).direct)
        answers = fitted.generate(query).actions["credible"]
        assert (again.actions["credible"] == answers)[answers].all()

    def test_an_action_of_size_zero_gives_the_factual_back(self, fitted, mixed, query):
        for name in mixed.schema.mutable:
            result = fitted.apply(query, query[[name]])
            pd.testing.assert_frame_equal(result.counterfactuals, query)
            assert (result.actions["cost"] == 0).all()

    def test_each_row_may_act_on_something_else(self, fitted, query):
        actions = pd.DataFrame(index=query.index, columns=["income", "job"], dtype=object)
        actions.loc[query.index[:5], "income"] = 55.0
        actions.loc[query.index[5:9], "job"] = "judge"
        result = fitted.apply(query, actions)
        after = result.counterfactuals
        assert (after["income"].iloc[:5] == 55.0).all()
        assert (after["job"].iloc[5:9] == "judge").all()
        rest = result.actions.iloc[9:]
        assert after.iloc[9:].equals(query.iloc[9:])
        assert not rest["success"].any()
        assert (rest["reason"] == "nothing is acted on").all()

    def test_numbers_are_rounded_to_what_the_column_holds(self, fitted, mixed, query):
        young = query[query["age"] < 60]
        result = fitted.apply(young, {"age": 60.4, "income": 50.006})
        assert (result.counterfactuals["age"] == 60).all()
        assert (result.counterfactuals["income"] == 50.01).all()


class TestSetsThatWereNotFitted:
    def test_are_fitted_and_kept(self, mixed, query):
        dear = DEAR(mixed.net, mixed.schema, act_on=["income"]).fit(mixed.frame)
        actions = {"age": 80, "owner": 1, "debt": 2.0}
        result = dear.apply(query, actions)
        allowed = result.actions["success"] | result.actions["reason"].str.startswith("the dec")
        after = result.counterfactuals[allowed]
        assert allowed.any()
        assert (after[["age", "owner"]] == [80, 1]).all(axis=None)
        assert np.allclose(after["debt"], 2.0, atol=1e-6)
        kept = dict(dear.decoders._fitted)
        pd.testing.assert_frame_equal(
            dear.apply(query, actions).counterfactuals, result.counterfactuals
        )
        assert dict(dear.decoders._fitted) == kept

    def test_a_second_fit_forgets_them(self, loan):
        dear = DEAR(loan.net, loan.schema, act_on=["income"]).fit(loan.frame)
        query = loan.refused(5)
        first = dear.apply(query, {"savings": 45.0})
        half = loan.frame.iloc[::2]
        dear.fit(half)
        fresh = DEAR(loan.net, loan.schema, act_on=["income"]).fit(half)
        again, wanted = (d.apply(query, {"savings": 45.0}) for d in (dear, fresh))
        pd.testing.assert_frame_equal(again.counterfactuals, wanted.counterfactuals)
        assert not again.counterfactuals.equals(first.counterfactuals)


class TestActionsThatAreNotAdmissible:
    def test_a_direction_holds_for_each_row(self, fitted, query):
        result = fitted.apply(query, {"age": 50})
        older = query["age"] > 50
        assert older.any()
        stayed = result.counterfactuals[older]
        pd.testing.assert_frame_equal(stayed, query[older])
        assert not result.actions["success"][older].any()
        oldest = query.index[older][0]
        own = query.loc[oldest, "age"]
        assert result.actions.loc[oldest, "reason"] == f"age may not become 50, only {own} to 80"
        assert result.describe(oldest).startswith("nothing changes: age may not become 50")
        assert (result.counterfactuals["age"][~older] == 50).all()

    def test_a_row_that_cannot_be_read_and_one_that_may_not_act_are_both_described(
        self, fitted, query
    ):
        odd = query.assign(town=["Atlantis", *query["town"].iloc[1:]])
        texts = fitted.apply(odd, {"income": 95.0}).describe()
        assert texts.str.startswith("nothing changes: ").all()
        assert "Atlantis" in texts.iloc[0]

    def test_an_accepted_row_that_may_not_act_so_says_why(self, fitted, mixed):
        accepted = mixed.frame.drop(mixed.refused(len(mixed.frame)).index).iloc[:5]
        frozen = Constraints(frozen=["income"])
        acts = fitted.apply(accepted, {"income": 55.0}, frozen).actions
        assert (acts["reason"] == "income may not be acted on").all()
        stays = fitted.apply(accepted, pd.DataFrame(index=accepted.index)).actions
        assert (stays["reason"] == "already accepted").all()

    def test_what_is_frozen_for_a_row_may_not_be_acted_on(self, fitted, query):
        frozen = [["income"]] + [[]] * (len(query) - 1)
        result = fitted.apply(query, {"income": 55.0}, Constraints(frozen=frozen))
        assert result.actions["reason"].iloc[0] == "income may not be acted on"
        assert (result.counterfactuals["income"] == 55.0).sum() == len(query) - 1

    def test_a_value_outside_the_range_is_not_reached(self, fitted, query):
        result = fitted.apply(query, {"income": 95.0, "town": "A"})
        assert not result.actions["success"].any()
        assert result.actions["reason"].str.contains("income may not become 95, only").all()

    def test_a_code_that_no_action_enters_is_told_as_it_is(self):
        debt = pd.Series([*range(10, 60), *[-9] * 10], name="debt", dtype=float)
        schema = Schema.infer(debt.to_frame(), special={"debt": [-9]})
        dear = DEAR(lambda rows: (rows["debt"] < 20) * 1.0, schema).fit(debt.to_frame())
        result = dear.apply(debt.iloc[[40]].to_frame(), {"debt": -9})
        assert result.actions["reason"].tolist() == ["debt may not become -9"]


class TestInvalidArguments:
    @pytest.mark.parametrize(
        ("actions", "error", "words"),
        [
            ({"incme": 3}, ConstraintError, "did you mean 'income'"),
            ({"gender": "male"}, ConstraintError, "'gender'.*immutable"),
            ({"job": "king of Spain"}, InputError, "never seen"),
            ({"income": "much"}, InputError, "must hold numbers"),
            ({"income": np.inf}, InputError, "infinite"),
            ({"income": [1.0, 2.0]}, ConstraintError, "one value for all rows"),
            ("income", ConstraintError, "got str"),
        ],
    )
    def test_it_says_what_is_wrong(self, fitted, query, actions, error, words):
        with pytest.raises(error, match=words):
            fitted.apply(query, actions)

    def test_a_frame_of_other_rows(self, fitted, query):
        with pytest.raises(InputError, match="same index"):
            fitted.apply(query, query[["income"]].iloc[::-1])
