"""Letter: the lines of answers in, a letter to the applicant out; its sentences are a template."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Any, TypeAlias

import pandas as pd
import torch
from torch import Tensor

from dear_plugin.data.feature import Feature
from dear_plugin.data.schema import Schema
from dear_plugin.errors import SettingError, shown, unknown
from dear_plugin.results.amounts import is_choice, told
from dear_plugin.results.changes import Line, is_needed, is_open
from dear_plugin.results.describe import needs, unclear_changes
from dear_plugin.results.result import Result
from dear_plugin.results.values import LONGEST, is_amount, number, one, unit_of
from dear_plugin.results.words import rises, with_unit
from dear_plugin.search.settings import CRITERIA

# A way has no more words, as long as labels have a few words each.
MOST_WORDS = 80
# The ways of one letter, and the ranks among which one is looked for that can be told.
MOST_WAYS, LOOKED_AT = 3, 4
# Amounts, and numbers without a unit, have a separator between thousands from here on.
LONG_AMOUNT, LONG = 1_000, 10_000
# Changes of amounts of more than this share are no advice: of the usual range in all, or of the
# own value where the change has more than so many steps.
FAR, FEW = 0.5, 10
# An old amount is shown with as many decimals as leave this share of the change.
SHOWN = 0.01
FOLDER = Path(__file__).parent / "letters"

# One text for all letters, or one for each label of the index.
Field: TypeAlias = str | Mapping[Hashable, Any] | pd.Series
Ranks: TypeAlias = Callable[[Tensor, int], Iterator[Result]]


@dataclass(frozen=True)
class LetterTemplate:
    """The sentences of a letter, by name; what they have in braces is filled in.

    `LetterTemplate.of("de")` is in German. The file of a language says what each sentence is for:
    `dear_plugin/results/letters/en.toml` is the one to copy for another.

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
            raise SettingError(
                f"template must be {_known()} or the path of a TOML file, got {shown(source)}"
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

    def write(
        self, ways: Sequence[Sequence[Line]], schema: Schema, head: Mapping[str, Any]
    ) -> str:
        """A letter with some ways, each the lines that are told of it."""
        several = len(ways) > 1
        texts = [self._way(lines, schema, n * several) for n, lines in enumerate(ways, 1)]
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
        head = self["comma"].join(parts[:-1])
        return f"{head}{self['last'] if head else ''}{parts[-1]}"

    def _way(self, lines: Sequence[Line], schema: Schema, place: int) -> str:
        """A way, with as much of what usually follows as a letter has room for."""
        usual = [line for line in lines if line.kind == "indirect" and not is_needed(line)]
        rest = [line for line in lines if line not in usual]
        texts = [self._text([*rest, *usual[:n]], schema, place) for n in range(len(usual), -1, -1)]
        return next((text for text in texts if len(text.split()) <= MOST_WORDS), texts[-1])

    def _text(self, lines: Sequence[Line], schema: Schema, place: int) -> str:
        """The sentences of a way; with its place among several."""
        known = {feature.name: feature for feature in schema}

        def parts(names: tuple[str, str, str], end: str, some: Iterable[Line]) -> str:
            each = [
                self._part(names, known[line.feature], line, getattr(line, end)) for line in some
            ]
            return self.listed(each) if each else ""

        acts = [line for line in lines if line.kind == "direct"]
        forced = [line for line in lines if line.kind == "forced"]
        musts = [line for line in lines if is_needed(line)]
        usual = [line for line in lines if line.kind == "indirect" and line not in musts]
        actions = parts(("changed", "raised", "lowered"), "new", acts)
        sets = parts(("sets", "sets_at_least", "sets_at_most"), "alone", forced)
        bounds = parts(("being", "at_least", "at_most"), "least", musts)
        follow = parts(("becomes", "rises", "falls"), "new", usual)
        first = self["way" if place else "advice"].format(
            number=place, actions=_capital(actions) if place else actions
        )
        told = [
            self["by_definition"].format(changes=sets) if sets else "",
            "" if sets or bounds else self["enough"],
            self["follows"].format(changes=follow) if follow else "",
            self["only_with"].format(bounds=bounds) if bounds else "",
        ]
        return " ".join(filter(None, [first, *map(_capital, told)]))

    def _part(self, names: tuple[str, str, str], feature: Feature, line: Line, new: Any) -> str:
        """A change in words: names of sentences for another value, a rise and a fall."""
        other, up, down = names
        if not (is_amount(feature, line.old) and is_amount(feature, new)):
            ends = one(feature, line.old), with_unit(feature, line.old, new)
            name = other
        else:
            name = up if rises(feature, line.old, new) else down
            name = other if line.kind == "forced" and line.exact else name
            ends = self._ends(feature, float(line.old), float(new))
        return self[name].format(feature=line.label, old=ends[0], new=ends[1])

    def _ends(self, feature: Feature, old: float, new: float) -> tuple[str, str]:
        """The old and the new amount with as many decimals each, the new one with its unit."""
        in_full = bool(self["thousand"]) and feature.unit.startswith(self["thousand"])
        scale, unit = (1_000.0, feature.unit) if in_full else (1.0, unit_of(feature, new))
        precision = feature.precision if feature.precision is not None else 17
        own, told = (round(each * scale, 9) for each in (old, new))
        most = max(precision - 3 * in_full, 0)
        places = next(
            (n for n in range(most + 1) if abs(told - round(told, n)) <= 1e-9 * abs(told)), most
        )
        close = SHOWN * abs(told - own)
        places = next(
            (n for n in range(places, most + 1) if abs(own - round(own, n)) <= close), most
        )
        least = LONG_AMOUNT if feature.unit else LONG
        long = max(abs(own), abs(told)) >= least
        texts = [self._amount(each, places, long=long) for each in (own, told)]
        return texts[0], f"{texts[1]} {unit.removeprefix(self['thousand'])}".rstrip()

    def _amount(self, value: float, places: int, *, long: bool) -> str:
        """A number with some decimals, and with separators of thousands where it is long."""
        if abs(value) >= LONGEST or places > 12:
            return number(value)
        text = f"{value:,.{places}f}" if long else f"{value:.{places}f}"
        return text.translate({ord(","): self["separator"], ord("."): self["point"]})


def letters(
    result: Result,
    positions: Sequence[int],
    template: LetterTemplate,
    *,
    ways: int,
    ranks: Ranks,
    above: Mapping[str, Field],
) -> list[str]:
    """The letters of the rows at m positions; what they share is computed once.

    Args:
        result: of n rows.
        positions: of the rows.
        template: the sentences.
        ways: the most ways that a letter tells.
        ranks: the first k results of rows at positions, one rank after another.
        above: the date, the case and the name, for all letters or by label.
    """
    heads = {
        at: {name: _of(text, result.factuals.index[at]) for name, text in above.items()}
        for at in positions
    }
    found = _ways(result, positions, ways, ranks)
    return [
        template.write(found[at], result.encoder.schema, heads[at])
        if found[at]
        else template.page(_without_advice(result, at, template), heads[at])
        for at in positions
    ]


def advisable(result: Result, at: int) -> bool:
    """Whether an answer may be told as advice: it is credible, and nothing that it needs is open.

    The model clearly favours its direction, it goes neither far nor to rare values, no part
    of what follows undoes it, and what must follow has a known direction, and is an effect or a
    choice of the applicant.
    """
    if not bool(result.success[at] & result.acts[at]):
        return False
    if result.proposal.searched:
        good = bool(result.credibility.credible[at])
        unfit = unclear_changes(result, at) or rare_values(result, at) or far_changes(result, at)
        if not good or unfit:
            return False
    return not (unsure_needs(result, at) or _is_undone(result, at))


def rare_values(result: Result, at: int) -> list[str]:
    """What an answer acts on that goes beyond the central training values, in words."""
    encoder = result.encoder
    low, high = encoder.central
    x, rows = result.x[at], result.proposal.rows[at]
    known = dict(zip(encoder.schema.names, range(len(encoder.schema)), strict=True))
    return [
        line.label
        for line in result.lines[at]
        if line.kind == "direct" and not math.isnan(line.low)
        for j in [known[line.feature]]
        if bool((rows[j] > torch.max(high[j], x[j])) | (rows[j] < torch.min(low[j], x[j])))
    ]


def far_changes(result: Result, at: int) -> list[str]:
    """What an answer acts on, where that goes farther than most people can, in words.

    Amounts count, but not those of few values: half of the usual range in all, or half of what
    there was in more than a few steps.
    """
    known = {feature.name: feature for feature in result.encoder.schema}
    some = [
        line
        for line in result.lines[at]
        if line.kind == "direct" and not math.isnan(line.low) and not known[line.feature].observed
    ]
    own = (
        abs(line.low) > max(FAR * abs(line.old), FEW * known[line.feature].usual_step)
        for line in some
    )
    too_far = sum(abs(line.size) for line in some) > FAR or any(own)
    return [line.label for line in some] if too_far else []


def unsure_needs(result: Result, at: int) -> list[str]:
    """What must follow, though nobody can say that it does, in words."""
    effects = result.encoder.schema.causal_order.is_stated
    some = [
        line
        for line in needs(result, at)
        if is_open(line) or not (effects or is_choice(result, at, line))
    ]
    return [line.label for line in some]


def _is_undone(result: Result, at: int) -> bool:
    """Whether a part of what follows undoes an action that is accepted alone."""
    return bool((result.spread.reliance[at] > 0.0) & result.spread.alone[at])


def _ways(
    result: Result, positions: Sequence[int], most: int, ranks: Ranks
) -> dict[int, list[list[Line]]]:
    """The lines of up to some ways of each row, those of the first ranks that can be told.

    A result of one rank, as on the page, has its own answers alone.
    """
    found: dict[int, list[list[Line]]] = {at: [] for at in positions}
    _add(found, result, {at: at for at in positions if advisable(result, at)})
    worth = result.credibility.credible | ~result.success
    left = [
        at
        for at in positions
        if result.proposal.searched
        and result.rank is None
        and bool(result.acts[at] & result.success[at] & worth[at])
        and len(found[at]) < most
    ]
    if left:
        later = ranks(torch.tensor(left), LOOKED_AT)
        next(later)
        for rank in later:
            good = (i for i, at in enumerate(left) if len(found[at]) < most)
            _add(found, rank, {i: left[i] for i in good if advisable(rank, i)})
    return found


def _add(found: dict[int, list[list[Line]]], result: Result, at: Mapping[int, int]) -> None:
    """Add what can be told of answers to the ways of rows, by position here and there."""
    for own, lines in zip(at.values(), told(result, list(at)), strict=True):
        found[own] += [lines] if lines else []


def _without_advice(result: Result, at: int, words: LetterTemplate) -> list[str]:
    """The parts of the letter of a row without an action that can be recommended."""
    if result.question.unreadable[at]:
        return [words["unreadable"]]
    if not result.proposal.searched:
        return [words["unsure" if bool(result.success[at]) else "refused"]]
    if result.question.accepted[at] and not result.acts[at]:
        return [words["accepted"]]
    return [words["none"], hindrance(result, at, words), words["ask"]]


def hindrance(result: Result, at: int, words: LetterTemplate) -> str:
    """What stands in the way of telling an answer as advice, in a sentence."""
    name, some = _hindrance(result, at)
    return words[name].format(features=words.listed(some or [""]))


def _hindrance(result: Result, at: int) -> tuple[str, list[str]]:
    """What stands in the way of advice: the name of a sentence, and features in words."""
    known = {feature.name: feature for feature in result.encoder.schema}
    named = {f.called for f in known.values() if f.label} or {f.called for f in known.values()}
    fixed = [known[name] for name in result.obstacles.iloc[at].split(" + ") if name]
    # What is immutable, such as an age, is no matter of advice.
    told = [f.called for f in fixed if not f.immutable and f.called in named]
    if told:
        return "fixed", told
    acted = [line.label for line in result.lines[at] if line.kind == "direct"]
    if fixed or not (bool(result.success[at]) and acted):
        return "nothing", []
    lacks = {CRITERIA[c] for c in result.credibility.lacks[at].nonzero()[:, 0].tolist()}
    follow = [line.label for line in result.lines[at] if line.kind == "indirect"]
    depends = [label for label in unsure_needs(result, at) or follow if label in named]
    for name, some in (
        ("rare", rare_values(result, at) or (acted if "plausibility" in lacks else [])),
        ("far", far_changes(result, at)),
        ("unclear", list(unclear_changes(result, at))),
        ("depends", depends[:MOST_WAYS]),
    ):
        if some:
            return name, list(dict.fromkeys(some))
    return "unclear", acted


def _of(text: Field | None, label: Hashable) -> Any:
    """A field of the letter of a row."""
    if isinstance(text, pd.Series | Mapping):
        found = text.get(label)
        return None if found is None or pd.isna(found) else found
    return text


def _fields(text: str) -> set[str]:
    """The names in braces."""
    return {name for _, name, *_ in Formatter().parse(text) if name is not None}


def _known() -> list[str]:
    """The languages that there are."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
