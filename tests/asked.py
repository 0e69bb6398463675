"""Asked: a DEAR that is fitted on a frame, and a model with a margin, in one call each."""

import numpy as np

from dear_plugin import DEAR, Schema

OF_DEAR = ("act_on", "search", "decoder", "output", "copies")


def chance(margin):
    """The probability of a margin."""
    return 1.0 / (1.0 + np.exp(-np.clip(margin, -30, 30)))


def fitted(model, frame, **stated) -> DEAR:
    """A DEAR on a frame; what is not its own argument is one of `Schema.infer`."""
    own = {name: stated.pop(name) for name in OF_DEAR if name in stated}
    return DEAR(model, Schema.infer(frame, **stated), **own).fit(frame)


class Scored:
    """A classifier of frames by the probability of its second class."""

    def __init__(self, probability, classes=(0, 1)):
        self.probability, self.classes_ = probability, np.array(classes)

    def predict_proba(self, frame):
        p = np.asarray(self.probability(frame), dtype=float)
        return np.column_stack([1.0 - p, p])

    def predict(self, frame):
        return self.classes_[(self.predict_proba(frame)[:, 1] >= 0.5).astype(int)]
