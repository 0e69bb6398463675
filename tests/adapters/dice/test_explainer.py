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
from dice_ml.explainer_interfaces.dice_genetic import DiceGenetic
from dice_ml.explainer_interfaces.dice_KD import DiceKD
from dice_ml.explainer_interfaces.dice_pytorch import DicePyTorch
from dice_ml.explainer_interfaces.dice_random import DiceRandom
from raiutils.exceptions import UserConfigValidationException

import dear_dice
from dear_dice import DiceDEAR
from dear_dice.options import IGNORED
from dear_plugin import DEAR, Search
from dear_plugin.errors import InputError
from tests.adapters.dice.asked import answers, examples, same_frames

KINDS = pytest.mark.parametrize("kind", ["explainer", "black_box"])


@KINDS
def test_every_refused_row_is_solved_in_the_users_units(kind, request, loan, refused):
    explainer = request.getfixturevalue(kind)
    refused = refused[explainer._host.scores(refused)[:, -1] < 0.5]
    result = explainer.generate_counterfactuals(refused, total_CFs=1)
    assert isinstance(result, dice_ml.counterfactual_explanations.CounterfactualExplanations)
    assert len(result.cf_examples_list) == len(refused)
    for (_, row), example in zip(refused.iterrows(), result.cf_examples_list, strict=True):
        found, query = example.final_cfs_df, example.test_instance_df
        assert list(found.columns) == [*loan.features.columns, "approved"] == list(query.columns)
        assert found["approved"].tolist() == [1] and query["approved"].tolist() == [0]
        assert (example.desired_class, example.new_outcome, example.test_pred) == (1, 1, 0)
        pd.testing.assert_series_equal(
            query.drop(columns="approved").iloc[0], row, check_names=False
        )
        assert found.drop(columns="approved").dtypes.equals(loan.features.dtypes)
        levels = {name: set(loan.features[name]) for name in loan.words}
        assert all(found[name].isin(levels[name]).all() for name in loan.words)


@KINDS
def test_the_model_accepts_what_dice_would_hand_to_it(kind, request, refused):
    explainer = request.getfixturevalue(kind)
    for example in examples(explainer, refused, total_CFs=3):
        scores = explainer._host.scores(example.final_cfs_df.drop(columns="approved"))
        assert ((scores[:, -1] > 0.5) == example.desired_class).all() and len(scores)


def test_the_host_scores_as_dice_does(explainer, probability, refused):
    ours = explainer._host.scores(refused)[:, 0]
    np.testing.assert_allclose(ours, probability(refused), rtol=0, atol=1e-7)
    theirs = explainer.model.get_output(refused)[:, 0]
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-7)


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
        assert not example.final_cfs_df.duplicated().any()


def test_the_counterfactuals_of_a_row_are_of_one_search(explainer, refused, monkeypatch):
    searches, own = [], DEAR._alternatives
    monkeypatch.setattr(DEAR, "_alternatives", lambda *a: searches.append(a) or own(*a))
    explainer.generate_counterfactuals(refused[:1], total_CFs=4)
    assert len(searches) == 1


def test_one_batch_equals_one_row_at_a_time(explainer, refused):
    rows = refused.iloc[:6]
    together = answers(explainer, rows, total_CFs=3)
    alone = [answers(explainer, rows.iloc[i : i + 1], total_CFs=3)[0] for i in range(len(rows))]
    assert same_frames(together, alone)


def test_the_same_query_has_the_same_answer_and_the_global_generators_are_left_alone(
    explainer, refused
):
    before = (np.random.get_state()[1].copy(), torch.get_rng_state())
    first = answers(explainer, refused, total_CFs=2, random_seed=1)
    again = answers(explainer, refused, total_CFs=2, random_seed=2)
    assert same_frames(first, again)
    assert (np.random.get_state()[1] == before[0]).all()
    assert torch.equal(torch.get_rng_state(), before[1])


