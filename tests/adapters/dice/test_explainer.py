"""The explainer: DiCE's arguments with DiCE's meaning, and rows that DiCE itself would accept."""

import copy
import inspect
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from types import SimpleNamespace

import dice_ml
import numpy as np
import pandas as pd
import pytest
import torch
from dice_ml.counterfactual_explanations import CounterfactualExplanations
from dice_ml.explainer_interfaces.dice_genetic import DiceGenetic
from dice_ml.explainer_interfaces.dice_KD import DiceKD
from dice_ml.explainer_interfaces.dice_pytorch import DicePyTorch
from dice_ml.explainer_interfaces.dice_random import DiceRandom
from raiutils.exceptions import UserConfigValidationException

from dear_dice import DiceDEAR
from dear_dice.interface import IGNORED
from dear_plugin import DEAR, Search
from dear_plugin.errors import InputError
from tests.adapters.dice.asked import answers, examples, logged, same_frames
from tests.rounding import near


def test_every_refused_row_is_solved_in_the_users_units(either, loan, refused):
    refused = refused[either._host.scores(refused)[:, -1] < 0.5]
    result = either.generate_counterfactuals(refused, total_CFs=3)
    assert isinstance(result, CounterfactualExplanations)
    for (_, row), example in zip(refused.iterrows(), result.cf_examples_list, strict=True):
        found, query = example.final_cfs_df, example.test_instance_df
        assert list(found.columns) == [*loan.features.columns, "approved"] == list(query.columns)
        assert set(found["approved"]) == {1} and query["approved"].tolist() == [0]
        assert (example.desired_class, example.new_outcome, example.test_pred) == (1, 1, 0)
        assert query.iloc[0].drop("approved").equals(row)
        features = found.drop(columns="approved")
        assert features.dtypes.equals(loan.features.dtypes)
        assert all(features[name].isin(loan.features[name]).all() for name in loan.words)
        assert (either._host.scores(features)[:, -1] > 0.5).all()


def test_the_host_scores_as_dice_does(explainer, probability, refused):
    ours = explainer._host.scores(refused)[:, 0]
    assert ours == near(probability(refused))
    theirs = explainer.model.get_output(refused)[:, 0]
    assert ours == near(theirs)


def test_several_counterfactuals_act_on_different_sets_the_cheapest_first(explainer, refused):
    for example in examples(explainer, refused, total_CFs=4):
        # A pair counts only if it is cheaper than its parts: there may be fewer than four.
        assert 2 <= len(example.final_cfs_df) == len(example.actions) <= 4
        assert not example.final_cfs_df.duplicated().any()
        kinds = example.actions["kind"].tolist()
        assert kinds[0] == "first" and "first" not in kinds[1:]
        own = example.actions[example.actions["kind"].isin(["first", "another set"])]
        assert not own["acted_on"].duplicated().any()
        # One that needs no indirect change may cost a quarter more.
        cost = own["cost"].iloc[1:]
        assert (cost >= cost.cummax() / 1.25 - 1e-6).all()


def test_the_counterfactuals_of_a_row_are_of_one_search(explainer, refused, monkeypatch):
    searches, own = [], DEAR._searching
    monkeypatch.setattr(DEAR, "_searching", lambda *a: searches.append(a) or own(*a))
    explainer.generate_counterfactuals(refused[:1], total_CFs=4)
    assert len(searches) == 1


def test_one_batch_equals_one_row_at_a_time(explainer, refused):
    rows = refused.iloc[:6]
    together = answers(explainer, rows, total_CFs=3)
    alone = [answers(explainer, rows.iloc[i : i + 1], total_CFs=3)[0] for i in range(len(rows))]
    assert same_frames(together, alone)


def test_the_same_query_has_the_same_answer_and_it_and_global_generators_are_left_alone(
    explainer, refused
):
    query, before = refused.copy(), (np.random.get_state()[1].copy(), torch.get_rng_state())
    first = answers(explainer, query, total_CFs=2, random_seed=1)
    again = answers(explainer, query, total_CFs=2, random_seed=2)
    assert same_frames(first, again)
    assert (np.random.get_state()[1] == before[0]).all()
    assert torch.equal(torch.get_rng_state(), before[1])
    pd.testing.assert_frame_equal(query, refused)


