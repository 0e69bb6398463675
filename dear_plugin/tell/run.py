"""`dear-plugin letters`: letters, answers and records for the rows of a file."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import torch

from dear_plugin._threads import bar
from dear_plugin._version import __version__
from dear_plugin.data.feature import with_cells
from dear_plugin.data.schema import Schema
from dear_plugin.errors import InputError, unknown
from dear_plugin.methods.dear import DEAR
from dear_plugin.methods.saving import FILE
from dear_plugin.results.changes import Hindrance, Line, frame
from dear_plugin.results.recourses import Recourses
from dear_plugin.tell import files, schemas
from dear_plugin.tell.letter import LetterTemplate, guess, in_the_way, letters, unlabelled, ways_of
from dear_plugin.tell.record import plain

# Rows that are answered and written at once: an interrupted run continues after them; and the
# answers of each, of which letters state the first that can be stated.
ROWS_AT_ONCE, RANKS = 50, 8
# Seconds between two lines of progress.
EVERY = 30.0
RUN, LETTERS_PAGE = "run.json", "letters.html"
PARTS, LETTERS, RECORDS = "parts", "letters", "records"
# The last one of some rows says that they are complete.
TABLES = ("changes", "actions")
# What a letter says, by the sentence of the template that it then has.
KINDS = {
    "accepted": "accepted already",
    "unreadable": "cannot be read",
    "none": "without a way that we can recommend",
}
ADVICE = "with what to do"
MOST_REASONS = 3
# Why a row that needs none has no advice.
NEEDLESS = "accepted as it is: no change is needed, and the letter names none"
CASE = "case"
EXPECTED = (
    "expected --train with training rows and --schema (dear-plugin schema train.csv --target ..."
    " writes one), or --saved with a saved DEAR"
)
UNLABELLED = (
    "letters call a column what people call it, and these have no label: write the lines below in"
    " {}, each below the table of its column, or correct them first; --unlabelled writes the names"
    " of columns instead\n\n{}"
)
# Characters that a name of a file cannot have.
UNSAFE = str.maketrans(dict.fromkeys('<>:"/\\|?*\0', "_"))
# What the table "letters" of a schema file may state, in the place of options.
STATED = ("act_on", "index", "want", "language", "until")


@dataclass(frozen=True)
class Letters:
    """The settings of `dear-plugin letters`.

    Attributes:
        rows: a file of the rows to answer.
        model: a file of joblib, pickle or skops, or `module:attribute`.
        out: the folder to write to.
        trust: whether code of the model file may run.
        train: a file of training rows, unless there is a saved DEAR.
        schema: a file of `dear-plugin schema`, of these rows.
        saved: the folder of a saved DEAR, in the place of `train` and `schema`.
        act_on: the features to act on; none for all that may change.
        index: the column of `rows` that has the cases; "" for the number of the row.
        want: the wanted class; "" for class 1.
        language: of the letters.
        until: until when people without a way can ask again, as the letters say it.
        ways: the most ways in one letter, 1 to 3.
        n_jobs: the number of threads that fit and search.
        unlabelled: whether letters may have names of columns in the place of labels.
    """

    rows: Path
    model: str
    out: Path
    trust: bool = False
    train: Path | None = None
    schema: Path | None = None
    saved: Path | None = None
    act_on: Sequence[str] = ()
    index: str = ""
    want: str = ""
    language: str = ""
    until: str = ""
    ways: int = 1
    n_jobs: int = 1
    unlabelled: bool = False

    def completed(self) -> Letters:
        """These settings, with those of the schema file where they are not given.

        Raises:
            InputError: it states something else.
        """
        tables = schemas.read(self.schema).get(schemas.OWN, {}) if self.schema else {}
        if wrong := [key for key in tables if key not in STATED]:
            raise InputError(f"{self.schema}: [{schemas.OWN}]: {unknown('keys', wrong, STATED)}")
        if not isinstance(acts := tables.get("act_on", []), list):
            raise InputError(f"{self.schema}: act_on must be a list of features, got {acts!r}")
        texts: dict[str, Any] = {k: v if k == "act_on" else str(v) for k, v in tables.items()}
        return replace(self, **{k: v for k, v in texts.items() if not getattr(self, k)})

    @property
    def signature(self) -> dict[str, str]:
        """What decides the answers: settings, and digests of the files."""
        paths = {"rows": self.rows, "train": self.train, "schema": self.schema}
        paths |= {"model": Path(self.model), "saved": self.saved and self.saved / FILE}
        named = {key: str(getattr(self, key)) for key in (*STATED, "ways", "model", "saved")}
        digests = {k: _digest(path) for k, path in paths.items() if path and path.is_file()}
        return {"version": __version__, **named, **{f"{k} sha256": v for k, v in digests.items()}}


def write_letters(settings: Letters) -> int:
    """Write a letter, an answer and a record for every row; returns the exit status.

    Returns:
        0, or 1 where rows cannot be read.

    Raises:
        InputError: files that are missing or do not fit, or a folder with letters of another run;
            columns without a label.
        DearError: what fitting and searching raise.
    """
    settings = settings.completed()
    with files.said(logging.WARNING) as lines:
        train = None if settings.train is None else files.read_table(settings.train, "--train")
        dear = _method(settings, train)
    if not settings.unlabelled and (absent := unlabelled(dear.schema)):
        named = ([*map(json.dumps, pair)] for pair in map(guess, absent))
        text = "\n".join(f"[features.{name}]\nlabel = {words}" for name, words in named)
        raise InputError(UNLABELLED.format(settings.schema or "the schema", text))
    rows = files.read_cases(settings.rows, "rows", settings.index, dear.schema)
    words, out = LetterTemplate.of(settings.language or "en"), settings.out
    try:
        dear.encoder.readable_rows(rows, torch.ones(len(rows), len(dear.schema), dtype=torch.bool))
    except InputError as error:
        raise InputError(f"{settings.rows}: {error}") from error
    target = files.wanted_class(dear, settings.want)
    dear = dear if settings.saved or train is None else dear.fit(train, n_jobs=settings.n_jobs)
    _check_files(rows.index)
    for line in [] if (out / RUN).exists() else lines:
        print(line, file=sys.stderr)
    _claim(out, settings.signature)
    starts = range(0, len(rows), ROWS_AT_ONCE)
    todo = [start for start in starts if not _is_written(out, rows.index, start)]
    if done := (len(starts) - len(todo)) * ROWS_AT_ONCE:
        print(f"{out}: continues after {min(done, len(rows))} of {len(rows)} letters")
    clock = Clock(len(todo))
    for start in bar(todo, "letters"):
        some = rows.iloc[start : start + ROWS_AT_ONCE]
        answers = dear.generate(some, target, k=RANKS, n_jobs=settings.n_jobs)
        _write(answers, words, out, start, settings=settings)
        clock.tick(f"{min(start + ROWS_AT_ONCE, len(rows))} of {len(rows)} letters")
    actions = _joined(out, starts)
    _print(out, [*map(str, rows.index)], settings.language or "en")
    print(f"{out}: {_in_words(actions)}")
    return int((actions["letter"] == KINDS["unreadable"]).any())


class Clock:
    """Says in a log file, which shows no bar, how much is done, every 30 seconds.

    Args:
        count: the number of parts.
    """

    def __init__(self, count: int) -> None:
        self._left, self._start, self._told = count, time.monotonic(), time.monotonic()
        self._count = count

    def tick(self, done: str) -> None:
        """A part is done."""
        now, self._left = time.monotonic(), self._left - 1
        if not sys.stderr.isatty() and self._left and now - self._told >= EVERY:
            left = (now - self._start) / (self._count - self._left) * self._left
            print(f"{done}, about {left / 60:.0f} min left", file=sys.stderr, flush=True)
            self._told = now


def _check_files(cases: pd.Index) -> None:
    """Raise an error where the letters of two cases would be one file."""
    names = pd.Index([_file(Path(), str(case), "").name.casefold() for case in cases])
    if twice := [*cases[names.duplicated(keep=False)][:3]]:
        raise InputError(f"--index: expected cases whose names of files differ, got {twice}")


def _claim(out: Path, signature: Mapping[str, str]) -> None:
    """Mark a folder as that of this run; an interrupted one continues in it."""
    try:
        for name in (PARTS, LETTERS, RECORDS):
            (out / name).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {out}: expected a folder to write to, {error}") from error
    if not any(file for name in (LETTERS, PARTS) for file in (out / name).iterdir()):
        (out / RUN).write_text(json.dumps(signature, indent=1), encoding="utf8")
    former = json.loads((out / RUN).read_text(encoding="utf8"))
    if other := [k for k in {**former, **signature} if former.get(k) != signature.get(k)]:
        raise InputError(
            f"--out {out} has letters of another run, with another {' and '.join(other)}: expected"
            " a new folder"
        )


def _method(settings: Letters, train: pd.DataFrame | None) -> DEAR:
    """The method, which is fitted if it is from its folder."""
    model = files.on_its_columns(files.model_of(settings.model, trust=settings.trust))
    if settings.saved is not None:
        return DEAR.load(settings.saved, model)
    if train is None or settings.schema is None:
        raise InputError(EXPECTED)
    schema = Schema.from_toml(settings.schema, train)
    return DEAR(model, schema, act_on=list(settings.act_on) or None)


def _file(folder: Path, case: str, suffix: str) -> Path:
    return folder / f"{case.translate(UNSAFE)}{suffix}"


def _part(out: Path, start: int, name: str) -> Path:
    return out / PARTS / f"{start:09d}-{name}.csv"


def _is_written(out: Path, cases: pd.Index, start: int) -> bool:
    """Whether some rows are complete, and have all their letters; they may be moved away."""
    some = map(str, cases[start : start + ROWS_AT_ONCE])
    letters = (_file(out / LETTERS, case, ".md") for case in some)
    return _part(out, start, TABLES[-1]).exists() and all(map(Path.exists, letters))


def _write(
    answers: Recourses, words: LetterTemplate, out: Path, start: int, *, settings: Letters
) -> None:
    """Write the answers of some rows; their last file says that they are complete."""
    first = np.flatnonzero(answers.starts).tolist()
    cases = answers.factuals.index[first]
    given, above = ways_of(answers, first, settings.ways), {"case": cases.to_series()}
    above |= {"until": settings.until or None}
    texts = letters(answers, first, words, ways=settings.ways, above=above)
    lines: list[Line] = []
    for i, (case, letter) in enumerate(zip(cases, texts, strict=True)):
        _file(out / LETTERS, str(case), ".md").write_text(f"{letter}\n", encoding="utf8")
        own = [line for way in given[i] for line in way]
        text = {"text": letter, "changes": frame(own).drop(columns="row").to_dict("records")}
        record = json.dumps({**answers.record(case), "letter": plain(text)}, indent=1)
        _file(out / RECORDS, str(case), ".json").write_text(f"{record}\n", encoding="utf8")
        lines += [*answers.lines[first[i]], *(line for line in own if line.rank)]
    actions = answers.actions.iloc[first].drop(columns=["rank", "kind"])
    known = zip(texts, actions["reason"], (answers.hindrances[at] for at in first), strict=True)
    kinds, reasons = zip(*(_kind(*each, words) for each in known), strict=True)
    ranks = ["; ".join(str(way[0].rank) for way in each) for each in given]
    told = {"letter": kinds, "letter_ranks": ranks, "letter_reason": reasons}
    changes = frame(lines).rename(columns={"row": CASE}).set_index(CASE)
    tables = {"changes": changes, "actions": with_cells(actions, told)}
    for name in TABLES:
        draft = out / PARTS / "draft"
        tables[name].to_csv(draft, index_label=CASE)
        draft.replace(_part(out, start, name))


def _kind(
    letter: str, reason: str, hindrance: Hindrance, words: LetterTemplate
) -> tuple[str, str]:
    """What a letter says, in words, and why where it has no advice."""
    sentence = next((name for name in KINDS if words[name] in letter), "")
    # Without the amounts of each.
    alike = hindrance._replace(nearest=(), beside=())
    whys = {"unreadable": reason, "accepted": NEEDLESS}
    why = in_the_way(alike, words) if sentence == "none" else whys.get(sentence, "")
    return KINDS.get(sentence, ADVICE), why


def _joined(out: Path, starts: Sequence[int]) -> pd.DataFrame:
    """Write the tables of all rows, whose parts stay; returns the last of `TABLES`: actions."""
    for name in TABLES:
        # As they are written: "007" and "None" are no other texts.
        paths = (_part(out, start, name) for start in starts)
        parts = [pd.read_csv(path, dtype=str, keep_default_na=False) for path in paths]
        whole = pd.concat(parts, ignore_index=True)
        whole.to_csv(out / f"{name}.csv", index=False)
    return whole


def _print(out: Path, cases: Sequence[str], language: str) -> None:
    """The letters as one page, and as a PDF if there is a browser."""
    texts = {c: _file(out / LETTERS, c, ".md").read_text(encoding="utf8") for c in cases}
    (out / LETTERS_PAGE).write_text(page(texts, "Letters", language), encoding="utf8")
    print_page(out / LETTERS_PAGE, (out / LETTERS_PAGE).with_suffix(".pdf"))


def _in_words(actions: pd.DataFrame) -> str:
    """How many letters say what, and the most frequent reasons of those without a way."""
    counts = Counter(actions["letter"])
    parts = [f"{counts[kind]} {kind}" for kind in (ADVICE, *KINDS.values()) if counts[kind]]
    reasons = Counter(filter(None, actions["letter_reason"]))
    most = dict(reasons.most_common(MOST_REASONS))
    why = "".join(f"\n  {count}: {reason}" for reason, count in most.items())
    if more := reasons.total() - sum(most.values()):
        why += f"\n  {more}: other reasons, which actions.csv has as letter_reason"
    return f"{len(actions)} letters: {', '.join(parts)}{why}"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "msedge")
# Seconds after which a browser is given up.
PATIENCE = 120

PAGE = """<!DOCTYPE html>
<html lang="{language}"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body {{font-family: Georgia, serif; font-size: 12pt; line-height: 1.5; max-width: 38em;
  margin: 2em auto; padding: 0 1em}}