def test_an_accepted_row_comes_back_as_itself_and_the_log_says_how_many(
    explainer, loan, refused, probability, caplog
):
    accepted = loan.features[probability(loan.features) > 0.9].iloc[:2]
    query = pd.concat([accepted, refused.iloc[:1]])
    result = explainer.generate_counterfactuals(query, total_CFs=3, desired_class=1)
    assert "2 of 3 rows have the wanted outcome already" in caplog.text
    pairs = zip(accepted.iterrows(), result.cf_examples_list[:2], strict=True)
    for (_, row), example in pairs:
        assert len(example.final_cfs_df) == 1
        pd.testing.assert_series_equal(
            example.final_cfs_df.iloc[0].drop("approved"), row, check_names=False
        )
        assert example.actions[["acted_on", "cost"]].values.tolist() == [["", 0.0]]


class TestQuery:
    @pytest.mark.parametrize(
        "form",
        [
            lambda q: [q.iloc[:1], q.iloc[1:2]],
            lambda q: q.to_dict("records"),
            lambda q: pd.concat([q.iloc[:1], q.iloc[1:2].set_axis(q.index[:1])]),
            lambda q: q.astype(object),
            lambda q: q.iloc[:, ::-1],
        ],
        ids=["frames", "dicts", "doubled index", "objects", "columns backwards"],
    )
    def test_other_forms_of_a_query(self, form, explainer, refused):
        rows = refused.iloc[:2]
        expected = answers(explainer, rows, total_CFs=1)
        found = answers(explainer, form(rows), total_CFs=1)
        for a, b in zip(found, expected, strict=True):
            assert a.values.tolist() == b.values.tolist()

    def test_one_dict(self, explainer, refused):
        query = refused.iloc[0].to_dict()
        (found,) = answers(explainer, query, total_CFs=1)
        assert found["approved"].tolist() == [1]

    def test_objects_come_back_as_objects(self, explainer, refused):
        query = refused.iloc[:1].astype(object)
        (example,) = explainer.generate_counterfactuals(query, total_CFs=1).cf_examples_list
        for frame in (example.final_cfs_df, example.test_instance_df):
            assert set(map(str, frame.drop(columns="approved").dtypes)) == {"object"}

    def test_a_float_feature_given_as_integers_stays_accepted(
        self, explainer, refused, probability
    ):
        query = refused.round().astype({"income": int, "savings": int, "loan_amount": int})
        query = query[probability(query) < 0.5]
        for found in answers(explainer, query, total_CFs=2):
            assert found["income"].dtype == np.int64
            assert (probability(found) > 0.5).all()

    def test_an_integer_feature_given_as_floats(self, explainer, refused):
        query = refused.iloc[:3].astype({"age": float, "duration": "float32"})
        for found in answers(explainer, query, total_CFs=1):
            assert (found["age"].dtype, found["duration"].dtype) == (np.float64, np.float32)
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
        found = dear_dice.DiceDEAR(loan.data, model).generate_counterfactuals(new, 1, **arguments)
        for each in found.cf_examples_list:
            assert each.final_cfs_df["gender"].tolist() == ["other"]

    def test_a_category_dtype_keeps_its_levels(self, explainer, refused):
        query = refused.iloc[:5].astype({"housing": "category"})
        for found in answers(explainer, query, total_CFs=3):
            assert isinstance(found["housing"].dtype, pd.CategoricalDtype)
            assert not found["housing"].isna().any()

    def test_the_query_is_left_alone(self, explainer, refused):
        query, before = refused.copy(), refused.copy()
        explainer.generate_counterfactuals(query, total_CFs=2)
        pd.testing.assert_frame_equal(query, before)

    def test_features_to_vary_that_are_all_immutable(self, loan, torch_model, refused):
        explainer = DiceDEAR(loan.data, torch_model, immutable=["gender"])
        with pytest.raises(UserConfigValidationException, match="are immutable: vary another"):
            explainer.generate_counterfactuals(
                refused.iloc[:1], total_CFs=1, features_to_vary=["gender"]
            )


INVALID_QUERIES = {
    "no rows": (lambda q: q.iloc[:0], "no rows, at least one"),
    "array": (lambda q: q.to_numpy(), r"an array: pandas.DataFrame\(rows, columns=\['gender', "),
    "no list": (lambda q: [], "no rows, at least one"),
    "infinite": (lambda q: q.astype({"age": float}).assign(age=np.inf), "infinite.*age"),
    "value missing": (lambda q: q.assign(income=np.nan), "missing values"),
    "column missing": (lambda q: q.drop(columns="age"), "every feature once"),
    "column doubled": (lambda q: pd.concat([q, q[["age"]]], axis=1), "every feature once"),
}
OF_DICE = {
    "outcome": (lambda q: q.assign(approved=0), "present in query instance"),
    "no feature": (lambda q: q.assign(x=1), "not present in training data"),
    "level": (lambda q: q.assign(housing="castle"), "has a value outside the dataset"),
}


