"""How Sphinx builds these pages; nothing is fetched from anywhere, and every warning is an error."""

from __future__ import annotations

import os
import re
import sys
from functools import partial
from importlib.metadata import version as installed
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from jupyter_cache.executors import utils as notebooks
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

sys.path.insert(0, str(Path(__file__).parent))

import choices

project = "ce-harness"
author = "ce-harness maintainers"
copyright = author
version = release = installed("ce-harness")

extensions = ["myst_nb", "sphinx_design", "sphinx.ext.autodoc", "numpydoc"]
numpydoc_show_class_members = False
autodoc_typehints = "signature"
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
os.environ["PYTHONWARNINGS"] = "ignore:IProgress not found"  # of tqdm, in notebooks without widgets
nb_execution_mode = "auto"
nb_execution_timeout = 120  # seconds a cell
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_render_markdown_format = "gfm"
notebooks.executenb = partial(notebooks.executenb, coalesce_streams=True)  # what a cell prints comes in pieces of lines

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["narrow.css"]
html_title = "ce-harness"
html_context = {"default_mode": "auto"}  # light or dark, as the system has it
html_show_search_summary = False  # it would fetch pages, which a browser forbids without a server
html_show_copyright = False
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left",
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": [],
    "footer_end": [],
}
OTHERWISE = {r"\textstyle": "", r"\dots": r"\ldots"}  # LaTeX that docutils does not know


def setup(app: Sphinx) -> None:
    """The reference of all choices is written before Sphinx looks for pages."""
    choices.write()
    app.add_html_math_renderer("mathml", (inline, None), (display, None))  # browsers draw it by themselves
    app.connect("autodoc-process-docstring", plain_in_tables, priority=400)  # before numpydoc's 500


def inline(writer: HTML5Translator, node: nodes.math) -> None:
    writer.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def display(writer: HTML5Translator, node: nodes.math_block) -> None:
    """Places to align at need the environment that Sphinx has LaTeX set them in."""
    text = node.astext()
    aligned = "&" in text and "\\begin" not in text
    writer.body.append(mathml(f"\\begin{{aligned}}{text}\\end{{aligned}}" if aligned else text, as_block=True))
    raise nodes.SkipNode


def mathml(text: str, as_block: bool = False) -> str:
    for word, known in OTHERWISE.items():
        text = text.replace(word, known)
    return str(tex2mathml(text, as_block=as_block))


def plain_in_tables(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """A source in the first cell of a row stays as wide as it is: numpydoc would give it a longer name."""
    lines[:] = [re.sub(r"^\[(\d)\]_(?=  )", r"[\1] ", line) for line in lines]
