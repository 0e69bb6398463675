"""Run the notebooks and compare their outputs with the stored ones, or store them.

python docs/check_notebooks.py            those that changed, or whose code did, since they passed
python docs/check_notebooks.py --store    run all and store their outputs
python docs/check_notebooks.py 01 05      only these; also with --store

Compared are texts and tables, not images. Words and whole numbers must be the same; a number with
decimals may differ by one in its last decimal, and the amount of white space is free. A notebook
on published data is left out where DEAR_DATA_HOME does not name their folder. On another kind of
processor than that of the stored outputs, where floating-point numbers and hence trained networks
may differ, differences are printed and are no error.
"""

import argparse
import difflib
import hashlib
import os
import platform
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

HERE = Path(__file__).parent
HOME = HERE.parent
PASSED = HERE / "_build" / "notebooks"
# Each runs in a process of its own.
AT_ONCE = 2
# For one cell; a machine in other use takes several times as long.
SECONDS = 600
NUMBER = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?")
TAG = re.compile(r"(<[^>]+>)")
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
# What is stored of an output: the first of these formats that it has.
KEPT = ("image/png", "text/html", "text/markdown", "text/plain")


def notebooks(names):
    """The notebooks whose file names begin with one of the names; all without names."""
    paths = sorted((HOME / "notebooks").glob("*.ipynb"))
    named = [path for path in paths if not names or path.name.startswith(tuple(names))]
    return [path for path in named if has_data(path)]


def has_data(path):
    """Whether this machine has the data of a notebook; if not, that is printed."""
    needs = re.search("load_adult|load_give_me_some_credit", path.read_text("utf8"))
    found = not needs or bool(os.environ.get("DEAR_DATA_HOME"))
    if not found:
        print(f"{path.name}: left out, DEAR_DATA_HOME is not set")
    return found


def processor():
    """The kind of processor of this machine."""
    path = Path("/proc/cpuinfo")
    first = path.read_text("utf8").partition("\n\n")[0] if path.exists() else ""
    facts = dict(re.findall(r"(\S.*?)\s*: (.*)", first))
    known = [facts[name] for name in ("model name", "cpu family", "model") if name in facts]
    return " ".join(known) or platform.machine()


def fingerprint(path):
    """A digest of all that the outputs of a notebook depend on."""
    digest = hashlib.sha256()
    code = [*(HOME / "dear_plugin").rglob("*.py"), *(HOME / "adapters").rglob("*.py")]
    for each in sorted([path, *code, *(HERE / "results").rglob("*.md")]):
        digest.update(each.read_bytes())
    return digest.hexdigest()[:16]


def run(path):
    """The notebook after a run in a new kernel, in its own folder."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=SECONDS,
        resources={"metadata": {"path": str(path.parent)}},
        record_timing=False,
        coalesce_streams=True,
        # Jupyter's own warnings are about its sockets.
        extra_arguments=["--IPKernelApp.log_level=40"],
    )
    client.execute()
    notebook.metadata = nbformat.from_dict({**METADATA, "stored_on": processor()})
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs = [kept(each) for each in cell.outputs if each.get("name") != "stderr"]
    return notebook


def kept(output):
    """An output without metadata and without the formats that are not stored."""
    if "data" in output:
        output.metadata = {}
        kinds = [kind for kind in KEPT if kind in output.data]
        output.data = {kind: output.data[kind] for kind in kinds[:1]}
    return output


def texts(notebook):
    """The texts and tables of each code cell, by the id of the cell."""
    cells = (cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    return {cell["id"]: "\n".join(map(output_text, cell["outputs"])) for cell in cells}


def output_text(output):
    """The text and the HTML of one output; "" for an image alone."""
    data = output.get("data", {"text/plain": output.get("text", "")})
    kinds = [kind for kind in KEPT if kind != "image/png" and kind in data]
    return "\n".join("".join(data[kind]) for kind in kinds)


def same(stored, fresh):
    """Whether two texts are the same up to white space and one unit in the last decimal."""
    if words(stored) != words(fresh):
        return False
    pairs = zip(NUMBER.findall(stored), NUMBER.findall(fresh), strict=True)
    return all(close(Decimal(old), Decimal(new)) for old, new in pairs)


def words(text):
    """A text without numbers that have decimals, and without the amount of white space."""
    return " ".join(NUMBER.sub("#", text).split())


def close(old, new):
    """Whether two numbers differ by at most one in the last decimal of the shorter one."""
    last = max(old.as_tuple().exponent, new.as_tuple().exponent)
    return abs(old - new) <= Decimal(1).scaleb(last)


def differences(stored, fresh):
    """The lines that differ, cell by cell."""
    old, new = texts(stored), texts(fresh)
    for cell, text in new.items():
        before = old.get(cell, "")
        if not same(before, text):
            yield f"  cell {cell!r}: - stored, + fresh"
            for line in difflib.unified_diff(lines(before), lines(text), lineterm="", n=0):
                yield f"    {line[:160]}"


def lines(text):
    """The lines of a text, with a line for every tag."""
    return TAG.sub(r"\n\1", text).splitlines()


def timed(step):
    """A step that prints how long it took for a notebook, and the lines that it returns."""

    def _step(path):
        start = time.perf_counter()
        found = step(path)
        print(f"{path.name}: {time.perf_counter() - start:.0f} s", *found, sep="\n", flush=True)
        return found

    return _step


@timed
def check(path):
    """Run a notebook that has not passed before; the lines that differ."""
    import nbformat

    passed = PASSED / f"{path.stem}-{fingerprint(path)}"
    if passed.exists():
        return []
    fresh, stored = run(path), nbformat.read(path, as_version=4)
    found = list(differences(stored, fresh))
    if found and stored.metadata.get("stored_on") != processor():
        print(f"{path.name}: stored on another kind of processor", *found, sep="\n", flush=True)
        return []
    if not found:
        PASSED.mkdir(parents=True, exist_ok=True)
        passed.touch()
    return found


@timed
def store(path):
    """Run a notebook and store its outputs."""
    import nbformat

    nbformat.write(run(path), path)
    return []


def main():
    """Check or store the notebooks that are named."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="how the file names begin, such as 01")
    parser.add_argument("--store", action="store_true", help="store the outputs")
    options = parser.parse_args()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        failed = any([*pool.map(store if options.store else check, notebooks(options.names))])
    if failed:
        print("Outputs differ. If that is right: `make notebooks` stores those of this machine.")
    sys.exit(failed)


if __name__ == "__main__":
    main()