@pytest.mark.parametrize("name", [*INVALID_QUERIES, *OF_DICE])
def test_a_query_that_cannot_be_answered_is_refused(name, explainer, refused):
    error = ValueError if name in OF_DICE else UserConfigValidationException
    change, words = {**INVALID_QUERIES, **OF_DICE}[name]
    with pytest.raises(error, match=words):
        explainer.generate_counterfactuals(change(refused.iloc[:2]), total_CFs=1)


NO_CLASS = "Only 0, 1 are supported as desired class for binary classification!"
NO_FEATURE = "Got features {'shoes'} which are not present in training data"
NO_LEVEL = "The category castle does not occur in the training data for feature housing."
COUNTS = [True, 2.5, "2", None, float("nan"), float("inf")]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        *(({"total_CFs": n}, rf"\(total_CFs\) .* integer, got {n!r}") for n in COUNTS),
        ({"desired_class": "a"}, r"class for a could not be identified.*names none\), got 'a'"),
        ({"desired_class": 100}, NO_CLASS),
        ({"desired_class": -1}, NO_CLASS),
        ({"features_to_vary": ["shoes"]}, NO_FEATURE),
        ({"features_to_vary": []}, "Some features need to be varied"),
        ({"permitted_range": {"shoes": [1, 30]}}, NO_FEATURE),
        ({"permitted_range": {"housing": ["castle"]}}, NO_LEVEL),
        (
            {"permitted_range": {"housing": "own"}},
            r"\{feature: \[levels\]\}, got 'own' for housing",
        ),
        ({"permitted_range": {"income": 40}}, r"\{feature: \[low, high\]\}.*, got 40 for income"),
        ({"features_to_vary": "income"}, "'all' or a list of features, got 'income'"),
        ({"desired_range": 40}, "two numbers, -inf or inf for an open end, got 40"),
        ({"desired_range": [None, 40]}, r"an open end, got \[None, 40\]"),
    ],
)
def test_an_argument_without_sense_is_refused(arguments, words, explainer, refused):
    with pytest.raises(UserConfigValidationException, match=words):
        explainer.generate_counterfactuals(refused, **{"total_CFs": 1, **arguments})


class TestDesiredClass:
    @pytest.mark.parametrize("wanted", [0, np.int64(0), np.int32(0), False])
    def test_a_number(self, wanted, explainer, loan, probability):
        query = loan.features[probability(loan.features) > 0.5].iloc[:3]
        for example in examples(explainer, query, total_CFs=2, desired_class=wanted):
            assert (example.final_cfs_df["approved"] == 0).all() and len(example.final_cfs_df)
            assert example.desired_class == 0 and type(example.desired_class) in (int, np.int64)

    def test_opposite_goes_row_by_row(self, explainer, loan, probability):
        query = loan.features.iloc[:12]
        before = (probability(query) > 0.5).astype(int)
        result = explainer.generate_counterfactuals(query, total_CFs=1, desired_class="opposite")
        after = [example.final_cfs_df["approved"].iat[0] for example in result.cf_examples_list]
        assert set(before) == {0, 1}
        assert after == (1 - before).tolist()

    def test_no_class_of_a_model_with_two_columns(self, black_box, refused):
        words = "Desired class not present in training data!"
        with pytest.raises(UserConfigValidationException, match=words):
            black_box.generate_counterfactuals(refused, total_CFs=1, desired_class=2)


