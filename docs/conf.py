"""Sphinx settings."""

from dear_plugin import __version__

project = "dear-plugin"
author = "dear-plugin authors"
release = version = __version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
]
html_theme = "furo"
html_title = "dear-plugin"
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath"]
autodoc_typehints = "description"
autodoc_member_order = "bysource"
autodoc_mock_imports: list[str] = []
napoleon_google_docstring = True
nb_execution_mode = "off"
# Several classes have an attribute `p`, the number of features.
suppress_warnings = ["mystnb.unknown_mime_type", "ref.python"]
