"""Faults: what a model, a disk, a number or an impatient user can do, and what is left standing.

Nothing is lost and nothing silently repaired. What is wrong with a frame or a save is told in
`test_bad_input.py` and `test_persistence.py`; here things go wrong midway.
"""

import copy
import inspect
import itertools
import json
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.tree import DecisionTreeClassifier
from torch import nn

from dear_plugin import (
    DEAR,
    Autoencoder,
    Constraints,
    Design,
    Encoder,
    Schema,
    Target,
    Training,
    persistence,
)
from dear_plugin.baselines import CCHVAE, FaceKNN, NearestAccepted
from dear_plugin.errors import FileFormatError, InputError, ModelError, SchemaError, TargetError
from dear_plugin.methods.persistence import SETTINGS, TENSORS
from dear_plugin.models.classifier import Classifier

KINDS = {
    "transport": DEAR,
    "autoencoder": lambda model, schema: DEAR(
        model, schema, decoder=Autoencoder(Design(layers=(6, 3)), Training(epochs=3))
    ),
    "C-CHVAE": CCHVAE,
    "FACE-K": FaceKNN,
    "nearest accepted": NearestAccepted,
}


class Moody:
    """A black box that answers as another does, until its patience is at an end.

    Args:
        calm: the model that it is on good days.
        mood: what it says instead, of a frame and the calm answer.
    """

    def __init__(self, calm, mood):
        self.calm, self.mood = calm, mood
        self.patience = 10**9

    def predict_proba(self, frame):
        self.patience -= 1
        answer = self.calm.predict_proba(frame)
        return answer if self.patience >= 0 else self.mood(frame, answer)


def raising(error):
    """A mood."""

    def mood(frame, answer):
        raise error

    return mood


def answers(method, query) -> tuple[pd.DataFrame, pd.DataFrame]:
    result = method.generate(query)
    return result.counterfactuals, result.actions


def unchanged(before, method, query) -> None:
    """The method still says what it said."""
    for one, other in zip(before, answers(method, query), strict=True):
        pd.testing.assert_frame_equal(one, other, check_exact=True)


@pytest.fixture(scope="module")
def query(mixed) -> pd.DataFrame:
    return mixed.refused(8)


