"""Classifier: scores of rows by a torch module or a black box."""

import math
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from torch import nn

from dear_plugin import DEAR, Encoder, Schema
from dear_plugin.errors import ModelError
from dear_plugin.models.classifier import Classifier
from tests.thresholded import Thresholded


class Returns(nn.Module):
    """A module that returns a function of its input."""

    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    def forward(self, x):
        return self.answer(x)


@pytest.fixture
def rows(mixed):
    return mixed.encoder.rows(mixed.frame.iloc[:20])


def classifier(mixed, answer, **options) -> Classifier:
    model = answer if isinstance(answer, nn.Module) else Returns(answer)
    return Classifier(model, mixed.encoder, **options)


def with_cell(value):
    """Scores of 0, but one."""
    return lambda x: torch.zeros(len(x), 1).index_fill_(0, torch.tensor([7]), value)


class TestScores:
    def test_a_modules_logits_are_its_scores(self, mixed, rows):
        with torch.no_grad():
            expected = mixed.net(mixed.encoder.expand(rows))
        assert torch.equal(Classifier(mixed.net, mixed.encoder).scores(rows), expected)

    @pytest.mark.parametrize("shape", [(20,), (20, 1), (20, 2), (20, 5)])
    def test_every_shape_of_one_output_per_row_is_accepted(self, mixed, rows, shape):
        scores = classifier(mixed, lambda x: torch.zeros(shape)).scores(rows)
        assert scores.shape == (20, shape[1] if len(shape) > 1 else 1)

    def test_a_scalar_is_accepted_for_one_row(self, mixed, rows):
        """As a module does that squeezes its output."""
        model = classifier(mixed, lambda x: x[:, :1].squeeze())
        assert model.scores(rows).shape == (20, 1)
        assert torch.equal(model.scores(rows[:1]), mixed.encoder.expand(rows[:1])[:, :1])

    def test_probabilities_become_log_odds(self, mixed, rows):
        half = classifier(mixed, lambda x: torch.full((len(x),), 0.8), output="probabilities")
        assert torch.allclose(half.scores(rows), torch.tensor(0.8).logit())

    def test_an_estimator_without_column_names_gets_an_array(self, loan):
        frame = loan.frame.drop(columns="gender")
        model = LogisticRegression(max_iter=2000).fit(frame.to_numpy(), loan.labels)
        scores = Classifier(model, Encoder(Schema.infer(frame))).frame_scores(frame)
        assert np.allclose(scores.softmax(1)[:, 1], model.predict_proba(frame.to_numpy())[:, 1])

    @pytest.mark.parametrize("kind", [np.array, list, pd.Series, torch.tensor])
    def test_any_array_of_probabilities_is_accepted(self, mixed, kind):
        model = Classifier(lambda f: kind([0.25] * len(f)), mixed.encoder)
        assert model.frame_scores(mixed.frame).shape == (len(mixed.frame), 1)

    def test_many_rows_are_evaluated_in_bounded_batches(self, mixed, monkeypatch):
        monkeypatch.setattr("dear_plugin.models.classifier.ROWS_A_CALL", 8)
        sizes = []
        model = classifier(mixed, lambda x: sizes.append(len(x)) or x[:, 0])
        rows = mixed.encoder.rows(mixed.frame.iloc[:20])
        assert torch.equal(model.scores(rows)[:, 0], mixed.encoder.expand(rows)[:, 0])
        assert sizes == [8, 8, 4]

    def test_a_black_box_may_compute_gradients(self, loan):
        def answer(frame):
            assert not torch.is_inference_mode_enabled()
            x = torch.tensor(frame["income"].to_numpy(float), requires_grad=True)
            (slope,) = torch.autograd.grad((x * x).sum(), x)
            return (slope.numpy() > 2.0 * frame["income"].median()).astype(float)

        schema = Schema.infer(loan.frame)
        found = DEAR(answer, schema).fit(loan.frame).generate(loan.frame.iloc[:5])
        assert len(found.actions) == 5


