"""Run the code of pages, and write what it prints and draws into the documentation.

python docs/outputs.py [page ...]

Without arguments all pages are run. A `text` block after a `python` block gets what it prints;
figures that are saved go to `docs/images/gallery`. The commands `dear-plugin ...` of a `shell`
block are run, too. Blocks of other names (`py`, `sh`) are not run.
"""

import contextlib
import io
import os
import re
import shlex
import shutil
import sys
import tempfile
import textwrap
from pathlib import Path
from types import ModuleType

from dear_plugin.__main__ import main

HERE = Path(__file__).parent
PAGES = [HERE.parent / "README.md", *sorted(HERE.glob("[!_]*.md")), HERE / "api" / "index.md"]
FENCE = re.compile(r"^```(python|shell|text)\n(.*?)```$", re.M | re.S)
WIDTH = 99


def run_commands(lines, _):
    """Run the commands of `dear-plugin`."""
    for line in lines.replace("\\\n", " ").splitlines():
        main(shlex.split(line, comments=True)[1:])


def run_code(code, namespace):
    """Run Python code in a namespace."""
    exec(compile(code, "page", "exec"), namespace)


RUN = {"python": run_code, "shell": run_commands}


def printed(kind, code, namespace):
    """Run code or commands; what they print."""
    with contextlib.redirect_stdout(io.StringIO()) as output:
        RUN[kind](code, namespace)
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
        if kind in RUN:
            output = printed(kind, content, vars(module))
        is_output, text = kind == "text" and output, output
        output = output if kind in RUN else ""
        return f"```text\n{wrapped(text)}```" if is_output else fence[0]

    with contextlib.chdir(folder):
        return FENCE.sub(visit, page.read_text("utf8"))


def refresh(pages):
    """Refresh pages."""
    for page in pages:
        with tempfile.TemporaryDirectory() as folder:
            page.write_text(refreshed(page, folder), "utf8")
            for figure in Path(folder).glob("*.png"):
                shutil.copy(figure, HERE / "images" / "gallery" / figure.name)


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "agg")
    refresh([Path(name).resolve() for name in sys.argv[1:]] or PAGES)
