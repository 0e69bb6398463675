"""DecoderMethod: a decoder for each action set; it fits them, and searches with them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

from torch import Tensor

from dear_plugin._validation.settings import require_instance
from dear_plugin.data.lint import warn_of_actions
from dear_plugin.data.schema import Schema
from dear_plugin.decoders import Decoder, Decoders, Sample, make_decoder
from dear_plugin.methods.base import RecourseMethod
from dear_plugin.methods.proposals import proposals, searching
from dear_plugin.models.classifier import Output
from dear_plugin.models.copies import as_classifiers
from dear_plugin.problem.action_sets import ActionSets, ActOn
from dear_plugin.problem.case import Case
from dear_plugin.results.proposal import Proposal
from dear_plugin.results.question import Attempt
from dear_plugin.search import Search, SearchProblem

TIMES = (
    "%d action sets are fitted on %d rows in %.1f s; a row alone will take about %.2g s and six"
    " calls of the model, a row of many less"
)
logger = logging.getLogger(__name__)
# The largest number of alternatives per row; a larger k is clipped.
MOST = 100


class DecoderMethod(RecourseMethod):
    """What fits a decoder for each action set, and searches; for arguments see `DEAR`."""

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
        # A copy: the decoder passed may be in use elsewhere, and an interrupt changes nothing.
        decoder, sample = self.decoder.clone_unfitted(), Sample(rows, self.encoder)
        decoders, start = Decoders(decoder, sample, self.sets.members), time.perf_counter()
        decoders.fit(self.sets.members)
        if logger.isEnabledFor(logging.INFO):
            seconds = time.perf_counter() - start, decoders.seconds(self.sets.members)
            logger.info(TIMES, len(self.sets), len(rows), *seconds)
        self.decoder = decoder
        passed = self._params["decoder"]
        if isinstance(passed, Decoder) and hasattr(decoder, "history"):
            vars(passed)["history"] = decoder.history
        return decoders

    def _propose(self, case: Case) -> Proposal:
        return self._alternatives(case, 1)[0]

    def _alternatives(
        self, case: Case, k: int, attempt: Attempt | None = None
    ) -> Sequence[Proposal]:
        problem = SearchProblem.of(case, self.sets, self.trained)
        start = partial(searching, search=self.search, trained=self.trained)
        first, *others = proposals(problem, case, start=start, k=min(k, MOST), attempt=attempt)
        # Ranks that no row has are dropped.
        return [first, *(other for other in others if not bool(other.failed.all()))]

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
