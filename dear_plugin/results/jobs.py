"""Jobs: the rows of a case, searched in several processes at once; proposals out."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from dear_plugin._progress import progress
from dear_plugin._threads import one_thread
from dear_plugin.problem.case import Case
from dear_plugin.results.proposal import Proposal

if TYPE_CHECKING:
    from dear_plugin.results.question import Attempt, Method

# A process for fewer rows takes longer to start than they take.
FEWEST_ROWS = 8


def proposed(
    method: Method, case: Case, k: int, n_jobs: int, attempt: Attempt
) -> Iterator[tuple[Tensor, Sequence[Proposal]]]:
    """Positions of rows, (q,), and the proposals for these, one per rank; together all m rows.

    Every process has a copy of the method, its model and its decoders; these are searched in
    threads where they cannot be pickled.

    Args:
        method: fitted.
        case: the m rows.
        k: the number of ranks.
        n_jobs: the number of processes; -1 for all cores, as in joblib.
        attempt: a search that is continued in this process.
    """
    every = torch.arange(len(case))
    if n_jobs == 1 or len(case) < 2 * FEWEST_ROWS:
        yield every, method._alternatives(case, k, attempt)
        return
    import joblib

    parts = every.tensor_split(min(joblib.effective_n_jobs(n_jobs), len(case) // FEWEST_ROWS))
    calls = [joblib.delayed(_searched)(method, case.select(at), k) for at in parts]
    try:
        found = joblib.Parallel(n_jobs=len(parts))(calls)
    except (pickle.PicklingError, AttributeError, TypeError):
        # What cannot be pickled raises any of these; an error of the model is raised again.
        found = joblib.Parallel(n_jobs=len(parts), backend="threading")(calls)
    yield from zip(parts, found, strict=True)


@one_thread()
def _searched(method: Method, case: Case, k: int) -> Sequence[Proposal]:
    """The proposals for the rows of a case, one per rank; without a bar each."""
    with progress(False):
        return method._alternatives(case, k)
