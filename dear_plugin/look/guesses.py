"""`look`: guesses of the arguments of `Schema.infer`, with their evidence in sentences."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dear_plugin._threads import one_thread
from dear_plugin.data import dummies, infer
from dear_plugin.data.feature import Feature, arguments, as_numbers, line
from dear_plugin.data.forms import Numbers, relation_of, relations_of
from dear_plugin.data.names import NAMES, SENSITIVE, says
from dear_plugin.data.numbers import Array, gross, on_grid, ordinary_values
from dear_plugin.data.relations import Lookup, Relation, in_words
from dear_plugin.errors import MOST_NAMED, argument
from dear_plugin.look import columns as seen
from dear_plugin.look import orders, sums

# A category is not acted on by default if it has more than MANY_LEVELS levels, or more than
# SOME_LEVELS and fewer rows per level than ROWS_A_LEVEL.
MANY_LEVELS, SOME_LEVELS, ROWS_A_LEVEL = 100, 12, 5
# Text is suspected to be numbers or dates if at least this share of its levels has digits.
PARSED = 0.9
INFO = logging.INFO

logger = logging.getLogger("dear_plugin.look")


@dataclass(frozen=True)
class Guess:
    """One guess from training rows, or a remark.

    Attributes:
        text: the evidence, and what to state if the guess is wrong.
        argument: the argument of `Schema.infer` that is guessed; "" for a remark.
        name: the feature, if the argument has a value for each feature.
        value: the value of the argument.
        level: the level of the log line.
        logger: the logger of the line.
    """

    text: str
    argument: str = ""
    name: str = ""
    value: Any = None
    level: int = logging.WARNING
    logger: logging.Logger = logger


class Guesses(dict[str, Any]):
    """The guessed arguments of `Schema.infer`, a dict.

    Args:
        evidence: the guesses and remarks.

    Attributes:
        evidence: the same as a tuple.
    """

    def __init__(self, evidence: Iterable[Guess]) -> None:
        super().__init__()
        self.evidence = tuple(evidence)
        for each in (each for each in self.evidence if each.argument):
            what, known = each.argument, arguments().get(each.argument)
            if what == "definitions":
                self.setdefault(what, {}).setdefault(each.name, []).append(each.value)
            elif known is None or known.is_list:
                self.setdefault(what, []).append(each.value or each.name)
            else:
                self.setdefault(what, {})[each.name] = each.value
        for name, lists in self.get("definitions", {}).items():
            self["definitions"][name] = lists if len(lists) > 1 else lists[0]

    def log(self) -> None:
        """Log the evidence."""
        for each in self.evidence:
            each.logger.log(each.level, "%s", each.text)

    def beside(self, stated: infer.Stated) -> infer.Stated:
        """The stated arguments, completed by these."""
        whole = {what: self[what] for what in infer.OF_SEVERAL if what in self}
        own = {what: (value, stated[what]) for what, value in self.items() if what not in whole}
        both = {w: {**a, **b} if isinstance(b, Mapping) else (*b, *a) for w, (a, b) in own.items()}
        return {**stated, **whole, **both}

    def columns(
        self, frame: pd.DataFrame, columns: Mapping[str, Feature], stated: infer.Stated
    ) -> dict[str, Feature]:
        """The features of columns, made anew if these guess an order or special values."""
        names = {name for what in ("ordered", "special") for name in self.get(what, ())}
        return {**columns, **infer.columns_of(frame, names & {*columns}, stated)}


@one_thread()
def look(frame: pd.DataFrame, target: str | None = None, **stated: Any) -> Guesses:
    """The arguments that `Schema.infer` would guess, with their evidence.

    Args:
        frame: training rows.
        target: the column that is not a feature.
        stated: known arguments of `Schema.infer`; these are not guessed.

    Raises:
        SchemaError: see `Schema.infer`.

    Example:
        >>> from dear_plugin.datasets import load_loan
        >>> from dear_plugin.look import look
        >>> look(load_loan(200).frame, "approved")
        {}
    """
    names = infer.feature_names(frame, target)
    known = infer.checked_stated(stated, names)
    return guesses(frame, infer.columns_of(frame, names, known), known)


def guesses(frame: pd.DataFrame, columns: Mapping[str, Feature], stated: infer.Stated) -> Guesses:
    """The guesses of arguments that are not stated.

    Args:
        frame: training rows.
        columns: the features of its columns without guesses.
        stated: see `data.infer`.
    """
    of_columns = [*_of_missing(frame, columns.values())]
    with np.errstate(over="ignore"):  # the schema rejects a range that overflows
        for name, feature in columns.items():
            of_columns += of_column(frame[name], feature, stated)
    found = Guesses(of_columns)
    known = found.beside(stated)
    own, groups, of_groups = found.columns(frame, columns, known), stated["exactly_one"], []
    if groups is None:
        groups, text = orders.groups(frame, own.values()), "exactly one is 1 in every row: "
        of_groups = [Guess(text + ", ".join(g), "exactly_one", "", g, INFO) for g in groups]
    features = infer.features_of(own, known, groups)
    several = [f for f in features if f.dummies and f.name not in stated["special"]]
    of_groups += [guess for f in several for guess in _not_known(f.name, f.categories, "category")]
    of_names = _of_names([c for f in features for c in f.members], stated)
    return Guesses([*of_columns, *of_names, *of_groups, *_of_relations(frame, features, stated)])


def _of_relations(
    frame: pd.DataFrame, features: Sequence[Feature], stated: infer.Stated
) -> Iterator[Guess]:
    """Guesses of definitions and orders that are not stated."""
    if stated["definitions"] is not None and stated["orders"] is not None:
        return
    given, frame = stated["definitions"], dummies.labelled(frame, features)
    others = [feature for feature in features if not feature.identifier]
    numbers, found = Numbers.of(frame, others), list[Guess]()
    exact: list[Relation] = []
    with np.errstate(all="ignore"):
        if given is None:
            exact = sums.definitions(numbers)
            pairs = orders.lookups(frame, others, [each for each in exact if each.is_definition])
            tables = (relation_of(frame, numbers, name, (other,)) for name, other in pairs)
            found += map(_definition, (*tables, *exact))
        elif stated["orders"] is None:
            every = relations_of(frame, others, definitions=given, within=stated["within"])
            exact = [each for each in every if isinstance(each, Relation)]
        if stated["orders"] is None:
            for low, high in orders.orders(numbers, exact):
                text = f"in every row: {low} <= {high}"
                found.append(Guess(text, "orders", "", (low, high), INFO))
    if found:
        text = "definitions={...} and orders=[...] of Schema.infer replace these rules"
        found.append(Guess(text, level=INFO))
    yield from found


def _definition(relation: Relation | Lookup) -> Guess:
    """The guess of a column that others determine, exactly or nearly."""
    ((how, text),) = in_words([relation])
    others = getattr(relation, "formula", "") or [*relation.members[1:]]
    return Guess(f"{how}: {text}", "definitions", relation.name, others, INFO)


def _of_missing(frame: pd.DataFrame, features: Iterable[Feature]) -> Iterator[Guess]:
    """Remarks on missing values, and on columns without other values."""
    missing = {f.name: int(frame[f.name].isna().sum()) for f in features if f.missing}
    if empty := [name for name, count in missing.items() if count == len(frame)]:
        yield Guess(f"columns {empty} are empty, and immutable: drop them from the frame")
    if some := [f"{name} {count}" for name, count in missing.items() if name not in empty]:
        yield Guess(
            "missing values are kept, and no action fills or empties them:"
            f" {', '.join(some)} of {len(frame)} rows"
        )


def of_column(column: pd.Series, feature: Feature, stated: infer.Stated) -> Iterator[Guess]:
    """The guesses from the values of a column, (n,).

    Args:
        column: its cells.
        feature: its feature without guesses.
        stated: see `data.infer`.
    """
    name = feature.name
    is_said = any(name in stated[what] for what in ("categorical", "ordered", "special"))
    levels = None if is_said else seen.order_of_ranges(column)
    # "t0037" that differs in each row is not a range; "10 t" in many rows is one.
    if levels and not identified(column, name, False):
        yield Guess(
            f"column {name!r} holds numbers and ranges in the order {list(levels)};"
            f" categorical=[{name!r}] drops this order, ordered= states another one",
            *("ordered", name, list(levels), INFO),
        )
        return
    by_itself = name in stated["identifiers"]
    if not (by_itself or feature.ranked or infer.says_what(stated, name)):
        values = None if feature.choices else ordinary_values(column, feature.special)
        if form := "" if values is None else seen.form_of_dates(values):
            yield Guess(
                f"column {name!r} looks like dates or times, {form} as whole numbers: no action"
                f" changes it; state numeric=[{name!r}] if it holds amounts",
                *("immutable", name),
            )
        elif found := identified(column, name, not feature.choices):
            yield _identifier(column, feature, found)
            return
    if not by_itself:
        yield from (_category if feature.choices else _number)(column, feature, stated)


def _identifier(column: pd.Series, feature: Feature, found: str) -> Guess:
    """The guess of an identifier, by its values or its name."""
    name, other = feature.name, "categorical" if feature.choices else "numeric"
    fix = f"{other}=[{name!r}] if it is not one"
    if found != "values":
        fix = f"identifiers=[{name!r}] if it is one, {other}= if not"
    text = (
        f"column {name!r} looks like an identifier by its {found}: no action changes it, and"
        f" distances between rows leave it out; state {fix}"
    )
    by_values = found == "values" and _as_text(
        column, "an identifier, which no action changes", r"\D"
    )
    return Guess(by_values or text, "identifiers", name)


def _as_text(column: pd.Series, read_as: str, having: str = "") -> str:
    """The remark that a column holds numbers or dates as text; "" for two levels or other text.

    One level at least must contain the pattern `having`: whole numbers may be an identifier.
    """
    text = pd.api.types.is_string_dtype(getattr(column.dtype, "categories", column).dtype)
    levels = column.dropna().drop_duplicates().astype(str)
    if not text or len(levels) <= 2 or levels.str.contains(r"\d").mean() < PARSED:
        return ""
    days = seen.as_days(column)
    code = days or (as_numbers(column) if levels.str.contains(having).any() else "")
    if not code:
        return ""
    return (
        f"column {column.name!r} holds {'dates' if days else 'numbers'} as text and is read as"
        f" {read_as}. In DiCE, name it: continuous_features=[..., {column.name!r}]. For a number:"
        f" {line(str(column.name), code)}"
    )


def _number(column: pd.Series, feature: Feature, stated: infer.Stated) -> Iterator[Guess]:
    """Guesses from a column of numbers: few values, gross values, and codes."""
    name, values = feature.name, ordinary_values(column, feature.special)
    known = np.flatnonzero(~np.isnan(values))
    is_gross = gross(values[known])
    if is_gross.any():
        yield _gross(column, values, known[is_gross])
    if codes := _shown(seen.suspected_codes(values[known[~is_gross]])):
        yield Guess(
            f"column {name!r} has {codes}, which look like codes and not like amounts: if they are"
            f" codes, state special={{{name!r}: {codes}}}"
        )
    if name not in stated["observed"]:
        single = np.float32 if str(column.dtype).lower() == "float32" else np.float64
        values = on_grid(values[known].astype(single), feature.precision)
        few = [v for v in seen.few_values(values, feature.precision) if v not in feature.special]
        if few:
            yield _observed(name, few, bool(codes) or name in stated["numeric"])


def _gross(column: pd.Series, values: Array, far: Array) -> Guess:
    """The remark on rows, at positions (m,), whose values lie far beyond all others."""
    codes, name = _shown(np.unique(values[far]).tolist()), column.name
    rows, more = column.index[far[:MOST_NAMED]].tolist(), ", ..." * (len(far) > MOST_NAMED)
    few = len(codes) <= seen.MOST_CODES
    stated = f", or state special={{{name!r}: {codes}}} for codes" * few
    return Guess(
        f"column {name!r} has values far beyond all others in {len(far)} rows,"
        f" {str(rows)[1:-1]}{more}: correct or drop errors{stated}"
    )


def _observed(name: str, observed: list[float], is_amount: bool) -> Guess:
    """The guess that a number takes few values: a grid (INFO), or suspected codes (WARNING)."""
    steps = np.diff(observed)
    even, whole = np.allclose(steps, steps[0]), not any(v % 1 for v in observed)
    what = f"takes steps of {steps[0]:g}" if even else f"takes only {len(observed)} values"
    fix, level = f"observed={{{name!r}: []}} allows all values", INFO
    # Rounded amounts often have a common step.
    if whole and not (even or is_amount) and math.gcd(*map(int, observed)) == 1:
        what, level = f"has only the values {_shown(observed)}", logging.WARNING
        fix = f"if they are codes and not amounts, state categorical=[{name!r}]"
    text = f"column {name!r} {what}: no value in between is proposed; {fix}"
    return Guess(text, "observed", name, observed, level)


def _shown(values: Sequence[float]) -> list[float]:
    return [int(value) if value.is_integer() else value for value in values]


def _not_known(name: str, levels: Iterable[Any], what: str = "column") -> list[Guess]:
    """The guess that some levels of a category, of one column or of several, are not known."""
    unknown = [*seen.not_known(levels)]
    text = (
        f"{what} {name!r} has the levels {unknown}, which say that the value is not known: no"
        f" action enters or leaves them. special={{{name!r}: {unknown}}} states this;"
        f" special={{{name!r}: []}} makes them ordinary levels"
    )
    return [Guess(text, "special", name, unknown)] * bool(unknown)


def _category(column: pd.Series, feature: Feature, stated: infer.Stated) -> Iterator[Guess]:
    """Guesses from the levels of a category: unknown, spelled twice, ordered, too many."""
    name, levels, rows = feature.name, feature.choices, len(column)
    own = () if name in stated["special"] else seen.not_known(levels)
    yield from (unknown := _not_known(name, [each for each in own if (column == each).any()]))
    if feature.ranked and not unknown:
        return
    if several := seen.spellings(
        level for level in levels if level not in [*stated["excluded"].get(name, ())]
    ):
        yield Guess(
            f"column {name!r} has levels that differ only in case or spaces,"
            f" {several[:MOST_NAMED]}: merge them before training the model, or state"
            f" excluded={{{name!r}: [...]}} with the levels that no action should reach"
        )
    if name not in stated["categorical"]:
        if words := seen.words_in_order([level for level in levels if level is not None]):
            yield Guess(
                f"column {name!r} has levels that seem to have an order: ordered={{{name!r}:"
                f" {list(words)}}} states it, categorical=[{name!r}] states that there is none"
            )
        if text := _as_text(column, f"a category of {len(levels)} levels"):
            yield Guess(text)
    if len(levels) > MANY_LEVELS or (
        len(levels) > SOME_LEVELS and rows < ROWS_A_LEVEL * len(levels)
    ):
        yield Guess(
            f"column {name!r} has {len(levels)} levels in {rows} rows: it is not acted on unless"
            f" act_on names it; merge its rare levels, or state identifiers=[{name!r}]",
            *("only_named", name),
        )


def _of_names(features: Sequence[Feature], stated: infer.Stated) -> Iterator[Guess]:
    """Remarks on mutable features whose names suggest that no action changes them.

    A feature has one remark. Features with a direction or a range have none. One more remark is
    made if no feature is stated as immutable.
    """
    known = {f.name for f in features if f.immutable or f.direction or f.limits is not None}
    fixed, log = argument("immutable"), logger.getChild("names")
    for reason in NAMES:
        if names := [f.name for f in features if f.name not in known and says(f.name, reason)]:
            known |= {*names}
            yield Guess(f"columns {names} {reason}: {fixed}={names} keeps them fixed", logger=log)
        elif reason == SENSITIVE and not stated["immutable"]:
            text = (
                f"nothing is stated as immutable: list in {fixed}=[...] the features that cannot"
            )
            yield Guess(f"{text} change, such as age or origin", logger=log)


# Words of names, and endings: "customerId", "zip", "flight_no", "job_code".
NAMED = re.compile(
    r"(?<![a-z])(ids?|identifier|uuid|guid|ssn|zip|zipcode|postcode|case|flight|tailnum|barcode)"
    r"(?![a-z])|fips$|.(num|number|code|_no|_nr)$"
    r"|(school|child|person|stud\w*|dist|sch|county|p|user|cust\w*|firm)id$"
)
# The smallest number of rows; by name, the smallest number of distinct values, or half the rows.
FEWEST, DISTINCT = 20, 30
# By values, with at least ROWS rows: the smallest share of distinct values of text; the largest
# share of ties of whole numbers, and of the ties that chance would give.
ROWS, TEXT, TIES, BY_CHANCE = 50, 0.4, 0.03, 0.1
# Sparse numbers, which have no ties by chance: all have so many digits, and few are round.
DIGITS, ROUND = 6, 0.25


def identified(column: pd.Series, name: str, of_numbers: bool) -> str:
    """Why a column, (n,), is an identifier: "values" or "name alone"; "" if it is none."""
    known = column.dropna()
    n, distinct = len(known), known.nunique()
    if n < FEWEST:
        return ""
    by_values = n >= ROWS and distinct >= TEXT * n
    if of_numbers:
        values = known.to_numpy(dtype=np.float64)
        if (values % 1 != 0).any():
            return ""
        by_values = n >= ROWS and n - distinct <= TIES * n and _is_no_amount(values, n - distinct)
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    by_name = bool(NAMED.search(words)) and distinct >= min(DISTINCT, n / 2)
    return "values" if by_values else "name alone" if by_name else ""


def _is_no_amount(values: Array, ties: int) -> bool:
    """Whether whole numbers, (n,), have fewer ties than amounts have, or are sparse."""
    n, low, high = len(values), values.min(), values.max()
    expected = n * (n - 1) / 2.0 / (high - low + 1.0)
    digits = {len(f"{abs(end):.0f}") for end in (low, high)}
    is_sparse = len(digits) == 1 and min(digits) >= DIGITS and (values % 10 == 0).mean() < ROUND
    return bool(expected * BY_CHANCE >= max(ties, 1.0) or is_sparse)
