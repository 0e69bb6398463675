"""Recourses: what `generate` returns: a `Result` with texts, figures and alternatives."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, overload

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from dear_plugin._threads import one_thread
from dear_plugin._validation.settings import require_instance
from dear_plugin.errors import InputError
from dear_plugin.results import html
from dear_plugin.results.advice import advice
from dear_plugin.results.descriptions import describe, panel
from dear_plugin.results.labels import RowKey, only_position, positions
from dear_plugin.results.letter import LetterTemplate, letters
from dear_plugin.results.result import Result
from dear_plugin.results.wording import claim
from dear_plugin.results.writing import settled

if TYPE_CHECKING:
    from dear_plugin.plots.ink import Axes, Figure

LETTER = LetterTemplate()


@dataclass(frozen=True)
class Recourses(Result):
    """The result of `generate`: n rows, every one of them kept.

    Attributes:
        question: the call: the method, and the n rows.
        proposal: what the method proposed, (n, p) rows as the frame can hold them.
        counterfactuals: the columns, order, dtypes, index and category labels of the query; a
            failed row is its best attempt within the constraints.
        outcome: the columns of `actions` that are not computed lazily.

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
        return html.table(self)

    @one_thread()
    def to_html(
        self, path: str | Path, title: str = "Recourse", *, template: LetterTemplate = LETTER
    ) -> None:
        """Write a self-contained page with one card for each row: its letter, evidence folded.

        Args:
            path: of the file.
            title: of the page.
            template: the sentences of the letters.
        """
        Path(path).write_text(html.page(self, title, template), encoding="utf8")

    @one_thread()
    def plot(self, index: Hashable = RowKey.ALL, *, title: str = "") -> Figure:
        """One row as a figure, or all rows: the actions, and what is expected to follow.

        A row: each changed feature with its old and new value, direct and indirect changes apart,
        ranges over resamples of the training rows, whether the action alone is enough, and in how
        many resamples the answer still succeeds. All rows: the one that changes most features,
        next to the costs by features acted on. Indirect changes are associations; with tiers or
        causes see `Schema`.

        Args:
            index: a label of the frame's index; without one, all rows.
            title: of the figure.

        Returns:
            A figure of matplotlib, which notebooks display; `savefig` writes it to a file.

        Raises:
            InputError: a label that is not in the index, or that several rows share; no rows.
            ExtraError: matplotlib is not installed.
        """
        from dear_plugin import plots

        every = index is RowKey.ALL
        if every and not len(self):
            raise InputError("got a result without rows, expected at least one to draw")
        shown = panel(
            self,
            plots.largest_indirect(self) if every else only_position(self.factuals.index, index),
        )
        words = claim(self.encoder.schema).heading, self.note
        return plots.figure(shown, title, words, self.actions if every else None)

    @one_thread()
    def plot_row(self, position: int, axes: Axes) -> None:
        """As `plot`, for the row at a position, in a panel of matplotlib."""
        from dear_plugin import plots

        changes, title, text = panel(self, range(len(self))[position])
        follows = claim(self.encoder.schema).heading
        plots.row(changes, axes, title=title, text=text, follows=follows)

    @one_thread()
    def changes(self, index: Hashable) -> pd.DataFrame:
        """What changes in a row, those features first that are acted on.

        Args:
            index: a label of the frame's index.

        Returns:
            A line per changed feature: `feature`, its title; `values`, the old and the new value
            with the range over resamples, as text; `kind`, "direct" (acted on), "forced" (set with
            it by a rule between columns) or "indirect"; `change`, `low` and `high`, as shares of
            its range.

        Raises:
            InputError: a label that is not in the index, or that several rows share.
        """
        return panel(self, only_position(self.factuals.index, index))[0]

    @one_thread()
    def evidence(self, index: Hashable) -> str:
        """What is known of a row's answer besides its changes, in words.

        Args:
            index: a label of the frame's index.

        Raises:
            InputError: a label that is not in the index, or that several rows share.
        """
        return panel(self, only_position(self.factuals.index, index))[2]

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
        return claim(self.encoder.schema).short

    @overload
    def describe(self) -> pd.Series: ...

    @overload
    def describe(self, index: Hashable) -> str: ...

    @one_thread()
    def describe(self, index: Hashable = RowKey.ALL) -> str | pd.Series:
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
        if index is RowKey.ALL:
            words = describe(self, range(len(self)))
            return pd.Series(words, self.factuals.index, dtype=object, name="describe")
        return self.describe_row(only_position(self.factuals.index, index))

    @one_thread()
    def describe_row(self, position: int) -> str:
        """As `describe`, for the row at a position."""
        return describe(self, [range(len(self))[position]])[0]

    @overload
    def letter(self, *, template: LetterTemplate = ...) -> pd.Series: ...

    @overload
    def letter(self, index: Hashable, *, template: LetterTemplate = ...) -> str: ...

    @one_thread()
    def letter(
        self, index: Hashable = RowKey.ALL, *, template: LetterTemplate = LETTER
    ) -> str | pd.Series:
        """What an applicant is told, without statistics, or what every applicant is told.

        What to do, what then usually follows and up to where it must, and that the decision may
        change. Amounts are rounded: the model accepts the row that has just what the letter says.
        Rows without a credible answer, accepted rows and rows that cannot be read have a sentence
        of their own. A letter has at most 80 words if labels have a few words each.

        Args:
            index: a label of the frame's index; without one, all rows, as a series.
            template: the sentences, for other words or another language.

        Raises:
            InputError: a label that is not in the index, or that several rows share.
        """
        require_instance("template", template, LetterTemplate)
        if index is RowKey.ALL:
            words = letters(self, range(len(self)), template)
            return pd.Series(words, self.factuals.index, dtype=object, name="letter")
        return letters(self, [only_position(self.factuals.index, index)], template)[0]

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
        return advice(self)

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
        ranks, at = list(self.ranks(k)), []
        if not len(self):
            return self._table(0).assign(kind="")
        for rank, result in enumerate(ranks):
            # Failures and rows without a change are no alternatives; rank 0 keeps every row.
            valid = result.solved & result.acts
            at.append((valid | (rank == 0)).nonzero()[:, 0])
        order = torch.cat(at).argsort(stable=True)
        which = torch.arange(len(at)).repeat_interleave(torch.tensor([*map(len, at)]))
        return Recourses.joined(ranks, at).select(order)._table(which[order].numpy())

    def ranks(self, k: int) -> Iterator[Recourses]:
        """Up to k results over the same rows: their first answers, their second ones, ..."""
        every = (
            Recourses.of(self.question, written, kinds=True)
            for written in settled(self.question, k)
        )
        return iter(one_thread()(lambda: next(every, None)), None)

    def _table(self, rank: int | npt.NDArray[np.int64]) -> pd.DataFrame:
        """Labels, ranks, actions and features in one frame, of one rank or (n,) ranks."""
        labels = pd.Series(list(self.factuals.index), dtype=object).infer_objects()
        head = pd.DataFrame({"index": labels, "rank": rank}, index=labels.index)
        head = pd.concat([head, self.actions.reset_index(drop=True)], axis=1)
        clash = {c: _free_name(c, self.counterfactuals) for c in head}
        features = self.counterfactuals.reset_index(drop=True)
        return pd.concat([head.rename(columns=clash), features], axis=1)


def _free_name(name: str, taken: Container[object]) -> str:
    """The name, with as many trailing underscores as it takes to be free."""
    while name in taken:
        name += "_"
    return name
