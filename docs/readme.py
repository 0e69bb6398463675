"""Copy the tables of the README from docs/results.

python docs/readme.py

A table stands between `<!-- table: name | column = heading; ... | row; ... -->` and
`<!-- end -->`; without rows all of them are taken. A column that a table lacks has "not run".
"""

import re
from pathlib import Path

HERE = Path(__file__).parent
MARKED = re.compile(
    r"(<!-- table: ([^|]+?) \| ([^|]+?)(?: \| ([^|]+?))? -->\n).*?(<!-- end -->)", re.S
)


def read(name):
    """A table of docs/results as dicts; [] if there is none."""
    path = HERE / "results" / f"{name}.md"
    if not path.exists():
        return []
    lines = [line for line in path.read_text("utf8").splitlines() if line.startswith("|")]
    heads, _, *rows = ([cell.strip() for cell in line[1:-1].split("|")] for line in lines)
    return [dict(zip(heads, row, strict=True)) for row in rows]


def table(name, columns, rows):
    """Some columns and rows of a table, with other headings."""
    found = read(name)
    if not found:
        return f"*`docs/results/{name}.md` does not exist yet.*\n"
    heads = dict(pair.split(" = ") for pair in columns.split("; "))
    first = next(iter(heads))
    kept = [row for row in found if not rows or row[first] in rows.split("; ")]
    lines = [list(heads.values()), ["---"] * len(heads)]
    lines += [[row.get(column, "not run") for column in heads] for row in kept]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def filled(text):
    """A text with its tables copied from docs/results."""
    return MARKED.sub(lambda m: m[1] + table(m[2], m[3], m[4] or "") + m[5], text)


if __name__ == "__main__":
    readme = HERE.parent / "README.md"
    readme.write_text(filled(readme.read_text("utf8")), "utf8")
