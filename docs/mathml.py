"""Formulas as MathML, which browsers draw without a script and without a network.

docutils converts them; Sphinx's own renderers load MathJax or need a TeX installation.
"""

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging


def _formula(node, as_block):
    """The MathML of a node; a formula that docutils cannot read is a warning."""
    try:
        return tex2mathml(node.astext(), as_block=as_block)
    except MathError as error:
        logging.getLogger(__name__).warning("%s", error, location=node)
        return ""


def _inline(writer, node):
    writer.body.append(_formula(node, as_block=False))
    raise nodes.SkipNode


def _block(writer, node):
    writer.body.append(f'<div class="math">{_formula(node, as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app):
    """Register the renderer `mathml`."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