class TestThreshold:
    @pytest.mark.parametrize("threshold", [0.5, 0.8, 0.95])
    def test_the_wanted_class_has_that_probability_and_little_more(
        self, threshold, loan, torch_model, refused, probability
    ):
        # By default a margin is kept besides.
        explainer = DiceDEAR(loan.data, torch_model, search=Search.cheapest())
        result = answers(explainer, refused, desired_class=1, stopping_threshold=threshold)
        reached = np.array([probability(found)[0] for found in result if len(found)])
        assert (reached >= threshold).all()
        assert np.median(reached) < threshold + 0.05

    def test_below_one_half_it_requires_only_the_class(self, explainer, refused):
        low, half = (
            answers(explainer, refused, desired_class=1, stopping_threshold=threshold)
            for threshold in (0.2, 0.5)
        )
        assert same_frames(low, half)

    @pytest.mark.parametrize("threshold", [0.2, 0.8])
    def test_for_class_0_both_readings_hold(self, threshold, explainer, loan, probability):
        query = loan.features[probability(loan.features) > 0.5].iloc[:10]
        result = answers(explainer, query, desired_class=0, stopping_threshold=threshold)
        for found in result:
            assert (probability(found) <= 0.2).all()

    @pytest.mark.parametrize("threshold", [0.0, 1.0])
    def test_certainty_is_not_refused(self, threshold, explainer, refused):
        try:
            result = answers(explainer, refused, desired_class=1, stopping_threshold=threshold)
        except UserConfigValidationException as error:
            assert threshold == 1.0 and "No counterfactuals found" in str(error)
        else:
            assert threshold == 0.0 and len(result[0])


class TestFeaturesToVary:
    @pytest.mark.parametrize("sequence", [list, tuple, np.array])
    def test_the_others_stay_exactly_as_they_are(self, explainer, refused, sequence):
        vary = sequence(["income", "savings", "housing", "duration"])
        result = explainer.generate_counterfactuals(refused, total_CFs=3, features_to_vary=vary)
        fixed = [name for name in refused.columns if name not in vary]
        suppressed = []
        for example in result.cf_examples_list:
            for _, found in example.final_cfs_df.iterrows():
                assert (found[fixed] == example.test_instance_df.iloc[0][fixed]).all()
            acted = {n for names in example.actions["acted_on"] for n in names.split(" + ")}
            assert acted <= set(vary)
            suppressed += example.actions["suppressed_cost"].tolist()
        assert max(suppressed) > 0


class TestPermittedRange:
    def test_numbers_and_levels_partial(self, explainer, refused):
        permitted = {"savings": [20, 36.5], "housing": ["own", "shared"]}
        for example in examples(explainer, refused, total_CFs=3, permitted_range=permitted):
            own = example.test_instance_df.iloc[0]
            changed = example.final_cfs_df[example.final_cfs_df["savings"] != own["savings"]]
            assert changed["savings"].between(20, 36.5).all()
            assert example.final_cfs_df["housing"].isin(["own", "shared", own["housing"]]).all()

    def test_a_row_outside_a_range_stays_or_moves_inside(self, explainer, loan):
        """Also what moves along: an age of 57 does not become 56 where 20 to 50 is permitted."""
        older = loan.features[loan.features["age"] > 50]
        probability = explainer._host.scores(older)[:, 0]
        query = older[probability < 0.5].head(30)
        free = answers(explainer, query, total_CFs=2)
        assert any((found["age"] > 50).any() for found in free)
        for example in examples(explainer, query, total_CFs=2, permitted_range={"age": [20, 50]}):
            ages = example.final_cfs_df["age"]
            stays = ages == example.test_instance_df["age"].iloc[0]
            assert (stays | ages.between(20, 50)).all()

    def test_it_never_leaks_into_the_next_call(self, explainer, loan, refused):
        before = copy.deepcopy(loan.data.permitted_range)
        free = answers(explainer, refused, total_CFs=1)
        explainer.generate_counterfactuals(
            refused, total_CFs=1, permitted_range={"income": [36, 37], "gender": ["male"]}
        )
        assert loan.data.permitted_range == before
        assert same_frames(answers(explainer, refused, total_CFs=1), free)

    def test_the_interfaces_own_holds_until_a_call_replaces_it(self, loan, torch_model, refused):
        data = loan.interface(loan.frame, permitted_range={"income": [30, 40], "housing": ["own"]})
        explainer = DiceDEAR(data, torch_model, act_on=["income", "housing"])
        first = explainer.generate_counterfactuals(refused, total_CFs=2)
        again = explainer.generate_counterfactuals(
            refused, total_CFs=2, permitted_range={"income": [30, 60]}
        )
        for result, most in ((first, 40), (again, 60)):
            incomes, homes = [], []
            for example in result.cf_examples_list:
                if example.final_cfs_df is None:
                    continue
                own = example.test_instance_df.iloc[0]
                direct = example.actions["acted_on"] == "income"
                incomes += example.final_cfs_df["income"][direct].tolist()
                homes += example.final_cfs_df["housing"].replace(own["housing"], "own").tolist()
            assert max(incomes) <= most and set(homes) == {"own"}
        assert max(incomes) > 40

    def test_a_frozen_level_outside_it(self, explainer, refused):
        query = refused[refused["housing"] == "rented"].iloc[:1]
        with pytest.raises(ValueError, match="isn't allowed to vary"):
            explainer.generate_counterfactuals(
                query, 1, permitted_range={"housing": ["own"]}, features_to_vary=["income"]
            )


