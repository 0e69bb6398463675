"""Copies of the model, trained again: answers that they accept, and what becomes of them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression

from dear_plugin import DEAR, Schema, Search, Target, bootstrap_copies
from dear_plugin.errors import FileFormatError, ModelError

ACT_ON = ["income", "savings", "loan_amount", "duration"]


@pytest.fixture(scope="module")
def forest(loan):
    model = RandomForestClassifier(20, min_samples_leaf=3, random_state=0)
    return model.fit(features_of(loan), loan.labels)


def features_of(study):
    return study.frame.assign(gender=(study.frame["gender"] == "female").astype(int))


@pytest.fixture(scope="module")
def study(loan):
    """The features, a schema, and rows that the forest refuses."""
    frame = features_of(loan)
    return frame, Schema.infer(frame, immutable=["gender"], increasing=["age", "education"])


@pytest.fixture(scope="module")
def copies(forest, study, loan):
    return bootstrap_copies(forest, study[0], loan.labels, n=3)


@pytest.fixture(scope="module")
def alone(forest, study):
    return DEAR(forest, study[1], act_on=ACT_ON).fit(study[0])


@pytest.fixture(scope="module")
def dear(alone, forest, copies):
    return alone.with_model(forest, copies=copies)


@pytest.fixture(scope="module")
def refused(study, forest):
    return study[0][forest.predict(study[0]) == 0].head(25)


def accepted_by(copies, rows):
    return np.mean([copy.predict(rows) == 1 for copy in copies], 0)


class TestAgreement:
    def test_it_is_the_share_of_copies_that_accept_the_returned_row(self, dear, copies, refused):
        for search in (Search(), Search.cheapest(), Search(min_agreement=0.6)):
            found = dear.with_search(search).generate(refused)
            done = found.actions["success"]
            share = accepted_by(copies, found.counterfactuals[list(dear.schema.names)])
            assert np.allclose(found.actions["agreement"][done], share[done])

    def test_credible_answers_have_what_is_required(self, dear, alone, copies, refused):
        strict, before = dear.generate(refused), alone.generate(refused)
        credible = strict.actions["credible"]
        assert credible.any()
        assert (strict.actions["agreement"][credible] == 1.0).all()
        accepted = accepted_by(copies, before.counterfactuals[list(alone.schema.names)])
        assert accepted[before.actions["credible"]].mean() < 1.0

    def test_an_answer_with_less_says_so(self, dear, forest, refused):
        never = dear.with_model(forest, copies=[lambda rows: np.eye(2)[[0] * len(rows)]])
        actions = never.generate(refused).actions
        assert not actions["credible"].any()
        assert (actions["agreement"] == 0.0).all()
        assert actions["reason"].str.contains("agreement 0,").any()

    def test_regression(self, study):
        frame = study[0]
        names = [n for n in frame if n != "income"]
        model = RandomForestRegressor(10, random_state=0).fit(frame[names], frame["income"])
        schema = Schema.infer(frame[names], immutable=["gender"])
        copies = bootstrap_copies(model, frame[names], frame["income"], n=2)
        dear = DEAR(model, schema, act_on=["savings"], output="values", copies=copies)
        low = frame[names][model.predict(frame[names]) < 35].head(8)
        actions = dear.fit(frame[names]).generate(low, Target.of_range(low=38.0)).actions
        assert actions["agreement"].between(0.0, 1.0).any()
        assert (actions["agreement"][actions["credible"]] == 1.0).all()


class TestCalls:
    def test_copies_are_asked_about_vetted_candidates_only(self, alone, forest, refused):
        asked, calls = [], []

        def model(rows):
            calls.append(len(rows))
            return forest.predict_proba(rows)[:, 1]

        def copy(rows):
            asked.append(len(rows))
            return forest.predict_proba(rows)[:, 1]

        dear = alone.with_model(model, copies=[copy])
        dear.generate(refused)
        assert 0 < sum(asked) < 0.1 * sum(calls)
        assert len(asked) < len(calls)


class TestBootstrapCopies:
    def test_copies_differ_and_the_model_does_not_change(self, forest, copies, refused):
        scores = np.array([m.predict_proba(refused)[:, 1] for m in (forest, *copies)])
        assert len(np.unique(scores, axis=0)) == 4
        assert len({copy.random_state for copy in copies}) == 3
        assert forest.random_state == 0

    def test_every_copy_has_every_class(self):
        X, y = np.arange(30.0)[:, None], np.array([0] * 28 + [1] * 2)
        copies = bootstrap_copies(LogisticRegression(), X, y, n=8)
        assert all(copy.classes_.tolist() == [0, 1] for copy in copies)

    def test_a_model_that_cannot_be_cloned_is_refused(self):
        with pytest.raises(ModelError, match="train the copies yourself"):
            bootstrap_copies(lambda rows: rows, np.zeros((3, 1)), np.zeros(3))


class TestArguments:
    def test_a_copy_with_other_classes_is_refused(self, study, forest, loan):
        named = clone(forest).fit(study[0], np.where(loan.labels == 1, "yes", "no"))
        with pytest.raises(ModelError, match=r"copy 0 has the classes \['no', 'yes'\]"):
            DEAR(forest, study[1], act_on=ACT_ON, copies=[named])
        with pytest.raises(ModelError, match="list of models"):
            DEAR(forest, study[1], act_on=ACT_ON, copies=forest)

    def test_a_save_has_their_number_only(self, dear, forest, copies, refused, tmp_path):
        dear.save(tmp_path)
        for others in ((), copies[:2]):
            with pytest.raises(FileFormatError, match="3 copies of the model"):
                DEAR.load(tmp_path, forest, copies=others)
        again = DEAR.load(tmp_path, forest, copies=copies)
        pd.testing.assert_frame_equal(
            again.generate(refused).actions, dear.generate(refused).actions
        )
