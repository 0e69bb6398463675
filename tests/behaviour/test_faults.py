"""Faults: failing models, disks and saves, interrupts and extreme numbers.

A fault raises an error and leaves the method usable. Invalid frames and settings are tested in
`test_bad_input.py` and `test_saving.py`.
"""

import copy
import inspect
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors import torch as safetensors
from sklearn.tree import DecisionTreeClassifier
from torch import nn

from dear_plugin import DEAR, Constraints, Encoder, Schema, Target
from dear_plugin.errors import FileFormatError, InputError, ModelError, SchemaError, TargetError
from dear_plugin.methods import saving
from dear_plugin.methods.saving import FILE
from dear_plugin.models.classifier import Classifier
from tests.every_method import METHODS

KINDS = {
    name: METHODS[name]
    for name in ("DEAR", "DEAR autoencoder", "C-CHVAE", "FACE-K", "nearest accepted")
}


class Failing:
    """A black box that returns the output of another one for a number of calls.

    Args:
        model: the other black box.
        fault: the output afterwards, a function of the frame and the model's output.
    """

    def __init__(self, model, fault):
        self.model, self.fault = model, fault
        self.calls_left = 10**9

    def predict_proba(self, frame):
        self.calls_left -= 1
        answer = self.model.predict_proba(frame)
        return answer if self.calls_left >= 0 else self.fault(frame, answer)


def raising(error):
    """A fault that raises an error."""

    def fault(*args, **kwargs):
        raise error

    return fault


def answers(method, query) -> tuple[pd.DataFrame, pd.DataFrame]:
    result = method.generate(query)
    return result.counterfactuals, result.actions


def unchanged(before, method, query) -> None:
    """The method gives the same results as before."""
    for one, other in zip(before, answers(method, query), strict=True):
        pd.testing.assert_frame_equal(one, other, check_exact=True)


@pytest.fixture(scope="module")
def query(mixed) -> pd.DataFrame:
    return mixed.refused(8)


class TestAModelThatFailsMidway:
    """It fails after the call for the factual rows."""

    @pytest.fixture(scope="class")
    @staticmethod
    def failing(mixed):
        """A model that does what its `fault` says, a method fitted with it, and its answers."""
        model = Failing(mixed.pipeline, None)
        dear = DEAR(model, mixed.schema).fit(mixed.frame[:300])
        return model, dear, answers(dear, mixed.refused(8))

    @pytest.mark.parametrize("calls_left", [1, pytest.param(5, marks=pytest.mark.slow)])
    @pytest.mark.parametrize(
        ("fault", "error", "match"),
        [
            (raising(ConnectionError("the line is dead")), ConnectionError, "the line is dead"),
            (raising(KeyboardInterrupt()), KeyboardInterrupt, None),
            (lambda f, a: a * np.nan, ModelError, r"NaN or infinity \(first in row 0 of \d+\)"),
            (lambda f, a: a[:-1], ModelError, r"got m = \d+ rows and returned shape"),
            (lambda f, a: a[:, :, None], ModelError, r"returned shape \(\d+, 2, 1\)"),
            (lambda f, a: a + 1.0, ModelError, "returned values from"),
            (lambda f, a: a.astype(str), ModelError, "must return numbers"),
            (lambda f, a: np.hstack([a, a * 0.0]), ModelError, "4 columns, 2 before"),
            (lambda f, a: a[:, 1], ModelError, "1 columns, 2 before"),
        ],
        ids=["raises", "interrupted", "NaN", "a row less", "3-d", "> 1", "text", "4", "1"],
    )
    def test_the_error_is_raised_and_the_method_stays_usable(
        self, failing, query, calls_left, fault, error, match
    ):
        model, dear, before = failing
        model.fault, model.calls_left = fault, calls_left
        with pytest.raises(error, match=match):
            dear.generate(query)
        model.calls_left = 10**9
        unchanged(before, dear, query)

    def test_several_numbers_of_classes_in_a_batch_raise(self, mixed, monkeypatch):
        monkeypatch.setattr("dear_plugin.models.classifier.ROWS_A_CALL", 64)
        model = Failing(mixed.pipeline, lambda f, a: a[:, 1])
        model.calls_left = 1
        with pytest.raises(ModelError, match=r"\[1, 2\] columns for parts of the same rows"):
            Classifier(model, mixed.encoder).scores(mixed.encoder.rows(mixed.frame.iloc[:100]))

    def test_in_place_operations_of_a_network_have_no_effect(self):
        """Its inputs are copies."""
        frame = pd.DataFrame({"x": np.arange(60) % 13, "z": np.arange(60) / 8.0})

        def results(inplace):
            torch.manual_seed(1)
            net = nn.Sequential(nn.Threshold(0.5, 0.0, inplace=inplace), nn.Linear(2, 1))
            result = DEAR(net, Schema.infer(frame)).fit(frame).generate(frame)
            return result.counterfactuals, result.actions.assign(support=result.support)

        for one, other in zip(results(inplace=True), results(inplace=False), strict=True):
            pd.testing.assert_frame_equal(one, other, check_exact=True)

    def test_a_model_that_modifies_its_input_frame_has_no_effect(self, mixed, query):
        def modifying(frame):
            p = mixed.pipeline.predict_proba(frame)
            frame[frame.columns[0]] = 0
            return p

        expected = answers(DEAR(mixed.pipeline, mixed.schema).fit(mixed.frame), query)
        frame = query.copy(deep=True)
        unchanged(expected, DEAR(modifying, mixed.schema).fit(mixed.frame), frame)
        pd.testing.assert_frame_equal(frame, query, check_exact=True)

    def test_training_flags_of_a_network_that_raises_are_restored(self, mixed, query):
        class Fragile(nn.Module):
            def __init__(self):
                super().__init__()
                self.net, self.broken = mixed.net, False

            def forward(self, x):
                if self.broken:
                    raise ArithmeticError("broken")
                return self.net(x)

        net = Fragile().train()
        dear = DEAR(net, mixed.schema).fit(mixed.frame)
        before, flags = answers(dear, query), [m.training for m in net.modules()]
        net.broken = True
        with pytest.raises(ArithmeticError, match="broken"):
            dear.generate(query)
        net.broken = False
        assert [m.training for m in net.modules()] == flags
        unchanged(before, dear, query)