def test_an_accepted_row_comes_back_as_itself_and_the_log_says_how_many(
    explainer, refused, accepted, caplog
):
    query = pd.concat([accepted.iloc[:2], refused.iloc[:1]])
    found = examples(explainer, query, total_CFs=3, desired_class=1)
    assert "2 of 3 rows have the wanted outcome already" in caplog.text
    for at in range(2):
        assert len(found[at].final_cfs_df) == 1
        assert found[at].final_cfs_df.iloc[0].drop("approved").equals(accepted.iloc[at])
        assert found[at].actions[["acted_on", "cost"]].values.tolist() == [["", 0.0]]


FORMS = {
    "frames": lambda q: [q.iloc[:1], q.iloc[1:2]],
    "dicts": lambda q: q.to_dict("records"),
    "one dict": lambda q: q.iloc[0].to_dict(),
    "doubled index": lambda q: pd.concat([q.iloc[:1], q.iloc[1:2].set_axis(q.index[:1])]),
    "columns backwards": lambda q: q.iloc[:, ::-1],
}
DTYPES = {
    "objects": object,
    "floats as integers": {"income": int, "savings": int, "loan_amount": int},
    "integers as floats": {"age": float, "duration": "float32"},
    "small integers": {"age": "int8"},
    "the levels of the query": {"housing": "category"},
    "levels in another order": {"housing": pd.CategoricalDtype(["own", "rented"], ordered=True)},
}


class TestQuery:
    @pytest.mark.parametrize("form", FORMS)
    def test_other_forms_of_a_query(self, form, explainer, refused):
        rows = refused.iloc[:2]
        expected, found = answers(explainer, rows), answers(explainer, FORMS[form](rows))
        assert len(found) == (1 if form == "one dict" else 2)
        for a, b in zip(found, expected, strict=False):
            assert a.values.tolist() == b.values.tolist()

    @pytest.mark.parametrize("name", DTYPES)
    def test_counterfactuals_have_the_dtypes_of_the_query(self, name, either, refused):
        homes = refused["housing"].isin(["own", "rented"])
        query = refused[homes].round().astype(DTYPES[name])
        query = query[either._host.scores(query.infer_objects())[:, -1] < 0.5]
        names = query.dtypes.map(str)
        for example in examples(either, query, total_CFs=3):
            for frame in (example.final_cfs_df, example.test_instance_df):
                features = frame.drop(columns="approved")
                assert features.dtypes.map(str).equals(names)
                assert not features.isna().any(axis=None)
            found = example.final_cfs_df.drop(columns="approved").infer_objects()
            assert (either._host.scores(found)[:, -1] > 0.5).all()
            assert (found[["age", "duration"]] % 1 == 0).all(axis=None)

    def test_a_new_level_comes_back_where_it_cannot_change(self, loan, black_box, refused):
        new, arguments = refused.head(2).assign(gender="other"), {"desired_class": 1}
        arguments["features_to_vary"] = [name for name in refused if name != "gender"]
        with pytest.raises(ValueError, match="outside the dataset"):  # the model refuses it
            black_box.generate_counterfactuals(new, 1, **arguments)

        def score(rows):
            high = (rows["savings"] / 60).clip(0, 1).to_numpy(dtype=float)
            return np.column_stack([1 - high, high])

        model = dice_ml.Model(model=SimpleNamespace(predict_proba=score), backend="sklearn")
        for found in answers(DiceDEAR(loan.data, model), new, 1, **arguments):
            assert found["gender"].tolist() == ["other"]


REFUSED = {
    "no rows": (lambda q: q.iloc[:0], "no rows, at least one"),
    "array": (lambda q: q.to_numpy(), r"an array: pandas.DataFrame\(rows, columns=\['gender', "),
    "no list": (lambda q: [], "no rows, at least one"),
    "infinite": (lambda q: q.astype({"age": float}).assign(age=np.inf), "infinite.*age"),
    "value missing": (lambda q: q.assign(income=np.nan), "missing values"),
    "column missing": (lambda q: q.drop(columns="age"), "every feature once"),
    "column doubled": (lambda q: pd.concat([q, q[["age"]]], axis=1), "every feature once"),
}
# As DiCE does, with its words and its kind of error.
REFUSED_BY_DICE = {
    "outcome": (lambda q: q.assign(approved=0), "present in query instance"),
    "no feature": (lambda q: q.assign(x=1), "not present in training data"),
    "level": (lambda q: q.assign(housing="castle"), "has a value outside the dataset"),
}


