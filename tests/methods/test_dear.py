"""DEAR: which features to act on, by how much, and which indirect changes to expect."""

import logging

import pandas as pd
import pytest
import torch
from sklearn.base import clone
from torch import nn

from dear_plugin import DEAR, Constraints, Encoder, Schema, Search, Target
from dear_plugin.decoders import Transport
from dear_plugin.errors import DearError, NotFittedError
from dear_plugin.paper import Autoencoder, Design, Training

SMALL = Autoencoder(Design(layers=(6, 3)), Training(epochs=2))


class TestAssembly:
    def test_act_on_names_the_features_or_groups(self, mixed):
        dear = DEAR(mixed.net, mixed.schema, act_on=["debt", ("income", "job")])
        assert dear.sets.labels == ("debt", "income + job")
        actions = dear.fit(mixed.frame).generate(mixed.refused(30)).actions
        parts = set("+".join(actions["acted_on"]).replace(" ", "").split("+")) - {""}
        assert parts <= {"debt", "income", "job"}

    def test_decoders_go_by_name_or_as_they_are(self, mixed):
        mine = Transport(given=())
        assert DEAR(mixed.net, mixed.schema, decoder=mine).decoder is mine
        assert isinstance(DEAR(mixed.net, mixed.schema).decoder, Transport)
        with pytest.raises(DearError, match=r"'transpot' \(did you mean 'transport'\?\)"):
            DEAR(mixed.net, mixed.schema, decoder="transpot")

    def test_a_black_box_and_a_module_that_agree_get_nearly_the_same_answer(self, mixed, fitted):
        """The search tries a few more values of a black box, whose scores may have steps."""

        def service(frame):
            with torch.no_grad():
                return mixed.net(mixed.encoder.encode(frame)).sigmoid()[:, 0].numpy()

        query = mixed.refused(20)
        for search in (Search(), Search.cheapest()):
            one = fitted.with_search(search).generate(query).actions
            other = fitted.with_model(service).with_search(search).generate(query).actions
            assert one["success"].equals(other["success"])
            assert (one["acted_on"] == other["acted_on"]).mean() >= 0.9
            ratio = other["cost"] / one["cost"]
            assert ratio.median() == pytest.approx(1.0, abs=0.01)
            assert (ratio <= 1.05).all()


class TestEstimator:
    """The methods of a scikit-learn estimator."""

    def test_repr_has_the_features_the_sets_the_decoder_and_the_model(self, mixed, fitted):
        text = "DEAR(8 features, 2 action sets, decoder Transport, model Sequential, "
        dear = DEAR(mixed.net, mixed.schema, act_on=["debt", ("income", "job")])
        assert repr(dear) == f"{text}not fitted)"
        assert repr(fitted).endswith(f"fitted on {len(mixed.frame):,} rows)")

    def test_get_params_has_the_arguments(self, mixed):
        search = Search()
        params = DEAR(mixed.net, mixed.schema, act_on=["debt"], search=search).get_params()
        assert params.pop("model") is mixed.net
        assert params == {
            "schema": mixed.schema,
            "act_on": ["debt"],
            "decoder": "transport",
            "output": None,
            "encode": None,
            "search": search,
            "copies": (),
        }

    def test_set_params_changes_arguments_and_drops_the_fit(self, mixed):
        dear = DEAR(mixed.net, mixed.schema).fit(mixed.frame)
        assert dear.set_params(act_on=["debt"]) is dear
        assert dear.sets.labels == ("debt",)
        assert dear.get_params()["model"] is mixed.net
        with pytest.raises(NotFittedError):
            dear.generate(mixed.frame)

    def test_a_clone_has_the_same_model_and_is_not_fitted(self, mixed, fitted):
        copy = clone(fitted)
        assert copy.classifier.model is fitted.classifier.model
        assert copy.get_params() == fitted.get_params()
        with pytest.raises(NotFittedError):
            copy.generate(mixed.frame)


