"""`Recourses`: the answers to n rows as frames, with methods that make texts and figures."""

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
from dear_plugin.errors import MOST_NAMED, InputError
from dear_plugin.results.changes import Hindrance, Line, frame, only
from dear_plugin.results.proposal import Proposal, Question, answers_per_row, selected
from dear_plugin.results.worth import Worth

if TYPE_CHECKING:
    from dear_plugin.plots.ink import Axes
    from dear_plugin.tell.letter import Field, Template


@dataclass(frozen=True)
class Recourses:
    """The answers of a call. Every row of the query is kept, with up to k answers.

    Texts are made from `actions` and `changes` alone: they call neither the model nor a decoder.

    Attributes:
        question: the call, with a row for each of m answers.
        proposal: what the method proposed: (m, p) rows, rounded as the frame can hold them.
        counterfactuals: a frame with the columns, order, dtypes, index and category labels of the
            query. The row of a failure is its best attempt within the constraints.
        scores: (m, c) the scores of the counterfactuals.
        success: (m,) bool, whether the decision of the user's model is the wanted one.
        rank: (m,) the rank of each answer, 0 for the first of a row.
        worth: the measures of each answer, such as its confidence.
        alone: (m, p) the factuals after the action alone, with the changes that it implies.
        in_the_way: (m, p) bool, the obstacles of each answer, see `obstacles`.
        reasons: (m,) why there is no answer, or why none is needed; "" otherwise.
        lines: (m,) the lines of `changes` of each answer.
        hindrances: (m,) why a letter cannot state an answer.
        actions: a frame of the actions, their costs and measures, with the index of the factuals.

            - `rank` and `kind`, if k > 1; `success`, `reason` and `acted_on`;
            - `direct_cost`, `indirect_cost`, `cost` and `suppressed_cost`, in units of cost: .07
              is 7 % of the range of a number's central training values (98 %, see
              `Schema.infer`), 1 is a changed category. `costs` of features weight the direct
              cost;
            - `score_before` and `score_after`: the probability of the wanted class, or the
              predicted value.

            These are NaN where a row has no answer:

            - `confidence`: the share of resamples under which the answer still succeeds. The
              search has not seen these resamples;
            - `reliance`: the smallest share of the indirect change with which the answer succeeds.
              0 means that the action alone suffices;
            - `plausibility`: the share of training rows at least as far from their neighbours;
            - `consistency`: of the training rows whose score the same kind of change moves, the
              share that gain. About one half means that the model has no clear direction;
            - `agreement`: the share of the copies of the model that accept the answer, NaN without
              copies;
            - `credible`: whether these measures meet the criteria of the method (or the defaults
              of `Search`) and the score has the required margin, also for an action that the
              user gave. It is False without an answer.
        k: the requested number of answers of a row.
        search: the search, which `alternatives` continues. A pickle leaves its state out.

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
    k: int
    search: Any

    @lazy
    def changes(self) -> pd.DataFrame:
        """The lines of all answers as a frame, one for each feature that an answer changes.

        Lines are sorted by row, direct changes first, then by the size of the change:

        - `row`: the label; `rank`: 0 for the first answer; `feature`, and its `label` in
          texts;
        - `kind`: "direct" (acted on), "forced" (a rule between columns sets it with the
          action) or "indirect" (expected to follow);
        - `old` and `new`: the values in the factual and the counterfactual; `alone`: the value
          after the action alone. An indirect change is needed from the value `least` up to
          `new`: `least` is `old` if the change is not needed beside the others, and `new` if
          no other value is known to suffice;
        - `low` and `high`: the range of a number's change, averaged over similar rows, in its
          own unit; `low_one` and `high_one`: the range of the change of one row. Texts call a
          range that is wider than the unit of cost unknown;
        - `agree`: in how many of the `redraws`, the resamples, the feature changes;
        - `size`: the change in units of cost; `in_sd`: in standard deviations;
          `consistency`: of a direct change; `unit`: of a number; `exact`: of a forced change,
          whether no other value keeps the rule (a sum is exact, an order is not);
        - `link`: "effect" or "association" of an indirect change. It is an association within
          a tier, and where no order of causes is stated;
        - the rounded amounts of a letter, missing where it states none: `stated`, the new
          value of a direct change, or the upper end of a needed one; `stated_least`, the value
          from which on an action may be enough, or a change is needed; `stated_usual`, of what
          usually follows; `stated_forced`, of what the action alone implies.
        """
        return frame(line for own in self.lines for line in own)

    @property
    def factuals(self) -> pd.DataFrame:
        """The frame of the query, a row for each answer."""
        return self.question.frame

    @property
    def encoder(self) -> Encoder:
        """The encoder of the method."""
        return self.question.encoder

    @property
    def x(self) -> Tensor:
        """(m, p) the factual rows."""
        return self.question.case.x

    def __len__(self) -> int:
        """The number of answers (m)."""
        return len(self.rank)

    def __getitem__(self, index: Hashable | Iterable[Hashable]) -> Recourses:
        """The answers of the rows with a label of the frame's index, or with several labels.

        Args:
            index: a label, a list or an index of labels, or (m,) bool.

        Raises:
            InputError: a label that is not in the index.
        """
        return self.select(torch.from_numpy(positions(self.factuals.index, index)))

    def select(self, at: Tensor) -> Recourses:
        """The answers at positions, (q,), as a result."""
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
        """The features of each row that cannot be acted on and prevent a credible answer.

        Their names are joined by " + ". With the values of a usual accepted training row in these
        features, the row would have an answer. The text is "" if there is a credible answer, or
        if no such features are found.
        """
        schema = self.encoder.schema.names
        names = [
            " + ".join(dict.fromkeys(compress(schema, row))) for row in self.in_the_way.tolist()
        ]
        return pd.Series(names, self.factuals.index, dtype=str, name="obstacles")

    @lazy
    def support(self) -> pd.Series:
        """The share of each counterfactual's 5 nearest training rows with the wanted decision.

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
        dtypes (Int64, boolean), which allow missing values; other dtypes stay. A feature with
        several columns has values in all of them.
        `dear.apply(factuals, direct)` returns the counterfactuals again.
        """
        return only(self.counterfactuals, self.encoder.schema, self.proposal.direct)

    @property
    def forced(self) -> pd.DataFrame:
        """The implied changes of the action alone: the new values, missing elsewhere.

        A rule between columns, such as a sum, sets these values with the action. The factuals with
        the values of `direct` and `forced` keep every rule that they kept before. Dtypes are those
        of `direct`.
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
        """Write a self-contained page with a card for each row: its letter, and folded evidence.

        Args:
            path: the file to write.
            title: the title of the page.
            template: as in `letter`.
        """
        from dear_plugin.tell import cards

        Path(path).write_text(cards.page(self, title, self.letter(template=template)), "utf8")

    @one_thread()
    def plot(self, index: Hashable = ..., *, ax: Axes | None = None) -> Axes:
        """Draw one row, or the actions of all rows.

        The figure of a row shows each changed feature with its old and new value, direct and
        indirect changes apart, and ranges over resamples of the training rows. Its title says
        whether the action alone is enough, and in how many resamples the answer still succeeds.
        The figure of all rows shows the costs by features acted on.

        Args:
            index: a label of the frame's index; without one, all rows are drawn.
            ax: axes of matplotlib to draw on; without them, a new figure with a note is made.

        Returns:
            The axes; `axes.figure.savefig` writes the figure.

        Raises:
            InputError: a label that is not in the index, or that several rows share; no rows.
            ExtraError: matplotlib is not installed.
        """
        from dear_plugin import plots
        from dear_plugin.tell.describe import drawn, evidence, head, heading

        if index is not ...:
            at = self._first(index)
            texts = head(self, at), evidence(self, at), heading(self.lines[at])
            return plots.row(drawn(self.lines[at]), ax, *texts, note=self.note)
        if not len(self):
            raise InputError("got a result without rows, expected at least one to draw")
        return plots.splits(self.actions, ax, note=self.note)

    @property
    def note(self) -> str:
        """The line under figures: whether indirect changes are effects or associations."""
        from dear_plugin.tell.describe import note

        return f"{note(self.encoder.schema).partition(':')[0].removesuffix('.')}."

    @overload
    def describe(self) -> pd.Series: ...

    @overload
    def describe(self, index: Hashable) -> str: ...

    def describe(self, index: Hashable = ...) -> str | pd.Series:
        """The text of one row's answer for an analyst, or the texts of all answers.

        It states the action, and then the expected indirect changes, as ranges where resamples of
        the training rows differ. It states whether the action alone is enough, or which changes
        must follow, and in how many resamples the answer still succeeds. Without tiers or causes,
        indirect changes are associations, not effects.

        Args:
            index: a label of the frame's index; without one, the texts of all answers are
                returned, a series with the index of the factuals.

        Raises:
            InputError: a label that is not in the index, or that several rows share.
        """
        from dear_plugin.tell.describe import describe

        if index is ...:
            texts = [describe(self, at) for at in range(len(self))]
            return pd.Series(texts, self.factuals.index, dtype=object, name="describe")
        return describe(self, self._first(index))

    def describe_row(self, position: int) -> str:
        """The text of the answer at a position, as `describe` writes it."""
        from dear_plugin.tell.describe import describe

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
        """The letter to an applicant, without statistics, or the letters to all applicants.

        A letter states the decision, the action, what usually follows and how much of it is
        needed, and that the decision may change. Amounts are rounded: the model accepts a row with
        exactly the stated values. The letter states the first of the k answers that can be stated;
        use `generate(rows, k=8)`. If there is none, it states the obstacles. An answer takes at
        most 80 words if labels have a few words each.

        Args:
            index: a label of the frame's index; without one, the letters of all rows are returned
                as a series.
            template: "en", "de", the path of a TOML file, or a `LetterTemplate`.
            ways: the largest number of answers in one letter, 1 to 3.
            above: `date`, `case` and `name`, which stand above the letter, and `until`, the date
                to ask again if there is no answer. Each is a text, or with all rows a series or
                mapping by label.

        Raises:
            InputError: a label that is not in the index, or that several rows share.
            SettingError: an unknown template, or `ways` outside of 1 to 3.
        """
        from dear_plugin.tell import letter

        one = index is not ...
        at = [self._first(index)] if one else np.flatnonzero(self.starts).tolist()
        texts = letter.letters(self, at, template, ways=ways, above=above)
        return texts[0] if one else pd.Series(texts, self.factuals.index[at], object, "letter")

    @one_thread()
    def record(self, index: Hashable) -> dict[str, Any]:
        """All that is needed to check and repeat an answer; `json.dumps` writes it.

        Args:
            index: a label of the frame's index.

        Returns:
            - `version`, and `hashes` of the training rows, of the model (of its scores of some
              rows) and of the settings: the schema, the search, the decoder;
            - `row`: the factual; `limits`: the features that may be acted on, and allowed values;
            - `answer`: its line of `actions`, its lines of `changes`, and the text of `describe`;
            - `criteria`: each with its value and the required value;
            - `assumed`: the order of causes, relations between columns, rules, costs and settings.

        Raises:
            InputError: a label that is not in the index, or that several rows share.
        """
        from dear_plugin.tell import record

        at = self._first(index)
        return record.record(self, at)

    @one_thread()
    def advice(self) -> pd.DataFrame:
        """The kinds of actions in these answers, to read before answers are sent.

        It returns one line for each feature acted on and its direction, or its levels, over the
        rows with a successful action. The most frequent kind is first:

        - `feature`, `change` ("up", "down" or "no → yes"), `rows` and their `share`;
        - `old` and `new`: the medians of a number, or the levels;
        - `goes`: the median change of an amount (and its 5 and 95 % quantiles);
        - `at_edge`: the share of these rows in which the number reaches an end of its central
          training values. If it is large, the model may reward values that are rare;
        - `consistency` and mean `agreement`, as in `actions`;
        - `follows`: the indirect changes of at least half of these rows;
        - `example`: a label of the frame's index, of a credible answer if there is one;
        - `excludes`: the argument of `Schema.infer` that excludes this kind.
          `schema.excluding(advice.loc[[0, 2]])` returns a schema that excludes the chosen lines.
        """
        from dear_plugin.tell import advice

        return advice.advice(self)

    @one_thread()
    def alternatives(self, k: int = 4) -> pd.DataFrame:
        """Up to k answers per row: one of each action set, then further ones on the same sets.

        A further answer on a set has another level of a category, or needs no indirect change
        where the first answer of the set needs some. An answer that needs only a part of its
        action is left out, so that a row may have fewer than k. Answers beyond the k of `generate`
        are searched now.

        Args:
            k: the largest number per row, up to 100.

        Returns:
            A long frame, one row per (factual, rank): `index`, `rank` (0 is the answer of
            `generate`; the others are sorted by kind, then price), the columns of `actions`,
            `kind` ("another set", "pair of features" or "same features"), and the features. A
            column with the name of a feature gets a trailing "_".

        Raises:
            InputError: k is not a whole number from 1.
        """
        k = answers_per_row(k)
        owner, known = self.starts.cumsum() - 1, self.rank < k
        places, tables = torch.zeros(0), []
        if k > self.k:
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
        """(m,) bool, the first answer of each row."""
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
    """The frame of m answers with labels and features; see `Recourses.alternatives`."""
    labels = pd.Series(list(features.index), dtype=object).infer_objects()
    features = features.reset_index(drop=True)
    table = pd.DataFrame({"index": labels, "rank": rank}, labels.index)
    actions = actions.reset_index(drop=True).assign(kind=pd.Series(kinds, dtype=str))
    table = pd.concat([table, actions], axis=1)
    while clash := {name: f"{name}_" for name in table if name in features}:
        table = table.rename(columns=clash)
    return pd.concat([table, features], axis=1)


Positions = npt.NDArray[np.int64]


def positions(index: pd.Index, labels: Hashable | Iterable[Hashable]) -> Positions:
    """(m,) the positions of the rows with a label, or with each of several labels.

    Args:
        index: (n,) the index of the rows.
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
    """Whether an argument is several labels; a tuple is one label of a `MultiIndex`."""
    return is_list_like(labels) and not isinstance(labels, tuple)


def _positions(index: pd.Index, label: Hashable) -> Positions:
    """The positions of a label. NaN equals NaN."""
    try:
        at: Positions = np.atleast_1d(np.arange(len(index))[index.get_loc(label)])
        return at
    except (KeyError, TypeError, ValueError, pd.errors.InvalidIndexError):
        return np.empty(0, dtype=np.int64)
