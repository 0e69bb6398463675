"""The error of the user's model reaches the user; an interrupted search loses nothing."""

import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, Encoder, Schema

ROWS, RNG = 300, np.random.default_rng(0)
TRAIN = pd.DataFrame(
    {
        "town": RNG.choice(["Bonn", "Ulm"], ROWS),
        "age": RNG.integers(18, 70, ROWS),
        "income": RNG.gamma(4, 9, ROWS).round(1),
    }
)


def scores(rows: pd.DataFrame) -> np.ndarray:
    return 1 / (1 + np.exp(-(rows["income"].to_numpy() - 40) / 5))


class Model:
    """A model of incomes that raises what a test asks of it."""

    def __init__(self, fails=lambda rows: None) -> None:
        self.fails = fails

    def __call__(self, rows: pd.DataFrame) -> np.ndarray:
        if error := self.fails(rows):
            raise error
        return scores(rows)


def fitted(model: Model) -> DEAR:
    return DEAR(model, Schema.infer(TRAIN, immutable=["town", "age"])).fit(TRAIN)


REFUSED = TRAIN[scores(TRAIN) < 0.5].head(6)
NEW = REFUSED.assign(town="Kiel")


class TestNewLabels:
    def test_a_model_that_knows_its_labels_only_leaves_their_rows_unread(self):
        known = Model(lambda rows: None if rows["town"].ne("Kiel").all() else ValueError("Kiel"))
        answers = fitted(known).generate(pd.concat([REFUSED[:3], NEW[3:]]))
        assert answers.actions["success"].tolist() == [True] * 3 + [False] * 3
        assert answers.actions["reason"][3:].str.contains("has 'Kiel', expected one of").all()

    def test_another_error_of_the_model_is_its_own(self):
        """Any error was taken for one of new labels, and the row for unreadable."""
        model = Model()
        dear, old = fitted(model), int(NEW["age"].iloc[0])
        model.fails = lambda rows: RuntimeError("no such age") if (rows["age"] == old).any() else 0
        with pytest.raises(RuntimeError, match="no such age") as error:
            dear.generate(NEW[:1])
        assert "'town', 'age', 'income'" in error.value.__notes__[0]

    def test_threads_that_read_at_once_give_each_label_one_value(self):
        """Two threads gave two labels one value, so that one was written as the other."""
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            for _ in range(30):
                encoder, start = Encoder(Schema.infer(TRAIN, immutable=["town"])), Barrier(4)
                rows = TRAIN.head(50)
                frames = [rows.assign(town=[f"{i} {at}" for at in range(50)]) for i in range(4)]

                def read(frame, encoder=encoder, start=start):
                    start.wait()
                    return encoder.rows(frame, torch.ones(50, encoder.p, dtype=torch.bool))

                with ThreadPoolExecutor(4) as threads:
                    values = [*threads.map(read, frames)]
                assert len(torch.cat(values)[:, 0].unique()) == 200
                for frame, own in zip(frames, values, strict=True):
                    assert [*encoder.frame(own)["town"]] == [*frame["town"]]
        finally:
            sys.setswitchinterval(interval)


def test_the_note_of_an_error_has_the_rows_and_columns_that_were_given():
    model = Model()
    dear = fitted(model)
    model.fails = lambda rows: KeyError("wage")
    with pytest.raises(KeyError) as error:
        dear.generate(REFUSED.set_axis([f"case {i}" for i in range(6)]))
    (note,) = error.value.__notes__
    assert "6 rows, the first of them ['case 0', 'case 1', 'case 2']" in note
    assert "columns, ['town', 'age', 'income']" in note


def test_an_error_amid_alternatives_changes_no_later_answer():
    model = Model()
    dear = fitted(model)
    whole = dear.generate(REFUSED).alternatives(3)
    for calls in range(3):
        answers, count = dear.generate(REFUSED), iter(range(calls))
        answers.counterfactuals  # noqa: B018
        model.fails = lambda rows, count=count: None if next(count, -1) >= 0 else OSError("down")
        with suppress(OSError):
            answers.alternatives(3)
        model.fails = lambda rows: None
        pd.testing.assert_frame_equal(answers.alternatives(3), whole)
        again = dear.generate(REFUSED).counterfactuals
        pd.testing.assert_frame_equal(answers.counterfactuals, again)


def test_a_label_of_several_rows_is_told(caplog):
    fitted(Model()).generate(REFUSED.set_axis([1, 1, 2, 3, 4, 5]))
    assert "labels of several rows, such as [1]" in caplog.text


def test_one_training_row_is_one_clear_error():
    with pytest.raises(ValueError, match="at least two rows, got shape"):
        Schema.infer(TRAIN[:1])
