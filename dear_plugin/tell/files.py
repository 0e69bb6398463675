"""The files of a user: tables of comma-separated values, the model of `--model`, the schema.

Tables are read as they are written, or refused.
"""

from __future__ import annotations

import csv
import logging
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

from dear_plugin.data.schema import Schema
from dear_plugin.errors import ExtraError, InputError, unknown
from dear_plugin.methods.dear import DEAR

HEAD = "# What the log says of {}, line by line:\n"


@dataclass(frozen=True)
class SchemaFile:
    """The settings of `dear-plugin schema`.

    Attributes:
        train: a file of training rows.
        target: the column of decisions, which is no feature.
        out: the file to write; None is the name of `train` with the ending ".toml".
    """

    train: Path
    target: str | None = None
    out: Path | None = None


def write_schema(settings: SchemaFile) -> None:
    """Write a commented file of what is inferred of the columns, with what the log advises.

    Raises:
        InputError: the training rows cannot be read, or the file exists.
        SchemaError: the columns cannot be features.
    """
    out = settings.out or settings.train.with_suffix(".toml")
    if out.exists():
        raise InputError(f"{out} exists, with what somebody may have edited: expected a new --out")
    with said(logging.INFO) as lines:
        frame = read_table(settings.train, "train")
        schema = Schema.infer(frame, settings.target)
    schema.to_toml(out)
    notes = "".join(f"# - {line}\n" for line in lines)
    text = HEAD.format(settings.train.name) * bool(lines) + notes
    out.write_text(f"{text}\n{out.read_text(encoding='utf8')}", encoding="utf8")
    print(
        f"{out}: {len(schema)} features of {len(frame):,} rows; edit it, then: dear-plugin letters"
    )


@contextmanager
def said(least: int) -> Iterator[list[str]]:
    """The lines from a level on that the log of dear_plugin has meanwhile; none are printed."""
    logger, lines = logging.getLogger("dear_plugin"), list[str]()
    level, spread = logger.level, logger.propagate

    class _Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            """Keep the message of a record."""
            lines.append(record.getMessage())

    handler = _Lines()
    logger.addHandler(handler)
    logger.setLevel(least)
    logger.propagate = False
    try:
        yield lines
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = spread


SEPARATORS = ";\t|"
# What is read as a missing value, as pandas does.
MISSING = ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "None")
# What reads files of other kinds, and how these begin.
OTHERS: dict[str, bytes | tuple[bytes, ...]] = {
    "a workbook: pd.read_excel(path)": (b"PK\x03\x04", b"\xd0\xcf\x11\xe0"),
    "a Parquet file: pd.read_parquet(path)": b"PAR1",
    "a compressed file: pd.read_csv(path)": b"\x1f\x8b",
}
WRITES = ".to_csv('new.csv', index=False) in Python writes such a file"
# What files of Windows are in, if they do not begin with a mark of UTF-16.
ENCODED = "expected a file in UTF-8: pd.read_csv(path, encoding={!r})" + WRITES
WINDOWS, UTF_16 = "cp1252", (b"\xff\xfe", b"\xfe\xff")
SEPARATED = (
    "expected values separated by commas, got one column with {found!r} in its name:"
    " pd.read_csv(path, sep={found!r}{more})" + WRITES + "; add decimal=',' for decimal commas"
)
LINE = (
    "line {} has {} values, the first line {}: expected as many; a value with a comma in it stands"
    " between quotes"
)

logger = logging.getLogger(__name__)


def texts_of(schema: Schema) -> list[str]:
    """The columns that hold texts, so that a file's "007" stays one there."""
    return [c.name for c in schema.columns if any(isinstance(level, str) for level in c.choices)]


def read_table(path: Path, option: str, texts: Iterable[str] = ()) -> pd.DataFrame:
    """The rows of a file, (n, p).

    Args:
        path: of the file.
        option: what the command line calls it.
        texts: columns that are read as they are written: "007" and not 7.

    Raises:
        InputError: it is not there, has no rows, or would be read in another way than it is
            written: another separator or encoding, lines of unequal length, a name twice.
    """
    try:
        types = dict.fromkeys({*texts} & {*_head(path)}, str)
        frame = pd.read_csv(path, dtype=types, na_values=MISSING, keep_default_na=False)
    except UnicodeDecodeError as error:
        raise InputError(f"{option} {path}: {ENCODED.format(WINDOWS)}") from error
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(f"{option} {path}: {error}") from error
    if not len(frame):
        raise InputError(f"{option} {path}: expected rows, got none")
    return frame


def read_cases(path: Path, option: str, column: str, schema: Schema) -> pd.DataFrame:
    """The rows of a file, (n, p), with their cases as the index.

    Args:
        path: of the file.
        option: what the command line calls it.
        column: the one whose texts are the cases, a feature or none; "" for numbers from 1.
        schema: of the features.

    Raises:
        InputError: see `read_table`; no such column, no case, or one that several rows have.
    """
    frame = read_table(path, option, texts_of(schema))
    if not column:
        return frame.set_axis(pd.RangeIndex(1, len(frame) + 1, name="case"))
    if column not in frame:
        raise InputError(f"--index: {unknown('columns', [column], frame.columns)}")
    cases = pd.read_csv(path, usecols=[column], dtype=str, keep_default_na=False)[column]
    if none := int((cases == "").sum()):
        raise InputError(f"--index {column}: expected a case in each row, got none in {none}")
    if twice := [*cases[cases.duplicated()].unique()[:3]]:
        raise InputError(
            f"--index {column}: expected another case in each row, got twice: {twice}"
        )
    return frame.set_axis(pd.Index(cases, name="case"))


