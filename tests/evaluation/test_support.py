"""Support: the share of a row's nearest training rows with the target decision."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import Encoder, Schema, Target
from dear_plugin.evaluation.neighbours import Neighbours
from dear_plugin.evaluation.support import Support
from dear_plugin.models.classifier import Classifier

LINE = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0]})


def support(frame=LINE, k=3):
    """Support of rows on a line, where x >= 5 is accepted."""
    encoder = Encoder(Schema.infer(frame))
    model = Classifier(lambda f: np.where(f["x"] >= 5, 0.9, 0.1), encoder)
    return Support(Neighbours(encoder.rows(frame), encoder), model, k)


def of(values, target=1, **options):
    supported = support(**options)
    rows = supported.classifier.encoder.rows(pd.DataFrame({"x": values}))
    goal = Target.of_class(target).resolve(len(values), None)
    return supported.of(rows, goal, torch.arange(len(rows))).tolist()


def test_it_is_the_share_of_the_k_nearest_that_are_accepted():
    assert of([0.0, 4.0, 4.9, 9.0]) == pytest.approx([0.0, 1 / 3, 2 / 3, 1.0])


def test_every_row_has_its_own_goal():
    assert of([9.0, 9.0], target=[1, 0]) == [1.0, 0.0]


def test_neighbours_are_euclidean_on_the_encoding(mixed):
    encoder = mixed.encoder
    rows = encoder.rows(mixed.frame)
    some = rows[:20]
    distances = torch.cdist(encoder.expand(some).double(), encoder.expand(rows).double())
    near = distances.argsort(dim=1, stable=True)[:, :5]
    accepted = (mixed.net(encoder.expand(rows))[:, 0] > 0).float()
    goal = Target.of_class(1).resolve(20, None)
    measured = Support(Neighbours(rows, encoder), Classifier(mixed.net, encoder))
    found = measured.of(some, goal, torch.arange(20))
    assert torch.allclose(found, accepted[near].mean(1))
