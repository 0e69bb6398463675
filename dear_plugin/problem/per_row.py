"""Per-row arguments: one value for all rows, or a list with one value per row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dear_plugin.errors import ConstraintError


def each(value: Any, n: int, name: str, one: type) -> Iterator[tuple[slice | list[int], Any]]:
    """Iterate over a constraint as (rows, value) pairs: one for all rows, or one per row.

    Args:
        value: the user's value; None yields nothing.
        n: the number of rows.
        name: the argument's name, for errors.
        one: the type of one row's value: `str` for a list of names, or `Mapping`.

    Raises:
        ConstraintError: a list of another length or of other values.
    """
    if value is None:
        return
    items = list(value) if is_plural(value) else [value]
    if isinstance(value, Mapping) or (is_plural(value) and one is str and _all(str, items)):
        yield slice(None), value if isinstance(value, Mapping) else items
        return
    given = [item for item in items if item is not None]
    valid = _all(Mapping, given) if one is Mapping else all(is_plural(item) for item in given)
    if len(items) != n or not valid:
        what = "a list of names" if one is str else "a mapping"
        raise ConstraintError(
            f"{name}: expected {what} for all rows, or a list of {n}, one per row; got {value!r}"
        )
    for i, item in enumerate(items):
        if item is not None:
            yield [i], item


def is_plural(value: Any) -> bool:
    """Whether a value is iterable and not a string."""
    return isinstance(value, Iterable) and not isinstance(value, str)


def _all(kind: type, items: Iterable[Any]) -> bool:
    return all(isinstance(item, kind) for item in items)
