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
from dear_plugin.decoders import decoder_class
from dear_plugin.errors import FileFormatError
from dear_plugin.methods import persistence
from dear_plugin.methods.optimizer import Optimizer
from dear_plugin.problem.seen_pairs import SeenPairs
from dear_plugin.search import CandidateGrids, DescentSchedule, Search

if TYPE_CHECKING:
    from dear_plugin.methods.dear import DEAR


def save(dear: DEAR, folder: Path) -> None:
    """Write a fitted DEAR to a folder, without its model.

    Raises:
        NotFittedError: it is not fitted.
    """
    grids = dear._fitted_optimizer.grids
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
    tensors = {f"decoder/{k}": v for k, v in dear.decoder.tensors().items()}
    tensors |= {f"grids/{k}": v for k, v in vars(grids).items()}
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
        dear.decoder.load_state(_under("decoder/", tensors), dear.encoder, dear.sets)
        rows = dear._rows = validate_saved_rows(tensors["rows"], dear.encoder)
        grids = _grids(_under("grids/", tensors), dear)
        seen = SeenPairs.of(rows, dear.encoder)
        dear._optimizer = Optimizer(dear.sets, dear.decoder, grids, dear.classifier, rows, seen)
    return dear


def _search(settings: Mapping[str, Any]) -> Search:
    """The search settings; versions before 0.3 have no schedule."""
    schedule = DescentSchedule(**settings.get("schedule", {}))
    return Search(**{**settings, "schedule": schedule})


def _grids(tensors: Mapping[str, Tensor], dear: DEAR) -> CandidateGrids:
    """The candidate values; version 0.1.0 did not save all of them."""
    if "common" in tensors:
        return CandidateGrids.from_tensors(tensors, dear.encoder, dear.sets)
    return CandidateGrids.of(dear._fitted_rows, dear.encoder, dear.sets, dear.search.coarse)


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose name begins with a prefix, without it."""
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
