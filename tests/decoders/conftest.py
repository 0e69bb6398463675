"""Fixtures of the tests of decoders."""

from collections.abc import Callable

import pandas as pd
import pytest

from dear_plugin import ActionSets, Encoder, Schema
from dear_plugin.decoders.transport.conditioning import Conditioning, Crowd


@pytest.fixture(scope="session")
def gather() -> Callable[..., Crowd]:
    """A training sample of a frame: its rows, action sets and the features conditioned on."""

    def crowd(frame: pd.DataFrame, act_on=None, given=()) -> Crowd:
        encoder = Encoder(Schema.infer(frame))
        rows, sets = encoder.rows(frame), ActionSets.of(encoder.schema, act_on)
        return Conditioning.of(rows, encoder, encoder.schema.index(given)).crowd(
            rows, encoder, sets
        )

    return crowd
