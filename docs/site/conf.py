"""
The documentation as a site: `make site` (Sphinx, MyST, Furo).

The source directory is the repository, so that pages link to each other, to notebooks and to other
files by the relative paths that work on GitHub too; the home page is README.md.
"""

import re
import sys
from pathlib import Path
from shutil import copyfile

import check_shapes
import jupytext
import nbformat
from furo.navigation import get_navigation_tree
from sphinx import addnodes
from sphinx.util.inspect import TypeAliasForwardRef
from sphinx.util.matching import patfilter

check_shapes.set_rewrite_docstrings(None)  # ours say the shapes themselves

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
LAB = "docs/lab/README"
sys.path[:0] = [str(HERE), str(ROOT)]

import docstrings  # noqa: E402
import rooms  # noqa: E402

from gpflow_bsvm.version import __version__  # noqa: E402

project = "gpflow_bsvm"
author = "the authors of gpflow_bsvm"
copyright = author
release = version = __version__

# --- what is read ------------------------------------------------------------------------------

root_doc = "README"
include_patterns = ["*.md", "docs/**", "notebooks/*.py", "notebooks/*.md"]
exclude_patterns = [
    *(".*", "build", "dist", "benchmarks", "gpflow_bsvm", "tests", "compare-results"),
    *("*.egg-info", "docs/site/**", "**/.ipynb_checkpoints"),
]
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx_copybutton", "formulas"]
source_suffix = {".md": "myst-nb", ".rst": "restructuredtext", ".py": "myst-nb"}
highlight_language = "text"
smartquotes = False  # quotes are those of strings

myst_enable_extensions = ["dollarmath", "amsmath"]
myst_fence_as_directive = ["math"]  # GitHub's way of writing a formula
myst_heading_anchors = 4  # GitHub's anchors
myst_dmath_double_inline = True

nb_custom_formats = {".py": ["nbformat.reads", {"as_version": 4}]}  # see `take_outputs`
nb_execution_mode = "off"
nb_merge_streams = True

# --- docstrings --------------------------------------------------------------------------------

# An alias of a type is shown by its name alone.
TypeAliasForwardRef.__repr__ = lambda alias: alias.name

autoclass_content = "both"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_type_aliases = {
    name: name
    for name in ("AnyNDArray", "InputData", "MeanAndVariance", "RegressionData", "TensorType")
}
python_maximum_signature_line_length = 88
python_use_unqualified_type_names = True
add_module_names = False
toc_object_entries_show_parents = "hide"

# --- how it looks ------------------------------------------------------------------------------

html_theme = "furo"
pygments_dark_style = "monokai"
html_title = f"gpflow_bsvm {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"top_of_page_buttons": []}


def take_outputs(app, docname, source):
    """
    Show a notebook with the outputs of its executed copy, which the tests hold to its script; as
    code alone where it has not been executed.
    """
    script = ROOT / f"{docname}.py"
    if script.is_file():
        copy = script.parent / "executed" / f"{script.stem}.ipynb"
        code = jupytext.reads(source[0], fmt="py:percent")
        shown = nbformat.read(copy, as_version=4) if copy.is_file() else code
        source[0] = nbformat.writes(shown)


def add_navigation(app, docname, source):
    """
    Give the home page and the index pages their toctrees, which on GitHub would be in the way. A
    line may wait for its page; a page that no line finds is Sphinx's warning, and so an error.
    """
    text = (HERE / "navigation.md").read_text(encoding="utf-8")
    _, *parts = re.split(r"^# (\S+)$", text, flags=re.M)
    lines = dict(zip(parts[::2], parts[1::2])).get(docname, "").splitlines()
    kept = [line for line in lines if "/" not in line or patfilter(app.env.found_docs, line[1:])]
    source[0] = "\n".join([source[0], *kept])


def note_lab(app, doctree):
    """The lab report has an index page of its own, and is in no other."""
    if app.env.docname == LAB:
        app.env.metadata[LAB]["orphan"] = True


def show_lab(app, pagename, templatename, context, doctree):
    """Beside pages of the lab report stands its own navigation."""
    if pagename.startswith("docs/lab/"):
        trees = app.env.get_doctree(LAB).findall(addnodes.toctree)
        shown = [
            app.env.resolve_toctree(pagename, app.builder, tree, prune=False, includehidden=True)
            for tree in trees
        ]
        html = "".join(app.builder.render_partial(tree)["fragment"] for tree in shown)
        context["furo_navigation_tree"] = get_navigation_tree(html)


def mend_links(app, docname, source):
    """
    What GitHub shows and the site has no page for: a link to a source file becomes a download, as
    links to other files are, one to the folder of notebooks leads to their list, and one to
    an executed notebook to the site's page of it.
    """
    folder, text = (ROOT / docname).parent, source[0]
    text = re.sub(r"\]\(((?:\.\./)*notebooks)/executed/(\w+)\.ipynb\)", r"](\1/\2.py)", text)
    text = re.sub(r"\]\(((?:\.\./)*notebooks)/?\)", r"](\1/README.md)", text)
    text = re.sub(r"\]\(executed/(\w+)\.ipynb\)", r"](\1.py)", text)

    def to_file(match):
        path = (folder / match[1]).resolve()
        known = app.env.path2doc(str(path)) in app.env.found_docs
        return f"](path:{match[1]})" if path.is_file() and not known else match[0]

    source[0] = re.sub(r"\]\(([^)\s#:]+\.(?:py|md|rst))\)", to_file, text)


def known_bases(app, name, obj, options, bases):
    """Leave out bases that no page has."""
    bases[:] = [base for base in bases if rooms.says_something(base)]


def add_index(app, exception):
    """Make the home page what a web server looks for."""
    if exception is None and app.builder.name == "html":
        copyfile(Path(app.outdir) / f"{root_doc}.html", Path(app.outdir) / "index.html")


def setup(app):
    """Connect all of the above."""
    rooms.write_pages(ROOT / "docs" / "api")
    app.connect("source-read", take_outputs)
    app.connect("source-read", add_navigation)
    app.connect("source-read", mend_links)
    app.connect("doctree-read", note_lab)
    app.connect("html-page-context", show_lab, priority=900)  # after furo's own
    app.connect("autodoc-process-bases", known_bases)
    app.connect("build-finished", add_index)
    app.connect("autodoc-process-docstring", docstrings.process)
