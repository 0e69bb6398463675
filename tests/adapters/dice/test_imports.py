"""The error of `import dear_dice` where dice-ml, or a dependency of it, is missing."""

import subprocess
import sys

ABSENT = """
import sys
sys.modules["dice_ml"] = None
try:
    import dear_dice
except ImportError as error:
    sys.exit(str(error))
"""

BROKEN = """
import sys
sys.modules["raiutils"] = None
sys.modules["raiutils.exceptions"] = None
import dear_dice
"""


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )


def test_a_missing_host_names_the_extra():
    done = run(ABSENT)
    assert done.returncode == 1
    assert "pip install 'dear-plugin[dice]'" in done.stderr


def test_an_error_inside_dice_is_not_disguised():
    done = run(BROKEN)
    assert done.returncode == 1
    assert "raiutils" in done.stderr.splitlines()[-1]
    assert "dear-plugin[dice]" not in done.stderr
