"""Run the code of pages, and write what it prints and draws into the documentation.

python docs/outputs.py [page ...]

Without arguments all pages are run. A `text` block after a `python` block gets what it prints;
figures that `gallery.md` saves go to `docs/images/gallery`. Code in a `py` block is not run.
"""

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
PAGES = [HERE.parent / "README.md", *sorted(HERE.glob("[!_]*.md")), *HERE.glob("guides/*.md")]
FENCE = re.compile(r"^```(python|text)\n(.*?)```$", re.M | re.S)
WIDTH = 99


def printed(code, namespace):
    """Run code; what it prints."""
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(compile(code, "page", "exec"), namespace)
    return output.getvalue()


def wrapped(text):
    """A text whose sentences are broken at spaces; tables and lists are not."""
    lines = [line.rstrip() for line in text.splitlines()]
    broken = [textwrap.fill(line, WIDTH) if ". " in line else line for line in lines]
    return "".join(f"{line}\n" for line in broken)


def refreshed(page, folder):
    """The text of a page with its outputs as they are now."""
    module = sys.modules["page"] = ModuleType("page")  # its classes can be pickled
    output = ""

    def visit(fence):
        nonlocal output
        kind, content = fence.groups()
        if kind == "python":
            output = printed(content, vars(module))
        is_output, text = kind == "text" and output, output
        output = output if kind == "python" else ""
        return f"```text\n{wrapped(text)}```" if is_output else fence[0]

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