class TestSparsity:
    def test_the_sparse_frame_is_the_final_one(self, explainer, refused):
        for param in (None, 0, 0.1, 1.0):
            for example in examples(
                explainer, refused.iloc[:3], total_CFs=2, posthoc_sparsity_param=param
            ):
                assert example.posthoc_sparsity_param == param
                pd.testing.assert_frame_equal(example.final_cfs_df, example.final_cfs_df_sparse)

    @pytest.mark.parametrize(
        ("given", "named"),
        [
            ({"posthoc_sparsity_param": 0.1, "posthoc_sparsity_algorithm": "linear"}, None),
            ({"posthoc_sparsity_param": None}, None),
            ({"posthoc_sparsity_param": 0.5}, "posthoc_sparsity_param"),
            ({"posthoc_sparsity_algorithm": "binary"}, "posthoc_sparsity_algorithm"),
        ],
    )
    def test_the_log_says_that_another_one_has_no_effect(
        self, given, named, explainer, refused, caplog
    ):
        answers(explainer, refused.iloc[:1], 1, **given)
        told = [f"method 'dear' ignores {named}: only other methods use them"]
        logged = [r.getMessage() for r in caplog.records if r.name == "dear_dice"]
        assert logged == (told if named else [])


class TestArguments:
    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ({"total_CFs": 0}, "should be a positive integer"),
            (
                {"posthoc_sparsity_algorithm": "random"},
                "should be linear or binary and not random",
            ),
            ({"posthoc_sparsity_algorithm": None}, "should be linear or binary and not None"),
            ({"posthoc_sparsity_param": -1}, "posthoc_sparsity_param should lie between"),
            ({"stopping_threshold": 1.5}, "stopping_threshold should lie between"),
            ({"desired_range": [0, 1]}, "should not be set for classification"),
        ],
    )
    @pytest.mark.parametrize(
        "call", ["generate_counterfactuals", "local_feature_importance", "feature_importance"]
    )
    def test_dices_validation(self, call, arguments, words, explainer, refused):
        arguments = {"total_CFs": 10, **arguments}
        with pytest.raises(UserConfigValidationException, match=words):
            getattr(explainer, call)(refused.iloc[:1], **arguments)

    @pytest.mark.parametrize(
        ("name", "near"), [("total_cfs", "total_CFs"), ("sample_sise", "sample_size")]
    )
    def test_an_unknown_argument_is_refused_with_suggestions(self, name, near, explainer, refused):
        words = rf"'{name}' \(did you mean '{near}'\?\); known are: total_CFs, desired_class"
        for call in (explainer.generate_counterfactuals, explainer._generate_counterfactuals):
            with pytest.raises(TypeError, match=words):
                call(refused.iloc[:1], 1, **{name: 1})

    def test_those_of_other_methods_have_no_effect_and_the_log_says_so(
        self, explainer, refused, caplog
    ):
        plain = answers(explainer, refused, 1)
        more = {"sample_size": 10, "proximity_weight": 2.0, "features_weights": {"age": 9}}
        found = answers(explainer, refused, 1, **more)
        one = explainer._generate_counterfactuals(refused.iloc[:1], 1, learning_rate=0.1)
        for ours, same in zip([*found, one.final_cfs_df], [*plain, plain[0]], strict=True):
            pd.testing.assert_frame_equal(ours, same)
        logged = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
        assert logged == [
            f"method 'dear' ignores {names}: only other methods use them"
            for names in ("sample_size, proximity_weight, features_weights", "learning_rate")
        ]

    def test_all_that_dices_own_methods_take_is_known(self):
        for kind in (DiceRandom, DiceGenetic, DiceKD, DicePyTorch):
            theirs = set(inspect.signature(kind._generate_counterfactuals).parameters)
            ours = set(inspect.signature(DiceDEAR.generate_counterfactuals).parameters)
            assert theirs - ours - {"query_instance"} <= set(IGNORED)

    def test_dices_inner_call_for_one_row(self, explainer, refused):
        example = explainer._generate_counterfactuals(
            refused.iloc[:1], 2, posthoc_sparsity_algorithm=None
        )
        assert len(example.final_cfs_df) == 2
        with pytest.raises(InputError, match="k must be a whole number from 1"):
            explainer._generate_counterfactuals(refused.iloc[:1], 0)

    def test_the_last_rows_outcomes_stay_on_the_explainer(self, explainer, refused):
        explainer.generate_counterfactuals(refused, total_CFs=2, desired_class=1)
        assert explainer.cfs_preds.tolist() == [1, 1]


