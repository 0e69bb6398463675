"""Per row: a value for all rows, or one for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dear_plugin.errors import ConstraintError


def each(value: Any, n: int, name: str, one: type) -> Iterator[tuple[slice | list[int], Any]]:
    """A constraint as (rows, value) pairs: one pair for all rows, or one per row."""
    if value is None:
        return
    items = list(value) if is_plural(value) else [value]
    if isinstance(value, Mapping) or (is_plural(value) and one is str and _all(str, items)):
        yield slice(None), value if isinstance(value, Mapping) else items
        return
    rest = [item for item in items if item is not None]
    fits = _all(Mapping, rest) if one is Mapping else all(is_plural(item) for item in rest)
    if len(items) != n or not fits:
        what = "a list of names" if one is str else "a mapping"
        raise ConstraintError(
            f"{name}: give {what} for all rows, or a list of {n}, one per row; {value!r} came"
        )
    for i, item in enumerate(items):
        if item is not None:
            yield [i], item


def is_plural(value: Any) -> bool:
    """Whether it holds several; text is one name, not its letters."""
    return isinstance(value, Iterable) and not isinstance(value, str)


def _all(kind: type, items: Iterable[Any]) -> bool:
    return all(isinstance(item, kind) for item in items)
