"""Save a fitted DEAR to one safetensors file with its settings, and load it again."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors import torch as safetensors
from torch import Tensor

from dear_plugin._validation import check_tensor
from dear_plugin._version import __version__
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.relations import Condition, Rule
from dear_plugin.data.schema import Schema
from dear_plugin.decoders import Decoder, Decoders, Sample, decoder_class
from dear_plugin.errors import DearError, FileFormatError, ModelError, SettingError
from dear_plugin.evaluation.trained import Trained
from dear_plugin.search import DescentSchedule, Search

# Versions 0.1 and 0.2 wrote formats 1 and 2 (two files), 0.3 wrote 3 (scaled rows), and 0.4 wrote
# 5 and 6 (each column is a feature).
FORMAT = 7
FILE, KEY = "dear.safetensors", "dear"
# The number of saved rows whose values are checked against the schema's dtypes.
SOME_ROWS = 100
# The exceptions that wrong saved values may cause.
_MISFITS = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RuntimeError)


def save(decoders: Decoders, settings: Mapping[str, Any], rows: Tensor, folder: Path) -> None:
    """Write a fitted DEAR to a folder, without its model.

    Args:
        decoders: the decoders of its sets.
        settings: its settings.
        rows: (n, p) its training rows.
        folder: the folder to write to.

    Raises:
        SettingError: JSON cannot hold the settings; nothing is written.
    """
    settings = {"version": __version__, **settings}
    tensors = {
        f"decoder/{i}/{name}": tensor
        for i, members in enumerate(decoders.given)
        for name, tensor in decoders.of(members).tensors().items()
    }
    tensors["rows"] = rows
    content = sealed(settings, {k: v.detach().contiguous().cpu() for k, v in tensors.items()})
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".{FILE}.draft"
    with draft.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())  # on the disk before it replaces an older save
    draft.replace(folder / FILE)


def load(
    cls: Callable[..., Any],
    folder: Path,
    model: Any,
    decoder: type[Decoder] | None,
    *,
    encode: Callable[[Tensor], Tensor] | None,
    rules: Sequence[Rule | Condition],
    copies: Sequence[Any],
) -> Any:
    """Read what `save` wrote; for arguments and errors see `DEAR.load`."""
    settings, tensors = _read(folder / FILE)
    for name, what, own in (
        ("rules", "rules of the schema", rules),
        ("copies", "copies of the model", copies),
    ):
        if settings.get(name, 0) != len(own):
            raise FileFormatError(
                f"{folder} was saved with {settings.get(name, 0)} {what}, which a save does not"
                f" contain; got {len(own)}: pass the same ones as {name}=[...]"
            )
    try:
        search = settings["search"]
        search["schedule"] = DescentSchedule(**search["schedule"])
        dear = cls(
            model,
            Schema.from_dict(settings["schema"], rules),
            act_on=[tuple(names) for names in settings["sets"]],
            decoder=_class_of(settings, decoder).with_settings(settings["decoder_settings"]),
            output=settings["output"],
            encode=encode,
            search=Search(**search),
            copies=copies,
        )
        rows = _validated_rows(tensors["rows"], dear.encoder)
        decoders = _decoders(dear, Sample(rows, dear.encoder), tensors)
        dear._trained = Trained(rows, dear.classifier, dear._copies, decoders)
    except (FileFormatError, ModelError):
        raise  # errors of the file, or of the model that was passed
    except (DearError, *_MISFITS) as error:
        what = f"{type(error).__name__}: {error}"
        raise FileFormatError(f"{folder} holds no whole DEAR ({what}): save it again") from error
    return dear


def _class_of(settings: Mapping[str, Any], own: type[Decoder] | None) -> type[Decoder]:
    """The class of the decoder of a save."""
    name = settings["decoder"]
    try:
        kind = decoder_class(name) if own is None else own
    except SettingError as error:
        raise FileFormatError(
            f"the decoder {name} is no part of a save: give its class as decoder={name}"
        ) from error
    if kind.__name__ != name:
        raise FileFormatError(f"the decoder of the save is {name}, got decoder={kind.__name__}")
    return kind


def sealed(settings: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> bytes:
    """The bytes of a save: tensors, and settings with a digest of both that detects damage."""
    whole = {"format": FORMAT, **settings}
    try:
        text = json.dumps({**whole, "seal": _seal(whole, tensors)}, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise SettingError(f"settings must be plain values that JSON can hold: {error}") from error
    return safetensors.save(dict(tensors), {KEY: text})


def _seal(settings: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    text = json.dumps(settings, sort_keys=True).encode()
    return hashlib.sha256(text + safetensors.save(dict(tensors))).hexdigest()


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The checked settings and tensors of a save; a `FileFormatError` names the file."""
    try:
        content = path.read_bytes()
        tensors = safetensors.load(content)
        settings = _settings(content)
    except FileNotFoundError:
        raise FileFormatError(f"{path} does not exist: is {path.parent} a saved DEAR?") from None
    except OSError as error:
        raise FileFormatError(f"{path} cannot be read: {error}") from error
    except (SafetensorError, ValueError, RecursionError) as error:
        raise FileFormatError(f"{path} is damaged: {error}") from error
    version = settings.get("format")
    if type(version) is not int or version < FORMAT:  # a bool is an int as well
        raise FileFormatError(
            f"{path} does not have the format of this version ({FORMAT}). A DEAR of version 0.4 or"
            " earlier must be fitted again on the training rows, and saved"
        )
    if version > FORMAT:
        raise FileFormatError(
            f"{path} has format {version}, this version of dear-plugin reads {FORMAT}: install a"
            " newer version"
        )
    if settings.pop("seal", None) != _seal(settings, tensors):
        raise FileFormatError(f"{path} is damaged: it changed after it was saved")
    return settings, tensors


def _settings(content: bytes) -> dict[str, Any]:
    """The settings in the header of a safetensors file; empty if it has none."""
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    settings = json.loads(header.get("__metadata__", {}).get(KEY, "{}"))
    return settings if isinstance(settings, dict) else {}


def _decoders(dear: Any, sample: Sample, tensors: Mapping[str, Tensor]) -> Decoders:
    """The decoders of the sets, from their tensors, or fitted again on the same rows."""
    decoders = Decoders(dear.decoder, sample, dear.sets.members)
    for i, members in enumerate(decoders.given):
        decoder, prefix = dear.decoder.clone_unfitted(), f"decoder/{i}/"
        own = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
        decoder.load_state(own, decoders.fit_of(members))
        decoders.keep({(members, 0): decoder})
    return decoders


def _validated_rows(rows: Tensor, encoder: Encoder) -> Tensor:
    """The training rows of a save, (n, p), unchanged.

    Raises:
        ValueError: the encoder cannot have produced them.
    """
    check_tensor("rows", rows, (None, encoder.p), dtype=torch.float64)
    codes, most = rows[:, encoder.labelled], encoder.high[encoder.labelled]
    if not bool(((codes == codes.floor()) & (codes >= 0) & (codes <= most)).all()):
        raise ValueError("rows hold codes of categories that the schema does not have")
    encoder.rows(encoder.frame(rows[:SOME_ROWS]))
    return rows
