"""Concurrency: one fitted DEAR gives everyone the same answers, however many ask at once."""

import copy
import multiprocessing
import pickle
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from dear_plugin import DEAR, Search, Transport, evaluating

THREADS = 8
ROWS = 4

# Python 3.12 warns of every fork beside threads; that there are some is what is tested.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


@pytest.fixture(scope="module")
def noisy(mixed) -> nn.Module:
    """A network whose owner left it in training: dropout is on wherever nobody holds it off."""
    return nn.Sequential(nn.Dropout(0.5), copy.deepcopy(mixed.net)).train()


@pytest.fixture(scope="module")
def query(mixed) -> pd.DataFrame:
    return mixed.frame.iloc[:ROWS]


@pytest.fixture
def fresh(mixed, noisy) -> DEAR:
    """Fitted, and not asked yet: nothing that is learned on first use has been learned.

    One set of little use, so that the pairs in reserve are needed, and support besides.
    """
    search = Search(min_support=0.4)
    return DEAR(noisy, mixed.schema, act_on=["debt", "age"], search=search).fit(mixed.frame[:300])


def answers(dear: DEAR, query: pd.DataFrame) -> list:
    """Everything a result says, those parts too that are computed when they are looked at."""
    result = dear.generate(query)
    return [
        result.counterfactuals,
        result.actions,
        result.support.to_frame(),
        result.alternatives(2),
        pd.DataFrame({"said": [result.describe_row(i) for i in range(len(result))]}),
    ]


class Slow(nn.Module):
    """Whoever goes through its parts is held up until somebody says go."""

    def __init__(self):
        super().__init__()
        self.inside, self.go = threading.Event(), threading.Event()

    def modules(self):
        self.inside.set()
        self.go.wait()
        yield self

    def be_asked(self):
        with evaluating(self):
            pass


def alone(task: tuple[DEAR, pd.DataFrame]) -> list:
    """What a worker process does; OpenMP's threads do not survive a fork: the model has one."""
    torch.set_num_threads(1)
    return answers(*task)


def equal(ours: list, theirs: list) -> None:
    for one, other in zip(ours, theirs, strict=True):
        pd.testing.assert_frame_equal(one, other, check_exact=True)


@pytest.fixture
def eager():
    """Threads change places a thousand times as often as usual."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(usual)


def together(ask) -> list:
    """What some threads get that all begin at the same moment."""
    start = threading.Barrier(THREADS)

    def begin(number: int):
        start.wait()
        return ask(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(begin, range(THREADS)))


def test_eight_threads_get_the_answers_of_one(fresh, query, eager):
    expected = answers(copy.deepcopy(fresh), query)
    for came in together(lambda _: answers(fresh, query)):
        equal(expected, came)


class TestProcesses:
    @pytest.mark.parametrize(
        "how", sorted({"fork", "spawn"} & set(multiprocessing.get_all_start_methods()))
    )
    @pytest.mark.slow
    def test_they_give_the_answers_of_this_one(self, mixed, noisy, fresh, query, how):
        expected = answers(fresh, query)
        with ProcessPoolExecutor(2, multiprocessing.get_context(how)) as pool:
            for came in pool.map(alone, [(fresh, query)] * 2):
                equal(expected, came)

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows does not fork")
    def test_a_child_forked_while_another_thread_is_at_the_flags_is_not_locked_out(
        self, fresh, query
    ):
        expected, slow = answers(fresh, query), Slow()
        asker = threading.Thread(target=slow.be_asked)
        asker.start()
        slow.inside.wait()
        with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
            came = pool.submit(alone, (fresh, query))
            try:
                equal(expected, came.result(timeout=300))
            finally:
                slow.go.set()
                asker.join()

    @pytest.mark.ci
    @pytest.mark.skipif(sys.platform == "win32", reason="Windows does not fork")
    def test_a_child_forked_while_another_thread_learns_is_not_locked_out(
        self, mixed, query, monkeypatch
    ):
        """A lock of that thread would stay closed in the child for ever."""
        hopeless = DEAR(lambda f: np.full(len(f), 0.1), mixed.schema).fit(mixed.frame[:300])
        inside, go, learn = threading.Event(), threading.Event(), Transport.fit

        def held_up(*args):
            inside.set()
            go.wait()
            return learn(*args)

        with monkeypatch.context() as patch:
            patch.setattr(Transport, "fit", held_up)
            asker = threading.Thread(target=hopeless.generate, args=[query])
            asker.start()
            inside.wait()
        child = multiprocessing.get_context("fork").Process(target=hopeless.generate, args=[query])
        child.start()
        child.join(300)
        go.set()
        asker.join()
        child.kill()
        child.join()
        assert child.exitcode == 0

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows does not fork")
    @pytest.mark.parametrize("own", [False, True], ids=["another thread asks", "this one asks"])
    def test_the_flags_of_a_child_are_its_own(self, noisy, own):
        """Whoever asked in another thread is not there, and will not put them back."""
        asked, done = threading.Event(), threading.Event()

        def ask():
            with evaluating(noisy):
                asked.set()
                done.wait()

        asker = threading.Thread(target=ask)
        asker.start()
        asked.wait()
        answers, child_end = multiprocessing.Pipe()
        with evaluating(noisy) if own else nullcontext():
            child = multiprocessing.get_context("fork").Process(
                target=lambda: child_end.send([m.training for m in noisy.modules()])
            )
            child.start()
            child.join()
        done.set()
        asker.join()
        assert set(answers.recv()) == {not own}
        assert all(m.training for m in noisy.modules())


class TestEvaluating:
    def test_the_last_one_out_puts_the_flags_back(self, noisy):
        first, second = evaluating(noisy), evaluating(noisy)
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert not any(m.training for m in noisy.modules())
        second.__exit__(None, None, None)
        assert all(m.training for m in noisy.modules())

    def test_a_copy_and_a_pickle_are_on_their_own(self, noisy):
        with evaluating(noisy):
            other, third = copy.deepcopy(noisy), pickle.loads(pickle.dumps(noisy))
            with evaluating(other.train()), evaluating(third.train()):
                assert not any(m.training for n in (other, third) for m in n.modules())
            assert all(m.training for n in (other, third) for m in n.modules())
        assert all(m.training for m in noisy.modules())
