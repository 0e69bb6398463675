"""`Recourses`, which `generate` returns: the answers with texts, figures and alternatives."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeGuard, overload

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from pandas.api.types import is_list_like

from dear_plugin._threads import one_thread
from dear_plugin.errors import InputError
from dear_plugin.results.changes import heading, note
from dear_plugin.results.describe import describe, drawn, evidence, head
from dear_plugin.results.result import Result
from dear_plugin.results.writing import settled

if TYPE_CHECKING:
    from dear_plugin.plots.ink import Axes
    from dear_plugin.tell.letter import Field, Template


@dataclass(frozen=True)
class Recourses(Result):
    """The result of `generate`: n rows, every one of them kept; see `Result` for its attributes.

    Example:
        >>> from dear_plugin import DEAR, Schema
        >>> from dear_plugin.datasets import load_loan
        >>> frame = load_loan(1_000).frame
        >>> schema = Schema.infer(frame, target="approved", immutable=["gender"])
        >>> dear = DEAR(lambda rows: rows["savings"] / 60, schema, act_on=["savings"]).fit(frame)
        >>> recourses = dear.generate(frame.head(5))
        >>> recourses.outcome["acted_on"].tolist()
        ['', 'savings', 'savings', 'savings', 'savings']
        >>> recourses[1]
        Recourses(1 of 1 rows solved, median cost 0.385)
    """

    @classmethod
    def of(cls, result: Result, *, ranked: bool = False) -> Self:
        """A result with texts and figures; `ranked` adds how alternatives differ."""
        own = cls(**{field.name: getattr(result, field.name) for field in fields(result)})
        return replace(own, rank=own.ranking) if ranked else own

    def __getitem__(self, index: Hashable | Iterable[Hashable]) -> Recourses:
        """The rows with a label of the frame's index, or with each of several labels.

        Args:
            index: a label, a list or an index of labels, or (n,) bool.

        Raises:
            InputError: a label that is not in the index.
        """
        return self.select(torch.from_numpy(positions(self.factuals.index, index)))

    def __repr__(self) -> str:
        """One line: successes and median cost."""
        done = self.outcome["success"]
        cost = f", median cost {self.outcome.loc[done, 'cost'].median():.3g}" if done.any() else ""
        return f"Recourses({int(done.sum())} of {len(self)} rows solved{cost})"

    @one_thread()
    def _repr_html_(self) -> str:
        """The first rows as a table, for notebooks."""
        from dear_plugin.tell import cards

        return cards.table(self)

    @one_thread()
    def to_html(
        self, path: str | Path, title: str = "Recourse", *, template: Template = "en"
    ) -> None:
        """Write a self-contained page with one card for each row: its letter, evidence folded.

        Args:
            path: of the file.
            title: of the page.
            template: as in `letter`.
        """
        from dear_plugin.tell import cards

        Path(path).write_text(cards.page(self, title, self.letter(template=template)), "utf8")

    @one_thread()
    def plot(self, index: Hashable = ..., *, ax: Axes | None = None) -> Axes:
        """One row as a panel, or the actions of all rows.

        A row: each changed feature with its old and new value, direct and indirect changes apart,
        ranges over resamples of the training rows, whether the action alone is enough, and in how
        many resamples the answer still succeeds. All rows: the costs by features acted on.
        Indirect changes are associations; with tiers or causes see `Schema`.

        Args:
            index: a label of the frame's index; without one, all rows.
            ax: of matplotlib, where to draw; without one, in a figure of its own with a note.

        Returns:
            The axes; `axes.figure.savefig` writes the figure.

        Raises:
            InputError: a label that is not in the index, or that several rows share; no rows.
            ExtraError: matplotlib is not installed.
        """
        from dear_plugin import plots

        if index is not ...:
            at = only_position(self.factuals.index, index)
            texts = head(self, at), evidence(self, at), heading(self.lines[at])
            return plots.row(drawn(self.lines[at]), ax, *texts, note=self.note)
        if not len(self):
            raise InputError("got a result without rows, expected at least one to draw")
        return plots.splits(self.actions, ax, note=self.note)

    @one_thread()
    def evidence(self, index: Hashable) -> str:
        """What is known of a row's answer besides its changes, in words.

        Args:
            index: a label of the frame's index.

        Raises:
            InputError: a label that is not in the index, or that several rows share.
        """
        return evidence(self, only_position(self.factuals.index, index))

    @property
    def wanted(self) -> pd.DataFrame:
        """The `least` and the `greatest` score of the wanted decision, with the index of the rows.

        Missing where the score alone does not decide, as with more than two classes.
        """
        ends = self.question.case.goal.wanted(torch.zeros(len(self))).numpy()
        return pd.DataFrame(ends, self.factuals.index, ["least", "greatest"])

    @property
    def note(self) -> str:
        """What indirect changes are by the schema, as a line under figures of them."""
        return f"{note(self.encoder.schema).partition(':')[0].removesuffix('.')}."

    @overload
    def describe(self) -> pd.Series: ...

    @overload
    def describe(self, index: Hashable) -> str: ...

    @one_thread()
    def describe(self, index: Hashable = ...) -> str | pd.Series:
        """One row's recourse in plain words, or every row's.

        The text has the action; the expected indirect changes, as ranges where resamples of the
        training rows do not agree; whether the action alone is enough, or what must follow; and in
        how many resamples the answer still succeeds. Without tiers or causes, indirect
        changes are associations, not effects.

        Args:
            index: a label of the frame's index; without one, all rows are described, as a series
                with the index of the factuals.

        Raises:
            InputError: a label that is not in the index, or that several rows share.
        """
        if index is ...:
            texts = describe(self, range(len(self)))
            return pd.Series(texts, self.factuals.index, dtype=object, name="describe")
        return self.describe_row(only_position(self.factuals.index, index))

    @one_thread()
    def describe_row(self, position: int) -> str:
        """As `describe`, for the row at a position."""
        return describe(self, [range(len(self))[position]])[0]

    @overload
    def letter(
        self, *, template: Template = ..., ways: int = ..., **above: Field
    ) -> pd.Series: ...

    @overload
    def letter(
        self, index: Hashable, *, template: Template = ..., ways: int = ..., **above: Field
    ) -> str: ...

    @one_thread()
    def letter(
        self, index: Hashable = ..., *, template: Template = "en", ways: int = 1, **above: Field
    ) -> str | pd.Series:
        """The letter to an applicant, without statistics, or those to all applicants.

        What was decided; what to do, what then usually follows and up to where it must; and that
        the decision may change. Amounts are rounded: the model accepts the row that has just what
        the letter says. Where the first answer cannot be stated, that of a later rank is; without
        any, what stands in the way. A way has at most 80 words if labels have a few words each.

        Args:
            index: a label of the frame's index; without one, all rows, as a series.
            template: "en", "de", the path of a TOML file, or a `LetterTemplate`.
            ways: the most ways in one letter, 1 to 3.
            above: `date`, `case` and `name`, what stands above the letter; a text, or with all
                rows a series or mapping by label.

        Raises:
            InputError: a label that is not in the index, or that several rows share.
            SettingError: no such template, or another number of ways.
        """
        from dear_plugin.tell import letter

        one = index is not ...
        at = [only_position(self.factuals.index, index)] if one else range(len(self))
        given = letter.ways_of(self, at, ways)
        texts = letter.letters(self, at, template, ways=given, above=above)
        return texts[0] if one else pd.Series(texts, self.factuals.index, object, "letter")

    @one_thread()
    def record(self, index: Hashable) -> dict[str, Any]:
        """What is needed to check an answer, and to repeat it; `json.dumps` writes it.

        Args:
            index: a label of the frame's index.

        Returns:
            - `version`, and `hashes` of the training rows, the model (its scores of some of them),
              and the settings: the schema, the search, the decoder;
            - `row`, the factual, and `limits`: what may be acted on, and the values allowed;
            - `answer`: its line of `actions`, its lines of `changes`, and the text of `describe`;
            - `criteria`: each with its value and the value required;
            - `assumed`: the order of causes, relations between columns, rules, costs and settings.

        Raises:
            InputError: a label that is not in the index, or that several rows share.
        """
        from dear_plugin.tell import record

        at = only_position(self.factuals.index, index)
        return record.record(self.select(torch.tensor([at])))

    @one_thread()
    def advice(self) -> pd.DataFrame:
        """The kinds of advice given: a page to read before a thousand answers are handed out.

        One line for each feature acted on and its direction, or its levels, the most frequent
        first, over the rows with an action that succeeds:

        - `feature`, `change` ("up", "down" or "no → yes"), `rows` and their `share`;
        - `old` and `new`, the medians of a number, or the levels;
        - `goes`, how far an amount goes: the median change (and the 5 to 95 % quantiles);
        - `at_edge`, the share of these rows in which it goes to the end of the central training
          values: where many do, the model may reward what hardly anybody has;
        - `consistency` and mean `agreement`, as in `actions`;
        - `follows`, what changes indirectly in at least half of these rows;
        - `example`, a label of the frame's index, of a credible answer if there is one;
        - `excludes`, the argument of `Schema.infer` without that kind of advice.
          `schema.excluding(advice.loc[[0, 2]])` has the chosen lines excluded.
        """
        from dear_plugin.tell import advice

        return advice.advice(self)

    @one_thread()
    def alternatives(self, k: int = 4) -> pd.DataFrame:
        """Up to k recourses per row: one of each set of features, then other ways on these sets.

        Another way has another level of a category, or is enough by itself where the first of the
        set counts on what follows. There are fewer where fewer need each of their changes.

        Args:
            k: the largest number per row, up to 100.

        Returns:
            A long frame, one row per (factual, rank): `index`, `rank` (0 is the answer of
            `generate`; the others follow by kind, cheapest first), the columns of `actions`,
            `kind` ("another set", "pair of features" or "same features"), and the features. A
            column that has the name of a feature gets a trailing "_".
        """
        found = self.ranked(k)
        labels = pd.Series(list(found.factuals.index), dtype=object).infer_objects()
        table = pd.DataFrame({"index": labels, "rank": found.ranking.numpy()}, labels.index)
        table = pd.concat([table, found.actions.reset_index(drop=True)], axis=1)
        features = found.counterfactuals.reset_index(drop=True)
        while clash := {name: f"{name}_" for name in table if name in features}:
            table = table.rename(columns=clash)
        return pd.concat([table, features], axis=1)

    @one_thread()
    def ranked(self, k: int = 4) -> Recourses:
        """Up to k answers of each row as one result, row by row: see `alternatives`.

        Its index has a label once for each of its answers; `changes` has their ranks.
        """
        return self.of_ranks(list(self.ranks(k)))

    @classmethod
    def of_ranks(cls, ranks: Sequence[Recourses]) -> Recourses:
        """Results over the same rows, one for each rank, as one, row by row: see `ranked`."""
        # Failures and rows without a change are no alternatives; rank 0 keeps every row.
        valid = [(each.success & each.acts) | (each.ranking == 0) for each in ranks]
        at = [mask.nonzero()[:, 0] for mask in valid]
        order = torch.cat(at).argsort(stable=True)
        return Recourses.gathered(ranks, at).select(order)

    def ranks(self, k: int) -> Iterator[Recourses]:
        """Up to k results over the same rows: their first answers, their second ones, ..."""
        every = (Recourses.of(each, ranked=True) for each in settled(self.question, k))
        return iter(one_thread()(lambda: next(every, None)), None)


# The most labels that an error names.
MOST_NAMED = 5

Positions = npt.NDArray[np.int64]


def positions(index: pd.Index, labels: Hashable | Iterable[Hashable]) -> Positions:
    """(m,) the rows with a label, or with each of several labels.

    Args:
        index: (n,) of the rows.
        labels: a label, a list or an index of labels, or (n,) bool.

    Raises:
        InputError: a label that is not in the index.
    """
    several: list[Any] = list(labels) if _are_several(labels) else [labels]
    if len(several) == len(index) and all(isinstance(each, bool | np.bool_) for each in several):
        return np.flatnonzero(several)
    places = [_positions(index, label) for label in several]
    unknown = [label for label, at in zip(several, places, strict=True) if not len(at)]
    if unknown:
        raise InputError(
            f"got {unknown[0]!r}, expected a label of the frame's index, a list of labels, or a"
            " mask of all rows"
        )
    return np.concatenate([np.empty(0, dtype=np.int64), *places])


def only_position(index: pd.Index, label: Hashable) -> int:
    """The position of the row with a label.

    Raises:
        InputError: several labels, a label that is not in the index, or that several rows share.
    """
    if _are_several(label):
        raise InputError("got several labels, expected one; recourses[labels] selects rows")
    at = _positions(index, label)
    if len(at) != 1:
        some = [*map(repr, index[:MOST_NAMED].tolist()), *["..."] * (len(index) > MOST_NAMED)]
        known = "" if len(at) else f"; the labels are {', '.join(some)}"
        raise InputError(f"index {label!r} names {len(at)} rows, expected exactly one{known}")
    return int(at[0])


def _are_several(labels: object) -> TypeGuard[Iterable[Any]]:
    """Whether these are several labels; a tuple is a label of a `MultiIndex`."""
    return is_list_like(labels) and not isinstance(labels, tuple)


def _positions(index: pd.Index, label: Hashable) -> Positions:
    """The positions of a label; as the index finds it, NaN equals NaN."""
    try:
        at: Positions = np.atleast_1d(np.arange(len(index))[index.get_loc(label)])
        return at
    except (KeyError, TypeError, ValueError, pd.errors.InvalidIndexError):
        return np.empty(0, dtype=np.int64)
