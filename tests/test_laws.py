"""The laws of every method: one suite over methods, models and frames.

A new method joins with one line in `METHODS`: anything that is called as `DEAR` is, with a model,
a schema and `output=`, and returns an unfitted `RecourseMethod`. A new kind of model joins with
one line in `MODELS`.
"""

import copy
import pickle
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from torch import nn

from dear_plugin import (
    DEAR,
    Constraints,
    Encoder,
    Kind,
    RecourseMethod,
    Recourses,
    Schema,
    Search,
    Target,
)
from dear_plugin.baselines import (
    CCHVAE,
    CCHVAEConfig,
    Clue,
    FaceConfig,
    FaceEpsilon,
    FaceKNN,
    LatentConfig,
    NearestAccepted,
    Revise,
    VaeDesign,
    Wachter,
    WachterConfig,
)
from dear_plugin.decoders import Autoencoder, Design, Training
from tests.thresholded import Thresholded

REFUSED, ACCEPTED = 9, 3
TOLERANCE = 1e-6

Method = Callable[..., RecourseMethod]

SMALL = Autoencoder(Design(layers=(6, 3)), Training(epochs=3))

LITTLE = VaeDesign(layers=(8, 4), training=Training(epochs=20))
BRIEF = LatentConfig(steps=12, rate=0.3, starts=2, places=32)

METHODS: Mapping[str, Method] = {
    "DEAR": DEAR,
    "DEAR alone": partial(DEAR, search=Search(max_reliance=0.0)),
    "DEAR cheapest": partial(DEAR, search=Search.cheapest()),
    "DEAR with support": partial(DEAR, search=Search.cheapest(min_support=0.6, coarse=8)),
    "DEAR autoencoder": partial(DEAR, decoder=SMALL, search=Search.cheapest()),
    "DEAR by gradient": partial(DEAR, decoder=SMALL, search=Search.cheapest(solver="gradient")),
    "Wachter": partial(Wachter, config=WachterConfig(rounds=2, steps=10, starts=2)),
    "REVISE": partial(Revise, vae=LITTLE, config=BRIEF),
    "C-CHVAE": partial(CCHVAE, vae=LITTLE, config=CCHVAEConfig(width=0.5, count=20, draws=32)),
    "CLUE": partial(Clue, vae=LITTLE, config=BRIEF),
    "FACE-K": FaceKNN,
    "FACE-E": partial(FaceEpsilon, config=FaceConfig(radius=1.5)),
    "nearest accepted": NearestAccepted,
}


@dataclass(frozen=True)
class Judge:
    """A model, how it is declared, and what its owner would say of a frame without us.

    Attributes:
        model: what the method gets.
        accepts: (frame, encoder) -> (n,) bool, asked of the model itself.
        options: how the method is told what the model returns.
        target: the wanted decision.
    """

    model: Any
    accepts: Callable[[pd.DataFrame, Encoder], np.ndarray]
    options: Mapping[str, Any] = field(default_factory=dict)
    target: Target | None = None


