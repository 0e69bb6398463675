"""`DEAR`, the method: it fits a decoder for each action set, searches, and applies actions."""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from dear_plugin._threads import one_thread
from dear_plugin._threads import progress as showing
from dear_plugin._validation import instance
from dear_plugin.data.cells import cells_of, read_column
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.infer import misfit
from dear_plugin.data.relations import Condition, Rule
from dear_plugin.data.schema import Feature, Schema
from dear_plugin.decoders import Decoder, Decoders, Sample, make_decoder
from dear_plugin.errors import ConstraintError, InputError
from dear_plugin.evaluation.trained import Trained
from dear_plugin.methods import saving
from dear_plugin.methods.answering import (
    Answering,
    Run,
    decoded,
    proposals,
    searching,
    write,
)
from dear_plugin.methods.base import RecourseMethod, question_of
from dear_plugin.models.classifier import Classifier, Output
from dear_plugin.models.copies import as_classifiers
from dear_plugin.problem.action_sets import ActionSets, ActOn, why_fixed
from dear_plugin.problem.constraints import Constraints
from dear_plugin.problem.feasible import Case, Limits, Reason
from dear_plugin.problem.goals import Label, Target
from dear_plugin.results.changes import join, number, one
from dear_plugin.results.complete import completed
from dear_plugin.results.proposal import Proposal, Question, Scored, identity_proposal, merged
from dear_plugin.results.recourses import Recourses
from dear_plugin.search import Search, SearchProblem
from dear_plugin.search.problem import arrays, tensors

TIMES = (
    "%d action sets are fitted on %d rows in %.1f s; a row alone will take about %.2g s and six"
    " calls of the model, a row of many less"
)
logger = logging.getLogger(__name__)
# The largest number of alternatives per row; a larger k is clipped.
MOST = 100

if TYPE_CHECKING:
    from dear_plugin.check.report import Report
    from dear_plugin.page import Explorer
    from dear_plugin.tell.letter import Template


