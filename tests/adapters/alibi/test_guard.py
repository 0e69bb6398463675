"""The error of `import dear_alibi` where Alibi, or a dependency of it, is missing."""

import subprocess
import sys
from pathlib import Path

import pytest

ADAPTERS = Path(__file__).parents[3] / "adapters"


def importing(setup):
    code = f"import sys; sys.path.insert(0, {str(ADAPTERS)!r}); {setup}; import dear_alibi"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr.strip().splitlines()[-1:]


@pytest.mark.ci
@pytest.mark.parametrize("missing", ["alibi", "click"])
def test_a_missing_dependency_is_named_with_its_extra(missing):
    code, last = importing(f"sys.modules[{missing!r}] = None")
    assert code == 1
    assert last[0].startswith(f"ModuleNotFoundError: dear_alibi needs {missing}")
    assert "pip install 'dear-plugin[alibi]'" in last[0]


@pytest.mark.slow
def test_an_error_inside_alibi_is_not_disguised():
    code, last = importing("sys.modules['dill'] = None")
    assert code == 1
    assert "dill" in last[0]
    assert "dear_alibi needs" not in last[0]


def test_the_engine_does_not_import_alibi():
    code = "import sys, dear_plugin; sys.exit('alibi' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
