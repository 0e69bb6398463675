"""Decoders of one interface, models of g(v, x_S), made by name or given as an instance."""

from __future__ import annotations

from dear_plugin.decoders.collection import Decoders
from dear_plugin.decoders.protocol import (
    LATER,
    REGISTRY,
    Decoder,
    DifferentiableDecoder,
    Fit,
    Sample,
    decoder_class,
    maker,
    register,
)
from dear_plugin.decoders.protocol import Members as Members  # the type of positions of features
from dear_plugin.decoders.transport.decoder import Transport
from dear_plugin.errors import DearError, unknown

__all__ = [
    "Decoder",
    "Decoders",
    "DifferentiableDecoder",
    "Fit",
    "Sample",
    "Transport",
    "decoder_class",
    "make_decoder",
    "register",
]


def make_decoder(decoder: str | Decoder) -> Decoder:
    """A decoder by name, or the given one unchanged.

    Args:
        decoder: the name of a registered class, in any case, such as "transport"; "paper" for
            `dear_plugin.Autoencoder.paper()`; or a decoder.

    Raises:
        DearError: an unknown name.

    Example:
        >>> type(make_decoder("transport")).__name__
        'Transport'
    """
    if isinstance(decoder, Decoder):
        return decoder
    known = {name.lower(): name for name in (*REGISTRY, *LATER)}
    name = str(decoder).lower()
    if name not in known:
        raise DearError(unknown("decoder", [decoder], known))
    return maker(known[name])()
