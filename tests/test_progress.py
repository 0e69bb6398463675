"""Progress: bars appear by default for long work that somebody watches."""

import sys
import threading
import time
from types import SimpleNamespace

import pytest
from tqdm.auto import tqdm

from dear_plugin import DEAR, Schema
from dear_plugin import _threads as module
from dear_plugin._threads import Bar, bar, progress
from dear_plugin.datasets import load_loan


@pytest.fixture
def terminal(monkeypatch):
    """Somebody watches, and all work takes long."""
    monkeypatch.setattr(module, "_watched", lambda: True)
    monkeypatch.setattr(module, "DELAY", 0.0)


def printed(capsys):
    out, err = capsys.readouterr()
    assert out == ""
    return err


def test_long_work_says_what_is_being_done(capsys, terminal):
    list(bar(range(3), "counting"))
    assert "counting" in printed(capsys)


def test_a_bar_says_how_much_is_done(capsys, terminal):
    with Bar(8, "counting") as counted:
        counted.at(0)
        time.sleep(0.15)
        counted.at(6)
    assert "6/8" in printed(capsys)


def test_nothing_is_printed_for_short_work(capsys, terminal, monkeypatch):
    monkeypatch.setattr(module, "DELAY", 60.0)
    list(bar(range(3), "counting"))
    assert printed(capsys) == ""


def test_nothing_is_printed_where_nobody_watches(capsys, monkeypatch):
    monkeypatch.setattr(module, "DELAY", 0.0)
    list(bar(range(3), "counting"))
    assert printed(capsys) == ""


@pytest.mark.parametrize("watched", [True, False])
def test_a_terminal_is_watched_and_a_file_is_not(monkeypatch, watched):
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: watched))
    assert module._watched() is watched


def test_a_notebook_is_watched_and_no_stderr_is_not(monkeypatch):
    stream = type("OutStream", (), {"__module__": "ipykernel.iostream", "isatty": lambda _: False})
    monkeypatch.setattr(sys, "stderr", stream())
    assert module._watched()
    monkeypatch.setattr(sys, "stderr", None)
    assert not module._watched()


@pytest.mark.parametrize("inner", [True, False])
def test_bars_are_switched_off_in_a_context_and_within(capsys, terminal, inner):
    with progress(False), progress(inner):
        list(bar(range(3), "counting"))
    assert printed(capsys) == ""
    list(bar(range(3), "counting"))
    assert "counting" in printed(capsys)


def test_what_is_asked_for_is_shown_at_once(capsys):
    list(bar(range(3), "training", shown=True))
    assert "training" in printed(capsys)


@pytest.mark.parametrize("shown", [False, True])
def test_no_thread_stays_behind(monkeypatch, shown):
    monkeypatch.setattr(tqdm, "monitor", None)
    before = set(threading.enumerate())
    list(bar(range(3), "counting", shown=shown))
    assert set(threading.enumerate()) <= before
    list(tqdm(range(3), disable=True))
    stayed = set(threading.enumerate()) - before
    tqdm.monitor.exit()
    assert stayed  # tqdm's own would


CALLS = {
    "fitting": lambda dear, frame, **how: dear.fit(frame, **how),
    "searching": lambda dear, frame, **how: dear.generate(frame.head(20), **how),
    "diagnosing": lambda dear, frame, **how: dear.diagnose(frame.head(300), **how),
}


@pytest.mark.parametrize("what", CALLS)
def test_long_calls_show_progress_unless_they_are_told_not_to(capsys, terminal, what):
    frame = load_loan(600).features
    schema = Schema.infer(frame, immutable=["gender"])
    dear = DEAR(lambda rows: rows["savings"] / 60, schema).fit(frame, progress=False)
    assert printed(capsys) == ""
    CALLS[what](dear, frame, progress=False)
    assert printed(capsys) == ""
    CALLS[what](dear, frame)
    assert what in printed(capsys)
