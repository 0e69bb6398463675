"""The code and its work are counted, and become less only."""

import sys
import tomllib
from importlib.metadata import version

import pytest

from tests import budgets

NUMBERS = tomllib.loads(budgets.FILE.read_text(encoding="utf-8"))
CONSTRAINTS = (budgets.ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
# Other versions train other models and call other functions.
COUNTED = ("torch", "numpy", "scikit-learn")
PINNED = sys.version_info[:2] == (3, 11) and all(
    f"{name}=={version(name).partition('+')[0]}" in CONSTRAINTS for name in COUNTED
)


def test_the_code_is_not_larger_than_its_budget():
    assert not list(budgets.complaints(NUMBERS["size"], budgets.size()))


@pytest.mark.skipif(not PINNED, reason="counts are of the versions in constraints.txt")
def test_no_call_computes_more_than_its_budget():
    assert not list(budgets.complaints(NUMBERS["work"], budgets.work()))


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (1000, []),
        (1030, []),
        (1031, ["fit: 1031 operations, more than 1000: take it back"]),
        (900, []),
        (899, ["fit: 899 operations, less than 1000: lower the number"]),
    ],
)
def test_a_number_is_exceeded_by_little_and_lowered_where_it_is_undercut(count, said):
    numbers = {"fit": {"operations": 1000}}
    assert list(budgets.complaints(numbers, {"fit": {"operations": count}})) == said


def test_comments_docstrings_and_blank_lines_are_no_code(tmp_path):
    file = tmp_path / "some.py"
    file.write_text('"""A.\n\nB.\n"""\n\n# C.\nx = (\n    1,\n)\n\n\ndef f():\n    """D."""\n')
    assert budgets.code_lines(file) == 4
