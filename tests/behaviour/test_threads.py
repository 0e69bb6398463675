"""Threads: one for DEAR's own operations; the user's count for the user's code, and afterwards."""

import _thread
import contextlib
import re
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from dear_plugin import DEAR, Encoder, Schema, compare
from dear_plugin._threads import Once, end_if_stopped, in_threads
from dear_plugin.datasets import load_loan
from dear_plugin.decoders import Sample
from dear_plugin.rivals import Wachter, WachterConfig
from tests.still import Still

USERS = 3


def counts() -> set[int]:
    """Those of torch's own loops, of OpenMP and of MKL where it is there."""
    told = re.findall(r"(?:at::get_num|max)_threads\(\) : (\d+)", torch.__config__.parallel_info())
    return {torch.get_num_threads(), *map(int, told)}


@pytest.fixture(autouse=True)
def users():
    usual = torch.get_num_threads()
    torch.set_num_threads(USERS)
    yield
    torch.set_num_threads(usual)


class Watch:
    """What is called, with the counts that it found; it may be told to do something first."""

    def __init__(self):
        self.model, self.rule, self.own = [], [], []
        self.first = dict.fromkeys(("model", "rule", "own"), lambda: None)

    def saw(self, who):
        getattr(self, who).append(counts())
        self.first[who]()


class Watched(Still):
    """What it is asked for is an operation of DEAR."""

    draws = 2

    def __init__(self, watch=None):
        self.watch = watch

    def settings(self):
        return {"watch": self.watch}

    def fit(self, *asked):
        self.watch.saw("own")
        super().fit(*asked)

    def decode(self, *asked):
        self.watch.saw("own")
        return super().decode(*asked)


class Net(nn.Module):
    """A module that is watched forwards and backwards."""

    def __init__(self, net, watch):
        super().__init__()
        self.net, self.watch = net, watch

    def forward(self, x):
        self.watch.saw("model")
        if x.requires_grad:
            x.register_hook(lambda _: self.watch.saw("model"))
        return self.net(x)


@pytest.fixture
def watch():
    return Watch()


@pytest.fixture
def frame(mixed):
    return mixed.frame[["age", "income", "debt", "owner"]].iloc[:300]


@pytest.fixture
def query(frame):
    return frame[frame["income"] < 30].iloc[:5]


@pytest.fixture
def dear(frame, watch):
    def rich(rows):
        watch.saw("model")
        return 1.0 / (1.0 + np.exp((36.0 - rows["income"]) / 9.0))

    def solvent(rows):
        watch.saw("rule")
        return rows["debt"] < 1000.0

    schema = Schema.infer(frame, rules=[solvent])
    dear = DEAR(rich, schema, act_on=["income", "debt"], decoder=Watched(watch))
    return dear.fit(frame)


# What a person may ask of a method, and of a result.
OF_METHODS = {
    "fit": lambda dear, frame, query: dear.fit(frame),
    "generate": lambda dear, frame, query: dear.generate(query).actions,
    "several": lambda dear, frame, query: dear.generate(query, k=2),
    "apply": lambda dear, frame, query: dear.apply(query, {"income": 50.0}),
    "diagnose": lambda dear, frame, query: dear.diagnose(frame),
    "compare": lambda dear, frame, query: compare({"it": dear}, query, progress=False).summary,
}
OF_RESULTS = {
    "actions": lambda result, path: result.actions,
    "support": lambda result, path: result.support,
    "describe": lambda result, path: result.describe(),
    "letter": lambda result, path: result.letter(),
    "advice": lambda result, path: result.advice(),
    "changes": lambda result, path: result.changes,
    "record": lambda result, path: result.record(result.factuals.index[0]),
    "alternatives": lambda result, path: result.alternatives(3),
    "to_html": lambda result, path: result.to_html(path / "page.html"),
    "shown": lambda result, path: result._repr_html_(),
}


def assert_each_its_own(watch):
    assert counts() == {USERS}
    assert all(seen == {USERS} for seen in watch.model + watch.rule)
    assert all(seen == {1} for seen in watch.own)


class TestCounts:
    @pytest.mark.parametrize("call", OF_METHODS)
    def test_of_calls(self, dear, frame, query, watch, call):
        OF_METHODS[call](dear, frame, query)
        assert_each_its_own(watch)
        assert watch.model or call in ("fit", "diagnose")
        assert watch.own

    @pytest.mark.parametrize("call", OF_RESULTS)
    def test_of_what_a_result_says(self, dear, query, watch, tmp_path, call):
        OF_RESULTS[call](dear.generate(query), tmp_path)
        assert_each_its_own(watch)
        assert watch.rule

    def test_of_a_module_and_of_its_gradient(self, mixed, watch):
        method = Wachter(Net(mixed.net, watch), mixed.schema, config=WachterConfig(1, 2, 1))
        method.fit(mixed.frame).generate(mixed.refused(3))
        assert_each_its_own(watch)
        assert watch.model

    def test_a_model_may_set_them(self, dear, query, watch):
        watch.first["model"] = lambda: torch.set_num_threads(2)
        dear.generate(query)
        assert counts() == {2}
        assert watch.model[-1] == {2}

    @pytest.mark.parametrize("who", ["model", "rule", "own"])
    @pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
    def test_after_errors_and_interrupts(self, dear, query, watch, who, error):
        def fail():
            raise error

        watch.first[who] = fail
        with pytest.raises(error):
            dear.generate(query)
        assert_each_its_own(watch)


