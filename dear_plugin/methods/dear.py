"""DEAR: DisEntangling Algorithmic Recourse; it fits a decoder for each action set and searches."""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from torch import Tensor

from dear_plugin._progress import progress as showing
from dear_plugin._threads import one_thread
from dear_plugin._validation.settings import require_instance
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.lint import warn_of_actions
from dear_plugin.data.rule import Condition, Rule
from dear_plugin.data.schema import Schema
from dear_plugin.decoders import Decoder, Decoders, Sample, make_decoder
from dear_plugin.errors import NotFittedError
from dear_plugin.evaluation.report import Report, diagnose
from dear_plugin.evaluation.trained import Trained
from dear_plugin.methods import saving
from dear_plugin.methods.base import RecourseMethod
from dear_plugin.methods.curve import curve_of
from dear_plugin.methods.proposals import proposals, searching
from dear_plugin.methods.robustness import flip_probabilities, ranges, spread
from dear_plugin.methods.what_if import Actions, named_values, outcome
from dear_plugin.models.classifier import Classifier, Output
from dear_plugin.models.copies import as_classifiers
from dear_plugin.problem.action_sets import ActionSets, ActOn
from dear_plugin.problem.case import Case
from dear_plugin.problem.constraints import Constraints
from dear_plugin.problem.target import Label, Target
from dear_plugin.results.letter import Template
from dear_plugin.results.proposal import Proposal
from dear_plugin.results.question import Attempt
from dear_plugin.results.recourses import Recourses
from dear_plugin.results.spread import Ranges, Spread
from dear_plugin.results.writing import write
from dear_plugin.search import Search, SearchProblem

if TYPE_CHECKING:
    from dear_plugin.page import Explorer

