"""RecourseMethod: what a subclass implements, and what the base class does."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from dear_plugin import DEAR, RecourseMethod, Schema, Target
from dear_plugin.errors import ModelError, TargetError
from dear_plugin.results.proposal import Proposal
from dear_plugin.results.worth import by_criteria


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
    @pytest.mark.parametrize("kind", ["black box", "module"])
    def test_the_cost_is_that_of_the_returned_row(self, own, cut, kind):
        frame, sign = pd.DataFrame({"a": [0.0, 1.0, 16.9, 14.7, 4.7]}), 1.0 if own < cut else -1.0
        module = torch.nn.Linear(1, 1)
        with torch.no_grad():
            module.weight.fill_(sign * 16.9), module.bias.fill_(-sign * cut)
        box = lambda f: (sign * f["a"] > sign * cut).to_numpy(float)  # noqa: E731
        model = box if kind == "black box" else module
        dear = DEAR(model, Schema.infer(frame)).fit(frame)
        query = pd.DataFrame({"a": [own]})
        result = dear.generate(query)
        (moved,) = (result.counterfactuals["a"] - query["a"]).abs() / 16.9
        assert result.actions["success"].all()
        assert result.actions["cost"].tolist() == pytest.approx([moved], abs=1e-6)
        for at, found in result.alternatives(2).groupby("rank"):
            distance = (found["a"] - own).abs() / 16.9
            assert found["cost"].tolist() == pytest.approx(distance.tolist(), abs=1e-6), at


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

    def test_its_own_select_is_not_called(self, mixed):
        class Selecting(Nearest):
            def select(self, names):
                raise AssertionError

        result = Selecting(mixed.net, mixed.schema).fit(mixed.frame).generate(mixed.refused(4))
        assert len(result.select(torch.arange(2)).actions) == 2
        assert len(result.alternatives(2)) >= 4

    def test_what_its_learning_returns_is_kept_if_it_is_decoders(self, mixed, nearest):
        class Itself(Nearest):
            def _learn(self, rows):
                super()._learn(rows)
                return self

        own, rows = Itself(mixed.net, mixed.schema).fit(mixed.frame), mixed.refused(4)
        assert own.generate(rows).describe().equals(nearest.generate(rows).describe())


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
        """A question, and answers that succeed only with their indirect changes."""
        schema = replace(mixed.schema, tiers=tiers)
        method = Nearest(mixed.net, schema).fit(mixed.frame)
        result = method.generate(mixed.refused(3))
        whole = torch.ones(len(result), dtype=torch.float64)
        names = "alone", "possible", "gain"
        known = {name: torch.from_numpy(getattr(result.worth, name)) for name in names}
        known |= {"reliance": whole, "confidence": result.worth.confidence}
        return result.question, (result, known)

    def test_the_log_names_the_argument_once(self, mixed, caplog):
        question, answers = self.answers(mixed)
        for _ in range(2):
            by_criteria(question, *answers)
        assert [r.getMessage().count("tiers=[[...], [...]]") for r in caplog.records] == [1]

    def test_with_tiers_there_is_none(self, mixed, caplog):
        question, answers = self.answers(mixed, [["age"]])
        by_criteria(question, *answers)
        assert not caplog.records


def test_a_fit_warns_of_columns_that_the_model_was_not_trained_on(caplog):
    frame = pd.DataFrame({"a": np.arange(40.0), "b": np.arange(40.0) ** 0.5})
    model = LogisticRegression().fit(frame[["a"]], frame["a"] > 20)
    Nearest(model, Schema.infer(frame[["a"]])).fit(frame)
    assert "not trained on" not in caplog.text
    Nearest(model, Schema.infer(frame)).fit(frame)
    assert "the model was not trained on ['b']: Schema.infer(frame, target" in caplog.text


def test_a_fit_knows_one_hot_columns_that_the_model_was_trained_on(caplog):
    frame = pd.get_dummies(pd.Series(["one", "two", "three"] * 20, name="job")).astype(int)
    frame = frame.add_prefix("job_").assign(a=np.arange(60.0))
    model = LogisticRegression().fit(frame, frame["a"] > 30)
    Nearest(model, Schema.infer(frame)).fit(frame)
    assert "not trained on" not in caplog.text


@pytest.mark.parametrize("labels", [[0, 1], ["no", "yes"], [False, True], [0, 1, 2]])
def test_a_fit_refuses_the_decision_among_the_features_and_the_ways_out_run(labels):
    decision = np.array(labels)[np.arange(60) * len(labels) // 60]
    frame = pd.DataFrame({"a": np.arange(60.0), "decision": decision})
    columns = make_column_transformer(("passthrough", ["a"]))
    model = make_pipeline(columns, LogisticRegression(max_iter=500)).fit(frame[["a"]], decision)
    with pytest.raises(ModelError, match=r"target='decision'\) leaves it out"):
        Nearest(model, Schema.infer(frame)).fit(frame)
    schema, wanted = Schema.infer(frame, target="decision"), labels[-1]
    left = Nearest(model, schema).fit(frame)
    assert left.generate(frame.tail(3), wanted).actions["success"].all()
    function = lambda rows: model.predict_proba(rows[model.feature_names_in_])  # noqa: E731
    kept = Nearest(function, Schema.infer(frame)).fit(frame)
    assert kept.generate(frame.tail(3), len(labels) - 1).actions["success"].all()


class TestModels:
    @pytest.fixture
    def drawing(self):
        rng = np.random.default_rng(0)
        return lambda rows: np.clip(0.5 + rng.normal(0, 0.2, len(rows)), 0, 1)

    def test_one_that_draws_at_random_is_noticed_once_it_is_asked(self, mixed, drawing):
        method = Nearest(drawing, mixed.schema).fit(mixed.frame)
        with pytest.raises(ModelError, match="differ by up to 0"):
            method.generate(mixed.frame.head(5))
        rng = np.random.default_rng(0)
        values = lambda rows: rows["income"] * (1 + rng.normal(0, 0.2, len(rows)))  # noqa: E731
        method = Nearest(values, mixed.schema, output="values").fit(mixed.frame)
        with pytest.raises(ModelError, match="between two calls"):
            method.generate(mixed.frame.head(5), Target.of_range(low=30.0))

    def test_a_seed_in_every_call_is_enough(self, mixed):
        def seeded(rows):
            noise = np.random.default_rng(0).normal(0, 0.2, len(rows))
            return np.clip(0.5 + noise, 0, 1)

        Nearest(seeded, mixed.schema).fit(mixed.frame).generate(mixed.frame.head(5))

    def test_rounding_is_no_difference(self, mixed):
        calls = iter(range(10**6))

        def rounding(rows):
            p = np.full(len(rows), 0.5) * (1 + 1e-6 * next(calls))
            return p.astype(np.float32)

        Nearest(rounding, mixed.schema).fit(mixed.frame).generate(mixed.frame.head(5))

    def test_at_most_ten_rows_are_scored_twice_and_once(self, mixed):
        asked = []

        def counting(rows):
            asked.append(len(rows))
            return rows["income"].to_numpy(float) / 1e9 + 0.6

        method = Nearest(counting, mixed.schema).fit(mixed.frame)
        for extra in ([10], []):
            asked.clear()
            method.generate(mixed.frame.head(30))
            assert asked == [30, *extra]

    @pytest.mark.parametrize("columns", [1, 2])
    def test_labels_are_told_once(self, mixed, caplog, columns):
        def labels(rows):
            one = (rows["income"] > rows["income"].median()).to_numpy(float)
            return one if columns == 1 else np.column_stack([1 - one, one])

        dear = DEAR(labels, mixed.schema).fit(mixed.frame)
        for _ in range(2):
            _ = dear.generate(mixed.frame.head(5)).actions
        told = [r for r in caplog.records if "returned only 0 and 1" in r.getMessage()]
        assert [record.levelname for record in told] == ["WARNING"]
        assert "model.predict_proba" in told[0].getMessage()

    def test_probabilities_are_not(self, mixed, caplog):
        dear = DEAR(mixed.pipeline, mixed.schema).fit(mixed.frame)
        _ = dear.generate(mixed.frame.head(5)).actions
        assert "only 0 and 1" not in caplog.text
