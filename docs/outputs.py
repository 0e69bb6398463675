"""Run the code of pages, and write what it prints, displays and draws into the documentation.

python docs/outputs.py [page ...]

Without arguments all pages are run. A `text` block after a `python` block gets what it prints; a
file of `docs/_static/outputs` that is included after one gets the HTML of its last expression;
figures that `gallery.md` saves go to `docs/images/gallery`.
"""

import ast
import contextlib
import io
import os
import re
import shutil
import sys
import tempfile
import textwrap
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).parent
PAGES = sorted([*HERE.glob("[!_]*.md"), *HERE.glob("guides/*.md")])
FENCE = re.compile(
    r"^```(?:(?P<kind>python|text)\n(?P<code>.*?)"
    r"|\{include\} (?P<start>\S*_start\.md)\n"
    r"|\{raw\} html\n:file: (?P<html>\S+)\n)```$",
    re.M | re.S,
)
WIDTH = 99


def displayed(code, namespace):
    """Run code; what it prints, and the HTML of its last expression, if any."""
    tree, output = ast.parse(code), io.StringIO()
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(output):
        exec(compile(tree, "page", "exec"), namespace)
        value = last and eval(compile(ast.Expression(last.value), "page", "eval"), namespace)
    html = getattr(value, "_repr_html_", lambda: "")
    return output.getvalue(), html()


def wrapped(text):
    """A text whose sentences are broken at spaces; tables and lists are not."""
    lines = [line.rstrip() for line in text.splitlines()]
    broken = [textwrap.fill(line, WIDTH) if ". " in line else line for line in lines]
    return "".join(f"{line}\n" for line in broken)


def refreshed(page, folder):
    """The text of a page with its outputs as they are now; HTML is written to its file."""
    module = sys.modules["page"] = ModuleType("page")  # its classes can be pickled
    namespace, printed, html = vars(module), None, ""

    def visit(fence):
        nonlocal printed, html
        if fence["start"]:
            text = (page.parent / fence["start"]).read_text("utf8")
            for part in FENCE.finditer(text):
                displayed(part["code"], namespace)
        if fence["html"]:
            (page.parent / fence["html"]).write_text(html, "utf8")
        is_output = fence["kind"] == "text" and printed
        result = f"```text\n{wrapped(printed)}```" if is_output else fence[0]
        printed = None
        if fence["kind"] == "python":
            printed, html = displayed(fence["code"], namespace)
        return result

    with contextlib.chdir(folder):
        return FENCE.sub(visit, page.read_text("utf8"))


def main(pages):
    """Refresh pages."""
    for page in pages:
        with tempfile.TemporaryDirectory() as folder:
            page.write_text(refreshed(page, folder), "utf8")
            for figure in Path(folder).glob("*.png") if page.name == "gallery.md" else ():
                shutil.copy(figure, HERE / "images" / "gallery" / figure.name)


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "agg")
    main([Path(name).resolve() for name in sys.argv[1:]] or PAGES)