class TestAModelThatFailsMidway:
    """It answers for the factual rows, and no longer for what is proposed."""

    @pytest.mark.parametrize("patience", [0, 1, 2, 5])
    @pytest.mark.parametrize(
        ("mood", "error", "match"),
        [
            (raising(ConnectionError("the line is dead")), ConnectionError, "the line is dead"),
            (raising(KeyboardInterrupt()), KeyboardInterrupt, None),
            (lambda f, a: a * np.nan, ModelError, r"NaN or infinity \(first in row 0 of \d+\)"),
            (lambda f, a: a[:-1], ModelError, r"about m = \d+ rows and returned shape"),
            (lambda f, a: a[:, :, None], ModelError, r"returned shape \(\d+, 2, 1\)"),
            (lambda f, a: a + 1.0, ModelError, "returned values from"),
            (lambda f, a: a.astype(str), ModelError, "must return numbers"),
        ],
        ids=["raises", "is interrupted", "NaN", "a row less", "a dimension more", "> 1", "text"],
    )
    def test_the_error_comes_out_and_the_method_lives_on(
        self, mixed, query, patience, mood, error, match
    ):
        model = Moody(mixed.pipeline, mood)
        dear = DEAR(model, mixed.schema).fit(mixed.frame)
        before = answers(dear, query)
        model.patience = patience
        with pytest.raises(error, match=match):
            dear.generate(query)
        model.patience = 10**9
        unchanged(before, dear, query)

    def test_one_nan_among_many_names_its_row(self, mixed, query):
        def third(frame):
            rng = mixed.pipeline.predict_proba(frame)
            rng[3] = np.nan
            return rng

        with pytest.raises(ModelError, match=f"first in row 3 of {len(query)}"):
            DEAR(third, mixed.schema).fit(mixed.frame).generate(query)

    @pytest.mark.parametrize("patience", [1, 2, 3, 5])
    @pytest.mark.parametrize(
        ("mood", "match"),
        [
            (lambda f, a: np.hstack([a, a * 0.0]), "4 columns, 2 before"),
            (lambda f, a: a[:, 1], "1 columns, 2 before"),
        ],
        ids=["more", "fewer"],
    )
    def test_another_number_of_classes_is_no_answer(self, mixed, query, patience, mood, match):
        model = Moody(mixed.pipeline, mood)
        dear = DEAR(model, mixed.schema).fit(mixed.frame)
        model.patience = patience
        with pytest.raises(ModelError, match=match):
            dear.generate(query)

    def test_nor_are_several_within_one_batch(self, mixed, monkeypatch):
        monkeypatch.setattr("dear_plugin.models.classifier.ROWS_A_CALL", 64)
        model = Moody(mixed.pipeline, lambda f, a: a[:, 1])
        model.patience = 1
        with pytest.raises(ModelError, match=r"\[1, 2\] columns for parts of the same rows"):
            Classifier(model, mixed.encoder).scores(mixed.encoder.rows(mixed.frame.iloc[:100]))

    def test_a_network_that_works_in_place_changes_nothing(self):
        """What it is shown are no rows of ours."""
        frame = pd.DataFrame({"x": np.arange(60) % 13, "z": np.arange(60) / 8.0})

        def answered(inplace):
            torch.manual_seed(1)
            net = nn.Sequential(nn.Threshold(0.5, 0.0, inplace=inplace), nn.Linear(2, 1))
            result = DEAR(net, Schema.infer(frame)).fit(frame).generate(frame)
            return result.counterfactuals, result.actions.assign(support=result.support)

        for here, there in zip(answered(inplace=True), answered(inplace=False), strict=True):
            pd.testing.assert_frame_equal(here, there, check_exact=True)

    def test_one_that_is_slow_is_waited_for(self, mixed, query):
        def slowly(frame, answer):
            time.sleep(0.002)
            return answer

        slow = Moody(mixed.pipeline, slowly)
        slow.patience = 0
        expected = answers(DEAR(mixed.pipeline, mixed.schema).fit(mixed.frame), query)
        unchanged(expected, DEAR(slow, mixed.schema).fit(mixed.frame), query)

    def test_one_that_writes_into_the_frame_it_is_shown_changes_nothing(self, mixed, query):
        def scribbling(frame):
            rng = mixed.pipeline.predict_proba(frame)
            frame[frame.columns[0]] = 0
            return rng

        expected = answers(DEAR(mixed.pipeline, mixed.schema).fit(mixed.frame), query)
        asked = query.copy(deep=True)
        unchanged(expected, DEAR(scribbling, mixed.schema).fit(mixed.frame), asked)
        pd.testing.assert_frame_equal(asked, query, check_exact=True)

    def test_flags_of_a_network_that_raises_are_put_back(self, mixed, query):
        class Fragile(nn.Module):
            def __init__(self):
                super().__init__()
                self.net, self.whole = mixed.net, True

            def forward(self, x):
                if not self.whole:
                    raise ArithmeticError("broken")
                return self.net(x)

        net = Fragile().train()
        dear = DEAR(net, mixed.schema).fit(mixed.frame)
        before, flags = answers(dear, query), [m.training for m in net.modules()]
        net.whole = False
        with pytest.raises(ArithmeticError, match="broken"):
            dear.generate(query)
        net.whole = True
        assert [m.training for m in net.modules()] == flags
        unchanged(before, dear, query)


# At the first call into the engine, on the way, and at the very last one.
WHEN = (0.0, 0.5, 0.98, 1.0)