class TestOptions:
    def test_marks_hold_in_every_call(self, loan, torch_model, refused):
        explainer = DiceDEAR(
            loan.data,
            torch_model,
            immutable=["gender"],
            increasing=["age", "education"],
            decreasing=["duration"],
            ranges={"loan_amount": (28, 33)},
        )
        for example in explainer.generate_counterfactuals(refused, total_CFs=4).cf_examples_list:
            own, found = example.test_instance_df.iloc[0], example.final_cfs_df
            assert (found["gender"] == own["gender"]).all()
            assert (found["age"] >= own["age"]).all()
            assert (found["education"] >= own["education"]).all()
            assert (found["duration"] <= own["duration"]).all()
            low, high = sorted([28, own["loan_amount"]])[0], sorted([33, own["loan_amount"]])[1]
            assert found["loan_amount"].between(low, high).all()

    def test_one_feature_has_one_counterfactual(self, loan, torch_model, refused):
        explainer = DiceDEAR(loan.data, torch_model, act_on=["savings"])
        # Housing is a function of savings.
        vary = ["savings", "housing"]
        for example in examples(explainer, refused.iloc[:5], total_CFs=10, features_to_vary=vary):
            assert len(example.final_cfs_df.drop_duplicates()) == len(example.final_cfs_df)
            # Each acts on a set of its own: there is one.
            assert len(example.final_cfs_df) == 1
            assert set(example.actions["kind"]) == {"first"}

    @pytest.mark.ci
    def test_a_text_begins_with_not_credible(self, loan, torch_model, refused, caplog):
        search = Search(min_plausibility=1.0, min_confidence=1.0)
        explainer = DiceDEAR(loan.data, torch_model, search=search)
        result = explainer.generate_counterfactuals(refused, total_CFs=2, verbose=True)
        poor = 0
        for example in result.cf_examples_list:
            pairs = zip(example.describe(), example.actions.iterrows(), strict=True)
            for words, (_, row) in pairs:
                if not row["credible"]:
                    poor += 1
                    assert words.startswith("Weak answer: ")
        assert poor
        assert "Weak answer: " in caplog.text
        caplog.clear()
        result.visualize_as_dataframe()
        assert "; weak answer: plausibility 0." in caplog.text and "nearest" not in caplog.text


class TestUnsolvable:
    """The reason is where the answer would be."""

    def test_one_row_of_several(self, explainer, refused, loan, probability):
        hard = loan.features.loc[[int(np.argmin(probability(loan.features)))]]
        query = pd.concat([refused.iloc[:1], hard])
        vary = ["gender", "housing", "savings"]
        found = examples(explainer, query, total_CFs=2, features_to_vary=vary)
        unsolved = [example for example in found if example.final_cfs_df is None]
        assert 0 < len(unsolved) < len(found)
        for example in unsolved:
            assert example.final_cfs_df_sparse is None and not len(example.actions)
            assert example.describe() == [] and example.support.empty
            assert example.reason

    def test_all_of_them(self, explainer, loan, probability):
        hard = loan.features.loc[[int(np.argmin(probability(loan.features)))]]
        example = explainer._generate_counterfactuals(hard, 1, features_to_vary=["gender"])
        with pytest.raises(
            UserConfigValidationException, match="No counterfactuals found for any"
        ) as caught:
            explainer.generate_counterfactuals(hard, 1, features_to_vary=["gender"])
        assert example.reason and example.reason in str(caught.value)


