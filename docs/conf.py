"""How Sphinx builds these pages; nothing is fetched from anywhere, and every warning is an error."""

from __future__ import annotations

from importlib.metadata import version as installed

project = "ce-harness"
author = "ce-harness maintainers"
copyright = author
version = release = installed("ce-harness")

extensions = ["myst_nb", "sphinx_design"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "cache"
nb_execution_timeout = 120  # seconds a cell
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_merge_streams = True

html_theme = "pydata_sphinx_theme"
html_title = "ce-harness"
html_show_copyright = False
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left",
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": [],
    "footer_end": [],
}
