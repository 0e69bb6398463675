"""The README as package indexes show it has no picture and no link that leads nowhere."""

import re
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("hatchling")
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager

ROOT = Path(__file__).parent.parent
LINKED = re.compile(r"\]\(([^)\s]+)\)")


def built(address):
    """The metadata of the package, as it is built for a repository at an address."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))
    config["tool"]["hatch"]["metadata"]["hooks"]["custom"]["address"] = address
    return ProjectMetadata(str(ROOT), PluginManager(), config).core


@pytest.mark.parametrize("address", ["", "https://example.org/dear-plugin"])
def test_a_built_package_has_no_relative_picture_or_link(address):
    links = LINKED.findall(built(address).readme)
    assert links
    assert all(link.startswith("https://") for link in links)


def test_a_picture_leads_to_the_version_s_tag():
    core = built("https://example.org/dear-plugin/")
    assert re.search(r"!\[.+\]\(https://example.org/dear-plugin/raw/v[\d.]+/docs/", core.readme)
    assert core.urls["Issues"] == "https://example.org/dear-plugin/issues"


def test_without_an_address_there_is_none_that_leads_nowhere():
    assert list(built("").urls) == ["Paper"]