@pytest.mark.parametrize("name", [*REFUSED, *REFUSED_BY_DICE])
def test_a_query_that_cannot_be_answered_is_refused(name, explainer, refused):
    error = UserConfigValidationException if name in REFUSED else ValueError
    change, words = {**REFUSED, **REFUSED_BY_DICE}[name]
    with pytest.raises(error, match=words):
        explainer.generate_counterfactuals(change(refused.iloc[:2]), total_CFs=1)


COUNTS = [True, 2.5, "2", None, float("nan"), float("inf")]
RANGES = r"permitted_range should be .*\{feature: \[low, high\]\} or \{feature: \[levels\]\}, got"
OF_ANOTHER_KIND = [
    *(({"total_CFs": n}, rf"total_CFs should be a positive integer, got {n!r}") for n in COUNTS),
    ({"permitted_range": {"housing": "own"}}, RANGES),
    ({"permitted_range": {"income": 40}}, RANGES),
    ({"permitted_range": ["income"]}, RANGES),
    ({"permitted_range": "all"}, RANGES),
    ({"features_to_vary": "income"}, "'all' or a list of features, got 'income'"),
    ({"features_to_vary": None}, "'all' or a list of features, got None"),
    ({"stopping_threshold": "0.5"}, "stopping_threshold should be a number .*, got '0.5'"),
    ({"posthoc_sparsity_param": "0.1"}, "should be None or a number from 0 to 1, got '0.1'"),
    ({"desired_range": 40}, "two numbers, -inf or inf for an open end, got 40"),
    ({"desired_range": [None, 40]}, r"an open end, got \[None, 40\]"),
]


@pytest.mark.parametrize(("arguments", "words"), OF_ANOTHER_KIND)
def test_a_value_of_another_kind_is_refused(arguments, words, explainer, refused):
    with pytest.raises(UserConfigValidationException, match=words):
        explainer.generate_counterfactuals(refused, **{"total_CFs": 1, **arguments})


NO_CLASS = "Only 0, 1 are supported as desired class for binary classification!"
NO_FEATURE = "Got features {'shoes'} which are not present in training data"
NO_LEVEL = "The category castle does not occur in the training data for feature housing."
WITHOUT_SENSE = [
    ({"total_CFs": 0}, "should be a positive integer"),
    ({"desired_class": "a"}, r"class for a could not be identified.*names none\), got 'a'"),
    ({"desired_class": 100}, NO_CLASS),
    ({"desired_class": -1}, NO_CLASS),
    ({"features_to_vary": ["shoes"]}, NO_FEATURE),
    ({"features_to_vary": []}, "Some features need to be varied"),
    ({"permitted_range": {"shoes": [1, 30]}}, NO_FEATURE),
    ({"permitted_range": {"housing": ["castle"]}}, NO_LEVEL),
    ({"posthoc_sparsity_algorithm": "random"}, "should be linear or binary and not random"),
    ({"posthoc_sparsity_algorithm": None}, "should be linear or binary and not None"),
    ({"posthoc_sparsity_param": -1}, "posthoc_sparsity_param should lie between"),
    ({"stopping_threshold": 1.5}, "stopping_threshold should lie between"),
    ({"desired_range": [0, 1]}, "should not be set for classification"),
]


@pytest.mark.parametrize(("arguments", "words"), WITHOUT_SENSE)
@pytest.mark.parametrize(
    "call", ["generate_counterfactuals", "local_feature_importance", "feature_importance"]
)
def test_an_argument_without_sense_is_refused(call, arguments, words, explainer, refused):
    with pytest.raises(UserConfigValidationException, match=words):
        getattr(explainer, call)(refused.iloc[:1], **{"total_CFs": 10, **arguments})


class TestDesiredClass:
    @pytest.mark.parametrize("wanted", [0, np.int64(0), np.int32(0), False])
    def test_a_number(self, wanted, explainer, accepted):
        for example in examples(explainer, accepted[:3], total_CFs=2, desired_class=wanted):
            assert set(example.final_cfs_df["approved"]) == {0}
            assert example.desired_class == 0 and type(example.desired_class) in (int, np.int64)

    def test_opposite_goes_row_by_row(self, explainer, refused, accepted):
        query = pd.concat([refused[:4], accepted[:4]]).sort_index()
        found = answers(explainer, query, total_CFs=1, desired_class="opposite")
        wanted = query.index.isin(refused.index).astype(int)
        assert [frame["approved"].iat[0] for frame in found] == wanted.tolist()


