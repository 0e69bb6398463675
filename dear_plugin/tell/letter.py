"""Letters to applicants; their sentences are a template.

A letter states an answer only if what it says is true of the model and can be said; else it says
what stands in the way.
"""

from __future__ import annotations

import logging
import math
import re
import tomllib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from string import Formatter
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from dear_plugin._validation import one_of
from dear_plugin.data.feature import Feature
from dear_plugin.data.schema import Schema
from dear_plugin.errors import SettingError, shown, unknown
from dear_plugin.results.changes import (
    Hindrance,
    Line,
    followers,
    is_amount,
    is_stated,
    join,
    marks_of,
    number,
    rises,
    unit_of,
    with_unit,
)
from dear_plugin.results.recourses import Recourses
from dear_plugin.tell.describe import capital

# A way has no more words, as long as labels have a few words each.
MOST_WORDS = 80
# The computed features that a letter names at most: those that change most.
MOST_SET = 2
# An old amount is shown with as many decimals as leave this share of the change.
SHOWN = 0.01
# Labels that a warning guesses.
MOST_GUESSED = 5
# The columns without a label of which was warned.
WARNED: set[tuple[str, ...]] = set()
# The levels of a feature that says what somebody has or has not.
FLAGS = {"yes", "no", "true", "false", "1", "0"}
logger = logging.getLogger(__name__)
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
        """A letter with some ways, each the lines of an answer that can be stated."""
        several = len(ways) > 1
        texts = map(self._way, ways, range(1, len(ways) + 1) if several else [0])
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
        usual = [e for e in followers(lines) if e.role != "needed" and e.stated_usual is not None]
        while len((text := self._text(lines, usual, place)).split()) > MOST_WORDS and usual:
            usual.pop()
        return text

    def _text(self, lines: Sequence[Line], usual: Sequence[Line], place: int) -> str:
        """The sentences of a way, given what usually follows; with its place among several.

        A new sentence has its name in every file of `letters`, and its line in `texts` below. Its
        words count towards `MOST_WORDS`; files of users need it, too.
        """

        def parts(names: tuple[str, str, str], some: Iterable[Line], *ends: str) -> str:
            each = ((line, *(getattr(line, end) for end in ends)) for line in some)
            return self.listed([self._part(names, *own) for own in each])

        actions = self.listed([self.action(line) for line in lines if line.is_advised])
        forced = [line for line in lines if line.stated_forced is not None]
        exact = [e for e in forced if e.exact][:MOST_SET]
        sets = parts(("sets", "sets", "sets"), exact, "stated_forced")
        ends = [line for line in forced if not line.exact]
        limits = parts(("sets_only", "sets_at_least", "sets_at_most"), ends, "stated_forced")
        rest = [e for e in followers(lines) if e.stated is not None and not e.is_advised]
        both = [line for line in rest if line.role == "needed"]
        needed = parts(("needed_being", "needed_at", "needed_at"), both, "stated_least", "stated")
        follows = parts(("usual_becomes", "usual_rises", "usual_falls"), usual, "stated_usual")
        texts = [
            self["way" if place else "advice"].format(
                number=place, actions=capital(actions) if place else actions
            ),
            self["by_definition"].format(changes=sets) if sets else "",
            self["bounded"].format(changes=limits) if limits else "",
            "" if forced or rest else self["enough"],
            self["needed"].format(changes=needed) if needed else "",
            self["usual"].format(changes=follows) if follows else "",
        ]
        return " ".join(map(capital, filter(None, texts)))

    def action(self, line: Line) -> str:
        """What to do, and from where on that may be enough."""
        text = self._part(("changed", "raised", "lowered"), line, line.stated)
        if line.stated_least == line.stated:
            return text
        old, new = float(line.old), float(line.stated_least)
        least = self._ends(line.of, old, new, has_old=False)[1]
        unit = self._unit(line.of, new)[1]
        return self["may_do"].format(action=text, least=least.removesuffix(unit).rstrip())

    def _part(self, names: tuple[str, str, str], line: Line, new: Any, *last: Any) -> str:
        """A change, to one of some values, in words: names for another one, a rise and a fall."""
        other, up, down = names
        if is_amount(line.of, line.old, new, *last):
            name = up if rises(line.of, line.old, new) else down
            values = map(float, (line.old, new, *last))
            old, text = self._ends(line.of, *values, has_old="{old}" in self[name])
        else:
            old, text = with_unit(line.of, line.old, new)
            if self["to"].strip() and self["to"] in f"{old} {text}":
                old, text = (self["level"].format(value=each) for each in (old, text))
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
        # Of few values without decimals (2.2360679775) three digits of the change tell which.
        fine, change = feature.observed and feature.precision is None, abs(max(news) - old)
        own = 2 - math.floor(math.log10(change * scale)) if fine and change else 9
        before, *after = (round(each * scale, own) for each in (old, *sorted({*news})))
        most = max(precision - power, 0)
        places = next(
            (n for n in range(most) if all(abs(a - round(a, n)) <= 1e-9 * abs(a) for a in after)),
            most,
        )
        close = SHOWN * min(abs(each - before) for each in after) if has_old else math.inf
        places = next(
            (n for n in range(places, most + 1) if abs(before - round(before, n)) <= close), most
        )
        marks = marks_of(
            feature, before * has_old, *after, comma=self["separator"], point=self["point"]
        )
        first, *texts = (number(e, places, fixed=True, marks=marks) for e in (before, *after))
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