def watched(action, count: int | None = None) -> int:
    """How many calls into the engine an action makes; Ctrl-C comes at one, where it is said."""
    calls = 0

    def watch(frame, event, arg):
        nonlocal calls
        # What comes while a generator is being closed is swallowed by Python, not by us.
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
    """Ctrl-C at a share of the way through an action that has been rehearsed."""
    count = max(1, int(share * watched(rehearsal)))
    with pytest.raises(KeyboardInterrupt):
        watched(action, count)


class TestAnInterrupt:
    """Ctrl-C comes at any moment; what there was before it is there after it."""

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("share", WHEN)
    def test_during_a_second_fit_the_first_one_stays(self, mixed, query, kind, share):
        method, people = KINDS[kind](mixed.net, mixed.schema).fit(mixed.frame[:300]), mixed.frame
        before = answers(method, query)
        again = copy.deepcopy(method)
        interrupt(lambda: again.fit(people[300:700]), share, lambda: method.fit(people[300:700]))
        unchanged(before, method, query)
        method.fit(people[300:700])

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("share", WHEN)
    def test_during_generate_the_next_answer_is_the_same(self, mixed, query, kind, share):
        method = KINDS[kind](mixed.net, mixed.schema).fit(mixed.frame[:300])
        before = answers(method, query)
        interrupt(lambda: method.generate(query), share, lambda: method.generate(query))
        unchanged(before, method, query)

    def test_while_the_pairs_in_reserve_are_learned(self, mixed, query, monkeypatch):
        dear = DEAR(lambda f: np.full(len(f), 0.1), mixed.schema).fit(mixed.frame[:300])
        patient = copy_of(dear, mixed)
        before = answers(patient, query)
        with monkeypatch.context() as patch:
            patch.setattr(type(dear.decoder), "fit", raising_at_once)
            with pytest.raises(KeyboardInterrupt):
                dear.generate(query)
        unchanged(before, dear, query)

    @pytest.mark.parametrize(
        ("step", "call", "whole"),
        [
            ("json.dumps", 1, "old"),
            ("os.fsync", 1, "old"),
            ("os.fsync", 2, "old"),
            ("Path.replace", 1, "old"),
            ("Path.replace", 2, "new"),
        ],
    )
    @pytest.mark.parametrize("error", [KeyboardInterrupt, OSError], ids=["Ctrl-C", "disk full"])
    def test_during_save_a_whole_save_stays(
        self, mixed, query, tmp_path, monkeypatch, step, call, whole, error
    ):
        """As much holds for a process that is killed and for a power cut."""
        old, new = (DEAR(mixed.net, mixed.schema).fit(mixed.frame[i::2]) for i in (0, 1))
        old.save(tmp_path)
        with monkeypatch.context() as patch:
            owner, name = step.split(".")
            patch.setattr(*ending_at(call, error, getattr(persistence, owner), name))
            with pytest.raises(error):
                new.save(tmp_path)
        left = DEAR.load(tmp_path, mixed.net)
        unchanged(answers({"old": old, "new": new}[whole], query), left, query)
        left.save(tmp_path)
        assert {p.name for p in tmp_path.iterdir()} == {SETTINGS, TENSORS}


def copy_of(dear, mixed) -> DEAR:
    """Another one of the same."""
    return DEAR(dear.classifier.model, mixed.schema).fit(mixed.frame[:300])


def ending_at(call, error, owner, name) -> tuple:
    """For `setattr`: a function of a module or class whose so many-th call fails."""
    usual, calls = getattr(owner, name), itertools.count(1)

    def step(*args, **kwargs):
        if next(calls) == call:
            raise error
        return usual(*args, **kwargs)

    return owner, name, step


def raising_at_once(*args, **kwargs):
    raise KeyboardInterrupt


