import numpy as np
import pytest

import dear_plugin
from dear_alibi.targets import resolve, targets
from dear_alibi.verdict import Verdict


def verdict(classes, count):
    return Verdict(np.array(classes)[:, None], np.full((len(classes), count), 1 / count))


@pytest.mark.parametrize(
    "given",
    [1, [1], [1, 1, 1], np.array([1.0]), np.array([[1]]), np.ones((3, 1), dtype=np.int32)],
)
def test_one_class_or_one_per_row_in_any_shape(given):
    wanted = targets(given, 3)
    assert wanted.shape == (3, 1)
    assert wanted.dtype == np.int64
    assert (wanted == 1).all()


@pytest.mark.parametrize("given", [[1, 0], np.ones((1, 3)), np.ones((3, 2)), np.ones((3, 1, 1))])
def test_another_shape_is_refused(given):
    with pytest.raises(dear_plugin.errors.TargetError, match="one class or one per row"):
        targets(given, 3)


@pytest.mark.parametrize("given", [-1, 0.5, "yes", True, [0, -1, 0], [None], np.nan])
def test_what_is_no_class_is_refused(given):
    with pytest.raises(dear_plugin.errors.TargetError):
        targets(given, 3)


def test_nothing_wanted_is_the_other_class():
    assert resolve(None, verdict([0, 1, 1], 2)).tolist() == [[1], [0], [0]]


def test_the_other_one_of_three_is_refused():
    with pytest.raises(dear_plugin.errors.TargetError, match="the predictor has 3"):
        resolve(None, verdict([0, 1], 3))


def test_a_class_the_predictor_does_not_have_is_refused():
    with pytest.raises(dear_plugin.errors.TargetError, match=r"classes 0 \.\.\. 1"):
        resolve(targets(2, 2), verdict([0, 1], 2))
