"""Letter: what is said of answers in, a letter to the applicant out; all its words are here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dear_plugin.data.feature import Feature
from dear_plugin.results.descriptions import unclear_changes
from dear_plugin.results.result import Result
from dear_plugin.results.said import Said, rounded, said
from dear_plugin.results.values import LONGEST, number, unit_of
from dear_plugin.results.wording import Move

# A letter has no more words, as long as labels have a few words each.
MOST_WORDS = 80
# Digits of what usually follows, where an action has no rounded value.
DIGITS = 3
# Amounts, and numbers without a unit, have a separator between thousands from here on.
LONG_AMOUNT, LONG = 1_000, 10_000


@dataclass(frozen=True)
class LetterTemplate:
    """The sentences of a letter; fields in braces are filled in.

    A translation is another template: `replace(LetterTemplate(), accepted="...")`, or all of them.

    Attributes:
        accepted: of a row that has the wanted decision.
        unreadable: of a row that cannot be read.
        none: of a row without an answer that can be recommended.
        refused: of given actions that do not lead to the wanted decision.
        unsure: of given actions that lead to it if something follows that nobody can be asked for.
        advice: what to do.
        raised: an action on a number.
        lowered: likewise.
        changed: an action on a category, or to or from a special value.
        by_definition: what the action changes by a rule between columns.
        enough: said where nothing else has to change.
        along: with an order of causes, what usually follows.
        rises: a number that follows.
        falls: likewise.
        becomes: a category that follows.
        associated: without one, what usually goes along.
        being: a category that goes along.
        about: a number that goes along.
        only_if: what must follow.
        at_most: up to where a number must follow.
        at_least: likewise.
        is_: a category that must follow, and what is so by definition.
        caution: the last sentence.
        comma: between the parts of a list.
        last: before the last part of a list.
        thousand: the start of a unit that is said in full, 27.8 "thousand euros" as 27,800 euros;
            "" for none.
        separator: between the thousands of a number.
        point: before the decimals of a number.

    Example:
        >>> from dear_plugin import LetterTemplate
        >>> short = LetterTemplate(caution="This is no promise.")
    """

    accepted: str = "The decision is already the one you want. You do not have to change anything."
    unreadable: str = (
        "We could not read all of your data, so we cannot tell you what to change. Please check"
        " your data with us."
    )
    none: str = (
        "We looked for a change that leads to the decision you want, and found none that we can"
        " recommend. Please ask us what else is possible."
    )
    refused: str = "With this change, the decision would not be the one you want."
    unsure: str = "We cannot say if this change is enough for the decision you want."
    advice: str = "To get the decision you want, {actions}."
    raised: str = "increase {feature} from {old} to {new}"
    lowered: str = "reduce {feature} from {old} to {new}"
    changed: str = "change {feature} from {old} to {new}"
    by_definition: str = "With this, {changes} by definition."
    enough: str = "Nothing else has to change."
    along: str = "Then {changes}."
    rises: str = "{feature} will usually rise to about {new}"
    falls: str = "{feature} will usually fall to about {new}"
    becomes: str = "{feature} will usually become {new}"
    associated: str = "In our records this usually goes along with {changes}."
    being: str = "{feature} being {new}"
    about: str = "{feature} at about {new}"
    only_if: str = "This is enough only if {bounds}."
    at_most: str = "{feature} is at most {new}"
    at_least: str = "{feature} is at least {new}"
    is_: str = "{feature} is {new}"
    caution: str = (
        "This is no promise: your case will be decided anew, and the decision may be different."
    )
    comma: str = ", "
    last: str = " and "
    thousand: str = "thousand "
    separator: str = ","
    point: str = "."

    def write(self, what: Said, *, effects: bool) -> str:
        """A letter of at most `MOST_WORDS` words, as far as the actions allow.

        Args:
            what: is said.
            effects: whether what follows is an effect, not an association.
        """
        texts = [self._text(what, usual, effects) for usual in range(len(what.usual), -1, -1)]
        return next((text for text in texts if len(text.split()) <= MOST_WORDS), texts[-1])

    def _text(self, what: Said, usual: int, effects: bool) -> str:
        """The letter with some of what usually follows."""
        verbs = self.changed, self.raised, self.lowered
        ends = self.is_, self.at_least, self.at_most
        follows = self.becomes, self.rises, self.falls
        becomes = follows if effects else (self.being, self.about, self.about)
        bound = {move.feature.name for move in what.needed}
        acts = [self._part(_one_of(verbs, move), move, what.digits) for move in what.actions]
        digits = what.digits or DIGITS
        changes = [
            self._part(_one_of(becomes, m), m, digits, farther=m.feature.name in bound)
            for m in what.usual[:usual]
        ]
        forced = [
            self._part(self.is_ if move.is_exact else _one_of(ends, move), move, None)
            for move in what.forced
        ]
        needed = [self._part(_one_of(ends, move), move, None) for move in what.needed]
        along = self.along if effects else self.associated
        parts = [self.advice.format(actions=self._list(acts))]
        parts += [self.by_definition.format(changes=self._list(forced))] if forced else []
        parts += [] if needed or forced else [self.enough]
        parts += [along.format(changes=self._list(changes))] if changes else []
        parts += [self.only_if.format(bounds=self._list(needed))] if needed else []
        return " ".join(_capital(part) for part in [*parts, self.caution])

    def _part(self, words: str, move: Move, digits: int | None, *, farther: bool = False) -> str:
        """A change in words, with some digits of it; `farther` rounds away from the old value."""
        old, new = move.ends
        if not move.is_amount:
            new += move.unit
        else:
            own, places = float(move.old), move.feature.precision
            if places is None:
                back = replace(move, old=move.new, new=move.old)
                own = rounded(back, own, digits)
            told = rounded(move, float(move.new), digits, int(farther))
            old, new = (self._amount(each, move.feature) for each in (own, told))
            in_full = bool(self.thousand) and move.feature.unit.startswith(self.thousand)
            unit = move.feature.unit if in_full else unit_of(move.feature, told)
            new = f"{new} {unit.removeprefix(self.thousand)}".rstrip()
        return words.format(feature=move.feature.called, old=old, new=new)

    def _amount(self, value: float, feature: Feature) -> str:
        """A number without its unit, in full."""
        in_full = bool(self.thousand) and feature.unit.startswith(self.thousand)
        value = round(value * 1_000, 9) if in_full else value
        text, least = number(value, feature.precision), LONG_AMOUNT if feature.unit else LONG
        if least <= abs(value) < LONGEST:
            whole, point, decimals = text.partition(".")
            text = f"{int(whole):,}{point}{decimals}"
        return text.translate({ord(","): self.separator, ord("."): self.point})

    def _list(self, parts: Sequence[str]) -> str:
        """Parts as "a", "a and b", or "a, b and c"."""
        head = self.comma.join(parts[:-1])
        return f"{head}{self.last if head else ''}{parts[-1]}"


def letters(result: Result, positions: Sequence[int], template: LetterTemplate) -> list[str]:
    """The letters of the rows at m positions; what they share is computed once."""
    known = {at: _without_advice(result, at, template) for at in positions}
    acting = [at for at in positions if known[at] == ""]
    effects = result.encoder.schema.causal_order.is_stated
    none = template.none if result.proposal.searched else template.unsure
    for at, what in zip(acting, said(result, acting), strict=True):
        known[at] = none if what is None else template.write(what, effects=effects)
    return [known[at] for at in positions]


def _without_advice(result: Result, at: int, words: LetterTemplate) -> str:
    """The letter of a row without an action that can be recommended; "" where it has one."""
    if result.question.unreadable[at]:
        return words.unreadable
    if not result.proposal.searched and not result.outcome["success"].iloc[at]:
        return words.refused
    if result.question.accepted[at] and not result.acts[at]:
        return words.accepted
    good = result.credibility.credible[at] and not unclear_changes(result, at)
    return "" if result.acts[at] and (good or not result.proposal.searched) else words.none


def _one_of(words: tuple[str, str, str], move: Move) -> str:
    """The words of a change that is no amount, of one that rises, or of one that falls."""
    other, up, down = words
    if not move.is_amount:
        return other
    return up if move.new > move.old else down


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
