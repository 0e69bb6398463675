"""Metadata hook: the README as package indexes show it, and the addresses of the project.

An index knows no files of the repository. With `address` of `[tool.hatch.metadata.hooks.custom]`
pictures and links lead there, to the version's tag; without, links are their text and pictures
their description.
"""

import re
from functools import partial
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

# A link or, with "!", a picture of Markdown: its words, and its path or address.
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\]\([^)]*\))*)\]\((?!https?:|#)([^)\s]+)\)")
VERSION = re.compile(r'__version__ = "(.+)"')
PAPER = "https://arxiv.org/abs/2211.02151"


def _replaced(address, version, found):
    """A link with an absolute address, or its words."""
    is_picture, words, path = found.groups()
    if not address:
        return f"*{words}*" if is_picture else words
    return f"{is_picture}[{words}]({address}/{'raw' if is_picture else 'blob'}/v{version}/{path})"


def long_description(readme, address, version):
    """A README without relative pictures and links."""
    return LINK.sub(partial(_replaced, address, version), readme)


def urls(address):
    """The addresses of a project; the paper's alone if it has none."""
    own = {
        "Homepage": address,
        "Issues": f"{address}/issues",
        "Changelog": f"{address}/blob/main/CHANGELOG.md",
        "Documentation": f"{address}/blob/main/docs/index.md",
    }
    return {"Paper": PAPER} | (own if address else {})


class ReadmeHook(MetadataHookInterface):
    """Sets `readme` and `urls`, which pyproject.toml lists as dynamic."""

    def update(self, metadata):
        """Write both into the metadata."""
        root, address = Path(self.root), self.config.get("address", "").rstrip("/")
        source = (root / "dear_plugin" / "_version.py").read_text("utf8")
        text = long_description(
            (root / "README.md").read_text("utf8"), address, VERSION.search(source)[1]
        )
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        metadata["urls"] = urls(address)