REAL = """
import signal, threading, time
import torch
from dear_plugin import DEAR, Autoencoder, Schema, Training
from dear_plugin.datasets import load_loan

# A shell that runs the tests in the background has its children ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)

class Sleepy:
    calls = 10**9
    def predict_proba(self, frame):
        self.calls -= 1
        if self.calls == 0:
            print("asleep", flush=True)
            time.sleep(60)
        chance = (frame["income"] > 5000).to_numpy(float)
        return torch.tensor(chance).numpy()

def answers():
    found = dear.generate(people.iloc[:50])
    return found.counterfactuals.to_csv() + found.actions.to_csv()

people = load_loan(300).features
model, short = Sleepy(), Training(epochs=1)
dear = DEAR(model, Schema.infer(people), decoder=Autoencoder(training=short)).fit(people)
before = answers()
try:
    {action}
except KeyboardInterrupt:
    model.calls = 10**9
    print("same" if answers() == before else "other", flush=True)
"""
MIDWAY = {
    "while the model sleeps": "model.calls = 2; answers()",
    "while networks are trained": """
    forever = Training(epochs=10**9, most_steps=10**9, patience=10**9)
    dear.decoder.training = forever
    threading.Timer(0.5, lambda: print("asleep", flush=True)).start()
    dear.fit(people)
""",
}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has another Ctrl-C")
@pytest.mark.parametrize("where", MIDWAY)
def test_a_real_ctrl_c_leaves_a_usable_object(where):
    script = REAL.replace("{action}", MIDWAY[where].strip())
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True
    ) as child:
        try:
            assert child.stdout.readline() == "asleep\n"
            child.send_signal(signal.SIGINT)
            assert child.communicate(timeout=60)[0] == "same\n"
        finally:
            child.kill()


class TestNumbers:
    @pytest.mark.parametrize("value", [1e300, -1e300, 1e60, np.finfo(float).max])
    def test_what_is_too_far_away_to_be_told_apart_is_refused_by_column_and_row(
        self, fitted, query, value
    ):
        far = query.copy()
        far.loc[far.index[2], "debt"] = value
        with pytest.raises(
            InputError, match=rf"'debt' has values too far.*in 1 rows, first \[{far.index[2]}\]"
        ):
            fitted.generate(far, on_error="raise")

    def test_what_is_far_but_can_be_told_apart_is_taken_as_it_is(self, fitted, query):
        far = query.assign(debt=1e9)
        after = fitted.generate(far, within=Constraints(frozen=["debt"])).counterfactuals
        assert (after["debt"] == 1e9).all()

    def test_a_span_that_no_float_holds_is_refused_by_column(self):
        with pytest.raises(SchemaError, match=r"'x' spans .*larger units"):
            Schema.infer(pd.DataFrame({"x": [-1.5e308, 0.0, 1.5e308]}))

    @pytest.mark.parametrize("size", [5e-324, 1e-300, 1e-18, 1e18, 1e300])
    def test_the_size_of_a_unit_does_not_matter(self, size):
        """Denormal and huge numbers are acted on as others are."""
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"x": rng.integers(0, 100, 200) * size, "z": rng.normal(0, 1, 200)})
        cut = float(frame["x"].median())
        dear = DEAR(
            lambda f: np.where(f["x"] > cut, 0.9, 0.1), Schema.infer(frame), act_on=["x"]
        ).fit(frame)
        refused = frame[frame["x"] <= cut]
        result = dear.generate(refused)
        assert result.actions["success"].all()
        assert (result.counterfactuals["x"] > cut).all()
        assert (result.counterfactuals["x"] <= frame["x"].max()).all()

    def test_values_next_to_each_other_are_told_apart_as_far_as_a_float32_can(self):
        """A number that the model needs, and that cannot be said, is a failure and says so."""
        frame = pd.DataFrame({"x": [0.0, 1.0, 2.0, 2.0**60], "z": [0.5, 1.5, 2.5, 3.5]})
        narrow = lambda f: np.where(f["x"] == 1.0, 0.9, 0.1)  # noqa: E731
        result = DEAR(narrow, Schema.infer(frame), act_on=["x"]).fit(frame).generate(frame)
        own = frame["x"].eq(1.0) | result.counterfactuals["x"].eq(1.0)
        assert result.actions["success"].tolist() == own.tolist()
        assert (result.actions["reason"][~own] != "").all()