def _head(path: Path) -> list[str]:
    """The names of the columns of a file, all lines of which have a value for each.

    Raises:
        ValueError: what is not so.
    """
    with path.open("rb") as file:
        begin = file.read(1000)
    if known := [what for what, mark in OTHERS.items() if begin.startswith(mark)]:
        raise ValueError(f"expected a CSV file, got {known[0]}{WRITES}")
    if begin.startswith(UTF_16):
        raise ValueError(ENCODED.format("utf-16"))
    if b"\0" in begin:
        raise ValueError("expected a CSV file, got a file that is no text")
    with path.open(encoding="utf-8-sig", newline="") as text:
        lines = csv.reader(text)
        head = next(lines, [])
        _check_names(head)
        missing, marks = dict[str, str](), {*MISSING} - {""}
        for line in lines:
            if line and len(line) != len(head):
                raise ValueError(LINE.format(lines.line_num, len(line), len(head)))
            if not marks.isdisjoint(line):
                missing |= {n: v for n, v in zip(head, line, strict=False) if v in marks}
    for name, marker in missing.items():
        logger.warning("%s: column %r: %r is read as a missing value", path.name, name, marker)
    return head


def _check_names(head: list[str]) -> None:
    """Raise what is wrong with the first line of a file."""
    if len(head) == 1 and (found := [each for each in SEPARATORS if each in head[0]]):
        more = ", skiprows=1" if head[0].startswith("sep=") else ""
        raise ValueError(SEPARATED.format(found=found[0], more=more))
    if twice := [name for name in dict.fromkeys(head) if name and head.count(name) > 1]:
        raise ValueError(f"expected another name of each column, got twice: {twice}")


EXPECTED = "a file of joblib, pickle or skops, or module:attribute"


def model_of(text: str, *, trust: bool) -> Any:
    """The model of a file of joblib, pickle or skops, or the attribute of a module.

    To load a file of joblib or pickle runs the code in it; a file of skops is loaded without it
    where it holds nothing but types that skops knows.

    Args:
        text: a path, or `module:attribute`, of a module that may lie in the present folder.
        trust: whether code of a file may run.

    Raises:
        InputError: code would run that is not trusted, or the model cannot be read.
        ExtraError: skops is not installed.
    """
    path = Path(text)
    if path.suffix == ".skops":
        return _of_skops(path, trust)
    if ":" in path.name and not path.exists():
        return _of_module(text)
    if not trust:
        raise InputError(
            f"--model {text} runs the code in it: add --trust if you trust its source; a file of"
            " skops needs it for unknown types only"
        )
    return _of_file(path)


def _of_skops(path: Path, trust: bool) -> Any:
    """The model of a file of skops."""
    try:
        from skops import io
    except ImportError as error:
        raise ExtraError("a file of skops needs skops: pip install skops") from error
    try:
        types = io.get_untrusted_types(file=path)
        if types and not trust:
            raise InputError(
                f"--model {path} has types whose code runs when it is loaded, {types}: add --trust"
                " if you trust its source"
            )
        return io.load(path, trusted=types)
    except (OSError, ValueError) as error:
        raise InputError(f"--model {path}: {error}") from error


def _of_file(path: Path) -> Any:
    """The model of a file of joblib or pickle."""
    import joblib

    try:
        return joblib.load(path)
    except Exception as error:  # whatever the code in it raises
        is_text = path.suffix in (".csv", ".tsv", ".txt", ".toml", ".json", ".py")
        what = "got a file of text" if is_text else f"{type(error).__name__}: {error}"
        raise InputError(f"--model {path}: expected {EXPECTED}; {what}") from error


def _of_module(text: str) -> Any:
    """The attribute of a module, which may lie in the present folder."""
    module, _, name = text.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"--model {text}: expected {EXPECTED}; {error}") from error
    finally:
        sys.path.pop(0)


class _OnItsColumns:
    """A classifier on the columns that it was trained on, of frames that have more."""

    def __init__(self, model: Any, names: list[str]) -> None:
        self.model, self.names, self.classes_ = model, names, model.classes_

    def predict_proba(self, rows: pd.DataFrame) -> Any:
        """The probabilities of the classes, (n, c)."""
        return self.model.predict_proba(rows[self.names])

    def predict(self, rows: pd.DataFrame) -> Any:
        """The decisions, (n,)."""
        return self.model.predict(rows[self.names])


def on_its_columns(model: Any) -> Any:
    """A classifier that names its columns, for frames that have more; others as they are.

    Raises:
        InputError: a model of values, of which this command has no wanted one.
    """
    has_classes = hasattr(model, "predict_proba") or callable(model)
    if hasattr(model, "predict") and not has_classes:
        raise InputError(
            f"--model: expected a model of classes, with predict_proba, got"
            f" {type(model).__name__}; a regression is answered in Python: DEAR(model, schema,"
            ' output="values"), generate(rows, Target.of_range(low=...)), letter(index)'
        )
    names = getattr(model, "feature_names_in_", None)
    if names is None or not hasattr(model, "predict_proba"):
        return model
    return _OnItsColumns(model, [*map(str, names)])


def wanted_class(dear: DEAR, text: str) -> Any:
    """The wanted class of a model by the text of `--want`; None for class 1.

    Raises:
        InputError: the model has no such class, or none is class 1.
    """
    classes = dear.classifier.classes
    known = {str(label): label for label in classes or ()}
    if text and text not in known:
        raise InputError(f"--want: {unknown('classes', [text], known)}")
    if not text and classes is not None and set(classes) != {0, 1}:
        raise InputError(f"expected --want with the wanted class, one of {', '.join(known)}")
    return known.get(text)
