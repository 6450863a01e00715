"""Configure the site that ``make docs`` builds, without a network, from these pages and from docstrings."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from holdfast import __version__

project = "Holdfast"
author = "the Holdfast authors"
copyright = "the Holdfast authors. Apache License 2.0"  # noqa: A001  # Sphinx wants this name
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"Holdfast {release}"
html_copy_source = False
html_show_sphinx = False
html_baseurl = ""

# Pages are written in Markdown. Headings are link targets, so that pages can link to sections.
myst_heading_anchors = 4
suppress_warnings = [
    "misc.highlighting_failure",  # the output of commands is in blocks without a language
]

# Docstrings follow Google's style, with additional sections: for example, what happens on a crash.
default_role = "code"  # `name` in a docstring is shown as code
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_custom_sections = ["Guarantee", "Crash", "Memory", "Source", "Requires", "Ensures"]
