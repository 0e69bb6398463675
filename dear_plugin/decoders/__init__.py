"""Decoders of one interface, models of g(v, x_S), given as an instance, a class or a name."""

from __future__ import annotations

from typing import Any

from dear_plugin.decoders.collection import Decoders
from dear_plugin.decoders.protocol import Decoder, Fit, Sample
from dear_plugin.decoders.protocol import Members as Members  # the type of positions of features
from dear_plugin.decoders.transport.decoder import Transport
from dear_plugin.errors import SettingError, unknown

__all__ = ["Decoder", "Decoders", "Fit", "Sample", "Transport", "decoder_class", "make_decoder"]


def decoder_class(name: Any) -> type[Decoder]:
    """The class that "transport" or "autoencoder" stands for, in any case.

    Raises:
        SettingError: anything else.

    Example:
        >>> decoder_class("transport") is Transport
        True
    """
    called = name.lower() if isinstance(name, str) else ""
    if called == "transport":
        return Transport
    if called == "autoencoder":
        from dear_plugin.paper import Autoencoder

        return Autoencoder
    known = unknown("decoder", [name], ["transport", "autoencoder"])
    raise SettingError(f"{known}; another one is given as its class, or as an instance")


def make_decoder(decoder: str | type[Decoder] | Decoder) -> Decoder:
    """A decoder unchanged, or one of a class or a name with its default settings.

    Raises:
        SettingError: none of these.

    Example:
        >>> type(make_decoder("transport")).__name__
        'Transport'
    """
    if isinstance(decoder, Decoder):
        return decoder
    if isinstance(decoder, type) and issubclass(decoder, Decoder):
        return decoder()
    return decoder_class(decoder)()
