"""The laws of `dear_plugin.testing` for every method, over models and frames.

A new method joins with one line in `tests/every_method.py`, a new kind of model with one line in
`MODELS`.
"""

import copy
import random
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from torch import nn

from dear_plugin import Target
from dear_plugin.testing import LAWS, Subject, obeys
from dear_plugin.testing.laws import OF_DESCENTS
from tests.every_method import METHODS
from tests.properties.worlds import Judge, Scores
from tests.thresholded import Thresholded

REFUSED, ACCEPTED = 6, 2
TOLERANCE = 1e-6


def probabilities(pipeline, frame):
    """What a web service returns for a frame."""
    return pipeline.predict_proba(frame)[:, 1]


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
        return predict(frame[list(encoder.schema.column_names)]) == wanted

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
    "logits (n,)": lambda study: module(Scores(study.net, "(n,)")),
    "logits (n, 2)": lambda study: module(
        Scores(study.net, "(n, 2)"), lambda out: out.argmax(1) == 1
    ),
    "probabilities": lambda study: module(
        nn.Sequential(study.net, nn.Sigmoid()), lambda out: out[:, 0] > 0.5, output="probabilities"
    ),
    "dropout and batch norm": lambda study: module(noisy(study)),
    "three classes": lambda study: module(
        Scores(study.net, "(n, 3)"), lambda out: out.argmax(1) == 2, target=Target.of_class(2)
    ),
    "regression": lambda study: module(
        study.net,
        lambda out: (out[:, 0] >= 0.2) & (out[:, 0] <= 2.5),
        output="values",
        target=Target.of_range(0.2, 2.5),
    ),
    "scikit-learn": lambda study: black_box(study, study.pipeline),
    "callable": lambda study: black_box(study, partial(probabilities, study.pipeline)),
    "strict": lambda study: thresholded(study, 0.7),
    "lenient": lambda study: thresholded(study, 0.3),
    "named classes": named,
}

# Black boxes have neither gradients nor flags.
BLACK_BOXES = ("scikit-learn", "callable", "strict", "lenient", "named classes")

# Methods that descend a gradient. Batches of another size round the user's own network otherwise
# (in the seventh digit), and a descent makes more of it: costs may then differ by so much.
DESCENTS = ("DEAR to the letter", "Wachter", "ROAR", "REVISE", "CLUE", "Wachter, vetted")

# Every model with the cheapest answers; every method with one module and one black box; one other
# table. What the base class does for all methods need not be shown with each pair of them.
USUAL = ("logits (n, 1)", "strict")
FIRST = next(iter(METHODS))
CASES = [
    *(("DEAR cheapest", model, "mixed") for model in MODELS),
    *(
        (method, model, "mixed")
        for method in METHODS
        if method != "DEAR cheapest"
        for model in USUAL
    ),
    *((method, USUAL[0], "loan") for method in (FIRST, "C-CHVAE", "FACE-K")),
]
# With the long run only: variants of a method, and its second model.
VARIANTS = (
    "DEAR alone",
    "DEAR with support",
    "DEAR given nothing",
    "DEAR to the letter",
    "ROAR",
    "nearest accepted, vetted",
    "Wachter, vetted",
)
QUICK_MODELS = ("logits (n, 1)", "three classes", "regression", "named classes")


def is_slow(method, model, frame="mixed"):
    """Whether a case belongs to the long run."""
    second = method != FIRST and model not in QUICK_MODELS
    return method in VARIANTS or second or frame != "mixed"


def marks(*case):
    return [pytest.mark.slow] if is_slow(*case) else []


SOME_METHODS = [pytest.param(name, marks=marks(name, USUAL[0])) for name in METHODS]
CASES = [
    pytest.param(case, id=" - ".join(case), marks=marks(*case))
    for case in CASES
    if not (case[0] in DESCENTS and case[1] in BLACK_BOXES)
]
# Other frames with the same rows are read by the base class: few methods show it.
READERS = (FIRST, "C-CHVAE")


