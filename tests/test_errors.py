"""Every error is a DearError and the built-in one that a caller would catch."""

import pytest

from dear_plugin import Target, errors

BUILTINS = {
    ValueError: "Schema Input Constraint Target Model Setting FileFormat NotFitted",
    TypeError: "Argument",
    ImportError: "Extra",
    RuntimeError: "NotFitted",
    AttributeError: "NotFitted",
    OSError: "Data",
}


@pytest.mark.parametrize("builtin", BUILTINS)
def test_every_error_is_a_dear_error_and_a_builtin(builtin):
    for name in BUILTINS[builtin].split():
        assert issubclass(getattr(errors, f"{name}Error"), errors.DearError)
        assert issubclass(getattr(errors, f"{name}Error"), builtin)


def test_a_long_list_of_known_names_is_cut():
    assert errors.unknown("features", ["?"], range(100)).endswith(", ... (100 in all)")
    assert errors.unknown("features", ["amout"], [*"abcdefgh", "amount", "amounts"]).endswith(
        "'amount'?); known are: amount, amounts, a, b, c, ... (10 in all)"
    )


@pytest.mark.parametrize(
    ("name", "meant"), [("incme", True), ("incomes", True), ("application", False)]
)
def test_a_name_is_suggested_only_if_it_is_near(name, meant):
    """ "education" was suggested for "application"."""
    assert ("did you mean" in errors.unknown("columns", [name], ["income", "education"])) == meant


def test_texts_call_an_argument_as_a_host_does_until_the_block_ends():
    with errors.naming(threshold="least"), pytest.raises(ValueError, match=r"^least must"):
        Target.of_class(1, 2.0)
    with pytest.raises(ValueError, match=r"^threshold must"):
        Target.of_class(1, 2.0)
