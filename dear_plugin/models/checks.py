"""Errors and warnings about a model that cannot be relied on."""

from __future__ import annotations

import logging

import pandas as pd
from torch import Tensor

from dear_plugin.data.cells import cells_of
from dear_plugin.errors import ModelError
from dear_plugin.models.classifier import Classifier

UNUSED = (
    "Schema.infer(frame, target=...) leaves out the column of decisions, and other columns are"
    " dropped from the frame"
)
DECISION = (
    "column {0!r} has the model's classes, and the model was not trained on it: if it is the"
    " decision, Schema.infer(frame, target={0!r}) leaves it out; a feature that the model does not"
    " use needs a function, lambda rows: model.predict_proba(rows[model.feature_names_in_])"
)
LABELS = (
    "if these are labels, pass a function of probabilities, such as model.predict_proba. Without"
    " them every accepted row has the same margin, however near it is to the boundary, and"
    " confidence only counts the resamples that are accepted"
)
# The largest difference of two calls, as a share of the largest score, that may be rounding: of
# half precision, too. Probabilities that are 0 or 1.
APART, SURE = 1e-2, 1e-6
# Rows that are scored twice.
REPEATED = 10

logger = logging.getLogger(__name__)


def check_estimator(classifier: Classifier, rows: Tensor) -> None:
    """Check that an estimator is fitted, and warn of columns that its own frame did not have.

    Args:
        classifier: the model.
        rows: (n, p) training rows.

    Raises:
        ModelError: it is not fitted, or such a column has its classes, as the decision does.
    """
    if classifier.is_module:
        return
    model, schema = classifier.model, classifier.encoder.schema
    try:
        if hasattr(model, "fit"):
            classifier.scores(rows[:1])
    except Exception as error:  # others are of a row that the model does not take
        if type(error).__name__ == "NotFittedError":
            kind = type(model).__name__
            raise ModelError(f"the model, a {kind}, is not fitted: fit it first") from error
    used = getattr(model, "feature_names_in_", schema.column_names)
    unused = [name for name in schema.column_names if name not in used]
    for j in schema.index(unused):
        values = cells_of(schema.features[j], rows[:, j].unique().numpy())
        if {*values.tolist()} == {*(classifier.classes or ())}:
            raise ModelError(DECISION.format(schema.names[j]))
    if unused:
        logger.warning("the model was not trained on %s: %s", unused, UNUSED)


def check_repeats(
    classifier: Classifier, frame: pd.DataFrame, rows: Tensor, scores: Tensor
) -> None:
    """Score some rows again, once for each model.

    Args:
        classifier: the model.
        frame: m rows.
        rows: (m, p) the same.
        scores: (m, c) their scores.

    Raises:
        ModelError: the scores differ by more than rounding.
    """
    if classifier.repeats or not len(frame):
        return
    again = classifier.frame_scores(frame.iloc[:REPEATED], rows[:REPEATED])
    first, again = (classifier.in_units(each) for each in (scores[:REPEATED], again))
    apart = float((first - again).abs().max())
    if apart > APART * float(first.abs().max()):
        raise ModelError(
            "the model gave the same rows other scores in a second call, by up to"
            f" {apart:.2g}; it must repeat them: fix its seed in every call, or switch dropout"
            " off"
        )
    classifier.repeats = True


def warn_of_labels(classifier: Classifier, scores: Tensor) -> None:
    """Warn of probabilities of training rows, scores (n, c), that are all 0 or 1."""
    p = classifier.in_units(scores)
    if classifier.output == "probabilities" and bool(((p < SURE) | (p > 1.0 - SURE)).all()):
        logger.warning("the model returned only 0 and 1 for %d rows: %s", len(scores), LABELS)
