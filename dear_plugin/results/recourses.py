"""`Recourses`: the answers to n rows, as frames, and doors to all that is made from them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard, overload

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from pandas.api.types import is_list_like
from torch import Tensor

from dear_plugin._threads import lazy, one_thread
from dear_plugin.data.encoder import Encoder, patch
from dear_plugin.errors import InputError
from dear_plugin.results.changes import Hindrance, Line, frame, heading, note, only
from dear_plugin.results.proposal import Proposal, Question, asked_for, selected
from dear_plugin.results.worth import Worth

if TYPE_CHECKING:
    from dear_plugin.plots.ink import Axes
    from dear_plugin.tell.letter import Field, Template


@dataclass(frozen=True)
class Recourses:
    """The answers of a call, complete: every row is kept, with up to k answers of each.

    All that is said of an answer is in `actions` and `changes`; texts ask neither the model nor a
    decoder.

    Attributes:
        question: the call, a row for each of m answers.
        proposal: what the method proposed, (m, p) rows as the frame can hold them.
        counterfactuals: the columns, order, dtypes, index and category labels of the query; a
            failed row is its best attempt within the constraints.
        scores: (m, c) the scores of the counterfactuals.
        success: (m,) bool, whether the decision of the user's model is the wanted one.
        rank: (m,) the rank of each answer, 0 for the first of a row.
        worth: what the answers are worth, in numbers.
        alone: (m, p) the factuals with the action alone, and what it forces.
        in_the_way: (m, p) bool, what stands in the way of a credible answer, see `obstacles`.
        reasons: (m,) why there is no answer, or none is needed; "" otherwise.
        lines: (m,) the lines of `changes` of each answer.
        hindrances: (m,) what stands in the way of stating each answer in a letter.
        actions: the actions, their costs and their credibility, with the index of the factuals.

            `rank` and `kind` if more than one answer was asked for; `success`, `reason`,
            `acted_on`; `direct_cost`, `indirect_cost`, `cost` and `suppressed_cost`, l1 in units
            of cost: 1 is a changed category, or a change of a number by the range of its central
            training values (98 %, see `Schema.infer`); .07 is 7 % of it. The direct one is times
            the `costs` of the features; `score_before` and `score_after`, the wanted class's
            probability (or the predicted value); and, NaN where a row has no answer:

            - `confidence`, the share of resamples under which the answer still succeeds,
              of resamples that the search has not seen;
            - `reliance`, the least share of the indirect change with which it does: 0 where the
              action alone suffices;
            - `plausibility`, the share of training rows at least as far from their neighbours;
            - `consistency`, of the training rows whose score the same kind of change moves, the
              share that gain, by the model alone: about one half where the model has no clear
              direction;
            - `agreement`, the share of the copies of the model that accept the answer, NaN
              without;
            - `credible`, bool: whether these meet the criteria of the method (or the defaults of
              `Search`), and the score has the margin of its search; also of an action that the
              user gave. False where there is no answer.
        asked: the number of answers of a row that were asked for.
        search: the search, which `alternatives` continues; no part of a pickle.
        changes: the lines as a frame: what changes, a line for each feature of an answer.

            Row by row, what is acted on first, then by the size of the change:

            - `row`, the label; `rank`, 0 for the first answer; `feature`, and its `label` in
              texts;
            - `kind`: "direct", what is acted on; "forced", what a rule between columns sets with
              it; "indirect", what is expected to follow;
            - `old` and `new`, the values in the factual and the counterfactual; `alone`, the value
              with the action alone; `least`, from which value on, up to `new`, an indirect change
              is needed, as far as the model was asked: `new` where other values may not do, `old`
              where the answer does not need it beside the others;
            - `low` and `high`, the ends of the change of a number on average of people like this,
              in its own unit; `low_one` and `high_one`, of the change of one person; texts say of
              a range that is wider than the unit of cost, the usual range, that it is not known;
            - `agree`, in how many of the `redraws` it changes;
            - `size`, the change in units of cost, and `in_sd`, in standard deviations;
              `consistency`, of what is acted on; `unit`, of a number; `exact`, of what is forced,
              whether it must be just that value, which an order between numbers does not ask for;
            - `link`, of what is expected to follow: "effect", or "association" within a tier and
              where no order of causes is stated;
            - what a letter states of it, in amounts that people say, missing where nothing:
              `stated`, what is acted on becomes it, and what is needed goes up to it;
              `stated_least`, from which value on an action may be enough, or a change is needed;
              `stated_usual`, of what usually follows; `stated_forced`, of what the action alone
              forces.

            All that texts say of an answer is made of these lines and of `actions`.

    Example:
        >>> from dear_plugin import DEAR, Schema
        >>> from dear_plugin.datasets import load_loan
        >>> frame = load_loan(1_000).frame
        >>> schema = Schema.infer(frame, target="approved", immutable=["gender"])
        >>> dear = DEAR(lambda rows: rows["savings"] / 60, schema, act_on=["savings"]).fit(frame)
        >>> recourses = dear.generate(frame.head(5))
        >>> recourses.actions["acted_on"].tolist()
        ['', 'savings', 'savings', 'savings', 'savings']
        >>> recourses[1]
        Recourses(1 of 1 rows solved, median cost 0.385)
    """

    question: Question
    proposal: Proposal
    counterfactuals: pd.DataFrame
    scores: Tensor
    success: Tensor
    rank: npt.NDArray[np.int64]
    worth: Worth
    alone: Tensor
    in_the_way: Tensor
    reasons: npt.NDArray[Any]
    lines: list[list[Line]]
    hindrances: list[Hindrance]
    actions: pd.DataFrame
    asked: int
    search: Any

    @lazy
    def changes(self) -> pd.DataFrame:
        """The lines of all answers, as a frame."""
        return frame(line for own in self.lines for line in own)

    @property
    def factuals(self) -> pd.DataFrame:
        """The frame of the query, a row for each answer."""
        return self.question.frame

    @property
    def encoder(self) -> Encoder:
        """That of the method."""
        return self.question.encoder

    @property
    def x(self) -> Tensor:
        """(m, p) the factual rows."""
        return self.question.case.x

    def __len__(self) -> int:
        """The number of answers (m)."""
        return len(self.rank)

    def __getitem__(self, index: Hashable | Iterable[Hashable]) -> Recourses:
        """The rows with a label of the frame's index, or with each of several labels.

        Args:
            index: a label, a list or an index of labels, or (m,) bool.

        Raises:
            InputError: a label that is not in the index.
        """
        return self.select(torch.from_numpy(positions(self.factuals.index, index)))

    def select(self, at: Tensor) -> Recourses:
        """The answers at positions, (q,), as a result of their own."""
        question = selected(self.question, at)
        part = replace(selected(self, at), question=question, worth=selected(self.worth, at))
        if not part.starts.all():
            question = selected(question, torch.from_numpy(np.flatnonzero(part.starts)))
        return replace(part, search=self.search.anew(question))

    def __repr__(self) -> str:
        """One line: successes and median cost."""
        first = self.actions[self.starts]
        cost, done = first["cost"][first["success"].to_numpy()], int(first["success"].sum())
        text = f", median cost {cost.median():.3g}" if done else ""
        return f"Recourses({done} of {len(first)} rows solved{text})"

    @property
    def changed(self) -> Tensor:
        """(m, p) bool: which features differ from the factual."""
        return self.proposal.rows != self.x

    @property
    def obstacles(self) -> pd.Series:
        """The features that stand in the way of a credible answer, and cannot be acted on.

        Joined by " + "; "" where there is a credible answer, or where nothing is found. With the
        values of a usual accepted training row there, and maybe in what does not move the model's
        score, the row has an answer.
        """
        schema = self.encoder.schema.names
        names = [
            " + ".join(dict.fromkeys(compress(schema, row))) for row in self.in_the_way.tolist()
        ]
        return pd.Series(names, self.factuals.index, dtype=str, name="obstacles")

    @lazy
    def support(self) -> pd.Series:
        """Share of each counterfactual's 5 nearest training rows that get the wanted decision.

        It is computed on first use.
        """
        values = pd.Series(np.nan, self.factuals.index, name="support")
        known, case = self.question.readable, self.question.case
        found = self.question.trained.support(self.proposal.rows[known], case.goal, known)
        values.iloc[known.numpy()] = found.double().numpy()
        return values

    @property
    def direct(self) -> pd.DataFrame:
        """The action alone: the new values of the features acted on, missing elsewhere.

        Index and columns are those of `factuals`. Integers and booleans have pandas' nullable
        dtypes (Int64, boolean), which allow missing values; all other dtypes stay. Of a feature
        with several columns all are there.
        `dear.apply(factuals, direct)` gives the counterfactuals again.
        """
        return only(self.counterfactuals, self.encoder.schema, self.proposal.direct)

    @property
    def forced(self) -> pd.DataFrame:
        """What the action alone forces: the new values, missing elsewhere; dtypes as of `direct`.

        A rule between columns, such as a sum, sets them with the action, whatever else follows.
        The rows with `direct` and `forced` in place keep every rule that the factuals keep.
        """
        encoder, forced = self.encoder, self.alone != self.x
        after = patch(encoder, self.factuals, self.x, rows=self.alone)[0]
        return only(after, encoder.schema, forced & ~self.proposal.direct)

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
        from dear_plugin.results.describe import drawn, evidence, head

        if index is not ...:
            at = self._first(index)
            texts = head(self, at), evidence(self, at), heading(self.lines[at])
            return plots.row(drawn(self.lines[at]), ax, *texts, note=self.note)
        if not len(self):
            raise InputError("got a result without rows, expected at least one to draw")
        return plots.splits(self.actions, ax, note=self.note)

    @property
    def note(self) -> str:
        """What indirect changes are by the schema, as a line under figures of them."""
        return f"{note(self.encoder.schema).partition(':')[0].removesuffix('.')}."

    @overload
    def describe(self) -> pd.Series: ...

    @overload
    def describe(self, index: Hashable) -> str: ...

    def describe(self, index: Hashable = ...) -> str | pd.Series:
        """One row's recourse in plain words, or every answer's.

        The text has the action; the expected indirect changes, as ranges where resamples of the
        training rows do not agree; whether the action alone is enough, or what must follow; and in
        how many resamples the answer still succeeds. Without tiers or causes, indirect
        changes are associations, not effects.

        Args:
            index: a label of the frame's index; without one, all answers are described, as a
                series with the index of the factuals.

        Raises:
            InputError: a label that is not in the index, or that several rows share.
        """
        from dear_plugin.results.describe import describe

        if index is ...:
            texts = [describe(self, at) for at in range(len(self))]
            return pd.Series(texts, self.factuals.index, dtype=object, name="describe")
        return describe(self, self._first(index))

    def describe_row(self, position: int) -> str:
        """As `describe`, for the answer at a position."""
        from dear_plugin.results.describe import describe

        return describe(self, range(len(self))[position])

    @overload
    def letter(
        self, *, template: Template = ..., ways: int = ..., **above: Field
    ) -> pd.Series: ...

    @overload
    def letter(
        self, index: Hashable, *, template: Template = ..., ways: int = ..., **above: Field
    ) -> str: ...

    def letter(
        self, index: Hashable = ..., *, template: Template = "en", ways: int = 1, **above: Field
    ) -> str | pd.Series:
        """The letter to an applicant, without statistics, or those to all applicants.

        What was decided; what to do, what then usually follows and up to where it must; and that
        the decision may change. Amounts are rounded: the model accepts the row that has just what
        the letter says. Of the answers that were asked for, `generate(rows, k=8)`, the first that
        can be stated is; without any, what stands in the way. A way has at most 80 words if labels
        have a few words each.

        Args:
            index: a label of the frame's index; without one, all rows, as a series.
            template: "en", "de", the path of a TOML file, or a `LetterTemplate`.
            ways: the most ways in one letter, 1 to 3.
            above: `date`, `case` and `name`, what stands above the letter, and `until` when a
                person without a way can ask again; a text, or with all rows a series or mapping by
                label.

        Raises:
            InputError: a label that is not in the index, or that several rows share.
            SettingError: no such template, or another number of ways.
        """
        from dear_plugin.tell import letter

        one = index is not ...
        at = [self._first(index)] if one else np.flatnonzero(self.starts).tolist()
        texts = letter.letters(self, at, template, ways=ways, above=above)
        return texts[0] if one else pd.Series(texts, self.factuals.index[at], object, "letter")

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

        at = self._first(index)
        return record.record(self, at)

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
        set counts on what follows. There are fewer where fewer need each of their changes. Those
        that `generate(rows, k=k)` was not asked for are searched now.

        Args:
            k: the largest number per row, up to 100.

        Returns:
            A long frame, one row per (factual, rank): `index`, `rank` (0 is the answer of
            `generate`; the others follow by kind, cheapest first), the columns of `actions`,
            `kind` ("another set", "pair of features" or "same features"), and the features. A
            column that has the name of a feature gets a trailing "_".

        Raises:
            InputError: k is no whole number from 1.
        """
        k = asked_for(k)
        owner, known = self.starts.cumsum() - 1, self.rank < k
        places, tables = torch.zeros(0), []
        if k > self.asked:
            known = self.starts
            places, further = self.search.table(k)
            tables = [further]
        at = np.flatnonzero(known)
        own = self.actions.drop(columns=["rank", "kind"], errors="ignore").iloc[at]
        kinds = [self.proposal.kinds[i] for i in at]
        tables = [table_of(self.rank[at], kinds, own, self.counterfactuals.iloc[at]), *tables]
        order = np.r_[owner[at], places.numpy()].argsort(kind="stable")
        some = [table for table in tables if len(table)] or tables[:1]
        return pd.concat(some, ignore_index=True).iloc[order].reset_index(drop=True)

    @property
    def starts(self) -> npt.NDArray[np.bool_]:
        """(m,) bool, where the answers of another row begin."""
        starts: npt.NDArray[np.bool_] = np.diff(self.rank, prepend=self.rank[:1]) <= 0
        return starts

    def _first(self, index: Hashable) -> int:
        """The position of the first answer of the row with a label; see `only_position`."""
        at = np.flatnonzero(self.starts)
        return int(at[only_position(self.factuals.index[at], index)])


def table_of(
    rank: npt.NDArray[np.int64],
    kinds: Sequence[str],
    actions: pd.DataFrame,
    features: pd.DataFrame,
) -> pd.DataFrame:
    """The answers of m rows with their labels and features; see `Recourses.alternatives`."""
    labels = pd.Series(list(features.index), dtype=object).infer_objects()
    features = features.reset_index(drop=True)
    table = pd.DataFrame({"index": labels, "rank": rank}, labels.index)
    actions = actions.reset_index(drop=True).assign(kind=pd.Series(kinds, dtype=str))
    table = pd.concat([table, actions], axis=1)
    while clash := {name: f"{name}_" for name in table if name in features}:
        table = table.rename(columns=clash)
    return pd.concat([table, features], axis=1)


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