TIMES = (
    "%d action sets are fitted on %d rows in %.1f s; a row alone will take about %.2g s and six"
    " calls of the model, a row of many less"
)
logger = logging.getLogger(__name__)
# The largest number of alternatives per row; a larger k is clipped.
MOST = 100


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
        act_on: feature names, or groups of them; None means every mutable feature, one at a time.
        decoder: "transport" (rows keep their conditional rank), "autoencoder" (the paper's), or
            a decoder: `Transport(given=())` does not condition on immutable features.
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
        decoder: str | Decoder = "transport",
        output: Output | None = None,
        encode: Callable[[Tensor], Tensor] | None = None,
        search: Search | None = None,
        copies: Sequence[Any] = (),
    ) -> None:
        super().__init__(model, schema, output=output, encode=encode)
        self.decoder = make_decoder(decoder)
        self.search = Search() if search is None else search
        require_instance("search", self.search, Search)
        self.sets = ActionSets.of(schema, act_on)
        if act_on is None:
            warn_of_actions(schema)
        self._decoders: Decoders | None = None
        self._report: Report | None = None
        self._copies = as_classifiers(copies, self.classifier, output=output, encode=encode)
        self._params |= {"act_on": act_on, "decoder": decoder, "search": search, "copies": copies}

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
        wanted = named_values(actions, frame, self.encoder)
        question = self._question(frame, target, within, self._acts | ~wanted.isnan())
        at, accepted = question.readable, question.accepted
        part = outcome(
            question.case.select(at),
            wanted[at],
            accepted=accepted[at],
            decoders=self.decoders,
            classifier=self.classifier,
        )
        return Recourses.of(write(question, question.over_all(part), at))

    @one_thread()
    def curve(
        self,
        row: pd.DataFrame,
        feature: str,
        actions: Mapping[str, Any] | None = None,
        *,
        within: Constraints | None = None,
        target: Target | Label | None = None,
    ) -> pd.DataFrame:
        """The score of one row over the values of a feature that it may take.

        Args:
            row: a frame of one row.
            feature: what takes all of its values.
            actions: `{feature: value}` of other features acted on at the same time.
            within: as in `apply`.
            target: as in `apply`.

        Returns:
            A line per value: `value`, the score `with_what_follows`, and the score with
            `all_else_frozen`; missing where the row may not take the value.

        Raises:
            InputError: not one row.
            SchemaError: an unknown feature.
        """
        self.encoder.check_columns(row)
        apply, schema = partial(self.apply, target=target), self.schema
        return curve_of(apply, row, feature=feature, schema=schema, actions=actions, within=within)

    def explore(
        self,
        rows: pd.DataFrame,
        target: Target | Label | None = None,
        *,
        within: Constraints | None = None,
        template: Template = "en",
    ) -> Explorer:
        """A page on which a person tries what could be changed; a notebook displays it.

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
        with showing(progress):
            self._report = diagnose(self.decoders, self.encoder, self.sets, frame, seed)
        return self._report

    def save(self, folder: str | Path) -> None:
        """Write a fitted DEAR to a folder, as safetensors, without the model.

        Args:
            folder: created if it does not exist.

        Raises:
            NotFittedError: `fit` was not called.
        """
        saving.save(self, Path(folder))

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
    ) -> DEAR:
        """Read what `save` wrote; no code from the folder is run.

        Args:
            folder: where it was saved.
            model: the model, which is not saved.
            encode: as in the constructor.
            rules: those of the schema, which are not saved as they are code.
            copies: those of the model, of which only the number is saved.

        Raises:
            FileFormatError: a damaged, incomplete or newer save, or another number of rules or
                copies.
        """
        return saving.load(cls, Path(folder), model, encode, rules, copies)

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
        params = {"model": model, "output": output, "encode": encode}
        other = self._with(classifier, self.search, params)
        if copies is not None:
            other._params["copies"] = copies
            other._copies = as_classifiers(copies, classifier, output=output, encode=encode)
        if self._trained is not None:
            other._trained = Trained(self._trained.rows, classifier, other._copies)
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
        require_instance("search", search, Search)
        return self._with(self.classifier, search, {"search": search})

    def _with(self, classifier: Classifier, search: Search, params: Mapping[str, Any]) -> DEAR:
        """The same decoders with another model or search; `params` are the new arguments."""
        other = copy.copy(self)
        other.classifier, other.search = classifier, search
        other._params = {**self._params, **params}
        return other

    @property
    def decoders(self) -> Decoders:
        """The fitted decoders, one for each set; those of other sets are fitted when asked for.

        Raises:
            NotFittedError: `fit` was not called.
        """
        if self._decoders is None:
            raise NotFittedError("DEAR is not fitted; call fit(frame) first")
        return self._decoders

    def _learn(self, rows: Tensor) -> None:
        # A copy: the decoder passed may be in use elsewhere, and an interrupt changes nothing.
        decoder, sample = self.decoder.clone_unfitted(), Sample(rows, self.encoder)
        decoders, start = Decoders(decoder, sample, self.sets.members), time.perf_counter()
        decoders.fit(self.sets.members)
        if logger.isEnabledFor(logging.INFO):
            seconds = time.perf_counter() - start, decoders.seconds(self.sets.members)
            logger.info(TIMES, len(self.sets), len(rows), *seconds)
        self._decoders, self.decoder, self._report = decoders, decoder, None
        passed = self._params["decoder"]
        if isinstance(passed, Decoder) and hasattr(decoder, "history"):
            vars(passed)["history"] = decoder.history

    def _propose(self, case: Case) -> Proposal:
        return self._proposals(case, 1)[0]

    def _alternatives(
        self, case: Case, k: int, attempt: Attempt | None = None
    ) -> Sequence[Proposal]:
        # Ranks that no row has are dropped.
        first, *others = self._proposals(case, min(k, MOST), attempt)
        return [first, *(other for other in others if not bool(other.failed.all()))]

    def _proposals(self, case: Case, k: int, attempt: Attempt | None = None) -> list[Proposal]:
        problem = SearchProblem.of(
            case, self.sets, decoders=self.decoders, classifier=self.classifier
        )
        start = partial(searching, search=self.search, trained=self.trained)
        return proposals(problem, case, start=start, k=k, attempt=attempt)

    def _flip_probabilities(
        self, case: Case, proposal: Proposal, position: int
    ) -> Mapping[int, tuple[float, float]]:
        return flip_probabilities(case, proposal, position, self.decoders)

    def _contradicted(self, acted_on: str) -> Mapping[str, str]:
        return {} if self._report is None else self._report.contradictions(acted_on)

    def _spread(self, case: Case, proposal: Proposal) -> Spread:
        return spread(case, proposal, decoders=self.decoders, classifier=self.classifier)

    def _ranges(self, case: Case, proposal: Proposal) -> Ranges:
        return ranges(case, proposal, decoders=self.decoders, classifier=self.classifier)

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
