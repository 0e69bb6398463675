"""Several threads: the same fit and answers as in one, whatever the model."""

import threading

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from dear_plugin import DEAR, Schema
from dear_plugin.datasets import load_loan
from dear_plugin.errors import SettingError

DATA = load_loan(3_000)
FRAME = DATA.frame.assign(gender=DATA.frame["gender"].astype("category"))
NAMES = [name for name in FRAME if name != "approved"]
SCHEMA = Schema.infer(FRAME, target="approved", immutable=["gender"])
# The default of scikit-learn from 1.6 on.
TREES = HistGradientBoostingClassifier(
    max_iter=30, categorical_features="from_dtype", random_state=0
)
TREES.fit(FRAME[NAMES], FRAME["approved"])
REFUSED = FRAME[TREES.predict(FRAME[NAMES]) == 0][NAMES].head(50)


def not_picklable():
    """A model that holds a lock, as a connection to a service does."""
    lock = threading.Lock()

    def model(rows):
        with lock:
            return TREES.predict_proba(rows)

    return model


@pytest.mark.parametrize("model", [TREES, not_picklable()], ids=["a model", "not picklable"])
def test_the_answers_and_alternatives_are_those_of_one_thread(model):
    first, dear = (
        DEAR(model, SCHEMA, act_on=list(DATA.act_on)).fit(FRAME, n_jobs=jobs) for jobs in (1, 2)
    )
    one, two = first.generate(REFUSED), dear.generate(REFUSED, n_jobs=2)
    pd.testing.assert_frame_equal(two.counterfactuals, one.counterfactuals, check_exact=True)
    pd.testing.assert_frame_equal(two.actions, one.actions, check_exact=True)
    pd.testing.assert_frame_equal(two.alternatives(3), one.alternatives(3), check_exact=True)
    ways = dear.generate(REFUSED, k=2, n_jobs=2)
    assert ways[ways.rank == 0].counterfactuals.equals(one.counterfactuals)


def test_few_rows_and_all_cores():
    dear = DEAR(TREES, SCHEMA, act_on=list(DATA.act_on)).fit(FRAME)
    for rows in (REFUSED.head(0), REFUSED.head(3), REFUSED.head(20)):
        found = dear.generate(rows, n_jobs=-1).counterfactuals
        pd.testing.assert_frame_equal(found, dear.generate(rows).counterfactuals)


@pytest.mark.parametrize("n_jobs", [0, 1.5, "all", True, None])
def test_another_number_is_refused(n_jobs):
    dear = DEAR(TREES, SCHEMA).fit(FRAME)
    with pytest.raises(SettingError, match="n_jobs must be a whole number from 1, or -1, got"):
        dear.generate(REFUSED, n_jobs=n_jobs)
    with pytest.raises(SettingError, match="n_jobs must be a whole number from 1, or -1, got"):
        dear.fit(FRAME, n_jobs=n_jobs)


def test_an_error_of_the_model_is_raised():
    asked = []

    def model(rows):
        asked.append(len(rows))
        if len(asked) > 3 and len(rows) > 50:
            raise RuntimeError("the service is down")
        return np.asarray(TREES.predict_proba(rows))

    dear = DEAR(model, SCHEMA, act_on=list(DATA.act_on)).fit(FRAME)
    with pytest.raises(Exception, match="the service is down"):
        dear.generate(REFUSED, n_jobs=2)
