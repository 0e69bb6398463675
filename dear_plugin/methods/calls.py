"""Calls: a frame, a target and constraints in; the `Question` of a method out."""

from __future__ import annotations

import logging
from collections.abc import Collection
from itertools import compress

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from dear_plugin._validation.settings import jobs, one_of, require_instance
from dear_plugin.data.columns import column_limits
from dear_plugin.data.encoder import Encoder
from dear_plugin.models.checks import check_repeats
from dear_plugin.models.classifier import Classifier
from dear_plugin.problem.case import Case
from dear_plugin.problem.constraints import Constraints, admissible, held_cells
from dear_plugin.problem.target import Label, Target, goal_of
from dear_plugin.results.question import Method, Question
from dear_plugin.results.writing import PAST

logger = logging.getLogger(__name__)


def question_of(
    method: Method,
    frame: pd.DataFrame,
    target: Target | Label | None,
    within: Constraints | None,
    *,
    acts: Tensor | None = None,
    on_error: str = "report",
    n_jobs: int = 1,
) -> Question:
    """A call: the rows of a frame, their constraints and targets, and the model's scores.

    Args:
        method: a fitted one.
        frame: n rows.
        target: see `RecourseMethod.generate`; so are errors.
        within: see there.
        acts: (n, p) bool, the features that may be acted on; None for those of the method.
        on_error: see there.
        n_jobs: see there.
    """
    trained, n_jobs = method.trained, jobs("n_jobs", n_jobs)
    encoder, classifier = method.encoder, trained.classifier
    one_of("report", "raise")("on_error", on_error)
    within = Constraints() if within is None else within
    require_instance("within", within, Constraints)
    encoder.check_columns(frame)
    within = within.for_rows(frame.index)
    target = target.for_rows(frame.index) if isinstance(target, Target) else target
    frame = method._converted(frame)
    frozen, not_acted = held_cells(within, len(frame), encoder.schema)
    acts = method._acts if acts is None else acts
    identifiers = torch.tensor([f.identifier for f in encoder.schema]).expand_as(frozen)
    for fixed in (frozen | not_acted | ~acts, identifiers, torch.zeros_like(frozen)):
        x, bad = encoder.readable_rows(frame, fixed)
        if _scores_new(classifier, frame, x, bad):
            break
    if bad and on_error == "raise":
        encoder.rows(frame, fixed)
    unreadable = np.full(len(x), "", dtype=object)
    unreadable[list(bad)] = list(bad.values())
    at = torch.from_numpy(np.flatnonzero(unreadable == ""))
    _warn_of_new(encoder, x[at])
    x[list(bad)] = 0.0
    feasible = admissible(within, x, encoder, column_limits(encoder.schema, frame))
    goal = goal_of(target, len(x), classifier.classes, classifier.output)
    # A copy: the caller may change the frame later.
    frame = frame.copy()
    part = frame.iloc[at.numpy()] if bad else frame
    known = classifier.frame_scores(part, x[at])
    check_repeats(classifier, part, x[at], known)
    scores = known.new_full((len(x), known.shape[1]), torch.nan).index_copy(0, at, known)
    goal = goal.bind(scores, lambda: trained.cutoffs)
    accepted = torch.zeros(len(x), dtype=torch.bool)
    accepted[at] = goal.select(at).succeeds(known, lambda: classifier.decisions(part))
    case = Case(x, goal, feasible, goal.aim(PAST[0]))
    return Question(method, case, frame, scores, accepted, unreadable, n_jobs)


def _scores_new(
    classifier: Classifier, frame: pd.DataFrame, x: Tensor, unreadable: Collection[int]
) -> bool:
    """Whether the model takes the readable rows with categories that no training row has."""
    new = classifier.encoder.is_new(x).any(1).nonzero()[:, 0].tolist()
    at = [i for i in new if i not in unreadable]
    try:
        classifier.frame_scores(frame.iloc[at], x[at])
    except Exception:  # of the user's model, such as an encoder of known categories alone
        return False
    return True


def _warn_of_new(encoder: Encoder, x: Tensor) -> None:
    """Warn of categories that no training row has, which may be typos; not of identifiers."""
    new = encoder.is_new(x).any(0).tolist()
    if names := [f.name for f in compress(encoder.schema, new) if f.actionable]:
        logger.warning(
            "columns %s have values that no training row has: they are passed to the model as"
            " they are",
            names,
        )
