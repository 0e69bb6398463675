"""Progress: nothing is printed unless it is switched on, nor for short work."""

import logging
import threading
import time

import pytest
from tqdm.auto import tqdm

from dear_plugin import _progress as progress
from dear_plugin._progress import bar


@pytest.fixture
def at_info():
    log = logging.getLogger("dear_plugin")
    log.setLevel(logging.INFO)
    yield
    log.setLevel(logging.NOTSET)


def test_nothing_is_printed_by_default(capsys, monkeypatch):
    monkeypatch.setattr(progress, "DELAY", 0.0)
    list(bar(range(3), "counting"))
    assert capsys.readouterr() == ("", "")


def test_nothing_is_printed_for_short_work(capsys, at_info):
    list(bar(range(3), "counting"))
    assert capsys.readouterr() == ("", "")


def test_long_work_says_what_is_being_done(capsys, monkeypatch, at_info):
    monkeypatch.setattr(progress, "DELAY", 0.05)
    for _ in bar(range(3), "counting"):
        time.sleep(0.15)
    out, err = capsys.readouterr()
    assert out == ""
    assert "counting" in err


def test_what_is_asked_for_is_shown_at_once(capsys):
    list(bar(range(3), "training", shown=True))
    assert "training" in capsys.readouterr().err


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
