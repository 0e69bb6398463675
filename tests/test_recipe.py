"""The recipe for conda says what pyproject.toml says; conda itself is not run here."""

import re
import tomllib
from pathlib import Path

import pytest

from dear_plugin import __version__

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parent.parent
RECIPE = yaml.safe_load((ROOT / "recipe/recipe.yaml").read_text("utf8"))
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))
PROJECT = SETTINGS["project"]
# The names that packages have on conda-forge, where they differ.
NAMES = {"torch": "pytorch", "matplotlib": "matplotlib-base"}
MINIMUM = "${{ python_min }}"
REQUIREMENT = re.compile(r"([\w-]+)(?:\[.*\])?\s*([^;\s]*)")


def ranges(requirements):
    """The range of each package, by its name on conda-forge."""
    found = (REQUIREMENT.match(each).groups() for each in requirements)
    return {NAMES.get(name, name): given for name, given in found}


def test_dependencies_are_the_same():
    python, *run = RECIPE["requirements"]["run"]
    assert ranges(run) == ranges(PROJECT["dependencies"])
    assert (
        python.replace(MINIMUM, RECIPE["context"]["python_min"])
        == "python " + (PROJECT["requires-python"])
    )


def test_what_builds_it_is_the_same():
    _, _, *host = RECIPE["requirements"]["host"]
    assert ranges(host) == ranges(SETTINGS["build-system"]["requires"])


def test_extras_have_the_same_ranges():
    extras = PROJECT["optional-dependencies"]
    kinds = set(extras) - {"all", "dev", "docs", "test"}
    assert ranges(RECIPE["requirements"]["run_constraints"]) == ranges(
        extras[kind][0] for kind in kinds
    )


def test_version_commands_and_licence_are_the_same():
    assert RECIPE["context"]["version"] == __version__, "state it in recipe/recipe.yaml, too"
    commands = [f"{name} = {where}" for name, where in PROJECT["scripts"].items()]
    assert RECIPE["build"]["python"]["entry_points"] == commands
    assert RECIPE["package"]["name"] == PROJECT["name"]
    assert RECIPE["about"]["license"] == PROJECT["license"]