# Shares of the calls into dear_plugin after which the interrupt is raised.
WHEN = (0.5, pytest.param(1.0, marks=pytest.mark.slow))


def watched(action, count: int | None = None) -> int:
    """The number of calls into dear_plugin of an action; KeyboardInterrupt at call `count`."""
    calls = 0

    def watch(frame, event, arg):
        nonlocal calls
        # Python ignores exceptions raised while a generator is closed.
        closing = frame.f_code.co_flags & inspect.CO_GENERATOR
        if event == "call" and "dear_plugin" in frame.f_code.co_filename and not closing:
            calls += 1
            if calls == count:
                sys.setprofile(None)
                raise KeyboardInterrupt

    sys.setprofile(watch)
    try:
        action()
    finally:
        sys.setprofile(None)
    return calls


def interrupt(rehearsal, share: float, action) -> None:
    """KeyboardInterrupt after a share of the calls of an action, counted in a rehearsal."""
    count = max(1, int(share * watched(rehearsal)))
    with pytest.raises(KeyboardInterrupt):
        watched(action, count)


class TestInterrupt:
    """Ctrl-C at any moment leaves the state of before."""

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("share", WHEN)
    def test_during_a_second_fit_the_first_one_is_kept(self, mixed, query, kind, share):
        method, frame = KINDS[kind](mixed.net, mixed.schema).fit(mixed.frame[:300]), mixed.frame
        before = answers(method, query)
        rehearsal = copy.deepcopy(method)
        rows = frame[300:700]
        interrupt(lambda: rehearsal.fit(rows), share, lambda: method.fit(rows))
        unchanged(before, method, query)
        method.fit(rows)

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("share", WHEN)
    def test_during_generate_the_next_result_is_the_same(self, mixed, query, kind, share):
        method = KINDS[kind](mixed.net, mixed.schema).fit(mixed.frame[:300])
        before = answers(method, query)
        interrupt(lambda: method.generate(query), share, lambda: method.generate(query))
        unchanged(before, method, query)

    @pytest.mark.ci
    def test_while_pairs_are_fitted(self, mixed, query, monkeypatch):
        dear = DEAR(lambda f: np.full(len(f), 0.1), mixed.schema).fit(mixed.frame[:300])
        copied = DEAR(dear.classifier.model, mixed.schema).fit(mixed.frame[:300])
        before = answers(copied, query)
        with monkeypatch.context() as patch:
            patch.setattr(type(dear.decoder), "fit", raising(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                dear.generate(query)
        unchanged(before, dear, query)

    @pytest.mark.parametrize("step", ["json.dumps", "os.fsync", "Path.replace"])
    @pytest.mark.parametrize(
        "error",
        [KeyboardInterrupt, pytest.param(OSError, marks=pytest.mark.slow)],
        ids=["Ctrl-C", "disk full"],
    )
    def test_during_save_a_complete_save_is_kept(
        self, mixed, query, tmp_path, monkeypatch, step, error
    ):
        """This covers killed processes and power cuts."""
        old, new = (DEAR(mixed.net, mixed.schema).fit(mixed.frame[i:300:2]) for i in (0, 1))
        old.save(tmp_path)
        with monkeypatch.context() as patch:
            owner, name = step.split(".")
            patch.setattr(getattr(saving, owner), name, raising(error))
            with pytest.raises(error):
                new.save(tmp_path)
        left = DEAR.load(tmp_path, mixed.net)
        unchanged(answers(old, query), left, query)
        left.save(tmp_path)
        assert [p.name for p in tmp_path.iterdir()] == [FILE]


class TestNumbers:
    @pytest.mark.parametrize("value", [1e300, -1e300, 1e60, np.finfo(float).max])
    def test_numbers_too_far_for_float32_are_rejected_by_column_and_row(
        self, fitted, query, value
    ):
        far = query.copy()
        far.loc[far.index[2], "debt"] = value
        with pytest.raises(
            InputError, match=rf"'debt' has values too far.*in 1 rows, first \[{far.index[2]}\]"
        ):
            fitted.generate(far, on_error="raise")

    def test_far_numbers_within_float32_are_not_clipped(self, fitted, query):
        far = query.assign(debt=1e9)
        after = fitted.generate(far, within=Constraints(frozen=["debt"])).counterfactuals
        assert (after["debt"] == 1e9).all()

    @pytest.mark.parametrize("rows", [3, 300])
    def test_a_range_that_overflows_is_rejected_by_column(self, rows):
        with pytest.raises(SchemaError, match=r"'x' has the range .*larger units"):
            Schema.infer(pd.DataFrame({"x": np.linspace(-1.5, 1.5, rows) * 1e308}))

    @pytest.mark.parametrize("size", [5e-324, 1e-300, 1e-18, 1e18, 1e300])
    def test_results_do_not_depend_on_the_unit(self, size):
        """Including denormal and huge numbers."""
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"x": rng.integers(0, 100, 200) * size, "z": rng.normal(0, 1, 200)})
        cut = float(frame["x"].median())
        dear = DEAR(
            lambda f: np.where(f["x"] > cut, 0.9, 0.1), Schema.infer(frame), act_on=["x"]
        ).fit(frame)
        result = dear.generate(frame[frame["x"] <= cut])
        assert result.actions["success"].all()
        assert (result.counterfactuals["x"] > cut).all()
        assert (result.counterfactuals["x"] <= frame["x"].max()).all()


