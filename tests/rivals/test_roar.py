"""ROAR: on a linear model the cheapest robust change has a closed form."""

import numpy as np
import pytest

from dear_plugin.errors import ModelError
from dear_plugin.rivals import Roar, RoarConfig, Wachter

DELTA = 0.1


@pytest.fixture
def refused(square):
    """A robust answer that changes "a" alone is within reach of all of them."""
    return square[(3 * square["a"] + square["b"]).between(1.0, 1.9)].iloc[:30]


def test_the_cheapest_robust_answer_is_found(square, steep, schema, refused):
    """3 a + b - 2 >= 0.1 (a + b + group + 1) on the changed row, solved for "a"."""
    method = Roar(steep, schema).fit(square)
    actions = method.generate(refused).actions
    robust = (2.0 + DELTA - (1.0 - DELTA) * refused["b"] + DELTA * refused["group"]) / (
        3.0 - DELTA
    )
    assert actions["success"].all() and (actions["acted_on"] == "a").all()
    np.testing.assert_allclose(actions["cost"], robust - refused["a"], atol=6e-3)
    assert (actions["cost"] >= robust - refused["a"] - 1e-4).all()


def test_answers_stay_accepted_with_every_change_of_the_weights(square, steep, schema, refused):
    method = Roar(steep, schema).fit(square)
    plain = Wachter(steep, schema).fit(square)
    rng, corners = np.random.default_rng(0), np.array([-DELTA, DELTA])
    shares = []
    for answers in (method.generate(refused), plain.generate(refused)):
        rows = method.encoder.encode(answers.counterfactuals).double().numpy()
        ones = np.column_stack([rows, np.ones(len(rows))])
        weights = np.array([3.0, 1.0, 0.0, -2.0]) + rng.choice(corners, (200, 4))
        shares.append((ones @ weights.T >= -1e-6).mean())
    assert shares[0] == 1.0 and shares[1] < 0.8


def test_without_changes_of_the_weights_it_ends_at_the_boundary(square, steep, schema, refused):
    still = RoarConfig(delta_max=0.0)
    method = Roar(steep, schema, config=still).fit(square)
    distance = 2.0 - (3 * refused["a"] + refused["b"])
    np.testing.assert_allclose(method.generate(refused).actions["cost"], distance / 3, atol=6e-3)


def test_a_black_box_is_refused(schema):
    with pytest.raises(ModelError, match="needs a torch module"):
        Roar(lambda frame: np.zeros(len(frame)), schema)