MODULES = [name for name in MODELS if name not in BLACK_BOXES]


def subject_of(method, model, study):
    judge = MODELS[model](study)
    fitted = METHODS[method](judge.model, study.schema, output=judge.output).fit(study.frame)

    def accepts(frame):
        return judge.accepts(frame, fitted.encoder)

    accepted = accepts(study.frame)
    rows = [*np.flatnonzero(~accepted)[:REFUSED], *np.flatnonzero(accepted)[:ACCEPTED]]
    query = study.frame.iloc[sorted(rows)]
    return Subject.of(fitted, query, accepts, judge.target, method in DESCENTS)


@pytest.fixture(scope="module")
def subjects(studies):
    """Fits each case once, however many tests ask for it."""
    return cache(lambda method, model, frame: subject_of(method, model, studies[frame]))


@pytest.fixture(scope="module", params=CASES)
def subject(request, subjects):
    return subjects(*request.param)


@pytest.fixture(scope="module", params=SOME_METHODS)
def usual(request, subjects):
    """Every method, with a torch module and the mixed frame."""
    return subjects(request.param, USUAL[0], "mixed")


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_the_law_holds(subject, law):
    law(subject)


def test_the_query_has_refused_and_accepted_rows_and_most_have_recourse(subject):
    accepted = subject.accepts(subject.query)
    assert 0 < accepted.sum() < len(accepted)
    assert subject.result.actions["success"][~accepted].mean() > 0.5


@pytest.mark.parametrize(
    ("method", "model"),
    [
        *((FIRST, model) for model in MODULES),
        *(pytest.param(name, USUAL[0], marks=marks(name, USUAL[0])) for name in METHODS),
    ],
)
def test_training_flags_gradients_and_parameters_of_the_model_stay(subjects, method, model):
    subject = subjects(method, model, "mixed")
    net = subject.method.classifier.model
    first = next(net.parameters())
    first.requires_grad_(False)
    before = state_of(net)
    try:
        subject.generate(subject.query)
        assert_same_state(before, state_of(net))
    finally:
        first.requires_grad_(True)


def test_fitting_twice_gives_the_same_answer_and_leaves_global_random_states(usual, mixed):
    before = torch.get_rng_state(), repr(np.random.get_state()), random.getstate()
    again = clone(usual.method).fit(mixed.frame).generate(usual.query, usual.target)
    after = torch.get_rng_state(), repr(np.random.get_state()), random.getstate()
    assert torch.equal(before[0], after[0])
    assert before[1:] == after[1:]
    assert_close(again.counterfactuals, usual.result.counterfactuals, TOLERANCE)
    assert_close(again.actions, usual.result.actions, 1e-5)


def on_gpu(net):
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    return copy.deepcopy(net).cuda()


def with_units_in_another_order(net):
    """The same function of the inputs, whose sums round differently."""
    first, between, last = copy.deepcopy(net)
    order = torch.arange(first.out_features).flip(0)
    with torch.no_grad():
        first.weight.copy_(first.weight[order])
        first.bias.copy_(first.bias[order])
        last.weight.copy_(last.weight[:, order])
    return nn.Sequential(first, between, last)


@pytest.mark.ci
@pytest.mark.parametrize("moved", [with_units_in_another_order, on_gpu])
@pytest.mark.parametrize("method", METHODS)
def test_the_rounding_of_the_model_does_not_matter(method, moved, mixed):
    """Costs may differ by what the laws allow between batches of several sizes."""
    query = mixed.frame.iloc[:200]
    one, other = (
        METHODS[method](net, mixed.schema).fit(mixed.frame).generate(query).actions
        for net in (mixed.net, moved(mixed.net))
    )
    assert one["success"].equals(other["success"])
    tolerance = OF_DESCENTS if method in DESCENTS else 1e-3
    assert np.allclose(one["cost"], other["cost"], rtol=0.0, atol=tolerance)


