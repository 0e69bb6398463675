"""Thresholded: a classifier whose `predict` applies a threshold to `predict_proba`."""

import numpy as np


class Thresholded:
    """It predicts class 1 from a probability on, as thresholds of scikit-learn 1.5 do.

    Attributes:
        sizes: the number of rows of each call of `predict`.
    """

    def __init__(self, fitted, threshold):
        self.fitted, self.threshold, self.sizes = fitted, threshold, []

    @property
    def classes_(self):
        return self.fitted.classes_

    def predict_proba(self, frame):
        return self.fitted.predict_proba(frame)

    def predict(self, frame):
        self.sizes.append(len(frame))
        chosen = self.predict_proba(frame)[:, 1] >= self.threshold
        return np.asarray(self.classes_)[chosen.astype(int)]