class Flat(nn.Module):
    """Logits of shape (n,), or () for one row."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return self.net(x).squeeze()


class Pair(Flat):
    """Logits of shape (n, 2)."""

    def forward(self, x):
        logit = self.net(x)
        return torch.cat([-logit, logit], 1) / 2.0


class Triple(Flat):
    """Logits of three classes: refused, on hold, accepted."""

    def forward(self, x):
        logit = self.net(x)
        return torch.cat([-logit, torch.zeros_like(logit), logit - 0.5], 1)


class Probabilities:
    """A callable from a frame to probabilities, as a web service would be."""

    def __init__(self, pipeline):
        self.pipeline = pipeline

    def __call__(self, frame):
        return self.pipeline.predict_proba(frame)[:, 1]


def module(model, decide=lambda out: out.reshape(-1) > 0, **rest):
    """A judge from a torch module; `decide` reads its raw output."""

    def accepts(frame, encoder):
        quiet = copy.deepcopy(model).cpu().eval()
        with torch.no_grad():
            return decide(quiet(encoder.encode(frame))).numpy()

    return Judge(model, accepts, **rest)


def black_box(study, model, decide=None, wanted=1, **rest):
    """A judge from something that sees frames; it decides as `predict` does."""
    predict = decide or study.pipeline.predict

    def accepts(frame, encoder):
        return predict(frame[list(encoder.schema.names)]) == wanted

    return Judge(model, accepts, **rest)


def thresholded(study, threshold):
    """A judge that decides by a threshold of its own."""
    model = Thresholded(study.pipeline, threshold)
    return black_box(study, model, model.predict)


def named(study):
    """A judge whose classes have names, the wanted one first."""
    model = clone(study.pipeline)
    model.fit(study.frame, np.where(study.labels == 1, "approved", "rejected"))
    target = Target.of_class("approved")
    return black_box(study, model, model.predict, wanted="approved", target=target)


def noisy(study):
    """Dropout and batch norm, left in training mode as a careless owner would."""
    d = study.encoder.d
    with torch.random.fork_rng():
        torch.manual_seed(1)
        norm = nn.BatchNorm1d(d)
        norm(study.encoder.encode(study.frame))
    net = copy.deepcopy(study.net)
    net[0].weight.data *= norm.running_var.sqrt()
    return nn.Sequential(norm, nn.Dropout(0.5), net).train()


MODELS: Mapping[str, Callable[[Any], Judge]] = {
    "logits (n, 1)": lambda study: module(study.net),
    "logits (n,)": lambda study: module(Flat(study.net)),
    "logits (n, 2)": lambda study: module(Pair(study.net), lambda out: out.argmax(1) == 1),
    "probabilities": lambda study: module(
        nn.Sequential(study.net, nn.Sigmoid()),
        lambda out: out[:, 0] > 0.5,
        options={"output": "probabilities"},
    ),
    "dropout and batch norm": lambda study: module(noisy(study)),
    "three classes": lambda study: module(
        Triple(study.net), lambda out: out.argmax(1) == 2, target=Target.of_class(2)
    ),
    "regression": lambda study: module(
        study.net,
        lambda out: (out[:, 0] >= 0.2) & (out[:, 0] <= 2.5),
        options={"output": "values"},
        target=Target.of_range(0.2, 2.5),
    ),
    "scikit-learn": lambda study: black_box(study, study.pipeline),
    "callable": lambda study: black_box(study, Probabilities(study.pipeline)),
    "strict": lambda study: thresholded(study, 0.7),
    "lenient": lambda study: thresholded(study, 0.3),
    "named classes": named,
}

# Black boxes have neither gradients nor flags.
BLACK_BOXES = ("scikit-learn", "callable", "strict", "lenient", "named classes")

# Methods that descend a gradient. Batches of another size round the user's own network otherwise
# (in the seventh digit), and a descent makes more of it: costs may then differ by so much.
DESCENTS = ("DEAR by gradient", "Wachter", "REVISE", "CLUE")
ROUGHLY = 0.02

# Every model with the first method, every method with these three; vetting takes its time, so that
# the second is shown one frame.
USUAL = ("logits (n, 1)", "scikit-learn", "strict")
FIRST = next(iter(METHODS))
CASES = [
    pytest.param((method, model, frame), id=f"{method} - {model} - {frame}")
    for method in METHODS
    for model in MODELS
    for frame in ("mixed", "loan")
    if model in USUAL or (method == FIRST and frame == "mixed")
    if not (method == "DEAR alone" and frame == "loan")
    if not (method in DESCENTS and model in BLACK_BOXES)
]


MODULES = [name for name in MODELS if name not in BLACK_BOXES]


def having(*wanted):
    """The cases with one of these models or frames."""
    return [case for case in CASES if set(wanted) & set(case.values[0])]


@dataclass(frozen=True)
class Subject:
    """A fitted method before a query.

    Attributes:
        kind: its name in `METHODS`.
        fresh: fits another one of the same kind.
        method: fitted.
        judge: its model.
        query: refused and accepted people.
        result: what the method says to them.
    """

    kind: str
    fresh: Callable[[], RecourseMethod]
    method: RecourseMethod
    judge: Judge
    query: pd.DataFrame
    result: Recourses

    @property
    def schema(self) -> Schema:
        return self.method.schema

    def generate(self, query: pd.DataFrame, within: Constraints | None = None) -> Recourses:
        return self.method.generate(query, self.judge.target, within=within)

    def accepts(self, frame: pd.DataFrame) -> np.ndarray:
        return self.judge.accepts(frame, self.method.encoder)


def subject_of(method, model, study):
    judge = MODELS[model](study)

    def fresh():
        return METHODS[method](judge.model, study.schema, **judge.options).fit(study.frame)

    fitted = fresh()
    accepted = judge.accepts(study.frame, fitted.encoder)
    people = [*np.flatnonzero(~accepted)[:REFUSED], *np.flatnonzero(accepted)[:ACCEPTED]]
    query = study.frame.iloc[sorted(people)]
    return Subject(method, fresh, fitted, judge, query, fitted.generate(query, judge.target))


@pytest.fixture(scope="module", params=CASES)
def subject(request, studies):
    method, model, frame = request.param
    return subject_of(method, model, studies[frame])


@pytest.fixture(scope="module", params=METHODS)
def usual(request, mixed):
    """Every method, with a torch module and the mixed frame."""
    return subject_of(request.param, USUAL[0], mixed)


def same_form(before: pd.DataFrame, after: pd.DataFrame) -> None:
    """Columns, order, dtypes, index and category labels are the same."""
    pd.testing.assert_frame_equal(before.iloc[:0], after.iloc[:0], check_exact=True)
    pd.testing.assert_index_equal(before.index, after.index, exact=True)
    for name in before.select_dtypes("category"):
        assert before[name].dtype == after[name].dtype


def same_answers(one: Recourses, other: Recourses) -> None:
    """The same people get the same answer; only unrounded numbers may differ by a whisker."""
    assert_close(one.counterfactuals, other.counterfactuals, TOLERANCE)
    assert_close(one.actions, other.actions, 1e-5)


def assert_close(one: pd.DataFrame, other: pd.DataFrame, tolerance: float) -> None:
    pd.testing.assert_frame_equal(
        one, other, check_exact=False, rtol=tolerance, atol=tolerance, check_categorical=True
    )


def agree(subject: Subject, one: Recourses, rows: pd.DataFrame, actions: pd.DataFrame) -> None:
    """The same answer in other company."""
    if subject.kind in DESCENTS:
        assert one.actions["success"].equals(actions["success"])
        assert np.allclose(one.actions["cost"], actions["cost"], atol=ROUGHLY)
        return
    assert_close(one.counterfactuals, rows, TOLERANCE)
    assert_close(one.actions, actions, 1e-5)


def keeps_its_bounds(before: pd.DataFrame, after: pd.DataFrame, schema: Schema) -> None:
    """Immutables, categories, ranges, directions and precision hold in every row."""
    for feature in schema:
        old, new = before[feature.name], after[feature.name]
        if feature.immutable:
            pd.testing.assert_series_equal(old, new, check_exact=True)
        if feature.kind is not Kind.NUMERIC:
            assert set(new.astype(object)) <= set(feature.categories)
        if feature.direction:
            assert (feature.direction * (new.astype(float) - old.astype(float)) >= 0).all()
        if feature.kind is Kind.NUMERIC:
            keeps_its_numbers(feature, old, new)


def keeps_its_numbers(feature, old: pd.Series, new: pd.Series) -> None:
    low, high = feature.limits or feature.bounds
    room = 1e-6 * feature.width
    assert (new >= np.minimum(low, old) - room).all()
    assert (new <= np.maximum(high, old) + room).all()
    if feature.precision is not None:
        moved = new[new != old].to_numpy()
        assert (moved == moved.astype(float).round(feature.precision).astype(moved.dtype)).all()


class TestTheFrame:
    def test_the_query_has_refused_and_accepted_people_and_some_are_helped(self, subject):
        accepted = subject.accepts(subject.query)
        assert 0 < accepted.sum() < len(accepted)
        assert subject.result.actions["success"][~accepted].mean() > 0.5

    def test_columns_order_dtypes_index_and_labels_come_back_as_they_went_in(self, subject):
        same_form(subject.query, subject.result.counterfactuals)
        pd.testing.assert_index_equal(subject.query.index, subject.result.actions.index)

    def test_the_input_frame_is_untouched(self, subject):
        query = subject.query.copy(deep=True)
        subject.generate(query)
        pd.testing.assert_frame_equal(query, subject.query, check_exact=True)

    def test_changing_the_answer_changes_neither_the_question_nor_the_result(self, subject):
        query = subject.query.copy(deep=True)
        answer = subject.generate(query).counterfactuals
        for name in answer:
            answer[name] = answer[name].iloc[0]
        pd.testing.assert_frame_equal(query, subject.query, check_exact=True)

    def test_cells_that_do_not_change_are_copied_bit_for_bit(self, subject):
        after, changed = subject.result.counterfactuals, subject.result.changed.numpy()
        for j, name in enumerate(subject.schema.names):
            kept = ~changed[:, j]
            pd.testing.assert_series_equal(
                subject.query[name][kept], after[name][kept], check_exact=True
            )

    def test_every_row_comes_back_and_failures_say_why(self, subject):
        actions = subject.result.actions
        assert len(actions) == len(subject.result.counterfactuals) == len(subject.query)
        assert actions["reason"][~actions["success"]].str.len().gt(0).all()

    def test_a_row_that_was_helped_has_no_reason_to_fail(self, subject):
        helped = subject.result.actions["success"] & ~subject.accepts(subject.query)
        reasons = subject.result.actions["reason"][helped]
        assert not reasons.str.contains("no change of|nothing admissible|refused").any()


class TestConstraints:
    def test_what_the_schema_forbids_does_not_happen(self, subject):
        keeps_its_bounds(subject.query, subject.result.counterfactuals, subject.schema)

    def test_frozen_features_are_equal_bit_for_bit(self, subject):
        frozen = list(subject.schema.mutable[:2])
        result = subject.generate(subject.query, Constraints(frozen=frozen))
        pd.testing.assert_frame_equal(
            subject.query[frozen], result.counterfactuals[frozen], check_exact=True
        )
        assert not result.actions["acted_on"].str.contains("|".join(frozen)).any()

    def test_frozen_features_may_differ_by_row(self, subject):
        names = subject.schema.mutable
        frozen = [[names[i % len(names)]] for i in range(len(subject.query))]
        after = subject.generate(subject.query, Constraints(frozen=frozen)).counterfactuals
        for i, (name,) in enumerate(frozen):
            assert after[name].iloc[i] == subject.query[name].iloc[i]

    def test_only_the_features_of_act_on_are_acted_on(self, subject):
        name = "income"
        actions = subject.generate(subject.query, Constraints(act_on=[name])).actions
        assert set(actions["acted_on"]) <= {"", name}

    def test_a_range_of_the_call_is_kept_where_the_person_was_inside(self, subject):
        low, high = subject.query["income"].quantile([0.1, 0.9])
        result = subject.generate(subject.query, Constraints(ranges={"income": (low, high)}))
        inside = subject.query["income"].between(low, high)
        assert result.counterfactuals["income"][inside].between(low, high).all()

    def test_who_is_outside_a_range_of_the_call_stays_or_lands_inside(self, subject):
        low, high = subject.query["income"].quantile([0.4, 0.6]).round(2)
        result = subject.generate(subject.query, Constraints(ranges={"income": (low, high)}))
        after = result.counterfactuals["income"]
        assert ((after == subject.query["income"]) | after.between(low, high)).all()

    def test_acting_on_a_feature_ends_inside_its_range(self, subject):
        low, high = subject.query["income"].quantile([0.3, 0.9])
        within = Constraints(ranges={"income": (low, high)}, act_on=["income"])
        result = subject.generate(subject.query, within)
        acted = result.actions["acted_on"] == "income"
        assert result.counterfactuals["income"][acted].between(low, high).all()

    @pytest.mark.parametrize("subject", having("mixed"), indirect=True)
    @pytest.mark.parametrize("name", ["job", "town"])
    def test_no_category_is_taken_that_the_call_does_not_allow(self, subject, name):
        allowed = sorted(subject.query[name].astype(object).unique())[:2]
        result = subject.generate(subject.query, Constraints(categories={name: allowed}))
        after = result.counterfactuals[name].astype(object)
        kept = after == subject.query[name].astype(object)
        assert (kept | after.isin(allowed)).all()


class TestTheModel:
    def test_success_agrees_with_the_users_own_model_on_the_returned_frame(self, subject):
        own = subject.accepts(subject.result.counterfactuals)
        assert subject.result.actions["success"].tolist() == own.tolist()

    def test_an_accepted_row_costs_nothing_and_stays_itself(self, subject):
        accepted = subject.accepts(subject.query)
        actions = subject.result.actions[accepted]
        assert actions["success"].all()
        assert (actions["acted_on"] == "").all()
        assert (actions.filter(like="cost") == 0.0).all(axis=None)
        pd.testing.assert_frame_equal(
            subject.query[accepted], subject.result.counterfactuals[accepted], check_exact=True
        )

    @pytest.mark.parametrize("subject", having(*MODULES), indirect=True)
    def test_training_flags_gradients_and_parameters_are_left_alone(self, subject):
        model = subject.judge.model
        first = next(model.parameters())
        first.requires_grad_(False)
        before = state_of(model)
        try:
            subject.generate(subject.query)
            assert_same_state(before, state_of(model))
        finally:
            first.requires_grad_(True)


class TestCosts:
    def test_direct_and_indirect_cost_add_up(self, subject):
        actions = subject.result.actions
        total = actions["direct_cost"] + actions["indirect_cost"]
        assert np.allclose(total, actions["cost"], atol=1e-5)

    def test_cost_is_the_scaled_l1_distance_to_the_returned_row(self, subject):
        encoder = subject.method.encoder
        before = encoder.encode(subject.query)
        after = encoder.encode(subject.result.counterfactuals)
        cost = ((after - before).abs() * encoder.weights).sum(1)
        assert np.allclose(cost, subject.result.actions["cost"], atol=1e-5)

    def test_costs_are_finite_and_never_negative(self, subject):
        costs = subject.result.actions.filter(like="cost")
        assert (np.isfinite(costs) & (costs >= 0)).all(axis=None)

    def test_what_changed_was_acted_on_or_moved_along(self, subject):
        direct, changed = subject.result.proposal.direct, subject.result.changed
        costs = subject.result.actions["indirect_cost"].to_numpy()
        assert ((changed & ~direct).any(1).numpy() == (costs > 1e-9)).all()


class TestTheSameAnswer:
    def test_a_batch_of_n_is_n_batches_of_one(self, subject):
        some = range(0, len(subject.query), 2)
        for i in some:
            one, same = subject.generate(subject.query.iloc[[i]]), subject.result
            agree(subject, one, same.counterfactuals.iloc[[i]], same.actions.iloc[[i]])

    def test_the_order_of_the_rows_does_not_matter(self, subject):
        order = np.random.default_rng(0).permutation(len(subject.query))
        shuffled, same = subject.generate(subject.query.iloc[order]), subject.result
        agree(subject, shuffled, same.counterfactuals.iloc[order], same.actions.iloc[order])

    def test_asking_twice_gives_the_same_answer(self, subject):
        again = subject.generate(subject.query)
        pd.testing.assert_frame_equal(
            again.counterfactuals, subject.result.counterfactuals, check_exact=True
        )
        pd.testing.assert_frame_equal(again.actions, subject.result.actions, check_exact=True)

    def test_fitting_twice_gives_the_same_answer(self, usual):
        again = usual.fresh().generate(usual.query, usual.judge.target)
        same_answers(again, usual.result)

    def test_fit_and_generate_leave_the_global_random_numbers_alone(self, usual):
        torch.manual_seed(5), np.random.seed(5), random.seed(5)
        expected = draws()
        torch.manual_seed(5), np.random.seed(5), random.seed(5)
        usual.fresh().generate(usual.query, usual.judge.target)
        assert draws() == expected

    def test_the_global_seed_does_not_matter(self, usual):
        torch.manual_seed(99), np.random.seed(99), random.seed(99)
        same_answers(usual.generate(usual.query), usual.result)

    def test_pickling_gives_the_same_answers(self, subject):
        copied = pickle.loads(pickle.dumps(subject.method))
        again = copied.generate(subject.query, subject.judge.target)
        pd.testing.assert_frame_equal(
            again.counterfactuals, subject.result.counterfactuals, check_exact=True
        )

    def test_results_pickle_with_the_answers_to_later_questions(self, subject):
        copied = pickle.loads(pickle.dumps(subject.result))
        pd.testing.assert_series_equal(copied.support, subject.result.support)
        assert copied.describe_row(0) == subject.result.describe_row(0)

    @pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
    @pytest.mark.parametrize("method", METHODS)
    def test_cpu_and_gpu_agree(self, method, mixed):
        there = copy.deepcopy(mixed.net).cuda()
        query = mixed.frame.iloc[:200]
        one = METHODS[method](mixed.net, mixed.schema).fit(mixed.frame).generate(query)
        other = METHODS[method](there, mixed.schema).fit(mixed.frame).generate(query)
        assert one.actions["success"].equals(other.actions["success"])
        assert np.allclose(one.actions["cost"], other.actions["cost"], atol=1e-3)


def draws():
    return torch.rand(3).tolist(), np.random.rand(3).tolist(), [random.random() for _ in range(3)]


def state_of(model: nn.Module):
    return (
        [m.training for m in model.modules()],
        [p.requires_grad for p in model.parameters()],
        [p.grad is None for p in model.parameters()],
        {k: v.clone() for k, v in model.state_dict().items()},
    )


def assert_same_state(before, after) -> None:
    assert before[:3] == after[:3]
    for name, tensor in before[3].items():
        assert torch.equal(tensor, after[3][name])


def relabelled(index):
    return lambda frame: frame.set_axis(index(len(frame)))


def cast(name, dtype):
    return lambda frame: frame.astype({name: dtype})


def one_row(frame):
    return frame.iloc[:1]


Disguise = Callable[[pd.DataFrame], pd.DataFrame]

# What a frame may look like at the door, with every value as it was.
SAME_VALUES: Mapping[str, Disguise] = {
    "string index": relabelled(lambda n: [f"person {i}" for i in range(n)]),
    "duplicated labels": relabelled(lambda n: [i // 2 for i in range(n)]),
    "descending labels": relabelled(lambda n: list(range(n))[::-1]),
    "float labels": relabelled(lambda n: np.arange(n) / 2),
    "dates as labels": relabelled(lambda n: pd.date_range("2024-01-01", periods=n)),
    "index named as a feature": relabelled(lambda n: pd.Index(range(n), name="age")),
    "two-level index": relabelled(
        lambda n: pd.MultiIndex.from_tuples([(i % 2, f"{i}") for i in range(n)])
    ),
    "columns in another order": lambda frame: frame[frame.columns[::-1]],
    "extra columns": lambda frame: frame.assign(
        name=[f"p{i}" for i in range(len(frame))], note=np.nan, rank=0
    ),
    "an extra column with a number for a name": lambda frame: frame.assign(**{"7": 1}).rename(
        columns={"7": 7}
    ),
    "one row": lambda frame: frame.iloc[:1],
    "Int64": cast("age", "Int64"),
    "Float64": cast("income", "Float64"),
    "boolean": cast("member", "boolean"),
    "string": cast("town", "string"),
    "Int8 for 0 and 1": cast("owner", "Int8"),
    "bool for 0 and 1": cast("owner", "bool"),
    "float for 0 and 1": cast("owner", "float64"),
    "integers as floats": cast("age", "float64"),
    "int32": cast("age", "int32"),
    "uint8": cast("age", "uint8"),
    "labels as plain objects": cast("job", "object"),
    "text as labels": cast("town", pd.CategoricalDtype(list("ABCDEF"))),
    "numbers as labels": cast("owner", "category"),
    "fewer labels": lambda frame: frame.assign(job=frame["job"].cat.remove_unused_categories()),
    "ordered labels": lambda frame: frame.assign(
        job=frame["job"]
        .cat.reorder_categories(["king", "cook", "porter", "nurse", "judge"])
        .cat.as_ordered()
    ),
}

# Frames whose values are others: the contract holds, the answers may differ.
OTHER_VALUES: Mapping[str, Disguise] = {
    "float32": cast("income", "float32"),
    "float32 without rounding": cast("debt", "float32"),
    "whole numbers where the schema has decimals": lambda frame: frame.assign(
        income=frame["income"].round().astype("int64")
    ),
    "decimals where the schema has whole numbers": lambda frame: frame.assign(
        age=frame["age"] + 0.5
    ),
    "values outside what was observed": lambda frame: frame.assign(
        age=np.resize([150, 2], len(frame)), debt=-1e6
    ),
}
LABELS = ("string index", "duplicated labels", "two-level index", "extra columns")
DISGUISES = {**SAME_VALUES, **OTHER_VALUES}


@dataclass(frozen=True)
class Answer:
    """A disguised question and its answer.

    Attributes:
        name: of the disguise.
        before: the query, copied before it was asked.
        query: the query.
        result: what came of it.
    """

    name: str
    before: pd.DataFrame
    query: pd.DataFrame
    result: Recourses


@pytest.fixture(scope="module", params=DISGUISES)
def answer(request, usual):
    query = DISGUISES[request.param](usual.query)
    before = query.copy(deep=True)
    return Answer(request.param, before, query, usual.generate(query))


class TestOddFrames:
    def test_the_answer_has_the_form_of_the_question(self, answer):
        same_form(answer.before, answer.result.counterfactuals)
        pd.testing.assert_frame_equal(answer.query, answer.before, check_exact=True)
        pd.testing.assert_index_equal(answer.result.actions.index, answer.before.index)

    def test_all_bounds_are_kept(self, answer, usual):
        keeps_its_bounds(answer.query, answer.result.counterfactuals, usual.schema)

    def test_columns_that_are_no_features_travel_untouched(self, answer, usual):
        others = [c for c in answer.query.columns if c not in usual.schema.names]
        after = answer.result.counterfactuals
        pd.testing.assert_frame_equal(answer.query[others], after[others], check_exact=True)

    def test_success_agrees_with_the_model(self, answer, usual):
        own = usual.accepts(answer.result.counterfactuals)
        assert answer.result.actions["success"].tolist() == own.tolist()

    def test_the_answer_is_the_same_where_the_values_are(self, answer, usual):
        if answer.name in SAME_VALUES:
            expected = usual.result.counterfactuals.iloc[: len(answer.query)]
            for name in usual.schema.names:
                came = answer.result.counterfactuals[name].astype(object)
                assert came.tolist() == expected[name].astype(object).tolist()

    def test_later_questions_are_answered(self, answer):
        result = answer.result
        assert result.support.index.equals(result.factuals.index)
        assert all(result.describe_row(i) for i in range(len(result)))

    @pytest.mark.parametrize("answer", LABELS, indirect=True)
    def test_alternatives_name_the_people_by_their_labels(self, usual, answer):
        few = answer.query.iloc[:2]
        table = usual.generate(few).alternatives(2)
        assert list(dict.fromkeys(table["index"])) == list(dict.fromkeys(few.index))


@pytest.fixture(scope="module")
def table(usual):
    return usual.result.alternatives(3)


class TestAlternatives:
    def test_everyone_is_there_in_order_and_at_most_k_times(self, usual, table):
        assert list(dict.fromkeys(table["index"])) == list(usual.query.index)
        assert table["index"].value_counts().between(1, 3).all()

    def test_every_success_is_one_for_the_users_own_model(self, usual, table):
        assert table["success"].tolist() == usual.accepts(table).tolist()

    def test_no_two_of_a_person_are_the_same(self, usual, table):
        assert not table[["index", *usual.schema.names]].duplicated().any()

    def test_an_accepted_person_has_none_but_themselves(self, usual, table):
        accepted = usual.query[usual.accepts(usual.query)]
        theirs = table[table["index"].isin(accepted.index)]
        assert len(theirs) == len(accepted)
        assert (theirs.filter(like="cost") == 0.0).all(axis=None)

    def test_all_bounds_are_kept(self, usual, table):
        before = usual.query.loc[table["index"]].reset_index(drop=True)
        keeps_its_bounds(before, table, usual.schema)

    def test_dtypes_and_labels_are_those_of_the_question(self, usual, table):
        for name in usual.schema.names:
            assert table[name].dtype == usual.query[name].dtype
