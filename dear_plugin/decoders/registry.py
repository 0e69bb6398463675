"""Registry: the name of a decoder class in, the class out."""

from __future__ import annotations

from dear_plugin.decoders.protocol import Decoder
from dear_plugin.errors import FileFormatError, unknown

REGISTRY: dict[str, type[Decoder]] = {}


def register(kind: type[Decoder]) -> type[Decoder]:
    """Register a decoder class under its class name; usable as a class decorator.

    `DEAR(decoder="ClassName")` then makes one with default settings, and `DEAR.load` finds it.
    """
    REGISTRY[kind.__name__] = kind
    return kind


def decoder_class(name: str) -> type[Decoder]:
    """The registered decoder class of a saved file.

    Raises:
        FileFormatError: a class that is not registered.
    """
    if name not in REGISTRY:
        raise FileFormatError(unknown("decoder class", [name], REGISTRY) + "; register it first")
    return REGISTRY[name]