class TestNarrowColumns:
    """The frame that is asked about may hold less than the one that was learned from."""

    frame = pd.DataFrame({"x": np.arange(400), "b": np.arange(400) + 100, "z": [0, 300] * 200})

    def answer(self, dtypes, cut, act_on, caplog):
        def model(frame):
            x = frame[act_on[0]].to_numpy(dtype=float)
            return np.where((x >= cut) | (x < 0), 0.9, 0.1)

        # x <= b in every row; what b can hold is to be tested, not that order.
        schema = replace(Schema.infer(self.frame, increasing=["x"]), orders=())
        dear = DEAR(model, schema, act_on=act_on).fit(self.frame)
        return dear.generate(self.frame.iloc[:6:2].astype(dtypes))

    @pytest.mark.parametrize("dtype", ["int8", "Int8", "float16", "uint8"])
    def test_what_is_acted_on_stays_within_what_its_dtype_holds(self, dtype, caplog):
        result = self.answer({"x": dtype}, 200, ["x"], caplog)
        reached = dtype in ("float16", "uint8")
        assert result.actions["success"].eq(reached).all()
        assert result.counterfactuals["x"].between(0, 255).all()
        assert str(result.counterfactuals["x"].dtype) == dtype
        assert ("too narrow" in caplog.text) == (dtype != "float16")

    @pytest.mark.parametrize("dtype", ["int8", "Int8"])
    def test_and_so_does_what_moves_along(self, dtype, caplog):
        result = self.answer({"b": dtype}, 200, ["x"], caplog)
        assert result.actions["success"].all()
        assert result.counterfactuals["b"].between(100, 127).all()
        assert "['b']" in caplog.text

    def test_a_category_that_it_cannot_hold_is_refused_by_column(self, caplog):
        with pytest.raises(InputError, match="'z' of dtype int8 cannot hold 300"):
            self.answer({"z": "int8"}, 200, ["z"], caplog)


class TestFewPeople:
    @pytest.mark.parametrize("kind", KINDS)
    def test_five_rows_are_enough_to_run(self, mixed, kind):
        few = mixed.frame.iloc[:5]
        schema = Schema.infer(few)
        net = nn.Linear(Encoder(schema).d, 1)
        result = KINDS[kind](net, schema).fit(few).generate(few)
        with torch.no_grad():
            own = net(Encoder(schema).encode(result.counterfactuals))[:, 0] > 0
        assert result.actions["success"].tolist() == own.tolist()
        assert result.actions["reason"][~result.actions["success"]].ne("").all()

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("logit", [-3.0, 3.0], ids=["refuses all", "accepts all"])
    def test_a_model_of_one_class(self, mixed, query, kind, logit):
        result = KINDS[kind](Same(logit), mixed.schema).fit(mixed.frame[:300]).generate(query)
        assert result.actions["success"].eq(logit > 0).all()
        assert result.support.eq(float(logit > 0)).all()
        if logit > 0:
            pd.testing.assert_frame_equal(result.counterfactuals, query, check_exact=True)
        assert result.actions["reason"].ne("").all()

    @pytest.mark.parametrize("label", [0, 1, "yes"])
    def test_an_estimator_that_was_shown_one_class(self, label):
        frame = pd.DataFrame({"x": np.arange(40), "z": np.arange(40) % 7})
        model = DecisionTreeClassifier().fit(frame, np.full(len(frame), label))
        dear = DEAR(model, Schema.infer(frame)).fit(frame)
        result = dear.generate(frame.head(3), Target.of_class(label))
        assert result.actions["reason"].eq("already accepted").all()
        assert result.actions["score_before"].gt(0.999).all()
        if label != 1:
            with pytest.raises(TargetError, match="which of the classes"):
                dear.generate(frame.head(3))

    @pytest.mark.parametrize("kind", KINDS)
    def test_nobody_may_do_anything(self, mixed, query, kind):
        frozen = Constraints(frozen=list(mixed.schema.names))
        method = KINDS[kind](mixed.net, mixed.schema).fit(mixed.frame[:300])
        result = method.generate(query, within=frozen)
        pd.testing.assert_frame_equal(result.counterfactuals, query, check_exact=True)
        assert not result.actions["success"].any()
        assert result.actions["reason"].ne("").all()


