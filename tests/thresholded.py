"""Thresholded: a classifier with a decision of its own beside its probabilities."""

import numpy as np


class Thresholded:
    """It decides for class 1 from a probability on, as scikit-learn 1.5's thresholds do.

    Attributes:
        asked: how many rows each call of `predict` asked about.
    """

    def __init__(self, fitted, threshold):
        self.fitted, self.threshold, self.asked = fitted, threshold, []

    @property
    def classes_(self):
        return self.fitted.classes_

    def predict_proba(self, frame):
        return self.fitted.predict_proba(frame)

    def predict(self, frame):
        self.asked.append(len(frame))
        chosen = self.predict_proba(frame)[:, 1] >= self.threshold
        return np.asarray(self.classes_)[chosen.astype(int)]