class DEAR(RecourseMethod):
    """Which features to act on, by how much, and which indirect changes to expect.

    Pawelczyk, Tiyavorabun and Kasneci, "Decomposing Counterfactual Explanations for Consequential
    Decision Making", arXiv 2211.02151. A change is split into a direct action d_S on chosen
    features S and the indirect change of the rest, `x_cf = g(v, x_S + d_S)`. Indirect changes
    are associations in the data; where the schema has tiers or causes they are estimates of
    effects, if the stated order is right and nothing unobserved causes both.

    Args:
        model: a torch module on the encoded tensor, an object with `predict_proba` on frames, or
            a callable from a frame to probabilities.
        schema: the features.
        act_on: feature names, or groups of them; None means `schema.actionable`, one at a time.
        decoder: "transport" (rows keep their conditional rank), "autoencoder" (the paper's), or
            a class or an instance of `Decoder`: `Transport(given=())` does not condition on
            immutable features.
        output: "logits" (default for modules), "probabilities" (default for black boxes) or
            "values" (regression).
        encode: for modules on a host's encoding, a differentiable map from ours, (m, d).
        search: the search settings.
        copies: models of the same kind, trained again, that answers should be accepted by, too:
            see `bootstrap_copies` and `Search(min_agreement=)`.

    Example:
        >>> from dear_plugin import DEAR, Schema
        >>> from dear_plugin.datasets import load_loan
        >>> frame = load_loan(1_000).frame
        >>> schema = Schema.infer(frame, target="approved", immutable=["gender"])
        >>> model = lambda rows: rows["savings"] / 60  # a pipeline, a torch module, any function
        >>> DEAR(model, schema, act_on=["income", "savings"]).fit(frame).generate(frame.head(5))
        Recourses(5 of 5 rows solved, median cost 0.402)
    """

    def __init__(
        self,
        model: Any,
        schema: Schema,
        *,
        act_on: ActOn | None = None,
        decoder: str | type[Decoder] | Decoder = "transport",
        output: Output | None = None,
        encode: Callable[[Tensor], Tensor] | None = None,
        search: Search | None = None,
        copies: Sequence[Any] = (),
    ) -> None:
        super().__init__(model, schema, output=output, encode=encode)
        self.decoder = make_decoder(decoder)
        self.search = Search() if search is None else search
        instance(Search)("search", self.search)
        self.sets = ActionSets.of(schema, act_on)
        self._copies = as_classifiers(copies, self.classifier, output=output, encode=encode)
        self._params |= {"act_on": act_on, "decoder": decoder, "search": search, "copies": copies}

    @property
    def decoders(self) -> Decoders:
        """The fitted decoders, one for each set; those of other sets are fitted when needed.

        Raises:
            NotFittedError: `fit` was not called.
        """
        return cast(Decoders, self.trained.decoders)

    def _learn(self, rows: Tensor) -> Decoders:
        # A copy: the decoder passed may be in use elsewhere, and stays as it is.
        decoder, sample = self.decoder.clone_unfitted(), Sample(rows, self.encoder)
        decoders, start = Decoders(decoder, sample, self.sets.members), time.perf_counter()
        decoders.fit(self.sets.members)
        if logger.isEnabledFor(logging.INFO):
            seconds = time.perf_counter() - start, decoders.seconds(self.sets.members)
            logger.info(TIMES, len(self.sets), len(rows), *seconds)
        self.decoder = decoder
        return decoders

    def _propose(self, case: Case) -> Proposal:
        return self._alternatives(case, 1)[0]

    def _alternatives(self, case: Case, k: int) -> Sequence[Proposal]:
        return self._searching(case)(k)

    def _searching(self, case: Case) -> Run:
        problem = SearchProblem.of(case, self.sets, self.trained)
        start = partial(searching, search=self.search, trained=self.trained)
        run = proposals(problem, case, start)

        def ranks(k: int) -> Sequence[Proposal]:
            """The first k answers of every row, one proposal per rank."""
            first, *others = run(min(k, MOST))
            # Ranks that no row has are dropped.
            return [first, *(other for other in others if not bool(other.failed.all()))]

        return ranks

    @property
    def settings(self) -> dict[str, Any]:
        """As of every method, with the action sets and the decoder."""
        return super().settings | {
            "sets": [list(names) for names in self.sets.names],
            "decoder": type(self.decoder).__name__,
            "decoder_settings": self.decoder.settings(),
        }

    @property
    def _acts(self) -> Tensor:
        return self.sets.masks.any(0)

    @property
    def _repr_parts(self) -> Sequence[str]:
        """The parts of `repr` besides the model and the rows."""
        decoder = type(self.decoder).__name__
        return [*super()._repr_parts, f"{len(self.sets)} action sets", f"decoder {decoder}"]

    @one_thread()
    def apply(
        self,
        frame: pd.DataFrame,
        actions: Actions,
        within: Constraints | None = None,
        *,
        target: Target | Label | None = None,
    ) -> Recourses:
        """The outcome of given actions: "what if I worked 45 hours?". Nothing is searched.

        `dear.apply(frame, dear.generate(frame).direct)` gives the same counterfactuals again. A
        decoder for a new set of features is fitted on first use, and kept. A row that may not act
        so (a feature that is frozen or not actionable in `within`, a range, a direction) stays as
        it is, with the reason; other rows are not affected. Numbers are rounded to the resolution
        of their columns. An action of size zero returns the factual, unless
        `reconstruct="paper"` counts the reconstruction as an indirect change.

        Args:
            frame: n rows with the schema's features; accepted ones may act too.
            actions: `{"hours-per-week": 45}` for all rows, or a frame like `recourses.direct`: the
                same index, the new values of the features acted on, missing elsewhere. A feature
                with the row's own value is fixed at it while the others act.
            within: constraints of this call only.
            target: the decision that counts as success; None as in `generate`.

        Raises:
            NotFittedError: `fit` was not called.
            ConstraintError: an action on an unknown or immutable feature.
            InputError: another index, or values that a feature cannot have.
        """
        question, written = outcomes(self, frame, actions, within, target)
        rank = np.zeros(len(written.success), dtype=np.int64)
        return completed(question, written, rank, k=1, search=Answering(self, question))

    def explore(
        self,
        rows: pd.DataFrame,
        target: Target | Label | None = None,
        *,
        within: Constraints | None = None,
        template: Template = "en",
    ) -> Explorer:
        """A page on which one tries what could be changed; a notebook displays it.

        `dear.explore(rows).show()` serves it on this machine alone.

        Args:
            rows: the applicants, any frame with the schema's features.
            target: as in `generate`.
            within: constraints to start from, the same for all rows.
            template: as in `Recourses.letter`.

        Raises:
            ExtraError: Panel is not installed.
            InputError, ConstraintError: no rows, or constraints row by row.
        """
        from dear_plugin.page import Explorer

        self.encoder.check_columns(rows)
        return Explorer(self, rows, target, within, template)

    @one_thread()
    def diagnose(self, frame: pd.DataFrame, seed: int = 0, *, progress: bool = True) -> Report:
        """How well the indirect changes follow the data, measured on rows not fitted on.

        From then on descriptions say what these rows contradict, until the next `fit`.

        Args:
            frame: held-out rows, a few thousand suffice; those that cannot be read are left out,
                and the log says how many.
            seed: of the random draws.
            progress: see `fit`.

        Raises:
            NotFittedError: `fit` was not called.
            InputError: rows that do not fit the schema.
        """
        from dear_plugin.check import report

        with showing(progress):
            rows = report.readable_rows(frame, self.encoder)
            found = report.diagnose(self.decoders, self.sets, rows, seed)
        self.trained.contradicted = found.contradictions
        return found

    def save(self, folder: str | Path) -> None:
        """Write a fitted DEAR to a folder, as safetensors, without the model.

        Args:
            folder: created if it does not exist.

        Raises:
            NotFittedError: `fit` was not called.
        """
        saving.save(self.decoders, self.settings, self.trained.rows, Path(folder))

    @classmethod
    @one_thread()
    def load(
        cls,
        folder: str | Path,
        model: Any,
        *,
        encode: Callable[[Tensor], Tensor] | None = None,
        rules: Sequence[Rule | Condition] = (),
        copies: Sequence[Any] = (),
        decoder: type[Decoder] | None = None,
    ) -> DEAR:
        """Read what `save` wrote; no code from the folder is run.

        Args:
            folder: where it was saved.
            model: the model, which is not saved.
            encode: as in the constructor.
            rules: those of the schema, which are not saved as they are code.
            copies: those of the model, of which only the number is saved.
            decoder: the class of a decoder of your own; the package's are known.

        Raises:
            FileFormatError: a damaged, incomplete or newer save, another number of rules or
                copies, or another decoder.
        """
        own: Any = {"encode": encode, "rules": rules, "copies": copies}
        dear: DEAR = saving.load(cls, Path(folder), model, decoder, **own)
        return dear

    def with_model(
        self,
        model: Any,
        *,
        output: Output | None = None,
        encode: Callable[[Tensor], Tensor] | None = None,
        copies: Sequence[Any] | None = None,
    ) -> DEAR:
        """The same fitted DEAR with another model; nothing is fitted again.

        Args:
            model: see `DEAR`.
            output: see `DEAR`.
            encode: see `DEAR`.
            copies: see `DEAR`; None keeps those that there are.
        """
        classifier = Classifier(model, self.encoder, output=output, encode=encode)
        other, given = copy.copy(self), {"model": model, "output": output, "encode": encode}
        other.classifier, other._params = classifier, {**self._params, **given}
        if copies is not None:
            other._params["copies"] = copies
            other._copies = as_classifiers(copies, classifier, output=output, encode=encode)
        if self._trained is not None:
            other._trained = replace(self._trained, classifier=classifier, copies=other._copies)
        return other

    def with_schema(self, schema: Schema) -> DEAR:
        """The same fitted DEAR for frames that write labels in another way.

        Args:
            schema: `dear.schema.as_written(frame)`, by which frames are read, written and passed
                to the model.
        """
        other = copy.copy(self)
        other.schema, other.encoder = schema, Encoder(schema)
        how = {name: self._params[name] for name in ("output", "encode", "copies")}
        return other.with_model(self._params["model"], **how)

    def with_search(self, search: Search) -> DEAR:
        """The same fitted DEAR with another search; nothing is fitted again.

        Args:
            search: the search settings.
        """
        instance(Search)("search", search)
        other = copy.copy(self)
        other.search, other._params = search, {**self._params, "search": search}
        return other


