"""The paper's classifiers, trained with local seeds."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

from dear_plugin import Encoder, Schema
from dear_plugin.datasets import load_loan
from dear_plugin.demo.classifiers import Recipe, accuracy, recipe, trained

KINDS = ("ann", "lr")
SHORT = Recipe(batch=64, epochs=2)


@pytest.fixture(scope="module")
def loan():
    """Encoded rows and labels, for training and for testing."""
    data = load_loan(6000, seed=0)
    encoder = Encoder(Schema.infer(data.features))
    x, labels = encoder.encode(data.features), torch.tensor(data.outcome.to_numpy())
    return x[:5000], labels[:5000], x[5000:], labels[5000:]


def short(loan, kind, seed=0):
    return trained(kind, loan[0][:1000], loan[1][:1000], SHORT, seed)


def weights(net):
    return torch.cat([w.detach().flatten() for w in net.parameters()])


class TestTheNetworks:
    def test_the_ann_is_d_18_9_3_1_with_relu(self, loan):
        layers = list(short(loan, "ann"))
        widths = [(m.in_features, m.out_features) for m in layers if isinstance(m, nn.Linear)]
        assert widths == [(7, 18), (18, 9), (9, 3), (3, 1)]
        assert [type(m) for m in layers[1::2]] == [nn.ReLU] * 3

    def test_logistic_regression_is_one_linear_layer(self, loan):
        (layer,) = short(loan, "lr")
        assert (layer.in_features, layer.out_features) == (7, 1)


class TestTraining:
    def test_logistic_regression_is_as_accurate_as_scikit_learns(self, loan):
        """The label depends on a product of income and savings, which is not linear."""
        x, labels, x_test, labels_test = loan
        net = trained("lr", x, labels, Recipe(batch=64, epochs=30, rate=0.02), seed=0)
        reference = LogisticRegression(C=100.0, max_iter=1000).fit(x.numpy(), labels)
        assert (
            accuracy(net, x_test, labels_test)
            >= reference.score(x_test.numpy(), labels_test) - 0.03
        )
        assert accuracy(net, x_test, labels_test) > 0.68

    @pytest.mark.parametrize("kind", KINDS)
    def test_weights_follow_their_seed_alone(self, loan, kind):
        """Global generators have no influence and are not changed."""
        torch_state, numpy_state = torch.random.get_rng_state(), np.random.get_state()[1].copy()
        one, other = weights(short(loan, kind, 3)), weights(short(loan, kind, 4))
        assert torch.equal(torch_state, torch.random.get_rng_state())
        assert (numpy_state == np.random.get_state()[1]).all()
        assert not torch.equal(one, other)
        with torch.random.fork_rng():
            torch.manual_seed(99)
            assert torch.equal(one, weights(short(loan, kind, 3)))


def test_the_papers_own_recipes():
    assert recipe("adult") == Recipe(512, 50, 0.002)
    assert recipe("compas") == Recipe(32, 40, 0.002)
    assert recipe("gmc") == Recipe(64, 30, 0.001)