class TestThreshold:
    @pytest.mark.parametrize("threshold", [0.5, 0.8, 0.95])
    def test_the_wanted_class_has_that_probability_and_little_more(
        self, threshold, make, refused, probability
    ):
        # By default a margin is kept besides.
        explainer = make(search=Search.cheapest())
        result = answers(explainer, refused, desired_class=1, stopping_threshold=threshold)
        reached = np.array([probability(found)[0] for found in result if len(found)])
        assert (reached >= threshold).all()
        assert np.median(reached) < threshold + 0.05

    def test_up_to_one_half_it_requires_only_the_class(self, explainer, refused):
        none, low, half = (
            answers(explainer, refused, desired_class=1, stopping_threshold=threshold)
            for threshold in (0.0, 0.2, 0.5)
        )
        assert same_frames(low, half) and same_frames(none, half)

    @pytest.mark.parametrize("threshold", [0.2, 0.8])
    def test_for_class_0_both_readings_hold(self, threshold, explainer, accepted, probability):
        result = answers(explainer, accepted, desired_class=0, stopping_threshold=threshold)
        assert all((probability(found) <= 0.2).all() for found in result)


@pytest.mark.parametrize("sequence", [list, tuple, np.array])
def test_what_is_not_in_features_to_vary_stays_exactly_as_it_is(explainer, refused, sequence):
    vary = sequence(["income", "savings", "housing", "duration"])
    fixed = [name for name in refused.columns if name not in vary]
    suppressed = []
    for example in examples(explainer, refused, total_CFs=3, features_to_vary=vary):
        own = example.test_instance_df.iloc[0][fixed]
        assert (example.final_cfs_df[fixed] == own).all(axis=None)
        assert set(" + ".join(example.actions["acted_on"]).split(" + ")) <= set(vary)
        suppressed += example.actions["suppressed_cost"].tolist()
    assert max(suppressed) > 0


def test_features_to_vary_that_are_all_immutable(make, refused):
    with pytest.raises(UserConfigValidationException, match="are immutable: vary another"):
        answers(make(immutable=["gender"]), refused.iloc[:1], features_to_vary=["gender"])


class TestPermittedRange:
    def test_numbers_and_levels(self, explainer, refused):
        permitted = {"savings": [20, 36.5], "housing": ["own", "shared"]}
        for example in examples(explainer, refused, total_CFs=3, permitted_range=permitted):
            own = example.test_instance_df.iloc[0]
            changed = example.final_cfs_df[example.final_cfs_df["savings"] != own["savings"]]
            assert changed["savings"].between(20, 36.5).all()
            assert example.final_cfs_df["housing"].isin(["own", "shared", own["housing"]]).all()

    def test_a_row_outside_a_range_stays_or_moves_inside(self, explainer, loan, probability):
        """Also what moves along: an age of 57 does not become 56 where 20 to 50 is permitted."""
        older = loan.features[loan.features["age"] > 50]
        query = older[probability(older) < 0.5].head(30)
        assert any((found["age"] > 50).any() for found in answers(explainer, query, total_CFs=2))
        for example in examples(explainer, query, total_CFs=2, permitted_range={"age": [20, 50]}):
            ages = example.final_cfs_df["age"]
            stays = ages == example.test_instance_df["age"].iloc[0]
            assert (stays | ages.between(20, 50)).all()

    @pytest.mark.parametrize(("given", "most"), [(None, 40), ({"income": [30, 60]}, 60)])
    def test_the_interfaces_own_holds_until_a_call_replaces_it(
        self, given, most, loan, torch_model, probability
    ):
        query = loan.features[probability(loan.features) < 0.5].head(60)
        data = loan.interface(loan.frame, permitted_range={"income": [30, 40], "housing": ["own"]})
        explainer = DiceDEAR(data, torch_model, act_on=["income", "housing"])
        incomes = []
        for example in examples(explainer, query, total_CFs=2, permitted_range=given):
            if example.final_cfs_df is not None:
                own, found = example.test_instance_df.iloc[0], example.final_cfs_df
                incomes += found["income"][example.actions["acted_on"] == "income"].tolist()
                assert found["housing"].isin(["own", own["housing"]]).all()
        assert most - 20 < max(incomes) <= most

    @pytest.mark.parametrize("level", ["own", "shared"])
    def test_a_frozen_level_outside_it(self, level, explainer, refused):
        query = refused[refused["housing"] == "rented"].iloc[:1]
        arguments = {"permitted_range": {"housing": [level]}, "features_to_vary": ["income"]}
        with pytest.raises(ValueError, match="isn't allowed to vary"):
            explainer.generate_counterfactuals(query, 1, **arguments)


