"""SearchingMethod: a method whose answers are held to the criteria of a `Search`."""

from __future__ import annotations

from abc import ABC

from dear_plugin._lazy import lazy
from dear_plugin.evaluation.support import Support
from dear_plugin.methods.base import RecourseMethod
from dear_plugin.search import Evidence, Search


class SearchingMethod(RecourseMethod, ABC):
    """A method with a search.

    Attributes:
        search: the criteria of an answer, and other settings.
    """

    search: Search

    @property
    def _criteria(self) -> Search:
        """The criteria of a credible answer: those of the search, or the defaults."""
        return self.search if self.search.has_criteria else super()._criteria

    @property
    def _support_of_answers(self) -> Support:
        return self._evidence.support

    @lazy
    def _evidence(self) -> Evidence:
        return self._evidence_of()