class TestInvalid:
    @pytest.mark.parametrize("shape", [(), (19,), (21, 1), (20, 1, 1), (1, 20), (20, 0)])
    def test_a_wrong_shape_is_stated_with_the_expected_one(self, mixed, rows, shape):
        with pytest.raises(ModelError, match=r"m = 20 rows.*shape .*\(m,\), \(m, 1\) or \(m, c\)"):
            classifier(mixed, lambda x: torch.zeros(shape)).scores(rows)

    @pytest.mark.parametrize(
        ("answer", "output", "match"),
        [
            (with_cell(math.nan), None, r"NaN or infinity \(first in row 7 of 20\)"),
            (with_cell(math.inf), None, r"NaN or infinity \(first in row 7 of 20\)"),
            (with_cell(-math.inf), None, r"NaN or infinity \(first in row 7 of 20\)"),
            (lambda x: x[:, 0] - 3.0, "probabilities", r"values from -.*state output='logits'"),
            (lambda x: (x, x), None, "must return a tensor, got tuple"),
            (lambda x: x[:, :2], "values", r"shape \(20, 2\); \(m,\) or \(m, 1\) is expected"),
        ],
        ids=["NaN", "inf", "-inf", "logits", "a tuple", "two values"],
    )
    def test_an_answer_of_another_kind(self, mixed, rows, answer, output, match):
        with pytest.raises(ModelError, match=match):
            classifier(mixed, answer, output=output).scores(rows)

    @pytest.mark.parametrize(
        ("answer", "match"),
        [
            (lambda f: np.tile([0.3, 0.9], (len(f), 1)), r"2 classes must sum to 1.*sum to 1\.2"),
            (lambda f: np.tile([0.1, 0.2, 0.1], (len(f), 1)), "3 classes.*output='logits'"),
            (lambda f: [np.zeros((len(f), 2)), np.zeros((len(f), 3))], r"2 arrays.*\(rows\)\[0\]"),
            (lambda f: (np.zeros((len(f), 1)),) * 3, "3 arrays, one is expected"),
        ],
        ids=["two outputs", "shares of another total", "arrays of classes", "three columns"],
    )
    def test_the_outputs_of_several_models(self, mixed, answer, match):
        with pytest.raises(ModelError, match=match):
            Classifier(answer, mixed.encoder).frame_scores(mixed.frame)

    def test_an_estimator_of_several_outputs(self, loan):
        frame = loan.frame.drop(columns="gender")
        encoder, both = Encoder(Schema.infer(frame)), np.stack([loan.labels, 1 - loan.labels], 1)
        with pytest.raises(ModelError, match="the model has 2 outputs"):
            assert Classifier(DecisionTreeClassifier().fit(frame, both), encoder).classes

    @pytest.mark.parametrize(
        "module",
        [
            nn.Sequential(nn.Linear(99, 4), nn.ReLU(), nn.Linear(4, 1)),
            nn.Sequential(nn.BatchNorm1d(99), nn.Linear(99, 1)),
            Returns(lambda x: x @ torch.ones(99)),
            Returns(lambda x: (x * torch.ones(99)).sum(1)),
            Returns(lambda x: x[:, 98]),
            Returns(lambda x: x.view(-1, 99)[:, 0]),
        ],
        ids=["linear", "batch norm", "product", "sum", "column", "view"],
    )
    @pytest.mark.parametrize("output", [None, "logits"])
    def test_a_module_of_another_width(self, mixed, rows, module, output):
        d = mixed.encoder.d
        with pytest.raises(
            ModelError, match=rf"shape \(20, {d}\), which are the {d} encoded columns"
        ):
            classifier(mixed, module, output=output).scores(rows)

    @pytest.mark.parametrize(
        ("model", "options", "match"),
        [
            (3, {}, "predict_proba.*got int"),
            (len, {"output": "log"}, "logits.*probabilities.*values.*got 'log'"),
            (len, {"encode": len}, "encode= is for torch modules, got builtin_function_or_method"),
        ],
        ids=["no model", "an unknown output", "an encoding of a black box"],
    )
    def test_arguments(self, mixed, model, options, match):
        with pytest.raises(ModelError, match=match):
            Classifier(model, mixed.encoder, **options)


