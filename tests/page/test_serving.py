"""Serving the page: a call that waits for its end leaves the process as it was."""

import _thread
import signal
import threading
import time
import urllib.error
import urllib.request

import pytest

pytest.importorskip("panel")

from tests.page.conftest import free_port


def end_when_it_answers(address):
    """Send Ctrl-C, as soon as the page answers."""
    for _ in range(600):
        try:
            urllib.request.urlopen(address, timeout=5).close()
            break
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    _thread.interrupt_main()


def test_ctrl_c_ends_it_and_then_means_what_it_meant(loans):
    dear, refused = loans
    before, port = signal.signal(signal.SIGINT, signal.default_int_handler), free_port()
    try:
        page = dear.explore(refused.head(3))
        ends = threading.Thread(target=end_when_it_answers, args=[f"http://localhost:{port}"])
        ends.start()
        page.show(port, open_browser=False)
        ends.join()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
