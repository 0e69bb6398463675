"""Decoders: the generative model g(v, x_S) behind one small protocol."""

from __future__ import annotations

from collections.abc import Callable

from dear_plugin.decoders.autoencoder.decoder import PAPER_LAYERS, Autoencoder, Design
from dear_plugin.decoders.autoencoder.training import History, Training
from dear_plugin.decoders.protocol import Decoder
from dear_plugin.decoders.redraws import Redraws, Refitted
from dear_plugin.decoders.still import Still
from dear_plugin.decoders.transport.decoder import Transport
from dear_plugin.errors import DearError, FileFormatError, unknown

__all__ = [
    "PAPER_LAYERS",
    "Autoencoder",
    "Decoder",
    "Design",
    "History",
    "Redraws",
    "Refitted",
    "Training",
    "Transport",
    "decoder_class",
    "named",
    "register",
]

_NAMED: dict[str, Callable[[], Decoder]] = {
    "transport": Transport,
    "autoencoder": Autoencoder,
    "paper": Autoencoder.paper,
}
_KINDS: dict[str, type[Decoder]] = {
    "Transport": Transport,
    "Autoencoder": Autoencoder,
    "Still": Still,
}


def named(decoder: str | Decoder) -> Decoder:
    """A decoder by its name, or as it came.

    Raises:
        DearError: an unknown name.
    """
    if isinstance(decoder, Decoder):
        return decoder
    if decoder not in _NAMED:
        raise DearError(unknown("decoder", [decoder], _NAMED))
    return _NAMED[decoder]()


def register(kind: type[Decoder]) -> type[Decoder]:
    """Make a third decoder loadable, under its class name; usable as a class decorator."""
    _KINDS[kind.__name__] = kind
    return kind


def decoder_class(name: str) -> type[Decoder]:
    """The decoder class that a saved file names.

    Raises:
        FileFormatError: a class that nobody registered.
    """
    if name not in _KINDS:
        raise FileFormatError(unknown("decoder class", [name], _KINDS) + "; register it first")
    return _KINDS[name]
