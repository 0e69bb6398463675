"""Chain: small linear layers say the same, whichever way they are multiplied out."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from torch.nn.utils import parametrize, prune

from dear_plugin import DEAR, Encoder, Schema, models
from dear_plugin.errors import ModelError
from dear_plugin.models.classifier import Classifier
from dear_plugin.models.stacked_linear import ELEMENTWISE, IDLE, NARROW, chained, links

WIDTH = 5


def shared_activation():
    act = nn.Tanh()
    return nn.Sequential(nn.Linear(WIDTH, 4), act, nn.Linear(4, 4), act, nn.Linear(4, 1))


CHAINS = {
    "logistic regression": lambda: nn.Linear(WIDTH, 1),
    "the paper's network": lambda: nn.Sequential(
        *(nn.Linear(WIDTH, 18), nn.ReLU(), nn.Linear(18, 9), nn.ReLU()),
        *(nn.Linear(9, 3), nn.ReLU(), nn.Linear(3, 1)),
    ),
    "several classes": lambda: nn.Sequential(nn.Linear(WIDTH, 8), nn.GELU(), nn.Linear(8, 3)),
    "without biases": lambda: nn.Sequential(
        nn.Linear(WIDTH, 4, bias=False), nn.SiLU(), nn.Linear(4, 1, bias=False)
    ),
    "in place": lambda: nn.Sequential(nn.Linear(WIDTH, 4), nn.ReLU(inplace=True), nn.Linear(4, 1)),
    "a layer that stands there twice": shared_activation,
    "nested": lambda: nn.Sequential(
        nn.Sequential(nn.Linear(WIDTH, 4), nn.ELU()), nn.Sequential(nn.Linear(4, 1))
    ),
    "left in training": lambda: nn.Sequential(
        nn.Linear(WIDTH, 4), nn.Dropout(0.5), nn.ReLU(), nn.Linear(4, 1)
    ).train(),
    "double": lambda: nn.Sequential(nn.Linear(WIDTH, 4), nn.Sigmoid(), nn.Linear(4, 1)).double(),
}


class Twice(nn.Linear):
    def forward(self, x):
        return 2.0 * super().forward(x)


class Summed(nn.Sequential):
    def forward(self, x):
        return super().forward(x) + x.sum(1, keepdim=True)


def with_another_forward():
    layer = nn.Linear(WIDTH, 1)
    layer.forward = lambda x: x[:, :1]
    return nn.Sequential(layer)


def listened_to(listen):
    model = nn.Sequential(nn.Linear(WIDTH, 4), nn.ReLU(), nn.Linear(4, 1))
    listen(model)
    return model


def parametrized():
    layer = nn.Linear(WIDTH, 1)
    parametrize.register_parametrization(layer, "weight", nn.Softplus())
    return layer


def with_weights(change):
    layer = nn.Linear(WIDTH, 1)
    change(layer)
    return layer


def as_an_attribute(layer):
    weight = layer.weight.detach()
    del layer.weight
    layer.weight = weight


def pruned():
    return prune.l1_unstructured(nn.Linear(WIDTH, 1), "weight", 2)


OTHERS = {
    "too wide": lambda: nn.Sequential(nn.Linear(WIDTH, NARROW + 1), nn.Linear(NARROW + 1, 1)),
    "a layer that mixes numbers": lambda: nn.Sequential(nn.Linear(WIDTH, 2), nn.Softmax(1)),
    "batch norm": lambda: nn.Sequential(nn.BatchNorm1d(WIDTH), nn.Linear(WIDTH, 1)),
    "a kind of linear layer": lambda: nn.Sequential(Twice(WIDTH, 1)),
    "a kind of sequence": lambda: Summed(nn.Linear(WIDTH, 1)),
    "another forward": with_another_forward,
    "a hook on the whole": lambda: listened_to(lambda m: m.register_forward_hook(print)),
    "a hook before a layer": lambda: listened_to(lambda m: m[1].register_forward_pre_hook(print)),
    "parametrized": parametrized,
    "pruned": pruned,
    "a bias of another shape": lambda: with_weights(
        lambda layer: setattr(layer, "bias", nn.Parameter(torch.zeros(())))
    ),
    "weights that are no parameter": lambda: with_weights(as_an_attribute),
    "another way to be called": lambda: with_weights(
        lambda layer: setattr(layer, "_call_impl", lambda x: x[:, :1])
    ),
    "nothing": lambda: nn.Identity(),
    "no layers": nn.Sequential,
}


@pytest.fixture
def x():
    return torch.rand(300, WIDTH, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("make", CHAINS.values(), ids=CHAINS)
@pytest.mark.parametrize("m", [1, 2, 300])
def test_a_chain_says_what_its_module_says(make, m, x):
    torch.manual_seed(0)
    model = make()
    x = x[:m].to(next(model.parameters()).dtype)
    with torch.no_grad():
        said = chained(links(model), x)
        torch.testing.assert_close(said, model.eval()(x))


@pytest.mark.parametrize("kind", ELEMENTWISE, ids=lambda kind: kind.__name__)
def test_what_changes_every_number_by_itself_may_lie_in_any_order(kind, x):
    torch.testing.assert_close(kind()(x.t()).t(), kind()(x))


@pytest.mark.parametrize("kind", IDLE, ids=lambda kind: kind.__name__)
def test_what_is_left_out_does_nothing_in_evaluation(kind, x):
    assert torch.equal(kind().eval()(x), x)


@pytest.mark.parametrize("make", OTHERS.values(), ids=OTHERS)
def test_whatever_else_is_no_chain(make):
    assert not links(make())


class TestWhatHoldsForAllModules:
    """Somebody may listen to all of them, or change what a kind of them does."""

    @staticmethod
    def shifted(module, _, said):
        return said - 1.0 if isinstance(module, nn.Linear) else said

    @pytest.mark.parametrize("listen", ["forward_hook", "forward_pre_hook"])
    def test_hooks(self, listen):
        register = getattr(nn.modules.module, f"register_module_{listen}")
        handle = register(lambda *_: None)
        assert not links(nn.Linear(WIDTH, 1))
        handle.remove()
        assert links(nn.Linear(WIDTH, 1))

    @pytest.mark.parametrize("kind", [nn.Linear, nn.ReLU, nn.Sequential])
    @pytest.mark.parametrize("name", ["forward", "__call__"])
    def test_what_a_kind_does(self, kind, name, monkeypatch):
        monkeypatch.setattr(kind, name, lambda self, x: x[:, :1])
        assert not links(nn.Sequential(nn.Linear(WIDTH, 4), nn.ReLU(), nn.Linear(4, 1)))

    def test_another_way_to_multiply(self, monkeypatch):
        monkeypatch.setattr(nn.functional, "linear", lambda x, *_: x[:, :1])
        assert not links(nn.Linear(WIDTH, 1))

    def test_a_search_finds_what_they_leave(self, loan):
        schema = Schema.infer(loan.frame)
        encoder = Encoder(schema)
        torch.manual_seed(1)
        net = nn.Sequential(nn.Linear(encoder.d, 4), nn.Tanh(), nn.Linear(4, 1))
        handle = nn.modules.module.register_module_forward_hook(self.shifted)
        try:
            with torch.no_grad():
                net[2].bias -= net(encoder.encode(loan.frame)).quantile(0.8)
            found = DEAR(net, schema).fit(loan.frame).generate(loan.frame.iloc[:50])
        finally:
            handle.remove()
        assert found.actions["success"].all()


def test_a_chain_has_the_weights_of_the_moment(x):
    model = nn.Linear(WIDTH, 1)
    layers = links(model)
    with torch.no_grad():
        model.weight.zero_()
        assert torch.equal(chained(layers, x), model(x))


class TestAskedQuickly:
    @pytest.fixture(params=["as they lie", "expanded"])
    def people(self, request):
        """Five encoded columns: of five features, or of two numbers and three categories."""
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(rng.normal(size=(50, WIDTH)), columns=list("abcde"))
        if request.param == "expanded":
            frame = frame[["a", "b"]].assign(word=rng.choice(["x", "y", "z"], 50))
        encoder = Encoder(Schema.infer(frame))
        assert encoder.d == WIDTH
        return encoder, encoder.rows(frame)

    @pytest.mark.parametrize("make", [*CHAINS.values(), *OTHERS.values()], ids=[*CHAINS, *OTHERS])
    def test_every_module_scores_alike(self, make, people, capsys):
        torch.manual_seed(0)
        encoder, rows = people
        before = rows.clone()
        output = "probabilities" if make is OTHERS["a layer that mixes numbers"] else "logits"
        model = Classifier(make(), encoder, output=output)
        torch.testing.assert_close(model.scores(rows, searching=True), model.scores(rows))
        assert torch.equal(rows, before)

    def test_what_lies_in_front_of_a_module_is_asked_as_ever(self, people):
        """In evaluation: it may share layers with the module."""
        encoder, rows = people
        net, flags = nn.Sequential(nn.Linear(2, 1)).train(), []

        def encode(x):
            flags.append(net.training)
            return x[:, :2]

        model = Classifier(net, encoder, output="logits", encode=encode)
        assert torch.equal(model.scores(rows, searching=True), model.scores(rows))
        assert flags == [False, False]

    def test_a_module_that_ends_in_a_sigmoid_is_refused_as_ever(self, people):
        encoder, rows = people
        net = nn.Sequential(nn.Linear(encoder.d, 1), nn.Sigmoid())
        with pytest.raises(ModelError, match="ends in a sigmoid"):
            Classifier(net, encoder).scores(rows, searching=True)

    def test_training_flags_are_left_alone(self, people):
        encoder, rows = people
        net = nn.Sequential(nn.Linear(encoder.d, 4), nn.Dropout(0.5), nn.Linear(4, 1)).train()
        model = Classifier(net, encoder, output="logits")
        assert torch.equal(model.scores(rows, searching=True), model.scores(rows, searching=True))
        assert all(part.training for part in net.modules())

    @pytest.mark.parametrize("astray", [0.01, 10.0])
    def test_what_a_user_is_told_the_module_itself_has_said(self, loan, monkeypatch, astray):
        """However far the search is led astray; a little it makes good by aiming farther."""
        schema = Schema.infer(loan.frame)
        encoder = Encoder(schema)
        torch.manual_seed(1)
        net = nn.Sequential(nn.Linear(encoder.d, 4), nn.Tanh(), nn.Linear(4, 1))
        with torch.no_grad():
            net[2].bias -= net(encoder.encode(loan.frame)).quantile(0.8)
        monkeypatch.setattr(models, "chained", lambda *asked: chained(*asked) + astray)
        found = DEAR(net, schema).fit(loan.frame).generate(loan.frame.iloc[:100])
        with torch.no_grad():
            said = net(encoder.encode(found.counterfactuals))[:, 0]
        success = torch.tensor(found.actions["success"].tolist())
        assert torch.equal(success, said >= 0)
        assert bool(success.all()) == (astray < 1)
        told = torch.tensor(found.actions["score_after"].tolist())
        torch.testing.assert_close(told, said.sigmoid())