article {{break-after: page; white-space: pre-line; margin-bottom: 4em}}
@media print {{body {{margin: 0; max-width: none}} article {{margin: 0}}}}
@page {{margin: 25mm}}
</style></head><body>{letters}</body></html>
"""

logger = logging.getLogger(__name__)


def page(letters: Mapping[str, str], title: str, language: str) -> str:
    """A page of letters by the cases, each on a sheet of its own when printed."""
    each = letters.items()
    articles = (f'<article id="{escape(case)}">{escape(text)}</article>' for case, text in each)
    return PAGE.format(language=language, title=escape(title), letters="\n".join(articles))


def print_page(path: Path, to: Path) -> bool:
    """Print a page as a PDF, if there is a browser that can.

    Args:
        path: of the page.
        to: the PDF.
    """
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        logger.info("no PDF: none of %s is installed", ", ".join(BROWSERS))
        return False
    root = ["--no-sandbox"] * (getattr(os, "geteuid", lambda: 1)() == 0)
    with TemporaryDirectory() as profile:
        command = [browser, "--headless", *root, f"--user-data-dir={profile}"]
        command += ["--no-pdf-header-footer", f"--print-to-pdf={to}", path.resolve().as_uri()]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
        except (OSError, subprocess.SubprocessError) as error:
            logger.warning("no PDF: %s failed: %s", browser, error)
    return to.exists()
