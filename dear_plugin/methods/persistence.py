"""Persistence: settings and tensors as a folder of JSON and safetensors; loading runs no code."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from dear_plugin.errors import DearError, FileFormatError, ModelError, SettingError

# Versions 0.1 and 0.2 wrote formats 1 and 2.
FORMAT = 3
SETTINGS, TENSORS = "dear.json", "dear.safetensors"
# Exceptions of values that are not those that were saved.
_MISFITS = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RuntimeError)


def write(folder: Path, settings: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Write settings and tensors; an interruption leaves the folder with a complete save.

    Both are written as drafts, then renamed. After an interruption between the two renamings,
    `read` takes the settings from their draft.

    Args:
        folder: created if it does not exist.
        settings: plain values for JSON.
        tensors: by name.

    Raises:
        SettingError: settings that JSON cannot hold, before anything is written.
    """
    content = save({k: v.detach().contiguous().cpu() for k, v in tensors.items()})
    whole = {"format": FORMAT, "sha256": hashlib.sha256(content).hexdigest(), **settings}
    try:
        text = json.dumps({**whole, "seal": _seal(whole)}, indent=2, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise SettingError(f"settings must be plain values that JSON can hold: {error}") from error
    folder.mkdir(parents=True, exist_ok=True)
    _put(_draft(folder, SETTINGS), text.encode("utf8"))
    _put(_draft(folder, TENSORS), content)
    for name in (TENSORS, SETTINGS):
        _draft(folder, name).replace(folder / name)


@contextmanager
def understood(folder: str | Path) -> Iterator[None]:
    """Turn the errors of loading a save into a `FileFormatError`.

    A `ModelError` passes through: the model is not part of the save.
    """
    try:
        yield
    except (FileFormatError, ModelError):
        raise
    except (DearError, *_MISFITS) as error:
        what = f"{type(error).__name__}: {error}"
        raise FileFormatError(f"{folder} does not hold a whole DEAR ({what})") from error


def read(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read what `write` wrote.

    Raises:
        FileFormatError: a missing or damaged file, or one of another format; the message names it.
    """
    settings = _settings(folder / SETTINGS)
    content = _content(folder / TENSORS)
    digest = hashlib.sha256(content).hexdigest()
    if digest != settings["sha256"]:
        settings = _unfinished(folder, digest)
    try:
        tensors = load(content)
    except SafetensorError as error:
        raise FileFormatError(f"{folder / TENSORS} is damaged: {error}") from error
    return settings, tensors


def _draft(folder: Path, name: str) -> Path:
    return folder / f".{name}.draft"


def _put(path: Path, content: bytes) -> None:
    """Write a file and flush it to the disk, before it is renamed."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _unfinished(folder: Path, digest: str) -> dict[str, Any]:
    """The draft settings of an interrupted save that belong to its tensors.

    Raises:
        FileFormatError: there are none: the tensors are damaged.
    """
    with suppress(FileFormatError):
        settings = _settings(_draft(folder, SETTINGS))
        if settings["sha256"] == digest:
            return settings
    raise FileFormatError(f"{folder / TENSORS} is damaged: it is not the file that was saved")


def _settings(path: Path) -> dict[str, Any]:
    """The settings in a file, checked; the tensors' digest is among them."""
    try:
        settings: Any = json.loads(path.read_text(encoding="utf8"))
    except FileNotFoundError:
        raise FileFormatError(f"{path} is not there: is {path.parent} a saved DEAR?") from None
    except OSError as error:
        raise FileFormatError(f"{path} cannot be read: {error}") from error
    except (ValueError, RecursionError) as error:  # not text, not JSON, or nested too deeply
        raise FileFormatError(f"{path} is damaged: {error}") from error
    version = settings.get("format") if isinstance(settings, dict) else None
    if type(version) is not int:  # a bool is an int as well
        raise FileFormatError(f"{path} names no format: it is not a saved DEAR, or damaged")
    if version > FORMAT:
        raise FileFormatError(
            f"{path} has format {version}, this version of dear-plugin reads up to {FORMAT}:"
            " install a newer one"
        )
    if version < FORMAT:
        raise FileFormatError(
            f"{path} was saved by version {settings.get('version', '0.1.0')}, whose decoders this"
            " version does not read: fit again on the training rows, and save"
        )
    if settings.pop("seal", None) != _seal(settings) or "sha256" not in settings:
        raise FileFormatError(f"{path} is damaged: it is not the file that was saved")
    return dict(settings)


def _seal(settings: Mapping[str, Any]) -> str:
    """A digest of settings, which detects a file that was changed after saving."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise FileFormatError(f"{path} is not there; the folder is incomplete") from None
    except OSError as error:
        raise FileFormatError(f"{path} is damaged: {error}") from error
