"""Given: the arguments of `Schema.infer` that name features in; what they say of each out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from dear_plugin.errors import SchemaError, argument, shown, unknown


def _is_list(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str)


def _is_pair(value: Any) -> bool:
    return _is_list(value) and len([*value]) == 2


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _are_texts(value: Any) -> bool:
    return all(map(_is_text, value.values() if isinstance(value, Mapping) else [value]))


class Argument(NamedTuple):
    """What an argument of `Schema.infer` says of features.

    Attributes:
        key: what a file of `Schema.to_toml` calls it in the table of a feature.
        value: of the key, where it is a list of features; None where it is `{feature: value}`.
        expected: what each value of these must be.
        fits: whether a value is one.
        of_whole: whether it may also name a feature of several columns.
        says_what: whether it says what a column is, which then is no identifier.
    """

    key: str
    value: str | bool | None = None
    expected: str = ""
    fits: Callable[[Any], bool] = lambda _: True
    of_whole: bool = False
    says_what: bool = False


LEVELS = "a list of levels, the least first"
ARGUMENTS = {
    "immutable": Argument("immutable", True, of_whole=True),
    "increasing": Argument("direction", "increasing", says_what=True),
    "decreasing": Argument("direction", "decreasing", says_what=True),
    "categorical": Argument("kind", "category", says_what=True),
    "numeric": Argument("kind", "number", says_what=True),
    "identifiers": Argument("identifier", True),
    "ranges": Argument("range", None, "(low, high)", _is_pair, says_what=True),
    "special": Argument("special", None, "a list of values", _is_list),
    "ordered": Argument("ordered", None, LEVELS, _is_list, says_what=True),
    "excluded": Argument("excluded", None, "a list of levels", _is_list, of_whole=True),
    "units": Argument("unit", None, "a text", _is_text, says_what=True),
    "labels": Argument("label", None, "a text or {level: text}", _are_texts, of_whole=True),
    "costs": Argument("cost", of_whole=True),
    "steps": Argument("step"),
    "cyclic": Argument("cyclic", says_what=True),
}
CONTRARY = (
    *(("categorical", "numeric"), ("identifiers", "numeric"), ("increasing", "decreasing")),
    *(("cyclic", "numeric"), ("cyclic", "ordered")),
)


class Given:
    """What a user says of features.

    Args:
        given: the arguments; None for what is not given.

    Raises:
        SchemaError: one that is no list of features, or not `{feature: value}`.
    """

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given: dict[str, Any] = {name: _plain(name, given.get(name)) for name in ARGUMENTS}

    def names(self, what: str) -> tuple[str, ...]:
        """The features that an argument names."""
        return tuple(self._given[what])

    def of(self, what: str, name: str, default: Any = None) -> Any:
        """What an argument says of a feature; the default where it says nothing."""
        return self._given[what].get(name, default)

    def says_what(self, name: str) -> bool:
        """Whether it says what a column is."""
        return any(name in self._given[what] for what, each in ARGUMENTS.items() if each.says_what)

    def apart(self, columns: Sequence[str]) -> tuple[Given, Given]:
        """What is said of columns, and of features of several columns; all, if it is wrong."""
        own, whole = dict(self._given), dict[str, Any]()
        for what, some in self._given.items():
            if ARGUMENTS[what].of_whole:
                own[what], whole[what] = (_part(some, columns, inside) for inside in (True, False))
        found = Given(own)
        return (self, Given({})) if found.complaint(columns) else (found, Given(whole))

    def check(self, known: Sequence[str]) -> None:
        """Raise an error unless it says what features with these names can have.

        Raises:
            SchemaError: all that is wrong with names and values at once.
        """
        if complaint := self.complaint(known):
            raise SchemaError(complaint)

    def complaint(self, known: Sequence[str]) -> str:
        """What is wrong for features with these names; "" for nothing."""
        absent = {what: [n for n in some if n not in known] for what, some in self._given.items()}
        where = ", ".join(argument(what) for what, some in absent.items() if some)
        every = dict.fromkeys(name for some in absent.values() for name in some)
        wrong = [f"{where}: {unknown('features', every, known)}"] if where else []
        wrong += [
            f"{what}[{name!r}] must be {each.expected}, got {shown(value)}"
            for what, each in ARGUMENTS.items()
            if each.value is None
            for name, value in self._given[what].items()
            if not each.fits(value)
        ]
        pairs = ((each, {*self.names(each[0])} & {*self.names(each[1])}) for each in CONTRARY)
        wrong += [f"both {' and '.join(each)}: {sorted(both)}" for each, both in pairs if both]
        return "; ".join(wrong)


def _plain(what: str, given: Any) -> Any:
    """A mapping, or a list as a tuple."""
    if ARGUMENTS[what].value is None:
        if given is not None and not isinstance(given, Mapping):
            raise SchemaError(f"{what} must be {{feature: ...}}, got {shown(given)}")
        return given or {}
    if given is not None and not _is_list(given):
        raise SchemaError(f"{argument(what)} must be a list of features, got {shown(given)}")
    return () if given is None else tuple(given)


def _part(some: Any, columns: Sequence[str], inside: bool) -> Any:
    """What is said of names that are columns, or that are none."""
    kept = [name for name in some if (name in columns) == inside]
    return {name: some[name] for name in kept} if isinstance(some, Mapping) else kept
