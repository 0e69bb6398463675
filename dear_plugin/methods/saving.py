"""Saving: a fitted DEAR to settings and tensors, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from dear_plugin._version import __version__
from dear_plugin.data.encoder import validate_saved_rows
from dear_plugin.data.schema import Rule, Schema
from dear_plugin.decoders import Decoders, Sample, decoder_class
from dear_plugin.errors import FileFormatError
from dear_plugin.methods import persistence
from dear_plugin.search import DescentSchedule, Search

if TYPE_CHECKING:
    from dear_plugin.methods.dear import DEAR


def save(dear: DEAR, folder: Path) -> None:
    """Write a fitted DEAR to a folder, without its model.

    Raises:
        NotFittedError: it is not fitted.
    """
    decoders = dear.decoders
    settings = {
        "version": __version__,
        "schema": dear.schema.to_dict(),
        "rules": len(dear.schema.rules),
        "sets": [list(names) for names in dear.sets.names],
        "decoder": type(dear.decoder).__name__,
        "decoder_settings": dear.decoder.settings(),
        "search": asdict(dear.search),
        "output": dear.classifier.output,
    }
    tensors = {
        f"decoder/{i}/{name}": tensor
        for i, members in enumerate(decoders.given)
        for name, tensor in decoders.of(members).tensors().items()
    }
    persistence.write(folder, settings, {**tensors, "rows": dear._fitted_rows})


def load(
    cls: type[DEAR],
    folder: Path,
    model: Any,
    encode: Callable[[Tensor], Tensor] | None,
    rules: Sequence[Rule],
) -> DEAR:
    """Read what `save` wrote; arguments and errors as of `DEAR.load`."""
    settings, tensors = persistence.read(folder)
    count = settings.get("rules", 0)
    if count != len(rules):
        raise FileFormatError(
            f"{folder} was saved with {count} rule(s) of the schema, got"
            f" {len(rules)}: give the same callables as rules=[...]"
        )
    with persistence.understood(folder):
        dear = cls(
            model,
            Schema.from_dict(settings["schema"], rules),
            act_on=[tuple(names) for names in settings["sets"]],
            decoder=decoder_class(settings["decoder"]).with_settings(settings["decoder_settings"]),
            output=settings["output"],
            encode=encode,
            search=_search(settings["search"]),
        )
        rows = dear._rows = validate_saved_rows(tensors["rows"], dear.encoder)
        dear._decoders = _decoders(dear, Sample(rows, dear.encoder), tensors)
    return dear


def _decoders(dear: DEAR, sample: Sample, tensors: Mapping[str, Tensor]) -> Decoders:
    """The decoders of the sets: from their tensors, or fitted again on the same rows."""
    decoders = Decoders(dear.decoder, sample, dear.sets.members)
    for i, members in enumerate(decoders.given):
        decoder = dear.decoder.clone_unfitted()
        decoder.load_state(_under(f"decoder/{i}/", tensors), decoders.fit_of(members))
        decoders.put(members, decoder)
    return decoders


def _search(settings: Mapping[str, Any]) -> Search:
    """The search settings."""
    return Search(**{**settings, "schedule": DescentSchedule(**settings["schedule"])})


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose name begins with a prefix, without it."""
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