def assert_close(one, other, tolerance):
    pd.testing.assert_frame_equal(
        one, other, check_exact=False, rtol=tolerance, atol=tolerance, check_categorical=True
    )


def state_of(model):
    return (
        [m.training for m in model.modules()],
        [p.requires_grad for p in model.parameters()],
        [p.grad is None for p in model.parameters()],
        {k: v.clone() for k, v in model.state_dict().items()},
    )


def assert_same_state(before, after):
    assert before[:3] == after[:3]
    for name, tensor in before[3].items():
        assert torch.equal(tensor, after[3][name])


def relabelled(index):
    return lambda frame: frame.set_axis(index(len(frame)))


def cast(name, dtype):
    return lambda frame: frame.astype({name: dtype})


Disguise = Callable[[pd.DataFrame], pd.DataFrame]

# Other forms of a frame with the same values.
SAME_VALUES: Mapping[str, Disguise] = {
    "duplicated labels": relabelled(lambda n: [i // 2 for i in range(n)]),
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
    "Int8 for 0 and 1": cast("owner", "Int8"),
    "bool for 0 and 1": cast("owner", "bool"),
    "float for 0 and 1": cast("owner", "float64"),
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

# Frames with other values: the contract holds, the answers may differ.
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
DISGUISES = {**SAME_VALUES, **OTHER_VALUES}


@pytest.fixture(scope="module", params=READERS)
def reader(request, subjects):
    """A few methods, with a torch module and the mixed frame."""
    return subjects(request.param, USUAL[0], "mixed")


@pytest.mark.parametrize("name", DISGUISES)
def test_a_frame_of_other_types_and_labels_is_answered_in_its_own_form(reader, name):
    query = DISGUISES[name](reader.query)
    before = query.copy(deep=True)
    result = reader.generate(query)
    after = result.counterfactuals
    pd.testing.assert_frame_equal(before.iloc[:0], after.iloc[:0], check_exact=True)
    pd.testing.assert_frame_equal(query, before, check_exact=True)
    pd.testing.assert_index_equal(result.actions.index, before.index)
    for feature in reader.method.schema.columns:
        obeys(feature, query[feature.name], after[feature.name])
    others = [c for c in query.columns if c not in reader.method.schema.column_names]
    pd.testing.assert_frame_equal(query[others], after[others], check_exact=True)
    assert result.actions["success"].tolist() == reader.accepts(after).tolist()
    assert result.support.index.equals(result.factuals.index)
    assert all(result.describe_row(i) for i in range(len(result)))
    labels = [*dict.fromkeys(result.alternatives(2)["index"])]
    assert labels == [*dict.fromkeys(query.index)]
    if name in SAME_VALUES:
        expected = reader.result.counterfactuals.iloc[: len(query)]
        for feature in reader.method.schema.column_names:
            got = after[feature].astype(object).tolist()
            assert got == expected[feature].astype(object).tolist()


def test_alternatives_obey_the_laws_of_answers(usual):
    """At most k of each row, in order and no two of them the same."""
    table, schema, query = usual.result.alternatives(3), usual.method.schema, usual.query
    assert list(dict.fromkeys(table["index"])) == list(query.index)
    assert table["index"].value_counts().between(1, 3).all()
    assert not table[["index", *schema.names]].duplicated().any()
    assert table["success"].tolist() == usual.accepts(table).tolist()
    assert table["success"][table["rank"] > 0].all()
    accepted = query[usual.accepts(query)]
    own = table[table["index"].isin(accepted.index)]
    assert len(own) == len(accepted)
    assert (own.filter(like="cost") == 0.0).all(axis=None)
    before = query.loc[table["index"]].reset_index(drop=True)
    for feature in schema.columns:
        obeys(feature, before[feature.name], table[feature.name])
        assert table[feature.name].dtype == query[feature.name].dtype