Actions: TypeAlias = Mapping[str, Any] | pd.DataFrame
ROWS_AT_ONCE = 1024


def outcomes(
    dear: DEAR,
    frame: pd.DataFrame,
    actions: Actions,
    within: Constraints | None,
    target: Target | Label | None,
) -> tuple[Question, Scored]:
    """The rows that act, and their scores; for arguments see `DEAR.apply`."""
    wanted, acts = named_values(actions, frame, dear.encoder), dear.sets.masks.any(0)
    question = question_of(dear, frame, target, within, acts=acts | ~wanted.isnan())
    at, case = question.readable, question.case
    part = outcome(case.select(at), wanted[at], question.accepted[at], trained=dear.trained)
    return question, write(question, [question.over_all(part)], at)[0]


def named_values(actions: Actions, frame: pd.DataFrame, encoder: Encoder) -> Tensor:
    """(n, p) the new values of the features acted on, in user units; NaN elsewhere.

    Args:
        actions: `{feature: value}` for all rows, or a frame with the same index, missing where a
            feature is not acted on.
        frame: the n factual rows.
        encoder: of the schema.

    Raises:
        ConstraintError: an unknown or immutable feature.
        InputError: another index, or values that the features cannot have.
    """
    table = _table(actions, frame)
    acted, schema = table.notna(), encoder.schema
    names = [name for name in table if bool(acted[name].any())]
    features = [schema.features[j] for j in schema.index(names, "actions", ConstraintError)]
    if fixed := [f for f in features if f.immutable]:
        raise ConstraintError(
            f"actions: {[f.name for f in fixed]} cannot be acted on: {why_fixed(fixed)}; leave"
            " missing what is not acted on"
        )
    columns = {each.name: each for each in (*schema.columns, *schema)}
    read = {name: np.full(len(frame), np.nan) for name in names}
    complaints = []
    for name, values in read.items():
        where = acted[name].to_numpy()
        # The dtype of an object column is inferred once missing cells are left out.
        reading = read_column(columns[name], table[name][where].infer_objects())
        if reading.complaint:
            complaints.append(reading.complaint)
        else:
            values[where] = reading.values
    if complaints:
        raise InputError(f"actions: {'; '.join(complaints)}")
    out, labelled = np.full((len(frame), encoder.p), np.nan), schema.labelled(frame)
    for j in dict.fromkeys(schema.index(names)):
        feature = schema.features[j]
        out[:, j] = read.get(feature.name, np.nan)
        if {*read} & {each.name for each in feature.dummies}:
            own = pd.Index(feature.categories).get_indexer(labelled[feature.name])
            flags = np.stack([read.get(c.name, out[:, 0] * np.nan) for c in feature.dummies], 1)
            out[:, j] = np.where(np.isnan(out[:, j]), _level(flags, own), out[:, j])
    return torch.from_numpy(out)


