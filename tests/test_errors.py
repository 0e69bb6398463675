"""Every error is a DearError and the builtin that a caller would catch."""

import pytest

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
        (errors.NotFittedError, RuntimeError),
        (errors.NotFittedError, AttributeError),
        (errors.DataError, OSError),
        (errors.FileFormatError, ValueError),
    ],
)
def test_every_error_is_ours_and_a_builtin(error, builtin):
    assert issubclass(error, errors.DearError)
    assert issubclass(error, builtin)


class TestUnknown:
    def test_it_names_what_came_and_what_could_have_come(self):
        assert errors.unknown("features", ["xyz"], ["age", "sex"]) == (
            "unknown features: 'xyz'; known are: age, sex"
        )

    def test_it_suggests_the_nearest_name(self):
        assert "'incme' (did you mean 'income'?)" in errors.unknown(
            "features", ["incme"], ["age", "income"]
        )

    def test_names_may_be_of_any_type(self):
        assert errors.unknown("class", [3], [0, 1]) == "unknown class: 3; known are: 0, 1"

    def test_a_long_list_of_known_names_is_cut(self):
        message = errors.unknown("features", ["?"], range(100))
        assert message.endswith("18, 19, ...")
