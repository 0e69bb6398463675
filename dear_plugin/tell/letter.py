"""Letters to applicants; their sentences are a template.

A letter states an answer only if what it says is true of the model and can be said; else it says
what stands in the way.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, product
from pathlib import Path
from string import Formatter
from typing import Any, TypeAlias

import pandas as pd
import torch
from torch import Tensor

from dear_plugin._validation import one_of
from dear_plugin.data.feature import Feature
from dear_plugin.data.numbers import in_steps
from dear_plugin.data.schema import Schema
from dear_plugin.errors import SettingError, shown, unknown
from dear_plugin.results.changes import (
    LONGEST,
    Line,
    accepted_parts,
    between,
    capital,
    determined,
    is_amount,
    join,
    number,
    one,
    rises,
    unit_of,
    with_unit,
)
from dear_plugin.results.describe import followers, needs, unclear_changes
from dear_plugin.results.proposal import as_actions
from dear_plugin.results.result import Result
from dear_plugin.results.writing import settled
from dear_plugin.search.settings import CRITERIA

# A way has no more words, as long as labels have a few words each.
MOST_WORDS = 80
# The ranks among which a way is looked for that can be stated.
LOOKED_AT = 8
# Amounts, and numbers without a unit, have a separator between thousands from here on.
LONG_AMOUNT, LONG = 1_000, 10_000
# An old amount is shown with as many decimals as leave this share of the change.
SHOWN = 0.01
FOLDER = Path(__file__).parent / "letters"

# One text for all letters, or one for each label of the index.
Field: TypeAlias = str | Mapping[Hashable, Any] | pd.Series


@dataclass(frozen=True)
class LetterTemplate:
    """The sentences of a letter, by name; what they have in braces is filled in.

    `LetterTemplate.of("de")` is in German. The file of a language says what each sentence is for:
    `dear_plugin/tell/letters/en.toml` is the one to copy for another.

    Attributes:
        sentences: all of them.

    Example:
        >>> from dear_plugin import LetterTemplate
        >>> short = LetterTemplate.of("en", caution="This is no promise.")
        >>> short["caution"]
        'This is no promise.'
    """

    sentences: Mapping[str, str]

    @classmethod
    def of(cls, source: str | Path = "en", **changed: str) -> LetterTemplate:
        """A template in a language, or of a file.

        Args:
            source: "en", "de", or the path of a TOML file with the sentences of en.toml.
            changed: sentences to use in place of those.

        Raises:
            SettingError: no such language or file; sentences that are missing or unknown, or that
                have other fields in braces.
        """
        path = FOLDER / f"{source}.toml"
        path = path if path.is_file() else Path(source)
        if not path.is_file():
            known = sorted(path.stem for path in FOLDER.glob("*.toml"))
            raise SettingError(
                f"template must be {known} or the path of a TOML file, got {shown(source)}"
            )
        english = tomllib.loads((FOLDER / "en.toml").read_text(encoding="utf8"))
        own = tomllib.loads(path.read_text(encoding="utf8")) | changed
        if missing := [name for name in english if name not in own]:
            raise SettingError(f"{path.name} lacks the sentences {missing}; en.toml has them all")
        if wrong := [name for name in own if name not in english]:
            raise SettingError(unknown("sentences of a letter", wrong, english))
        for name, text in own.items():
            if not isinstance(text, str) or not _fields(text) <= _fields(english[name]):
                some = sorted(_fields(english[name])) or "no fields"
                raise SettingError(f"sentence {name!r} is a text with {some}, got {shown(text)}")
        return cls(own)

    def __getitem__(self, name: str) -> str:
        """A sentence."""
        return self.sentences[name]

    def write(self, ways: Sequence[Sequence[Line]], head: Mapping[str, Any]) -> str:
        """A letter with some ways, each the lines that are stated of it."""
        several = len(ways) > 1
        texts = [self._way(lines, n * several) for n, lines in enumerate(ways, 1)]
        ask = [self["ways"]] if several else []
        return self.page([self["decided"], *ask, *texts, self["caution"]], head)

    def page(self, parts: Iterable[str], head: Mapping[str, Any]) -> str:
        """Parts of a letter, one below the other, with what stands above them."""
        top = [
            self[name].format(**{name: text}) for name, text in head.items() if text is not None
        ]
        return "\n".join(filter(None, [*top, *parts]))

    def listed(self, parts: Sequence[str]) -> str:
        """Parts as "a", "a and b", or "a, b and c"."""
        return join(parts, self["last"], self["comma"])

    def _way(self, lines: Sequence[Line], place: int) -> str:
        """A way, with as much of what usually follows as a letter has room for."""
        usual = [line for line in lines if line.kind == "indirect" and not line.is_needed]
        texts = (self._text(lines, usual[:n], place) for n in range(len(usual), -1, -1))
        short = [text for text in texts if len(text.split()) <= MOST_WORDS]
        return short[0] if short else self._text(lines, [], place)

    def _text(self, lines: Sequence[Line], usual: Sequence[Line], place: int) -> str:
        """The sentences of a way, given what usually follows; with its place among several."""

        def parts(names: tuple[str, str, str], some: Iterable[Line], *ends: str) -> str:
            each = ((line, *(getattr(line, end) for end in ends)) for line in some)
            return self.listed([self._part(names, *own) for own in each])

        acts = [line for line in lines if line.kind == "direct"]
        forced = [line for line in lines if line.kind == "forced"]
        musts = [line for line in lines if line.is_needed]
        actions = self.listed([self._action(line) for line in acts])
        sets = parts(("sets", "sets", "sets"), [e for e in forced if e.exact], "alone")
        ends = [line for line in forced if not line.exact]
        limits = parts(("sets_only", "sets_at_least", "sets_at_most"), ends, "alone")
        bounds = parts(("being", "at", "at"), musts, "least", "new")
        follow = parts(("becomes", "rises", "falls"), usual, "new")
        texts = [
            self["way" if place else "advice"].format(
                number=place, actions=capital(actions) if place else actions
            ),
            self["by_definition"].format(changes=sets) if sets else "",
            self["bounded"].format(changes=limits) if limits else "",
            "" if forced or bounds else self["enough"],
            self["only_with"].format(bounds=bounds) if bounds else "",
            self["follows"].format(changes=follow) if follow else "",
        ]
        return " ".join(map(capital, filter(None, texts)))

    def _action(self, line: Line) -> str:
        """What to do, and from where on that may be enough."""
        text = self._part(("changed", "raised", "lowered"), line, line.new)
        if line.least == line.new:
            return text
        least = self._ends(line.of, float(line.old), float(line.least), has_old=False)[1]
        return self["may_do"].format(action=text, least=least)

    def _part(self, names: tuple[str, str, str], line: Line, new: Any, *last: Any) -> str:
        """A change, to one of some values, in words: names for another one, a rise and a fall."""
        other, up, down = names
        if is_amount(line.of, line.old, new, *last):
            name = up if rises(line.of, line.old, new) else down
            values = map(float, (line.old, new, *last))
            old, text = self._ends(line.of, *values, has_old="{old}" in self[name])
        else:
            old, text = one(line.of, line.old), with_unit(line.of, line.old, new)
            name = self._of_flag(other, line.of, old, text)
        return self[name].format(feature=line.label, old=old, new=text)

    def _of_flag(self, name: str, feature: Feature, *ends: str) -> str:
        """The name of the sentence for a change from no to yes, or back, if there is one."""
        # A label may be a noun without "the", "a guarantor"; other names are not read so.
        if not feature.label or feature.label.startswith("the "):
            return name
        known = [end.lower() for end in ends]
        for flag, before in (("yes", "no"), ("no", "yes")):
            texts = [self[each].split(", ") for each in (before, flag)]
            own = f"{name}_{flag}"
            if own in self.sentences and all(e in t for e, t in zip(known, texts, strict=True)):
                return own
        return name

    def _ends(
        self, feature: Feature, old: float, *news: float, has_old: bool = True
    ) -> tuple[str, str]:
        """The old and the new amounts with as many decimals each, the new ones with their unit.

        Where the sentence does not have the old one, the others are as without it.
        """
        power, unit = self._unit(feature, max(news))
        scale, precision = 10.0**power, 17 if feature.precision is None else feature.precision
        before, *after = (round(each * scale, 9) for each in (old, *sorted({*news})))
        most = max(precision - power, 0)
        places = next(
            (n for n in range(most) if all(abs(a - round(a, n)) <= 1e-9 * abs(a) for a in after)),
            most,
        )
        close = SHOWN * min(abs(each - before) for each in after) if has_old else math.inf
        places = next(
            (n for n in range(places, most + 1) if abs(before - round(before, n)) <= close), most
        )
        least = LONG_AMOUNT if feature.unit else LONG
        long = max(map(abs, (before * has_old, *after))) >= least
        first, *texts = (self._amount(each, places, long=long) for each in (before, *after))
        return first, f"{self['to'].join(texts)} {unit}".rstrip()

    def _unit(self, feature: Feature, value: float) -> tuple[int, str]:
        """The power of ten that a unit starts with, 3 of "thousand euros", and the rest.

        It is 0 for none; then the unit is that of the value, as it is of 1 where it is.
        """
        for power, name in enumerate(map(str.strip, self["thousand"].split(",")), 3):
            if name and feature.unit.startswith(f"{name} "):
                return power, feature.unit[len(name) :].strip()
        first, space, rest = feature.unit.partition(" ")
        pairs = (each.partition(" ") for each in self["single"].split(", "))
        known = {many: one for many, _, one in pairs}
        if value == 1.0 and first in known:
            return 0, f"{known[first]}{space}{rest}"
        return 0, unit_of(feature, value)

    def _amount(self, value: float, places: int, *, long: bool) -> str:
        """A number with some decimals, and with separators of thousands where it is long."""
        if abs(value) >= LONGEST or places > 12:
            return number(value)
        text = f"{value:,.{places}f}" if long else f"{value:.{places}f}"
        return text.translate({ord(","): self["separator"], ord("."): self["point"]})


Template: TypeAlias = str | Path | LetterTemplate


def letters(
    result: Result,
    positions: Sequence[int],
    source: Template,
    *,
    ways: Mapping[int, Sequence[Sequence[Line]]],
    above: Mapping[str, Field],
) -> list[str]:
    """The letters of the rows at m positions.

    Args:
        result: of n rows.
        positions: of the rows.
        source: of the sentences.
        ways: what they say to do, see `ways_of`.
        above: the date, the case and the name, for all letters or by label.
    """
    template = source if isinstance(source, LetterTemplate) else LetterTemplate.of(source)
    for field in above:
        one_of("date", "case", "name")("above a letter", field)
    texts = []
    for at in positions:
        head = {name: _of(text, result.factuals.index[at]) for name, text in above.items()}
        none = [] if ways[at] else _without_advice(result, at, template)
        texts.append(template.page(none, head) if none else template.write(ways[at], head))
    return texts


def ways_of(result: Result, positions: Sequence[int], most: int) -> dict[int, list[list[Line]]]:
    """The lines of up to some ways of each row, those of the first ranks that can be stated.

    A result of one rank, as on the page, has its own answers alone.

    Raises:
        SettingError: more than three ways, or none.
    """
    one_of("1", "2", "3")("ways", str(most))
    found: dict[int, list[list[Line]]] = {at: [] for at in positions}

    def add(some: Result, at: Mapping[int, int]) -> None:
        """Add what can be stated to the ways of rows, by position in a result and in this one."""
        good = {own: whole for own, whole in at.items() if advisable(some, own)}
        for whole, lines in zip(good.values(), stated(some, list(good)), strict=True):
            found[whole] += [lines] if lines else []

    add(result, {at: at for at in positions})
    left = [at for at in positions if bool(result.acts[at]) and len(found[at]) < most]
    if left and result.proposal.searched and result.rank is None:
        part = result.question.select(torch.tensor(left))
        # What was searched for all rows is not searched again.
        later = settled(result.question if len(left) == len(result) else part, LOOKED_AT)
        next(later)
        for rank in later:
            # Only of these what follows is computed.
            fit = [i for i, at in enumerate(left) if len(found[at]) < most and moderate(rank, i)]
            some = rank.select(torch.tensor(fit, dtype=torch.int64))
            add(some, {i: left[own] for i, own in enumerate(fit)})
    return found


def _without_advice(result: Result, at: int, template: LetterTemplate) -> list[str]:
    """The parts of the letter of a row without an action that can be recommended."""
    if result.question.unreadable[at]:
        return [template["unreadable"]]
    if not result.proposal.searched:
        return [template["unsure" if bool(result.success[at]) else "refused"]]
    if result.question.accepted[at] and not result.acts[at]:
        return [template["accepted"]]
    return [template["none"], in_the_way(result, at, template), template["ask"]]


def in_the_way(result: Result, at: int, template: LetterTemplate) -> str:
    """What stands in the way of telling an answer as advice, in a sentence."""
    name, some = hindrance(result, at)
    return template[name].format(features=template.listed(some))


def _of(text: Field | None, label: Hashable) -> Any:
    """A field of the letter of a row."""
    if isinstance(text, pd.Series | Mapping):
        found = text.get(label)
        return None if found is None or pd.isna(found) else found
    return text


def _fields(text: str) -> set[str]:
    """The names in braces."""
    return {name for _, name, *_ in Formatter().parse(text) if name is not None}


# Significant digits of amounts, None for the exact value, and how many of the changes that must
# follow are named: what the model accepts first is stated.
DIGITS: tuple[int | None, ...] = (2, 3, None)
NAMED = (0, 1, 2, 3)
# The shares of an action that are tried, as less may be enough.
LESS = torch.arange(9, 0, -1) / 10
MOST_USUAL = 2
# An indirect change is named from this many standard deviations of the training rows on.
LEAST_NAMED = 0.1
# Digits of what usually follows, where an action has no rounded value.
USUAL_DIGITS = 3
# Changes of amounts of more than so many steps are no advice where they are more than these
# shares: of the usual range in all; of the own value, in a rise and in a fall (by judgement).
FAR, FEW, FARTHEST = 0.5, 2, {True: 0.4, False: 0.5}


def stated(result: Result, positions: Sequence[int]) -> list[list[Line] | None]:
    """The lines that a letter states of the answers at m positions; None where none can be.

    Amounts are round. What the action alone forces has its value in `alone`; what must follow is
    from `least` to `new`, and an action may be enough from `least` on. The user's model accepts
    the rows with just what is stated, see `between`, and the row with all that is expected to
    follow.
    """
    found: dict[int, list[Line]] = {}
    left = list(positions)
    digits = DIGITS if result.proposal.searched else DIGITS[-1:]
    for most, places in product(NAMED, digits):
        if left:
            drafts = [_draft(result, at, places, most) for at in left]
            done = _accepted(result.select(torch.tensor(left)), drafts)
            found |= {at: draft for at, draft in zip(left, done, strict=True) if draft}
        left = [at for at in left if at not in found]
    _add_least(result, found)
    return [found.get(at) for at in positions]


def moderate(result: Result, at: int) -> bool:
    """Whether an answer acts on what a letter may ask for, whatever follows.

    It goes neither far nor to rare values, and the model clearly favours its direction.
    """
    if not bool(result.success[at] & result.acts[at]):
        return False
    if not result.proposal.searched:
        return True
    unfit = far_changes(result, at) or rare_values(result, at) or unclear_changes(result, at)
    return not unfit


def advisable(result: Result, at: int) -> bool:
    """Whether an answer may be stated as advice: it is moderate and credible, and nothing is open.

    No part of what follows undoes it, and what must follow has a known direction, and is an effect
    or a choice of the applicant.
    """
    if not (moderate(result, at) and result.credibility.credible[at]):
        return False
    undone = bool((result.spread.reliance[at] > 0.0) & result.spread.alone[at])
    return not (undone or unsure_needs(result, at))


def hindrance(result: Result, at: int) -> tuple[str, list[str]]:
    """What stands in the way of advice: the name of a sentence, and features in words."""
    schema, lines = result.encoder.schema, result.lines[at]
    fixed = [*compress(schema, result.in_the_way[at].tolist())]
    named = _named(schema)
    # What is immutable, such as an age, is no matter of advice.
    parts = {part for f in fixed for part in _determining(result, f, at)}
    if parts:
        return "far", [f.called for f in schema if f.name in parts]
    others = [f.called for f in fixed if not f.immutable and f.called in named]
    if others:
        return "fixed", others
    acted = [line.label for line in lines if line.kind == "direct"]
    if not (bool(result.success[at]) and acted):
        return "nothing", []
    lacks = {CRITERIA[c] for c in result.credibility.lacks[at].nonzero()[:, 0].tolist()}
    counts = bool(result.spread.reliance[at] > 0.0)
    follow = [line.label for line in lines if counts and line.kind == "indirect"]
    depends = [label for label in unsure_needs(result, at) or follow if label in named]
    each = {
        "rare": rare_values(result, at) or (acted if "plausibility" in lacks else []),
        "far": far_changes(result, at),
        "unclear": list(unclear_changes(result, at)),
        "depends": depends[: max(NAMED)],
    }
    name = next((name for name, some in each.items() if some), "narrow")
    return name, list(dict.fromkeys(each.get(name, acted)))


def _determining(result: Result, feature: Feature, at: int) -> list[str]:
    """What a row may act on, and determines a feature by definition."""
    schema, may = result.encoder.schema, result.question.may_act[at]
    own = [r for r in schema.relations if r.name == feature.name and r.is_definition]
    return [name for each in own for name in each.members if bool(may[schema.index([name])[0]])]


def rare_values(result: Result, at: int) -> list[str]:
    """What an answer acts on that goes beyond the central training values, in words.

    Of all rows, and of those that are alike in all else.
    """
    row, usual, out = result.proposal.rows[at], result.question.method.trained.usual, []
    for j, feature, old, new in _amounts(result, at):
        least, most = usual.ends(row, j)
        if not min(old, least) <= new <= max(old, most):
            out.append(feature.called)
    return out


def far_changes(result: Result, at: int) -> list[str]:
    """What an answer acts on, where that goes farther than most rows could, in words."""
    return far_of(*(amount for _, *amount in _amounts(result, at)))


def far_of(*amounts: Sequence[Any]) -> list[str]:
    """Amounts, each a feature with its old and its new value, where they change too much.

    Those count that change by more than a few steps, which are some of its own values where it has
    few: in all by more than a part of their usual ranges, or one by more than a part of the old.
    """
    large = []
    for feature, old, new in amounts:
        each, step = feature.observed, feature.usual_step
        step = (each[-1] - each[0]) / (len(each) - 1) if len(each) > 1 else step
        if abs(new - old) > FEW * step:
            large.append((feature, old, new))
    whole = sum(abs(new - old) / feature.unit_of_cost for feature, old, new in large)
    own = any(abs(new - old) > FARTHEST[new > old] * abs(old) for _, old, new in large)
    return [feature.called for feature, *_ in large] if whole > FAR or own else []


def unsure_needs(result: Result, at: int) -> list[str]:
    """What must follow, though it is not known that it does, in words."""
    return [
        line.label
        for line in needs(result, at)
        if line.is_open or not (line.link == "effect" or _is_choice(result, at, line))
    ]


def rounded(
    feature: Feature, old: float, value: float, digits: int | None, *, away: int = 0
) -> float:
    """A value that a number changes to, with some significant digits of it and of its change.

    Args:
        feature: the number.
        old: its value before.
        value: its value after, or in between.
        digits: None leaves the value as it is.
        away: 1 rounds away from the old value, -1 towards it, 0 to the nearest.
    """
    change, places = value - old, feature.precision
    if change == 0.0 or feature.observed or (digits is None and places is None):
        return value
    if digits is not None:
        sizes = [abs(each) for each in (change, value) if each]
        own = max(digits - 1 - math.floor(math.log10(size)) for size in sizes)
        own = max(own, -math.floor(math.log10(feature.usual_step)))
        places = own if places is None else min(own, places)
    grain = 10.0 ** (places or 0)
    whole = round(value * grain, 6)
    if away:
        whole = math.ceil(whole) if (change > 0) == (away > 0) else math.floor(whole)
    out = round(round(whole) / grain, max(places or 0, 0))
    return value if out in feature.codes else out


def _named(schema: Schema) -> set[str]:
    """The features that a letter may name besides the action: where some have labels, these."""
    return {f.called for f in schema if f.label} or {f.called for f in schema}


def _amounts(result: Result, at: int) -> list[tuple[int, Feature, float, float]]:
    """The amounts that an answer acts on, with their places, and old and new values."""
    x, row = result.x[at], result.proposal.rows[at]
    some = result.proposal.direct[at] & (x != row) & result.encoder.amounts(x, row)
    each = (some.nonzero()[:, 0], x[some], row[some])
    features = result.encoder.schema.features
    return [(j, features[j], *ends) for j, *ends in zip(*(e.tolist() for e in each), strict=True)]


def _is_choice(result: Result, at: int, line: Line) -> bool:
    """Whether the applicant may act on what changes: it is a choice, and does not just happen."""
    (j,) = result.encoder.schema.index([line.feature])
    return bool(result.question.may_act[at, j])


def _draft(result: Result, at: int, digits: int | None, most: int) -> list[Line]:
    """What may be stated of an answer, with some digits and changes that must follow."""
    acts = [_farther(line, digits) for line in result.lines[at] if line.kind == "direct"]
    acts = [line._replace(least=line.new) for line in acts]
    must = [_bound(line, digits) for line in needs(result, at)[:most]]
    bound, named = {line.feature for line in must}, _named(result.encoder.schema)
    usual = [
        _usual(line, digits or USUAL_DIGITS, needed=line.feature in bound)
        for size, line in followers(result, at)
        if line.link == "effect" and size >= LEAST_NAMED and line.label in named
        if not (line.is_open or _is_choice(result, at, line))
    ]
    return [*acts, *must, *usual[:MOST_USUAL]]


def _farther(line: Line, digits: int | None) -> Line:
    """An action with a rounded new value, which is farther unless no row has gone so far."""
    if not line.is_amount:
        return line
    (low, high), ends = line.of.bounds, (float(line.old), float(line.new))
    farther, nearer = (rounded(line.of, *ends, digits, away=away) for away in (1, -1))
    return line._replace(new=farther if low <= farther <= high else nearer)


def _usual(line: Line, digits: int, *, needed: bool) -> Line:
    """What usually follows, rounded; not short of what must."""
    new = line.new
    if line.is_amount:
        new = rounded(line.of, float(line.old), float(new), digits, away=int(needed))
    return line._replace(new=new, least=line.old)


def _bound(line: Line, digits: int | None) -> Line:
    """Between which ends a change must follow."""
    if not is_amount(line.of, line.old, line.least, line.new):
        return line._replace(new=line.least)
    line = _farther(line, digits)
    old, least, new = map(float, (line.old, line.least, line.new))
    part = rounded(line.of, old, least, digits, away=1)
    return line._replace(least=part if abs(part - old) <= abs(new - old) else new)


def _accepted(result: Result, drafts: Sequence[list[Line]]) -> list[list[Line] | None]:
    """What is stated, with what the action alone forces, where the model accepts it as above."""
    reached, direct, x = result.proposal.rows, result.proposal.direct, result.x
    index, told = result.encoder.schema.index, torch.zeros_like(direct)
    acts = [[line for line in draft if line.kind == "direct"] for draft in drafts]
    musts = [[line for line in draft if line.is_needed] for draft in drafts]
    for i, some in enumerate(musts):
        told[i, list(index(line.feature for line in some))] = True
    repaired = result.question.repaired
    whole = repaired(_written(result, reached, acts), direct, forced=False)
    alone = repaired(_written(result, torch.where(direct, reached, x), acts), direct)
    first, last = (
        repaired(_written(result, alone, musts, end), direct, told) for end in ("least", "new")
    )
    stay = torch.where((first == alone) & (last == alone), alone, x)
    forced = [_forced(result, i, row) for i, row in enumerate(stay)]
    good, feasible = torch.ones(len(x), dtype=torch.bool), result.question.case.feasible.limits
    for i, j in (direct & (alone != reached)).nonzero().tolist():
        one = torch.tensor([j]), torch.tensor([i])
        good[i] &= feasible.admits(alone[i : i + 1, [j]], *one)[0, 0]
    good &= result.question.accepts_part(whole, reached)
    good &= between(result.question, result.proposal, first, last, told)
    every = zip(drafts, forced, good.tolist(), strict=True)
    return [[*draft, *own] if fine else None for draft, own, fine in every]


def _add_least(result: Result, drafts: dict[int, list[Line]]) -> None:
    """Note from which value on the model accepts an action on one amount, with what follows then.

    More is asked for: by the margin and other criteria, or as the action alone is to be enough.
    """
    question, encoder, direct = result.question, result.encoder, result.proposal.direct
    single = [i for i in drafts if int(direct[i].sum()) == 1]
    amounts = [(i, j) for i in single for j, *_ in _amounts(result, i)]
    if not amounts or question.method.trained.decoders is None:
        return
    at, feature = torch.tensor(amounts).T
    old, new = (rows[at, feature][:, None] for rows in (result.x, result.proposal.rows))
    values = in_steps(torch.lerp(old, new, LESS.to(old)), encoder.step[feature][:, None])
    values = question.case.feasible.limits.snap(values, feature, at)
    problem, acts = as_actions(question.case, result.proposal, at, question.method.trained)
    with torch.inference_mode():
        rows = problem.decode_actions(acts.rows, acts.sets, values[..., None]).flatten(0, 1)
    told, every = torch.ones_like(rows).bool(), at.repeat_interleave(len(LESS))
    fine = accepted_parts(question, result.proposal, every, rows, told).view(values.shape)
    counts = fine.long().cumprod(1).sum(1).tolist()
    for (i, _), own, count in zip(amounts, values.tolist(), counts, strict=True):
        (line, *others), x = drafts[i], float(drafts[i][0].old)
        less = [each for each in own[:count] if abs(each - x) < abs(float(line.new) - x)]
        drafts[i] = [line._replace(least=[line.new, *less][-1]), *others]


def _forced(result: Result, at: int, alone: Tensor) -> list[Line]:
    """What a stated action forces, given the row with the action alone, (p,)."""
    schema, before = result.encoder.schema, result.labelled[0].iloc[at]
    moved, direct, lines = alone != result.x[at], result.proposal.direct[at], []
    exact = determined(schema, moved[None], direct[None])[0]
    for j in (moved & ~direct).nonzero()[:, 0].tolist():
        feature, none = schema.features[j], [math.nan] * 4
        (cell,) = feature.cells(alone[[j]].numpy())
        head = None, 0, feature.name, feature.called, "forced", before[feature.name]
        rest = 0, 0, 1.0, feature.unit, bool(exact[j]), "", feature
        lines.append(Line._make([*head, cell, cell, cell, *none, *rest]))
    return lines


def _written(result: Result, rows: Tensor, lines: list[list[Line]], end: str = "new") -> Tensor:
    """Rows, (m, p), with values of lines; those of no amount or order as the answer has them."""
    rows, reached = rows.clone(), result.proposal.rows
    for i, line in ((i, line) for i, own in enumerate(lines) for line in own):
        (j,), new = result.encoder.schema.index([line.feature]), getattr(line, end)
        rows[i, j] = reached[i, j]
        if is_amount(line.of, line.old, new):
            rows[i, j] = float(line.of.read(pd.Series([new], dtype=float)).values[0])
        elif new in line.of.ranked:
            # What must follow may be a level on the way to that of the answer.
            rows[i, j] = line.of.place(new)
    return rows
