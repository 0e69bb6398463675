"""Decoders: models of g(v, x_S) with one interface, made by name or given as an instance."""

from __future__ import annotations

from collections.abc import Callable

from dear_plugin.decoders.autoencoder.decoder import Autoencoder
from dear_plugin.decoders.autoencoder.design import PAPER_LAYERS, Design
from dear_plugin.decoders.autoencoder.training import History, Training
from dear_plugin.decoders.collection import Decoders
from dear_plugin.decoders.protocol import (
    REGISTRY,
    Decoder,
    DifferentiableDecoder,
    Fit,
    decoder_class,
    register,
)
from dear_plugin.decoders.protocol import Members as Members  # the type of positions of features
from dear_plugin.decoders.sample import Sample
from dear_plugin.decoders.transport.decoder import Transport
from dear_plugin.errors import DearError, unknown

__all__ = [
    "PAPER_LAYERS",
    "Autoencoder",
    "Decoder",
    "Decoders",
    "Design",
    "DifferentiableDecoder",
    "Fit",
    "History",
    "Sample",
    "Training",
    "Transport",
    "decoder_class",
    "make_decoder",
    "register",
]


def make_decoder(decoder: str | Decoder) -> Decoder:
    """A decoder by name, or the given one unchanged.

    Args:
        decoder: the name of a registered class, in any case, such as "transport"; "paper" for
            `Autoencoder.paper()`; or a decoder.

    Raises:
        DearError: an unknown name.

    Example:
        >>> type(make_decoder("transport")).__name__
        'Transport'
    """
    if isinstance(decoder, Decoder):
        return decoder
    makers: dict[str, Callable[[], Decoder]] = {
        **{name.lower(): kind for name, kind in REGISTRY.items()},
        "paper": Autoencoder.paper,
    }
    name = str(decoder).lower()
    if name not in makers:
        raise DearError(unknown("decoder", [decoder], makers))
    return makers[name]()
