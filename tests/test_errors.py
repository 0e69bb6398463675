"""Every error is a DearError and the built-in one that a caller would catch."""

import pickle

import pytest
from sklearn.exceptions import NotFittedError

from dear_plugin import errors


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (errors.SchemaError, ValueError),
        (errors.InputError, ValueError),
        (errors.ConstraintError, ValueError),
        (errors.TargetError, ValueError),
        (errors.ModelError, ValueError),
        (errors.SettingError, ValueError),
        (errors.ArgumentError, TypeError),
        (errors.ExtraError, ImportError),
        (errors.NotFittedError, RuntimeError),
        (errors.NotFittedError, AttributeError),
        (errors.NotFittedError, ValueError),
        (errors.DataError, OSError),
        (errors.FileFormatError, ValueError),
    ],
)
def test_every_error_is_a_dear_error_and_a_builtin(error, builtin):
    assert issubclass(error, errors.DearError)
    assert issubclass(error, builtin)


@pytest.mark.parametrize("copied", [False, True], ids=["raised", "pickled"])
def test_a_not_fitted_error_is_also_that_of_scikit_learn(copied):
    error = errors.NotFittedError("call fit first")
    error = pickle.loads(pickle.dumps(error)) if copied else error
    assert isinstance(error, errors.NotFittedError)
    assert isinstance(error, NotFittedError)
    assert str(error) == "call fit first"


class TestUnknown:
    def test_a_long_list_of_known_names_is_cut(self):
        message = errors.unknown("features", ["?"], range(100))
        assert message.endswith("18, 19, ...")