Template: TypeAlias = str | Path | LetterTemplate


def letters(
    result: Recourses,
    positions: Sequence[int],
    source: Template,
    *,
    ways: int = 1,
    above: Mapping[str, Field],
) -> list[str]:
    """The letters of m rows, of the answers in a result.

    Args:
        result: of the rows.
        positions: of the first answers of the rows.
        source: of the sentences.
        ways: the most ways in one letter, see `ways_of`.
        above: the date, the case and the name, and until when to ask again where there is no way,
            for all letters or by label.
    """
    template = source if isinstance(source, LetterTemplate) else LetterTemplate.of(source)
    for field in above:
        one_of("date", "case", "name", "until")("above a letter", field)
    _warn(result.encoder.schema)
    texts = []
    for at, own in zip(positions, ways_of(result, positions, ways), strict=True):
        head = {name: _of(text, result.factuals.index[at]) for name, text in above.items()}
        until = {"until": head.pop("until", None)}
        none = [] if own else _without_advice(result, at, template, until)
        texts.append(template.page(none, head) if none else template.write(own, head))
    return texts


def ways_of(result: Recourses, positions: Sequence[int], most: int) -> list[list[list[Line]]]:
    """The lines of up to some ways of each of m rows, those of the first ranks that can be stated.

    Raises:
        SettingError: more than three ways, or none.
    """
    one_of("1", "2", "3")("ways", str(most))
    ends = dict(pairwise([*np.flatnonzero(result.starts).tolist(), len(result)]))
    every = (result.lines[at : ends.get(at, at + 1)] for at in positions)
    return [[*filter(is_stated, some)][:most] for some in every]


def _without_advice(
    result: Recourses, at: int, template: LetterTemplate, until: Mapping[str, Any]
) -> list[str]:
    """The parts of the letter of a row without an action that can be recommended."""
    if result.question.unreadable[at]:
        return [template["unreadable"]]
    action = result.actions.iloc[at]
    if not result.proposal.searched:
        return [template["unsure" if action["success"] else "refused"]]
    if not result.hindrances[at].sentence:
        return [template["accepted"]]
    why = in_the_way(result.hindrances[at], template)
    return [template["none"], why, template["ask"], template.page([], until)]


def in_the_way(hindrance: Hindrance, template: LetterTemplate) -> str:
    """What stands in the way of stating an answer as advice, in a sentence."""
    named = [*map(template.action, hindrance.nearest)] or hindrance.features
    own = template[hindrance.sentence].format(features=template.listed(named))
    return " ".join([own, *(in_the_way(each, template) for each in hindrance.beside)])


def unlabelled(schema: Schema) -> list[Feature]:
    """The features that a letter may name and that have no label."""
    return [f for f in schema if not (f.label or f.immutable or f.identifier)]


def guess(feature: Feature) -> tuple[str, str]:
    """The name of a feature, and a guess of its label."""
    return feature.name, (_noun if feature.has_order else _flag)(feature)


def _warn(schema: Schema) -> None:
    """Warn once of a schema whose features letters may name by the names of columns."""
    absent = unlabelled(schema)
    key = tuple(feature.name for feature in absent)
    if absent and key not in WARNED:
        WARNED.add(key)
        guesses = dict(map(guess, absent[:MOST_GUESSED]))
        more = f" (and {len(absent) - len(guesses)} more)" * (len(absent) > len(guesses))
        logger.warning(
            "letters call columns without a label by their names: labels=%s%s of Schema.infer says"
            " what people call them",
            *(guesses, more),
        )


def _noun(feature: Feature) -> str:
    """The name of a feature in words, with "the"."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|[\W_]+", " ", feature.name).split() or [feature.name]
    return " ".join(["the", *(each if each.isupper() else each.lower() for each in words)])


def _flag(feature: Feature) -> str:
    """As `_noun`; without "the" for what somebody has or has not: "have special skills"."""
    texts = {str(feature.called_level(each) or each).lower() for each in feature.choices}
    return _noun(feature).removeprefix("the " * (texts <= FLAGS))


def _of(text: Field | None, label: Hashable) -> Any:
    """A field of the letter of a row."""
    if isinstance(text, pd.Series | Mapping):
        found = text.get(label)
        return None if found is None or pd.isna(found) else found
    return text


def _fields(text: str) -> set[str]:
    """The names in braces."""
    return {name for _, name, *_ in Formatter().parse(text) if name is not None}