@pytest.mark.parametrize("param", [None, 0, 0.1, 1.0])
def test_the_sparse_frame_is_the_final_one(param, explainer, refused):
    for example in examples(explainer, refused[:3], 2, posthoc_sparsity_param=param):
        assert example.posthoc_sparsity_param == param
        pd.testing.assert_frame_equal(example.final_cfs_df, example.final_cfs_df_sparse)


class TestArgumentsOfOtherMethods:
    @pytest.mark.parametrize(
        ("given", "named"),
        [
            ({"posthoc_sparsity_param": 0.1, "posthoc_sparsity_algorithm": "linear"}, None),
            ({"posthoc_sparsity_param": None}, None),
            ({"posthoc_sparsity_param": 0.5}, "posthoc_sparsity_param"),
            ({"posthoc_sparsity_algorithm": "binary"}, "posthoc_sparsity_algorithm"),
        ],
    )
    def test_the_log_says_that_another_sparsity_has_no_effect(
        self, given, named, explainer, refused, caplog
    ):
        answers(explainer, refused.iloc[:1], 1, **given)
        told = [f"method 'dear' ignores {named}: only other methods use them"]
        assert logged(caplog) == (told if named else [])

    @pytest.mark.parametrize(
        ("name", "near"), [("total_cfs", "total_CFs"), ("sample_sise", "sample_size")]
    )
    def test_an_unknown_argument_is_refused_with_suggestions(self, name, near, explainer, refused):
        words = rf"'{name}' \(did you mean '{near}'\?\); known are: {near}, "
        for call in (explainer.generate_counterfactuals, explainer._generate_counterfactuals):
            with pytest.raises(TypeError, match=words):
                call(refused.iloc[:1], 1, **{name: 1})

    def test_they_have_no_effect_and_the_log_says_so(self, explainer, refused, caplog):
        plain = answers(explainer, refused, 1)
        more = {"sample_size": 10, "proximity_weight": 2.0, "features_weights": {"age": 9}}
        found = answers(explainer, refused, 1, **more)
        one = explainer._generate_counterfactuals(refused.iloc[:1], 1, learning_rate=0.1)
        assert same_frames([*found, one.final_cfs_df], [*plain, plain[0]])
        assert logged(caplog) == [
            f"method 'dear' ignores {names}: only other methods use them"
            for names in ("sample_size, proximity_weight, features_weights", "learning_rate")
        ]

    def test_all_that_dices_own_methods_take_is_known(self):
        for kind in (DiceRandom, DiceGenetic, DiceKD, DicePyTorch):
            theirs = set(inspect.signature(kind._generate_counterfactuals).parameters)
            ours = set(inspect.signature(DiceDEAR.generate_counterfactuals).parameters)
            assert theirs - ours - {"query_instance"} <= set(IGNORED)


def test_dices_inner_call_for_one_row(explainer, refused):
    row = refused.iloc[:1]
    example = explainer._generate_counterfactuals(row, 2, posthoc_sparsity_algorithm=None)
    assert len(example.final_cfs_df) == 2
    with pytest.raises(InputError, match="k must be a whole number from 1"):
        explainer._generate_counterfactuals(row, 0)


