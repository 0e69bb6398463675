"""Copy tables of docs/results, and the code that starts pages, into the README and the pages.

python docs/tables.py

What stands between one of these lines and `<!-- end -->` is written by this command:

* `<!-- file: path -->`: a file of this folder, such as the code that many pages begin with.
* `<!-- results: name | command -->`: a table and how it was made, or a link if it is long.
* `<!-- table: name | column = heading; ... | row; ... | column = value -->`: some columns of a
  table, and some of its rows, named by their first cell; `*` or no rows are all of them; the last
  part takes rows with a value only. A column that the table lacks has "not run".
* `<!-- value: name column = value; ... -->`, in a line: the value of one line of a CSV.
* `<!-- cell: name column = value; ... -> column -->`, in a line: a cell of one line of a table.
"""

import csv
import os
import re
from pathlib import Path

HERE = Path(__file__).parent
PAGES = [HERE.parent / "README.md", *sorted(HERE.glob("[!_]*.md")), HERE / "api" / "index.md"]
MARKED = re.compile(r"(<!-- (file|results|table): (.+?) -->\n).*?(<!-- end -->)", re.S)
VALUE = re.compile(r"(<!-- value: (\S+) (.+?) -->).*?(<!-- end -->)")
CELL = re.compile(r"(<!-- cell: (\S+) (.+?) -> (.+?) -->).*?(<!-- end -->)")
# Larger values have no decimals.
MOST_DECIMALS = 100
# A longer table is linked.
MOST_LINES = 6


def read(name):
    """A table of docs/results as dicts; [] if there is none."""
    path = HERE / "results" / f"{name}.md"
    if not path.exists():
        return []
    lines = [line for line in path.read_text("utf8").splitlines() if line.startswith("|")]
    heads, _, *rows = ([cell.strip() for cell in line[1:-1].split("|")] for line in lines)
    return [dict(zip(heads, row, strict=True)) for row in rows]


def table(name, columns, rows="*", only=""):
    """Some columns and rows of a table, with other headings."""
    found = read(name)
    if not found:
        return f"*`docs/results/{name}.md` does not exist yet.*\n"
    heads = dict(pair.split(" = ") for pair in columns.split("; "))
    first = next(iter(heads))
    column, _, value = only.partition(" = ")
    kept = [row for row in found if rows == "*" or row[first] in rows.split("; ")]
    kept = [row for row in kept if not only or row[column] == value]
    lines = [list(heads.values()), ["---"] * len(heads)]
    lines += [[row.get(column, "not run") for column in heads] for row in kept]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def results(folder, name, command):
    """A table and the command that wrote it, for a page in a folder."""
    path = HERE / "results" / f"{name}.md"
    if not path.exists():
        return f"*Not run yet:* `{command}` writes this.\n"
    text, _, made_with = path.read_text("utf8").strip().partition("\n\n")
    lines = len(text.splitlines()) - 2
    if lines > MOST_LINES:
        link = os.path.relpath(path, folder)
        return f"[The table, {lines} lines]({link}), *made by* `{command}`.\n"
    return f"{text}\n\n*Made by* `{command}`*:* {made_with.strip()}\n"


def value(mark):
    """The value of the one line of a CSV that has the values of the mark."""
    with open(HERE / "results" / f"{mark[2]}.csv", encoding="utf8") as file:
        line = only_line(csv.DictReader(file), mark[3])
    number = float(line["value"])
    return f"{mark[1]}{number:.{2 if number < MOST_DECIMALS else 0}f}{mark[4]}"


def cell(mark):
    """The cell of the one line of a table that has the values of the mark."""
    return f"{mark[1]}{only_line(read(mark[2]), mark[3])[mark[4]]}{mark[5]}"


def only_line(lines, values):
    """The one line that has values, `column = value; ...`."""
    wanted = [pair.split(" = ") for pair in values.split("; ")]
    (line,) = [each for each in lines if all(each[n] == v for n, v in wanted)]
    return line


def filled(text, folder):
    """The text of a page in a folder with what is copied into it."""

    def copied(mark):
        kind, parts = mark[2], mark[3].split(" | ")
        if kind == "file":
            return (HERE / parts[0]).read_text("utf8")
        return results(folder, *parts) if kind == "results" else table(*parts)

    return CELL.sub(cell, VALUE.sub(value, MARKED.sub(lambda m: m[1] + copied(m) + m[4], text)))


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(filled(page.read_text("utf8"), page.parent), "utf8")