class TestNothingLeftBehind:
    @staticmethod
    def state(thing):
        return {k: copy.deepcopy(v) for k, v in vars(thing).items() if k != "model"}

    @pytest.mark.parametrize("kind", ["torch_model", "sklearn_model"])
    def test_in_the_interfaces_and_in_dice(self, kind, request, loan, refused):
        data, model = loan.interface(loan.frame), copy.copy(request.getfixturevalue(kind))
        model.transformer = copy.copy(model.transformer)
        frame, before = data.data_df.copy(), self.state(data)
        modelled, transformer = dict(vars(model)), dict(vars(model.transformer))
        decide = dice_ml.dice.decide
        explainer = DiceDEAR(data, model)
        explainer.generate_counterfactuals(
            refused,
            2,
            permitted_range={"income": [30, 50]},
            features_to_vary=["income", "savings"],
        )
        pd.testing.assert_frame_equal(data.data_df, frame)
        after = self.state(data)
        assert after.keys() == before.keys()
        assert all(str(after[k]) == str(before[k]) for k in before if k != "data_df")
        assert vars(model) == modelled and vars(model.transformer) == transformer
        assert dice_ml.dice.decide is decide

    def test_two_explainers_may_share_a_model_interface(self, loan, torch_model, refused):
        first = DiceDEAR(loan.data, torch_model)
        expected = answers(first, refused, 1)
        wider = pd.concat([loan.frame, loan.frame.iloc[:1].assign(income=500.0)])
        DiceDEAR(loan.interface(wider), torch_model)
        assert same_frames(answers(first, refused, 1), expected)

    def test_only_verbose_logs_each_counterfactual(self, explainer, refused, capsys, caplog):
        explainer.generate_counterfactuals(refused.iloc[:2], total_CFs=1, verbose=False)
        assert not [r for r in caplog.records if r.name == "dear_dice"]
        caplog.clear()
        result = explainer.generate_counterfactuals(refused.iloc[:2], total_CFs=2, verbose=True)
        told = zip(refused.index, result.cf_examples_list, strict=False)
        lines = [f"query {i}: {text}" for i, example in told for text in example.describe()]
        assert len(lines) == 4 and "\n".join(caplog.messages).splitlines() == lines
        assert {r.levelname for r in caplog.records} == {"WARNING"}  # shown without a handler
        assert capsys.readouterr().out == ""


def test_private_data_is_refused_clearly(torch_model):
    data = dice_ml.Data(features={"a": [0, 1], "b": ["x", "y"]}, outcome_name="y")
    with pytest.raises(UserConfigValidationException, match="training rows"):
        DiceDEAR(data, torch_model)


def test_a_data_set_of_five_rows(refused):
    rows = [["a", 10, 0], ["b", 21, 1], ["c", 14, 0], ["a", 23, 1], ["c", 7, 0]]
    frame = pd.DataFrame(rows, columns=["Categorical", "Numerical", "Outcome"])
    data = dice_ml.Data(dataframe=frame, continuous_features=["Numerical"], outcome_name="Outcome")
    module = torch.nn.Sequential(torch.nn.Linear(4, 1), torch.nn.Sigmoid())
    with torch.no_grad():
        module[0].weight.copy_(torch.tensor([[10.0, 0.0, 1.0, 0.0]]))
        module[0].bias.fill_(-5.0)
    model = dice_ml.Model(model=module, backend="PYT", func="ohe-min-max")
    query = pd.DataFrame({"Categorical": ["a", "c"], "Numerical": [8, 12]})
    result = answers(dear_dice.DiceDEAR(data, model), query, total_CFs=15)
    for found in result:
        assert len(found) and (found["Outcome"] == 1).all() and (found["Numerical"] > 14).all()


@pytest.mark.ci
@KINDS
def test_threads_get_their_own_results(kind, request, refused):
    explainer = request.getfixturevalue(kind)
    queries = [refused.iloc[i : i + 3] for i in range(0, 12, 3)]
    alone = [answers(explainer, q, total_CFs=2) for q in queries]
    with ThreadPoolExecutor(4) as pool:
        results = pool.map(lambda q: answers(explainer, q, 2), queries)
        together = list(results)
    assert same_frames(chain(*together), chain(*alone))
