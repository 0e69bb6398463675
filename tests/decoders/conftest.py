"""Fixtures of the decoder's rooms."""

from collections.abc import Callable

import pandas as pd
import pytest

from dear_plugin import ActionSets, Encoder, Schema
from dear_plugin.decoders.transport.conditioning import Conditioning, Crowd


@pytest.fixture(scope="session")
def gather() -> Callable[..., Crowd]:
    """A frame's people, the sets they may act on, and who is compared with whom."""

    def crowd(frame: pd.DataFrame, act_on=None, given=()) -> Crowd:
        encoder = Encoder(Schema.infer(frame))
        rows, sets = encoder.rows(frame), ActionSets.of(encoder.schema, act_on)
        return Conditioning.of(rows, encoder, encoder.schema.index(given)).crowd(
            rows, encoder, sets
        )

    return crowd
