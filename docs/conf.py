"""Sphinx configuration; `make docs` builds with warnings as errors."""

from __future__ import annotations

import tasksieve

project = "tasksieve"
author = "tasksieve developers"
copyright = "tasksieve developers"
release = tasksieve.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "numpydoc"]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = "tasksieve"
html_static_path = ["_static"]

# Members are listed by hand where a class has more than fits its own page.
autodoc_default_options = {"member-order": "bysource"}
autodoc_typehints = "none"
numpydoc_show_class_members = False
