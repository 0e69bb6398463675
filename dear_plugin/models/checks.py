"""Errors and warnings about unsuitable models: not fitted, random, or with labels as scores."""

from __future__ import annotations

import logging

import pandas as pd
from torch import Tensor

from dear_plugin.data.cells import cells_of
from dear_plugin.errors import ModelError
from dear_plugin.models.classifier import Classifier

UNUSED = (
    "Schema.infer(frame, target=...) leaves out the column of decisions; drop other unused columns"
    " from the frame"
)
DECISION = (
    "column {0!r} has the model's classes, and the model was not trained on it. If it is the"
    " decision, Schema.infer(frame, target={0!r}) leaves it out. If it is a feature that the model"
    " does not use, pass lambda rows: model.predict_proba(rows[model.feature_names_in_])"
)
LABELS = (
    "if these are labels, pass a function of probabilities, such as model.predict_proba. With"
    " labels, the search does not see how near a row is to the decision boundary"
)
# The largest difference of two calls that may be rounding, as a share of the largest score.
# Probabilities that are so near to 0 or 1 count as labels.
APART, SURE = 1e-2, 1e-6
# The number of rows that are scored twice.
REPEATED = 10

logger = logging.getLogger(__name__)


def check_estimator(classifier: Classifier, rows: Tensor) -> None:
    """Check that an estimator is fitted, and warn of columns that it was not trained on.

    Args:
        classifier: the model.
        rows: (n, p) training rows.

    Raises:
        ModelError: it is not fitted, or such a column has its classes, like the decision.
    """
    if classifier.is_module:
        return
    model, schema = classifier.model, classifier.encoder.schema
    try:
        if hasattr(model, "fit"):
            classifier.scores(rows[:1])
    except Exception as error:  # other errors concern a row that the model does not take
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
    """Check that a second call returns the same scores, once for each model.

    Args:
        classifier: the model.
        frame: m rows.
        rows: (m, p) the same rows.
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
            f"the model's scores of the same rows differ by up to {apart:.2g} between two calls."
            " They must be equal: fix the seed of the model in every call, or switch dropout off"
        )
    classifier.repeats = True


def warn_of_labels(classifier: Classifier, scores: Tensor) -> None:
    """Warn if all probabilities of training rows, from scores (n, c), are 0 or 1."""
    p = classifier.in_units(scores)
    if classifier.output == "probabilities" and bool(((p < SURE) | (p > 1.0 - SURE)).all()):
        logger.warning("the model returned only 0 and 1 for %d rows: %s", len(scores), LABELS)