class TestNarrowColumns:
    """Factual frames may have narrower dtypes than the training frame."""

    frame = pd.DataFrame({"x": np.arange(400), "b": np.arange(400) + 100, "z": [0, 300] * 200})

    def generate(self, dtypes, cut, act_on, caplog):
        def model(frame):
            x = frame[act_on[0]].to_numpy(dtype=float)
            return np.where((x >= cut) | (x < 0), 0.9, 0.1)

        # Without rules: b is x + 100 in every row, but the range of b's dtype is tested here.
        schema = Schema.infer(self.frame, increasing=["x"])
        schema = replace(schema, relations=())
        dear = DEAR(model, schema, act_on=act_on).fit(self.frame)
        return dear.generate(self.frame.iloc[:6:2].astype(dtypes))

    @pytest.mark.parametrize("dtype", ["int8", "Int8", "float16", "uint8"])
    def test_direct_changes_stay_in_the_range_of_the_dtype(self, dtype, caplog):
        result = self.generate({"x": dtype}, 200, ["x"], caplog)
        reached = dtype in ("float16", "uint8")
        assert result.actions["success"].eq(reached).all()
        assert result.counterfactuals["x"].between(0, 255).all()
        assert str(result.counterfactuals["x"].dtype) == dtype
        assert ("too narrow" in caplog.text) == (dtype != "float16")

    @pytest.mark.parametrize("dtype", ["int8", "Int8"])
    def test_indirect_changes_stay_in_the_range_of_the_dtype(self, dtype, caplog):
        result = self.generate({"b": dtype}, 200, ["x"], caplog)
        assert result.actions["success"].all()
        assert result.counterfactuals["b"].between(100, 127).all()
        assert "['b']" in caplog.text

    def test_a_numeric_category_out_of_range_is_rejected_by_column(self, caplog):
        with pytest.raises(InputError, match="'z' of dtype int8 cannot hold 300"):
            self.generate({"z": "int8"}, 200, ["z"], caplog)


