"""Fixtures that every test may ask for."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_home() -> Path:
    """The folder of the real data sets; where DEAR_DATA_HOME is set, a missing file fails."""
    folder = os.environ.get("DEAR_DATA_HOME")
    if not folder:
        pytest.skip("DEAR_DATA_HOME is not set: no real data")
    return Path(folder)
