"""Sphinx settings."""

import shutil
import sys
from importlib import import_module
from pathlib import Path
from typing import ClassVar

from docutils.parsers.rst import directives
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from dear_plugin import __version__

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # docs/mathml.py
NOTEBOOKS = HERE / "notebooks"
# Every name of these modules' `__all__` must be on a page of the API.
PUBLIC = (
    "dear_plugin",
    "dear_plugin.baselines",
    "dear_plugin.datasets",
    "dear_plugin.decoders",
    "dear_plugin.plots",
    "dear_dice",
    "dear_alibi",
)

project = "dear-plugin"
author = "dear-plugin authors"
copyright = "dear-plugin authors, MIT licence"
release = version = __version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "mathml",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
html_math_renderer = "mathml"
myst_update_mathjax = False
html_theme = "furo"
html_title = "dear-plugin"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
exclude_patterns = ["_build", "_start.md", "results"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_member_order = "bysource"
default_role = "code"  # in docstrings, single backticks are code
napoleon_google_docstring = True
# Several classes have an attribute `p`, the number of features.
suppress_warnings = ["mystnb.unknown_mime_type", "ref.python"]
# A link to the paper or a publisher must not break a build without a network.
linkcheck_timeout = 20

# The pages show the stored outputs; `make docs` compares them with a fresh run first.
nb_execution_mode = "off"


def _copy_notebooks() -> None:
    """Copy the notebooks below docs/; an unchanged file keeps its date."""
    NOTEBOOKS.mkdir(exist_ok=True)
    wanted = {path.name: path for path in (HERE.parent / "notebooks").glob("*.ipynb")}
    for old in NOTEBOOKS.iterdir():
        if old.name not in wanted:
            old.unlink()
    for name, path in wanted.items():
        copy = NOTEBOOKS / name
        if not copy.exists() or copy.read_bytes() != path.read_bytes():
            shutil.copyfile(path, copy)


_copy_notebooks()


def _warn_of_undocumented(app, env) -> None:
    """Warn of every public name that no page documents."""
    known = {name.rpartition(".")[2] for name, *_ in env.get_domain("py").get_objects()}
    for module in PUBLIC:
        for name in import_module(module).__all__:
            if name not in known and not name.startswith("__"):
                logging.getLogger(__name__).warning("%s.%s is not documented", module, name)


class Results(SphinxDirective):
    """A table in docs/results, or with `alt` a figure, and the command that wrote it.

    ```{results} trees/trees
    :command: python -m dear_plugin.benchmark trees
    ```
    """

    required_arguments = 1
    option_spec: ClassVar = dict.fromkeys(("command", "alt"), directives.unchanged_required)

    def run(self):
        """The table or the figure, or a line with the command that writes it."""
        command, alt = self.options["command"], self.options.get("alt")
        path = HERE / "results" / f"{self.arguments[0]}.{'png' if alt else 'md'}"
        self.env.note_dependency(str(path))
        if not path.exists():
            return self.parse_text_to_nodes(f"*Not run yet:* `{command}` writes this.")
        if alt:
            figure = f"![{alt}](results/{self.arguments[0]}.png)"
            return self.parse_text_to_nodes(f"{figure}\n\n*Made by* `{command}`.")
        table, _, made_with = path.read_text("utf8").strip().partition("\n\n")
        caption = f"*Made by* `{command}`*:* {made_with.strip()}"
        return [*self.parse_text_to_nodes(table), *self.parse_text_to_nodes(caption)]


def _link_copies(app, name, source) -> None:
    """Links of pages to notebooks lead to their copies: they also work in the repository."""
    source[0] = source[0].replace("../notebooks/", "notebooks/")


def setup(app) -> None:
    """Add the directive, and check that every public name is documented."""
    app.add_directive("results", Results)
    app.connect("source-read", _link_copies)
    app.connect("env-check-consistency", _warn_of_undocumented)