class TestOptions:
    def test_marks_hold_in_every_call(self, make, refused):
        explainer = make(
            immutable=["gender"],
            increasing=["age", "education"],
            decreasing=["duration"],
            ranges={"loan_amount": (28, 33)},
        )
        for example in examples(explainer, refused, total_CFs=4):
            own, found = example.test_instance_df.iloc[0], example.final_cfs_df
            assert (found["gender"] == own["gender"]).all()
            assert (found[["age", "education"]] >= own[["age", "education"]]).all(axis=None)
            assert (found["duration"] <= own["duration"]).all()
            low, high = min(28, own["loan_amount"]), max(33, own["loan_amount"])
            assert found["loan_amount"].between(low, high).all()

    def test_one_feature_has_one_counterfactual(self, make, refused):
        # Each acts on a set of its own: there is one. Housing is a function of savings.
        vary = ["savings", "housing"]
        for example in examples(make(act_on=["savings"]), refused[:5], 10, features_to_vary=vary):
            assert len(example.final_cfs_df) == 1
            assert example.actions["kind"].tolist() == ["first"]

    @pytest.mark.ci
    def test_what_is_not_credible_is_told_as_a_weak_answer(self, make, refused, caplog, capsys):
        explainer = make(search=Search(min_plausibility=1.0, min_confidence=1.0))
        result = explainer.generate_counterfactuals(refused, total_CFs=2, verbose=True)
        texts = [text for each in result.cf_examples_list for text in each.describe()]
        actions = pd.concat([each.actions for each in result.cf_examples_list])
        assert not actions["credible"].all()
        for words, credible in zip(texts, actions["credible"], strict=True):
            assert credible or words.startswith("Weak answer: ")
        assert "Weak answer: " in caplog.text
        result.visualize_as_list()
        shown = capsys.readouterr().out
        assert "; weak answer: unusual values" in shown and "nearest" not in shown


def test_the_error_of_a_query_without_any_answer_has_the_reason(explainer, hardest):
    vary = {"features_to_vary": ["gender"]}
    example = explainer._generate_counterfactuals(hardest, 1, **vary)
    words = "No counterfactuals found for any"
    with pytest.raises(UserConfigValidationException, match=words) as caught:
        explainer.generate_counterfactuals(hardest, 1, **vary)
    assert example.reason and example.reason in str(caught.value)


class TestNothingLeftBehind:
    @staticmethod
    def state(data):
        return {name: str(value) for name, value in vars(data).items()}

    @pytest.mark.parametrize("kind", ["torch_model", "sklearn_model"])
    def test_by_a_call_with_constraints(self, kind, request, loan, refused):
        data, model = loan.interface(loan.frame), copy.copy(request.getfixturevalue(kind))
        model.transformer = copy.copy(model.transformer)
        frame, before = data.data_df.copy(), self.state(data)
        modelled, transformer = dict(vars(model)), dict(vars(model.transformer))
        decide = dice_ml.dice.decide
        explainer = DiceDEAR(data, model)
        free = answers(explainer, refused)
        explainer.generate_counterfactuals(
            refused,
            2,
            permitted_range={"income": [30, 50], "gender": ["male"]},
            features_to_vary=["income", "savings", "gender"],
        )
        assert same_frames(answers(explainer, refused), free)
        pd.testing.assert_frame_equal(data.data_df, frame)
        assert self.state(data) == before
        assert vars(model) == modelled and vars(model.transformer) == transformer
        assert dice_ml.dice.decide is decide

    def test_two_explainers_may_share_a_model_interface(self, loan, torch_model, make, refused):
        first = make()
        expected = answers(first, refused)
        wider = pd.concat([loan.frame, loan.frame.iloc[:1].assign(income=500.0)])
        DiceDEAR(loan.interface(wider), torch_model)
        assert same_frames(answers(first, refused), expected)

    def test_only_verbose_logs_each_counterfactual(self, explainer, refused, capsys, caplog):
        explainer.generate_counterfactuals(refused.iloc[:2], total_CFs=1, verbose=False)
        assert not logged(caplog)
        caplog.clear()
        result = explainer.generate_counterfactuals(refused.iloc[:2], total_CFs=2, verbose=True)
        told = zip(refused.index, result.cf_examples_list, strict=False)
        lines = [f"query {i}: {text}" for i, example in told for text in example.describe()]
        assert len(lines) == 4 and "\n".join(logged(caplog)).splitlines() == lines
        assert {r.levelname for r in caplog.records} == {"WARNING"}  # shown without a handler
        assert capsys.readouterr().out == ""


@pytest.mark.ci
def test_threads_get_their_own_results(either, refused):
    queries = [refused.iloc[i : i + 3] for i in range(0, 12, 3)]
    alone = [answers(either, q, total_CFs=2) for q in queries]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda q: answers(either, q, 2), queries))
    assert same_frames(chain(*together), chain(*alone))
