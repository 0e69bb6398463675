"""Sphinx settings."""

import re
import shutil
import sys
from dataclasses import is_dataclass
from importlib import import_module
from inspect import Signature, signature
from pathlib import Path

from sphinx.util import logging

from dear_plugin import __version__

HERE = Path(__file__).parent
HOME = HERE.parent
sys.path.insert(0, str(HERE))  # docs/mathml.py
NOTEBOOKS = HERE / "notebooks"
# Every name of these modules' `__all__` must be on a page of the API.
PUBLIC = (
    "dear_plugin",
    "dear_plugin.datasets",
    "dear_plugin.decoders",
    "dear_plugin.paper",
    "dear_plugin.plots",
    "dear_plugin.rivals",
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
    "sphinx.ext.autosummary",
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
templates_path = ["_templates"]  # a page of the reference: docs/_templates/autosummary
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


def _copy_pages() -> None:
    """Copy the notebooks and the changelog below docs/; an unchanged file keeps its date."""
    NOTEBOOKS.mkdir(exist_ok=True)
    notebooks = {NOTEBOOKS / path.name: path for path in (HOME / "notebooks").glob("*.ipynb")}
    for old in set(NOTEBOOKS.iterdir()) - notebooks.keys():
        old.unlink()
    for copy, path in {**notebooks, HERE / "changelog.md": HOME / "CHANGELOG.md"}.items():
        if not copy.exists() or copy.read_bytes() != path.read_bytes():
            shutil.copyfile(path, copy)


_copy_pages()


def _warn_of_undocumented(app, env) -> None:
    """Warn of every public name that no page documents."""
    known = {name.rpartition(".")[2] for name, *_ in env.get_domain("py").get_objects()}
    for module in PUBLIC:
        for name in import_module(module).__all__:
            if name not in known and not name.startswith("__"):
                logging.getLogger(__name__).warning("%s.%s is not documented", module, name)


def _link_copies(app, name, source) -> None:
    """Links to notebooks and the changelog lead to their copies, those to tables to downloads."""
    text = (
        source[0].replace("../notebooks/", "notebooks/").replace("../CHANGELOG.md", "changelog.md")
    )
    text = text.replace("](docs/", "](") if name == "changelog" else text
    source[0] = re.sub(r"\]\((results/\S+\.md)\)", r"](path:\1)", text)


def _show_defaults(app, what, name, obj, options, arguments, returned):
    """The signature of settings has their defaults, whatever their `__new__` takes."""
    if what != "class" or "__new__" not in vars(obj) or not is_dataclass(obj):
        return None
    shown = [p.replace(annotation=p.empty) for p in signature(obj.__init__).parameters.values()]
    return str(Signature(shown[1:])), returned


def setup(app) -> None:
    """Link the copies, and check that every public name is documented."""
    app.connect("autodoc-process-signature", _show_defaults)
    app.connect("source-read", _link_copies)
    app.connect("env-check-consistency", _warn_of_undocumented)