class TestOtherThreads:
    def test_they_keep_theirs_while_one_asks(self, dear, query, watch):
        """`torch.set_num_threads` in one would be the count of all that begin afterwards."""
        inside, go, seen = threading.Event(), threading.Event(), []

        def held_up():
            inside.set()
            go.wait(60)

        watch.first["own"] = held_up
        asker = threading.Thread(target=dear.generate, args=[query])
        asker.start()
        assert inside.wait(60)
        other = threading.Thread(target=lambda: seen.append(counts()))
        other.start()
        other.join()
        go.set()
        asker.join()
        assert seen == [{USERS}]
        assert_each_its_own(watch)

    def test_one_that_begins_with_a_call_keeps_the_users(self, dear, query, watch):
        seen = []
        asker = threading.Thread(target=lambda: seen.extend([dear.generate(query), counts()]))
        asker.start()
        asker.join()
        assert seen[-1] == {USERS}
        assert_each_its_own(watch)


class Interrupted:
    """A model that counts its calls; Ctrl-C may come at the first one of another thread."""

    def __init__(self, comes):
        self.calls, self.comes = 0, comes

    def __call__(self, rows):
        self.calls += 1
        if self.comes and threading.current_thread() is not threading.main_thread():
            self.comes = _thread.interrupt_main()
        return (rows["income"] > 5000).to_numpy(float)


def join_all_but(others):
    """Wait for the threads that began since then."""
    for each in {*threading.enumerate()} - others:
        each.join(timeout=60)


@pytest.fixture
def ctrl_c():
    """Ctrl-C raises KeyboardInterrupt here, whatever another test has made of it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_threads_end_soon_after_an_interrupt():
    frame, calls = load_loan(300).features, []
    for comes in (False, True):
        model, others = Interrupted(comes), {*threading.enumerate()}
        dear = DEAR(model, Schema.infer(frame)).fit(frame)
        with pytest.raises(KeyboardInterrupt) if comes else contextlib.nullcontext():
            dear.generate(frame.head(200), n_jobs=2)
        join_all_but(others)
        calls.append(model.calls)
    assert calls[1] < calls[0] / 4


def test_what_decoders_share_is_computed_once_by_threads_that_start_together(frame):
    encoder = Encoder(Schema.infer(frame))
    sample, started, computed = Sample(encoder.rows(frame), encoder), threading.Barrier(4), []

    def share(_):
        started.wait()
        return sample.shared(slow)

    def slow(sample):
        computed.append(sample)
        threading.Event().wait(0.05)
        return object()

    with ThreadPoolExecutor(4) as pool:
        assert len({*pool.map(share, range(4))}) == 1
    assert len(computed) == 1


def test_the_answers_do_not_depend_on_them(dear, query):
    three = dear.generate(query)
    torch.set_num_threads(1)
    one = dear.generate(query)
    pd.testing.assert_frame_equal(one.actions, three.actions, check_exact=True)


class TestThreadsWithinThreads:
    def test_a_failure_that_is_caught_ends_the_inner_ones_alone(self):
        def fail(_):
            raise ValueError

        def outer(i):
            with pytest.raises(ValueError):
                in_threads(fail, [(0,)], 1)
            end_if_stopped()
            return i

        assert in_threads(outer, [(0,), (1,)], 2) == [0, 1]

    def test_a_failure_of_the_outer_ones_ends_them_all(self):
        inside, ended, others = threading.Event(), threading.Event(), {*threading.enumerate()}

        def inner(_):
            inside.set()
            try:
                for _ in range(6000):
                    threading.Event().wait(0.01)
                    end_if_stopped()
            except KeyboardInterrupt:
                ended.set()
                raise

        def outer(i):
            if i:
                in_threads(inner, [(0,), (1,)], 2)
            inside.wait(60)
            raise ValueError

        with pytest.raises(ValueError):
            in_threads(outer, [(0,), (1,)], 2)
        join_all_but(others)
        assert ended.is_set()


def test_what_is_computed_once_keeps_no_lock_after_an_error():
    once = Once()
    with pytest.raises(ZeroDivisionError):
        once.get("key", lambda: 1 / 0)
    assert not once._locks
    assert once.get("key", lambda: 1) == 1
