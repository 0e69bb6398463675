"""Persistence: a fitted DEAR as a folder of JSON and safetensors; loading runs no code from it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save_file
from torch import Tensor

from dear_plugin.errors import FileFormatError, ModelError

FORMAT = 1
SETTINGS, TENSORS = "dear.json", "dear.safetensors"


def write(folder: Path, settings: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Write settings and tensors; an existing folder keeps its old files until both are whole.

    Args:
        folder: made if it is not there.
        settings: plain values for JSON.
        tensors: by name.
    """
    folder.mkdir(parents=True, exist_ok=True)
    drafts = [(folder / f".{name}.draft", folder / name) for name in (TENSORS, SETTINGS)]
    save_file({k: v.detach().contiguous().cpu() for k, v in tensors.items()}, drafts[0][0])
    digest = hashlib.sha256(drafts[0][0].read_bytes()).hexdigest()
    whole = {"format": FORMAT, "sha256": digest, **settings}
    text = json.dumps({**whole, "seal": _seal(whole)}, indent=2, allow_nan=False)
    drafts[1][0].write_text(text, encoding="utf8")
    for draft, final in drafts:
        draft.replace(final)


@contextmanager
def understood(folder: str | Path) -> Iterator[None]:
    """Turn what goes wrong while a save is put together into one clear error.

    A model that is none is the caller's mistake, not the file's.
    """
    try:
        yield
    except (FileFormatError, ModelError):
        raise
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError, IndexError) as error:
        what = f"{type(error).__name__}: {error}"
        raise FileFormatError(f"{folder} does not hold a whole DEAR ({what})") from error


def read(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read what `write` wrote.

    Raises:
        FileFormatError: a missing, damaged or newer file; the message names it.
    """
    path = folder / SETTINGS
    try:
        settings = json.loads(path.read_text(encoding="utf8"))
    except FileNotFoundError:
        raise FileFormatError(f"{path} is not there: is {folder} a saved DEAR?") from None
    except OSError as error:
        raise FileFormatError(f"{path} cannot be read: {error}") from error
    except (ValueError, RecursionError) as error:  # no text, no JSON, or JSON without an end
        raise FileFormatError(f"{path} is damaged: {error}") from error
    version = settings.get("format") if isinstance(settings, dict) else None
    if type(version) is not int:  # nor is `true` a version
        raise FileFormatError(f"{path} names no format: it is not a saved DEAR, or damaged")
    if version > FORMAT:
        raise FileFormatError(
            f"{path} has format {version}, this version of dear-plugin reads up to {FORMAT}:"
            " install a newer one"
        )
    if settings.pop("seal", None) != _seal(settings):
        raise FileFormatError(f"{path} is damaged: it is not the file that was saved")
    return settings, _tensors(folder / TENSORS, settings.get("sha256"))


def _seal(settings: Mapping[str, Any]) -> str:
    """A digest of settings, by which a changed file is told from the one that was saved."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def _tensors(path: Path, expected: object) -> dict[str, Tensor]:
    try:
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != expected:
            raise FileFormatError(f"{path} is damaged: it is not the file that was saved")
        return load(content)
    except FileNotFoundError:
        raise FileFormatError(f"{path} is not there; the folder is incomplete") from None
    except (SafetensorError, OSError) as error:
        raise FileFormatError(f"{path} is damaged: {error}") from error
