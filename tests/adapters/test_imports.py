"""The error of importing an adapter where its host, or a dependency of that, is missing."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ADAPTERS = Path(__file__).parents[2] / "adapters"
# The host, and a module whose absence is an error inside of it.
HOSTS = {"dear_dice": ("dice_ml", "raiutils"), "dear_alibi": ("alibi", "dill")}
EXTRAS = {"dear_dice": "dear-plugin[dice]", "dear_alibi": "dear-plugin[alibi]"}


def failed(adapter, *missing):
    """The last line of the error of an import without some modules."""
    absent = f"sys.modules.update(dict.fromkeys({missing}))"
    code = f"import sys; sys.path.insert(0, {str(ADAPTERS)!r}); {absent}; import {adapter}"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    return done.stderr.strip().splitlines()[-1]


@pytest.mark.ci
@pytest.mark.parametrize(
    ("adapter", "missing", "named"),
    [
        ("dear_dice", "dice_ml", "dice-ml"),
        ("dear_alibi", "alibi", "alibi"),
        ("dear_alibi", "click", "click"),
    ],
)
def test_a_missing_host_is_named_with_its_extra(adapter, missing, named):
    last = failed(adapter, missing)
    assert last.startswith(f"ModuleNotFoundError: {adapter} needs {named}")
    assert f"pip install '{EXTRAS[adapter]}'" in last


@pytest.mark.ci
@pytest.mark.parametrize("adapter", HOSTS)
def test_an_error_inside_the_host_is_not_disguised(adapter):
    host, inside = HOSTS[adapter]
    if find_spec(host) is None:
        pytest.skip(f"{host} is not installed")
    last = failed(adapter, inside, f"{inside}.exceptions")
    assert inside in last
    assert f"{adapter} needs" not in last and EXTRAS[adapter] not in last


LATER = ("alibi", "dice_ml", "sklearn", "scipy", "joblib", "matplotlib")


def test_the_engine_imports_no_host_and_what_is_slow_to_import_when_it_is_used():
    code = f"import sys, dear_plugin; sys.exit(any(m in sys.modules for m in {LATER}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