class TestFewRows:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("rows", [1, 2, 5])
    def test_few_rows_are_enough_to_run(self, mixed, kind, rows):
        few = mixed.frame.iloc[:rows]
        schema = Schema.infer(few) if rows > 1 else mixed.schema
        net = nn.Linear(Encoder(schema).d, 1)
        result = KINDS[kind](net, schema).fit(few).generate(few)
        with torch.no_grad():
            own = net(Encoder(schema).encode(result.counterfactuals))[:, 0] > 0
        assert result.actions["success"].tolist() == own.tolist()
        assert result.actions["reason"][~result.actions["success"]].ne("").all()

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("logit", [-3.0, 3.0], ids=["rejects all", "accepts all"])
    def test_a_model_of_one_class(self, mixed, query, kind, logit):
        result = KINDS[kind](Same(logit), mixed.schema).fit(mixed.frame[:300]).generate(query)
        assert result.actions["success"].eq(logit > 0).all()
        assert result.support.eq(float(logit > 0)).all()
        if logit > 0:
            pd.testing.assert_frame_equal(result.counterfactuals, query, check_exact=True)
        assert result.actions["reason"].ne("").all()

    @pytest.mark.parametrize("label", [0, 1, "yes"])
    def test_an_estimator_fitted_on_one_class(self, label):
        frame = pd.DataFrame({"x": np.arange(40), "z": np.arange(40) % 7})
        model = DecisionTreeClassifier().fit(frame, np.full(len(frame), label))
        dear = DEAR(model, Schema.infer(frame)).fit(frame)
        result = dear.generate(frame.head(3), Target.of_class(label))
        assert result.actions["reason"].eq("already accepted").all()
        assert result.actions["score_before"].gt(0.999).all()
        if label != 1:
            with pytest.raises(TargetError, match="which of the classes"):
                dear.generate(frame.head(3))


class Same(nn.Module):
    """A constant module with a gradient."""

    def __init__(self, logit):
        super().__init__()
        self.logit = logit

    def forward(self, x):
        return 0.0 * x[:, :1] + self.logit


@pytest.fixture
def damaged(tmp_path, mixed):
    """Write other bytes to the file of a save; loading must raise an error with its name."""

    def check(content: bytes) -> None:
        (tmp_path / FILE).write_bytes(content)
        with pytest.raises(FileFormatError, match=FILE):
            DEAR.load(tmp_path, mixed.net)

    return check


class TestSaves:
    @pytest.mark.parametrize(
        "text",
        [
            *("[]", "3", '"dear"', "null", "{}", '{"format": "1"}', '{"format": NaN}'),
            *('{"format": true}', "[" * 100_000, '{"format": ' + "9" * 5000 + "}"),
        ],
        ids=lambda text: text[:20],
    )
    def test_malicious_json(self, damaged, text):
        damaged(safetensors.save({"rows": torch.zeros(1)}, {"dear": text}))

    def test_a_header_with_a_huge_size(self, damaged):
        damaged((2**62).to_bytes(8, "little") + b"{}")

    def test_a_file_where_the_folder_belongs(self, tmp_path, mixed):
        (tmp_path / "file").touch()
        with pytest.raises(FileFormatError, match="cannot be read"):
            DEAR.load(tmp_path / "file", mixed.net)

    def test_a_folder_where_the_file_belongs(self, tmp_path, mixed):
        (tmp_path / FILE).mkdir()
        with pytest.raises(FileFormatError, match=FILE):
            DEAR.load(tmp_path, mixed.net)
