"""Settings: what an option may be, told at the door and not where it is first used."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any

from dear_plugin.errors import SettingError, unknown

Rule = Callable[[str, Any], Any]


def validate(settings: object, **rules: Rule) -> None:
    """Refuse what is no setting; numbers of numpy become Python's, which a save can hold.

    Args:
        settings: a frozen dataclass that has just been made.
        rules: by the name of the field.

    Raises:
        SettingError: the first value that breaks its rule.
    """
    for name, rule in rules.items():
        value = rule(f"{type(settings).__name__}: {name}", getattr(settings, name))
        object.__setattr__(settings, name, value)


def whole(least: int) -> Rule:
    """A whole number."""

    def _rule(name: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
            raise SettingError(f"{name} must be a whole number from {least}, {value!r} came")
        return int(value)

    return _rule


def number(high: float = math.inf) -> Rule:
    """A finite number, not below zero."""
    meant = "a finite number from 0" if high == math.inf else f"a number from 0 to {high:g}"

    def _rule(name: str, value: Any) -> float:
        fits = isinstance(value, Real) and not isinstance(value, bool)
        if not fits or not math.isfinite(value) or not 0.0 <= value <= high:
            raise SettingError(f"{name} must be {meant}, {value!r} came")
        return float(value)

    return _rule


def one_of(*words: str) -> Rule:
    """One of some words."""

    def _rule(name: str, value: Any) -> str:
        if not isinstance(value, str) or value not in words:
            raise SettingError(f"{name}: {unknown('value', [value], words)}")
        return value

    return _rule


def boolean(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise SettingError(f"{name} must be True or False, {value!r} came")
    return value


def optional(rule: Rule) -> Rule:
    """Something, or None."""
    return lambda name, value: None if value is None else rule(name, value)


def several(rule: Rule) -> Rule:
    """One or more of something."""

    def _each(name: str, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, Sequence) or isinstance(value, str) or not value:
            raise SettingError(f"{name} must be a tuple of one or more, {value!r} came")
        return tuple(rule(name, item) for item in value)

    return _each


def require_instance(name: str, value: Any, kind: type) -> None:
    """Refuse a value that is no instance of a class.

    Raises:
        SettingError: it is not.
    """
    if not isinstance(value, kind):
        raise SettingError(f"{name} must be a {kind.__name__}(...), {value!r} came")
