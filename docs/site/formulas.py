"""Formulas as MathML, which browsers show by themselves: no script, and no network."""

import re

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

#: A name such as log, with the end of what stands before it and a bracket after it.
FUNCTION = re.compile(
    r"(</m(?!o)\w+>\s*)?(<mi[^>]*>\w\w+</mi>\s*<mo>&Appl\w+;</mo>)(\s*<mo[^>]*>\()?"
)
THIN = '<mspace width="0.17em"/>'


def spaced(mathml):
    """:return: with TeX's thin spaces around names of functions, which Docutils leaves out."""
    return FUNCTION.sub(lambda m: (m[1] + THIN if m[1] else "") + m[2] + (m[3] or THIN), mathml)


def _mathml(node, as_block):
    """:return: the formula, or what it is written as, with a warning, which ends the build."""
    try:
        return spaced(tex2mathml(node.astext(), as_block=as_block))
    except MathError as error:
        logging.getLogger(__name__).warning(str(error), location=node)
        return node.astext()


def _inline(writer, node):
    writer.body.append(_mathml(node, as_block=False))
    raise nodes.SkipNode


def _block(writer, node):
    writer.body.append(f'<div class="math">{_mathml(node, as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app):
    """Make this the renderer `mathml`."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