class Squashed(nn.Module):
    """A module that applies a function to logits."""

    def __init__(self, study, how):
        super().__init__()
        self.net, self.how = study.net, how

    def forward(self, x):
        return self.how(self.net(x))


ENDINGS = {
    "a layer": nn.Sigmoid(),
    "layers in layers": nn.Sequential(nn.Identity(), nn.Sequential(nn.Sigmoid(), nn.Flatten(0))),
    "torch.sigmoid": torch.sigmoid,
    "a method": lambda z: z.sigmoid(),
    "in place": lambda z: z.sigmoid_(),
    "special": torch.special.expit,
    "squeezed": lambda z: torch.sigmoid(z).squeeze(1),
    "a column of a softmax": lambda z: torch.cat([-z, z], 1).softmax(1)[:, 1],
    "a softmax": lambda z: nn.functional.softmax(torch.cat([-z, z], 1), dim=1),
}


class TestClasses:
    """What hosts show of rows."""

    def test_the_first_likeliest_without_a_decision_of_the_model_s_own(self, mixed):
        model, frame = Classifier(mixed.net, mixed.encoder), mixed.frame.head(2)
        for scores in (torch.tensor([[0.0, 0.0], [1.0, 2.0]]), torch.tensor([[0.0], [1.0]])):
            assert model.decided(frame, scores).tolist() == [0, 1]
            proba = model.in_units(scores)
            assert proba.shape == (2, 2) and proba.sum(1).tolist() == pytest.approx([1.0, 1.0])
            assert proba[1, 1].item() == pytest.approx(1.0 / (1.0 + math.exp(-1.0)))

    def test_else_its_own(self, mixed):
        likely = SimpleNamespace(
            classes_=["no", "yes"], predict_proba=lambda rows: np.tile([0.3, 0.7], (len(rows), 1))
        )
        model = Classifier(Thresholded(likely, 0.8), mixed.encoder)
        frame = mixed.frame.head(3)
        assert model.decided(frame, model.frame_scores(frame)).tolist() == [0, 0, 0]


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_output_of_a_module_that_ends_in_probabilities_must_be_stated(mixed, rows, ending):
    """Read as logits, all probabilities would be acceptances."""
    model = Squashed(mixed, ENDINGS[ending])
    with pytest.raises(ModelError, match=r"ends in a (sig|soft|exp).*state output='probab"):
        Classifier(model, mixed.encoder).scores(rows)
    expected = mixed.net(mixed.encoder.expand(rows))[:, 0] > 0
    scores = Classifier(model, mixed.encoder, output="probabilities").scores(rows)
    accepted = scores[:, 0] > 0 if scores.shape[1] == 1 else scores.argmax(1) == 1
    assert torch.equal(accepted, expected)
    Classifier(model, mixed.encoder, output="logits").scores(rows)


@pytest.mark.parametrize(
    ("columns", "note"),
    [
        (["b", "a"], "in another order. Infer the schema from them"),
        (["a"], r"columns, \['a', 'b'\]\..*put encoders and scalers inside it"),
    ],
)
def test_the_note_of_an_estimator_of_other_columns_says_what_to_do(columns, note):
    """Their own error is raised, with a note on what they were called with."""
    frame = pd.DataFrame({"a": np.arange(40.0), "b": np.arange(40.0) % 7})
    model = LogisticRegression().fit(frame[columns], np.arange(40) > 20)
    scores = Classifier(model, Encoder(Schema.infer(frame)))
    with pytest.raises(ValueError, match="feature names") as raised:
        scores.frame_scores(frame)
    assert re.search(note, raised.value.__notes__[0])