class Same(nn.Module):
    """Says the same of everyone, in a way that has a gradient."""

    def __init__(self, logit):
        super().__init__()
        self.logit = logit

    def forward(self, x):
        return 0.0 * x[:, :1] + self.logit


@pytest.fixture(scope="module")
def save(mixed, tmp_path_factory):
    folder = tmp_path_factory.mktemp("save")
    DEAR(mixed.net, mixed.schema, act_on=["debt"]).fit(mixed.frame[:50]).save(folder)
    return folder


@pytest.fixture
def damaged(save, tmp_path, mixed):
    """Write other bytes to one file of a save; loading it must fail with one error, by name."""

    def refuse(name: str, content: bytes) -> None:
        for file in (SETTINGS, TENSORS):
            (tmp_path / file).write_bytes((save / file).read_bytes())
        (tmp_path / name).write_bytes(content)
        with pytest.raises(FileFormatError, match=name):
            DEAR.load(tmp_path, mixed.net)

    return refuse


class TestSaves:
    @pytest.mark.parametrize("name", [SETTINGS, TENSORS])
    def test_cut_anywhere(self, save, damaged, name):
        content = (save / name).read_bytes()
        for end in range(0, len(content), max(1, len(content) // 40)):
            damaged(name, content[:end])

    @pytest.mark.parametrize("name", [SETTINGS, TENSORS])
    def test_a_bit_flipped_anywhere(self, save, damaged, name):
        content = bytearray((save / name).read_bytes())
        rng = np.random.default_rng(0)
        for at in rng.integers(0, len(content), 40).tolist():
            bit = 1 << int(rng.integers(0, 8))
            content[at] ^= bit
            damaged(name, bytes(content))
            content[at] ^= bit

    @pytest.mark.parametrize("name", [SETTINGS, TENSORS])
    def test_something_appended(self, save, damaged, name):
        damaged(name, (save / name).read_bytes() + b"\0")

    @pytest.mark.parametrize(
        "text",
        ["[" * 100_000, '{"format": ' + "9" * 5000 + "}", '{"format": NaN}', '{"format": true}'],
        ids=["depth", "digits", "NaN", "truth"],
    )
    def test_json_that_is_meant_to_hurt(self, damaged, text):
        damaged(SETTINGS, text.encode())

    def test_a_header_that_asks_for_all_memory(self, damaged):
        damaged(TENSORS, (2**62).to_bytes(8, "little") + b"{}")

    def test_a_newer_one_says_so_whatever_else_it_holds(self, save, damaged, mixed):
        newer = {"format": 99, "surprise": {"a": [1, 2]}}
        damaged(SETTINGS, json.dumps(newer).encode())

    def test_a_file_where_the_folder_belongs(self, save, mixed):
        with pytest.raises(FileFormatError, match="cannot be read"):
            DEAR.load(save / SETTINGS, mixed.net)

    @pytest.mark.parametrize("name", [SETTINGS, TENSORS])
    def test_a_folder_where_a_file_belongs(self, save, tmp_path, mixed, name):
        for file in {SETTINGS, TENSORS} - {name}:
            (tmp_path / file).write_bytes((save / file).read_bytes())
        (tmp_path / name).mkdir()
        with pytest.raises(FileFormatError, match=name):
            DEAR.load(tmp_path, mixed.net)
