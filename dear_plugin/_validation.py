"""Checks of option values and of saved tensors."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import field, fields
from functools import wraps
from numbers import Integral, Real
from typing import Any, Self, TypeVar, cast

import torch
from torch import Tensor

from dear_plugin.errors import (
    ArgumentError,
    DearError,
    SettingError,
    check_arguments,
    shown,
    unknown,
)


def check_tensor(
    name: str,
    tensor: Tensor,
    shape: tuple[int | None, ...],
    *,
    dtype: torch.dtype = torch.float32,
    is_finite: bool = True,
) -> None:
    """Check a saved tensor before it is used.

    Args:
        name: of the tensor, for the error.
        tensor: as it was read.
        shape: the expected size of each dimension; None is any size from 1.
        dtype: the expected dtype.
        is_finite: whether all its entries must be finite; if not, only NaN is refused.

    Raises:
        ValueError: it does not match.
    """
    sizes = tuple(tensor.shape)
    expected = [s or 1 if e is None else e for s, e in zip(sizes, shape, strict=False)]
    if tensor.dtype != dtype or len(sizes) != len(shape) or list(sizes) != expected:
        raise ValueError(f"{name} must be {dtype} of {shape}, got {tensor.dtype} of {sizes}")
    if not bool((tensor.isfinite() if is_finite else ~tensor.isnan()).all()):
        raise ValueError(f"{name} must hold {'finite numbers' if is_finite else 'numbers'}")


# What checks a value, given what it is of and perhaps an error, and returns what is kept of it.
Rule = Callable[..., Any]


Complete = Callable[[type, dict[str, Any]], None]
Made = TypeVar("Made", bound=type)


def completed(complete: Complete) -> Callable[[Made], Made]:
    """A decorator of dataclasses, so that nothing of an instance changes once it is made.

    Unknown arguments are refused, with the closest one.

    Args:
        complete: checks and changes the arguments by name, with their defaults, of a class.
    """

    def _decorated(made: Made) -> Made:
        init = made.__init__  # type: ignore[misc]
        signature = inspect.signature(init)
        _, *known = signature.parameters

        @wraps(init)
        def _init(self: Any, *args: Any, **options: Any) -> None:
            _refuse(type(self), options, known)
            given = signature.bind(self, *args, **options)
            given.apply_defaults()
            _, *values = given.arguments.values()
            own = dict(zip(known, values, strict=True))
            complete(type(self), own)
            init(self, **own)

        made.__init__ = _init  # type: ignore[misc]
        return made

    return _decorated


def setting(default: Any, rule: Rule) -> Any:
    """A field of a `validated` dataclass: its default, and what its values must be."""
    return field(default=default, metadata={"rule": rule})


def validated(made: Made) -> Made:
    """A decorator of dataclasses whose fields are made by `setting`; see `completed`.

    The constructor raises a `SettingError` on the first field that violates its rule. Numpy
    numbers become Python's, which JSON can hold.
    """

    def _complete(made: type, given: dict[str, Any]) -> None:
        for each in fields(made):
            rule, name = each.metadata["rule"], each.name
            given[name] = rule(f"{made.__name__}: {name}", given[name])

    return completed(_complete)(made)


def must_be(
    expected: str, fits: Callable[[Any], Any], plain: Callable[[Any], Any] = lambda value: value
) -> Rule:
    """A rule of values. One of which `fits` or `plain` raises an error does not fit.

    Args:
        expected: which values fit, for the error.
        fits: whether one does.
        plain: what is kept of it.
    """

    def _rule(name: str, value: Any, error: type[DearError] = SettingError) -> Any:
        with suppress(TypeError, ValueError, OverflowError, ImportError):
            if fits(value):
                return plain(value)
        raise error(f"{name} must be {expected}, got {shown(value)}")

    return _rule


def is_number(value: Any, kind: type = Real) -> bool:
    """Whether a value is a number; True and False are none."""
    return isinstance(value, kind) and not isinstance(value, bool)


def whole(least: int) -> Rule:
    """An integer from `least`."""
    expected = f"a whole number from {least}"
    return must_be(expected, lambda v: is_number(v, Integral) and int(v) >= least, int)


# A number of threads: from 1, or below 0, counted from all cores: -1 for all.
jobs = must_be("a whole number from 1, or -1", lambda v: is_number(v, Integral) and v, int)
boolean = must_be("True or False", lambda value: isinstance(value, bool))


def number(high: float = math.inf) -> Rule:
    """A finite number from 0 to `high`."""
    expected = "a finite number from 0" if high == math.inf else f"a number from 0 to {high:g}"
    return must_be(expected, lambda v: is_number(v) and 0.0 <= v <= high and v < math.inf, float)


def one_of(*words: str) -> Rule:
    """One of some strings."""

    def _rule(name: str, value: Any, error: type[DearError] = SettingError) -> Any:
        if not isinstance(value, str) or value not in words:
            raise error(f"{name}: {unknown('value', [value], words)}")
        return value

    return _rule


def optional(rule: Rule) -> Rule:
    """None, or a value that satisfies a rule."""
    return lambda name, value, *error: None if value is None else rule(name, value, *error)


def several(rule: Rule) -> Rule:
    """A non-empty sequence whose items satisfy a rule; it becomes a tuple."""
    plural = must_be("a tuple of one or more", lambda v: is_listed(v) and len(v))
    return lambda name, value: tuple(rule(name, item) for item in plural(name, value))


def is_listed(value: Any) -> bool:
    """Whether a value is a sequence, and no text."""
    return isinstance(value, Sequence) and not isinstance(value, str)


def instance(kind: type) -> Rule:
    """An instance of a class."""
    return must_be(f"a {kind.__name__}(...)", lambda value: isinstance(value, kind))


Call = TypeVar("Call", bound=Callable[..., Any])


def suggesting(call: Call, signature: inspect.Signature | None = None) -> Call:
    """A function that names the closest argument for one that it does not take.

    Args:
        call: the function.
        signature: with the arguments that it takes by name; None for its own.
    """
    signature = signature or inspect.signature(call)
    known = [name for name in signature.parameters if name not in ("self", "cls")]

    @wraps(call)
    def _checked(*args: Any, **options: Any) -> Any:
        check_arguments(options, known)
        return call(*args, **options)

    vars(_checked)["__signature__"] = signature
    return cast(Call, _checked)


class Named:
    """A class whose constructor names the closest argument for one that it does not take."""

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Refuse unknown arguments.

        Raises:
            ArgumentError: an argument that the constructor does not take.
        """
        _, *known = inspect.signature(cls.__init__).parameters
        _refuse(cls, options, known)
        return super().__new__(cls)


def _refuse(cls: type, options: Iterable[str], known: Sequence[str]) -> None:
    """Refuse arguments that a constructor does not take."""
    if absent := [name for name in options if name not in known]:
        own = unknown("arguments", absent, known)
        raise ArgumentError(f"{cls.__name__}: {own}{_of_a_call(cls, absent[0])}")


def _of_a_call(cls: type, name: str) -> str:
    """Which methods of a class have an argument of that name, in words; "" for none."""
    methods = inspect.getmembers(cls, inspect.isfunction)
    calls = [
        n for n, each in methods if n[0] != "_" and name in inspect.signature(each).parameters
    ]
    return f"; {name!r} is an argument of {', '.join(calls)}" if calls else ""
