"""One predictor and the same people: the engine, DiCE and Alibi give the same counterfactuals.

Each host is handed its own usual wrapping of that one predictor: DiCE a torch module on its own
min-max + one-hot vector, Alibi a numpy function on label-encoded rows.
"""

import numpy as np
import pandas as pd
import pytest

from dear_plugin import DEAR
from dear_plugin.demo import Demo
from dear_plugin.demo.hosts import through_alibi, through_dice
from dear_plugin.demo.stage import Stage, stage


@pytest.fixture(scope="module")
def scene() -> Stage:
    return stage(Demo("loan", rows=60))


@pytest.fixture(scope="module")
def engine(scene: Stage) -> pd.DataFrame:
    dear = DEAR(scene.model, scene.schema, act_on=scene.data.act_on).fit(scene.train)
    recourses = dear.generate(scene.refused)
    assert recourses.actions["success"].all()
    return recourses.counterfactuals[list(scene.schema.names)]


def same(left: pd.DataFrame, right: pd.DataFrame) -> None:
    numbers = left.select_dtypes("number").columns
    np.testing.assert_allclose(left[numbers], right[numbers], rtol=0, atol=0.011)
    words = left.columns.difference(numbers)
    assert (left[words].astype(str) == right[words].astype(str)).all(axis=None)


def test_dice_gives_the_engine_s_counterfactuals(scene: Stage, engine: pd.DataFrame) -> None:
    pytest.importorskip("dice_ml")
    same(through_dice(scene, Demo("loan")), engine)


def test_alibi_gives_the_engine_s_counterfactuals(scene: Stage, engine: pd.DataFrame) -> None:
    pytest.importorskip("alibi")
    same(through_alibi(scene, Demo("loan")), engine)
