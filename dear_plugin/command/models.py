"""Models: from the text of `--model`, a file or `module:attribute`, to the model."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

from dear_plugin.errors import ExtraError, InputError, unknown
from dear_plugin.methods.dear import DEAR

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
        what = f"{type(error).__name__}: {error}"
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
