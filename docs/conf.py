"""Sphinx configuration; `make docs` builds with warnings as errors, and the pages ask nothing of the network."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

import tasksieve

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_extensions")]
matplotlib.use("agg")

from documented_methods import DocumentedMethods  # noqa: E402

project = "tasksieve"
author = "tasksieve developers"
copyright = "tasksieve developers"
release = tasksieve.__version__

extensions = [
    "myst_parser",
    "native_math",
    "numpydoc",
    "plain_pages",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "gallery/backreferences", "sg_execution_times.rst", "gallery/sg_execution_times.rst"]
templates_path = ["_templates"]

html_theme = "furo"
html_title = "tasksieve"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
pygments_dark_style = "github-dark"
html_math_renderer = "mathml"
html_copy_source = False

# For programs that read: a Markdown twin of every page, and llms.txt with all of them.
llms_summary = "Sparse multi-task learning whose every answer carries a proof: many related regressions, one selection."
llms_details = (
    "Every page is here as Markdown. Start with quickstart.md; api.md lists all names. In R the package is called "
    "tasksieve, too (from-r.md says what becomes of glmnet's arguments). The command `tasksieve mcp` offers the "
    "commands to assistants as tools (howto/assistants.md)."
)

# One page for each class and function: docs/api.md names them, the stubs are written to docs/api/generated.
default_role = "py:obj"
autosummary_generate = True
autosummary_context = {"documented_methods": DocumentedMethods()}
autodoc_default_options = {"member-order": "bysource"}
autodoc_typehints = "none"
maximum_signature_line_length = 88
add_module_names = False
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False

# Worked analyses: an example that fails ends the build.
sphinx_gallery_conf = {
    "examples_dirs": [str(HERE.parent / "examples" / "gallery")],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"plot_",
    "within_subsection_order": "ExampleTitleSortKey",
    "abort_on_example_error": True,
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("tasksieve",),
    "copyfile_regex": r".*\.json",
    "download_all_examples": False,
    "min_reported_time": 60,
    "show_signature": False,
    "capture_repr": (),
    "remove_config_comments": True,
    "image_srcset": [],
}
