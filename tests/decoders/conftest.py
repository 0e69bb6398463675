"""Fixtures of the tests of decoders."""

from collections.abc import Callable

import pandas as pd
import pytest

from dear_plugin import ActionSets, Encoder, Schema
from dear_plugin.decoders.transport.conditioning import Conditioning, TrainingSample


@pytest.fixture(scope="session")
def training_sample() -> Callable[..., TrainingSample]:
    """A training sample of a frame: its rows, action sets and the features conditioned on."""

    def make(frame: pd.DataFrame, act_on=None, given=()) -> TrainingSample:
        encoder = Encoder(Schema.infer(frame))
        rows, sets = encoder.rows(frame), ActionSets.of(encoder.schema, act_on)
        conditioning = Conditioning.of(rows, encoder, encoder.schema.index(given))
        return conditioning.training_sample(rows, encoder, sets)

    return make