class TestFit:
    def test_the_history_of_an_autoencoder_is_that_of_the_fitted_one(self, mixed):
        autoencoder = SMALL.clone_unfitted()
        dear = DEAR(mixed.net, mixed.schema, decoder=autoencoder).fit(mixed.frame)
        assert len(dear.decoder.history.epochs) == 2
        assert not autoencoder.history.epochs

    def test_few_rows_are_warned_of_in_the_log(self, mixed, caplog):
        with caplog.at_level(logging.WARNING, "dear_plugin"):
            DEAR(mixed.net, mixed.schema).fit(mixed.frame.iloc[:999])
        (record,) = caplog.records
        assert "999 rows" in record.message
        assert "below about 1000" in record.message

    def test_what_needs_a_fit_says_so(self, mixed, tmp_path):
        dear = DEAR(mixed.net, mixed.schema)
        for early in (
            lambda: dear.generate(mixed.frame),
            lambda: dear.save(tmp_path),
            lambda: dear.diagnose(mixed.frame),
        ):
            with pytest.raises(NotFittedError, match="call fit"):
                early()


class TestGenerate:
    def test_indirect_changes_follow_the_dependence(self, fitted, mixed):
        """Income grows with the rank of the job: a new judge is expected to earn more."""
        porters = mixed.frame[mixed.frame["job"] == "porter"].iloc[:40]
        within = Constraints(act_on=["job"], categories={"job": ["judge"]})
        result = fitted.generate(porters, Target.of_class(1, 0.9), within=within)
        became = result.actions["acted_on"] == "job"
        raised = result.counterfactuals["income"] - porters["income"]
        assert became.sum() > 10
        assert raised[became].mean() == pytest.approx(18.0, abs=5.0)

    def test_a_higher_threshold_costs_more(self, fitted, mixed):
        query = mixed.refused(50)
        costs = [
            fitted.generate(query, Target.of_class(1, p)).actions["cost"].median()
            for p in (0.5, 0.7, 0.9)
        ]
        assert costs == sorted(costs)
        assert costs[0] < costs[2]


class TestAnotherModel:
    def test_answers_equal_those_of_a_new_fit(self, fitted, mixed):
        query = mixed.refused(20)
        other = fitted.with_model(mixed.pipeline)
        anew = DEAR(mixed.pipeline, mixed.schema).fit(mixed.frame)
        pd.testing.assert_frame_equal(
            other.generate(query).counterfactuals, anew.generate(query).counterfactuals
        )
        pd.testing.assert_series_equal(other.generate(query).support, anew.generate(query).support)


class TestAnotherSearch:
    @pytest.mark.parametrize("search", [Search(), Search(min_support=1.0), Search(max_features=1)])
    def test_answers_equal_those_of_a_new_one(self, mixed, search):
        query = mixed.refused(20)
        fitted = DEAR(mixed.pipeline, mixed.schema).fit(mixed.frame)
        made = DEAR(mixed.pipeline, mixed.schema, search=search).fit(mixed.frame)
        pd.testing.assert_frame_equal(
            fitted.with_search(search).generate(query).actions, made.generate(query).actions
        )


def tensors(value, met):
    """Every tensor that can be reached from an object of the package."""
    if id(value) in met:
        return
    met[id(value)] = value
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict | list | tuple | set):
        for each in value.values() if isinstance(value, dict) else value:
            yield from tensors(each, met)
    elif type(value).__module__.startswith("dear_plugin"):
        yield from tensors(vars(value), met)


@pytest.mark.parametrize(
    ("decoder", "solver"),
    [("transport", "line"), (SMALL, "line"), pytest.param(SMALL, "paper", marks=pytest.mark.slow)],
    ids=["transport", "autoencoder", "paper"],
)
def test_no_tensor_that_outlives_a_call_is_an_inference_tensor(loan, decoder, solver):
    """Inference tensors cannot be differentiated, as the training of a decoder does."""
    schema = Schema.infer(loan.frame)
    encoder = Encoder(schema)
    torch.manual_seed(0)
    net = nn.Linear(encoder.d, 1)
    with torch.no_grad():
        net.bias -= net(encoder.encode(loan.frame)).max() - 0.01  # some need pairs, some fail
    # The resamples of a trained decoder take long: they are made in one case only.
    sure = 0.9 if solver == "line" else 0.0
    search = Search(solver=solver, min_support=0.5, min_confidence=sure)
    dear = DEAR(net, schema, decoder=decoder, search=search).fit(loan.frame)
    found = dear.generate(loan.frame.iloc[:30])
    assert found.support.notna().any()
    kept = [*tensors(dear, {}), *tensors(found, {})]
    assert len(kept) > 20
    assert not any(each.is_inference() for each in kept)
