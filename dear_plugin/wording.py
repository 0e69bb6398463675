"""Wording: a change of features in plain words.

An indirect change is an association in the data, not a causal effect: the words say "expected".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dear_plugin.schema import Feature, Kind

ASSOCIATION = (
    "Indirect changes are associations in the data, not causal effects: they say what usually"
    " goes along with the action, not what the action brings about."
)

Change = tuple[Feature, Any, Any]


def sentence(
    direct: Sequence[Change],
    indirect: Sequence[Change],
    shares: Mapping[str, tuple[float, float]],
) -> str:
    """What to do; what is then expected to move.

    Args:
        direct: features acted on, with their old and new value.
        indirect: features that move along, likewise.
        shares: categories that do not flip, with their expected probability before and after.
    """
    action = join([_imperative(*change) for change in direct])
    parts = [
        f"{feature.name} {'' if i else 'is then expected '}{_infinitive(feature, old, new)}"
        for i, (feature, old, new) in enumerate(indirect)
    ]
    tilts = ", ".join(f"{k}: {a:.0%} -> {b:.0%}" for k, (a, b) in shares.items())
    follows = join(parts) or ("nothing else is expected to change" if tilts else "")
    tail = f"{follows} (expected shares: {tilts})" if tilts else follows
    return f"{action}; {tail}" if tail else action


def join(parts: Sequence[str]) -> str:
    """Parts of a sentence as "a", "a and b", or "a, b and c"."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def number(value: Any) -> str:
    """A number as a person writes it: no trailing zeros, six significant digits at most."""
    exact = float(value)
    if exact.is_integer() and abs(exact) < 1e15:
        return str(int(exact))
    return f"{exact:.6g}"


def level(feature: Feature) -> str:
    """The name of a binary feature's second value: "marital-status = Married"."""
    return f"{feature.name} = {feature.categories[-1]}"


def _imperative(feature: Feature, old: Any, new: Any) -> str:
    if feature.kind is not Kind.NUMERIC:
        return f"change {feature.name} from {old} to {new}"
    verb = "raise" if float(new) > float(old) else "lower"
    return f"{verb} {feature.name} from {number(old)} to {number(new)}"


def _infinitive(feature: Feature, old: Any, new: Any) -> str:
    if feature.kind is not Kind.NUMERIC:
        return f"to change from {old} to {new}"
    return f"to move from {number(old)} to {number(new)}"