def _level(flags: npt.NDArray[np.float64], own: npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
    """(n,) the categories that new values of columns, (n, m), NaN for the same, make of own ones.

    None of them, m, where not exactly one column is 1 then; NaN where none has a new value.
    """
    before = np.arange(flags.shape[1]) == own[:, None]
    enters = (flags == 1.0).any(1, keepdims=True)
    after = np.where(np.isnan(flags), before & ~enters, flags) == 1.0
    level = np.where(after.sum(1) == 1, after.argmax(1), flags.shape[1])
    return np.where(np.isnan(flags).all(1), np.nan, level)


def _table(actions: Actions, frame: pd.DataFrame) -> pd.DataFrame:
    """Actions as a frame with the index of the factual one."""
    if isinstance(actions, pd.DataFrame):
        if not actions.columns.is_unique:
            repeated = actions.columns[actions.columns.duplicated()]
            raise InputError(f"actions: duplicate columns: {list(map(str, repeated))}")
        if not actions.index.equals(frame.index):
            raise InputError(
                "actions: a frame needs the same index as the rows, in the same order:"
                f" {len(actions)} rows for {len(frame)}; actions.loc[frame.index] may help"
            )
        return actions
    if hasattr(actions, "to_pandas"):
        raise InputError(f"actions: {misfit(actions)}")
    if not isinstance(actions, Mapping):
        raise ConstraintError(
            "actions must be {feature: value}, or a frame like `recourses.direct`;"
            f" got {type(actions).__name__}"
        )
    if many := [name for name, value in actions.items() if np.ndim(value) > 0]:
        raise ConstraintError(
            f"actions: one value for all rows is expected, got several for {many}; values row by"
            " row are given as a frame with the same index"
        )
    return pd.DataFrame({k: [v] * len(frame) for k, v in actions.items()}, index=frame.index)


def outcome(case: Case, values: Tensor, accepted: Tensor, *, trained: Trained) -> Proposal:
    """The outcome of given actions; rows that may not act so stay, with the reason.

    Args:
        case: the n rows.
        values: (n, p) the new values of the features acted on, NaN elsewhere.
        accepted: (n,) bool, rows that the model accepts as they are.
        trained: the training rows, with decoders and the model.
    """
    acted, encoder = ~values.isnan(), trained.classifier.encoder
    proposal = identity_proposal(case.x, accepted & ~acted.any(1))
    reasons = _refusals(case, values, proposal.accepted, encoder)
    proposal = replace(proposal, reasons=reasons, searched=False)
    acting = (~proposal.failed & acted.any(1)).nonzero()[:, 0]
    for rows in acting.split(ROWS_AT_ONCE) if len(acting) else ():
        sets, which = ActionSets.acted_on(acted[rows], encoder.schema)
        problem = SearchProblem.of(case.select(rows), sets, trained)
        wanted = values[rows].gather(1, sets.positions[which])
        with torch.inference_mode():
            wanted = _on_grid(problem, which, wanted)
            part = decoded(problem, torch.arange(len(rows)), which, wanted).clone()
        proposal = merged(proposal, part, rows)
    return proposal


def _on_grid(problem: SearchProblem, sets: Tensor, wanted: Tensor) -> Tensor:
    """Given values, (m, w), with the decimals of their columns, as the search has them."""
    rows, where = torch.arange(len(wanted)), problem.sets.positions[sets]
    own = problem.x.gather(1, where)
    unchanged = wanted == own
    admits = problem.feasible.limits.admits
    inside = [admits(own[:, [i]], where[:, i], rows) for i in range(where.shape[1])]
    # A row without a change keeps its values, as does a feature whose own value no action reaches.
    kept = unchanged & (unchanged.all(1, keepdim=True) | ~torch.cat(inside, 1))
    (snapped,) = tensors(problem.snapped(*arrays(rows, sets, wanted[:, None]))[:, 0])
    return torch.where(kept, own, snapped)


def _refusals(case: Case, values: Tensor, accepted: Tensor, encoder: Encoder) -> list[str]:
    """(n,) why a row may not take its action, or has none; "" where it may, or is accepted."""
    reasons: list[list[str]] = [
        [Reason.NOT_ACTED] * nothing for nothing in (values.isnan().all(1) & ~accepted).tolist()
    ]
    limits, acted = case.feasible.limits, ~values.isnan()
    for j in acted.any(0).nonzero()[:, 0].tolist():
        rows, feature = acted[:, j].nonzero()[:, 0], encoder.schema.features[j]
        wanted, none = values[rows, j], encoder.is_new(values[rows])[:, j]
        known = wanted.masked_fill(none, 0.0)[:, None]
        refused = ~limits.admits(known, torch.full((len(rows),), j), rows)[:, 0] | none
        refused = (refused & (wanted != case.x[rows, j])) | limits.not_actionable[rows, j]
        for row, value in zip(rows[refused].tolist(), wanted[refused].tolist(), strict=True):
            reasons[row].append(_refusal(limits, feature, row, j, value))
    return [", ".join(parts) for parts in reasons]


def _refusal(limits: Limits, feature: Feature, row: int, j: int, wanted: float) -> str:
    """Why a row may not take a value of the feature at position j."""
    if wanted >= len(feature.dummies) > 0:
        return Reason.NOT_ONE.format(feature.called)
    if bool(limits.not_actionable[row, j]):
        return Reason.NOT_ACTIONABLE.format(feature.called)
    (cell,) = cells_of(feature, np.array([wanted]))
    if not feature.is_amount(cell):
        return Reason.NOT_THIS_VALUE.format(feature.called, one(feature, cell))
    ends = float(limits.low[row, j]), float(limits.high[row, j])
    low, high, value = (number(end, feature.precision) for end in (*ends, wanted))
    if ends[0] > ends[1]:
        return Reason.NO_VALUE.format(feature.called, value)
    known = [v for v in sorted(feature.observed) if float(low) <= v <= float(high)]
    if known and float(low) <= float(value) <= float(high):
        names = join([number(v, feature.precision) for v in known], " or ")
        return Reason.NOT_OBSERVED.format(feature.called, value, names)
    return Reason.OUTSIDE.format(feature.called, value, low, high)
