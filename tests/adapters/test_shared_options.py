"""Options that both hosts take: they reach the engine, and its answers keep to them."""

from types import SimpleNamespace

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from dear_plugin import Constraints, Search
from dear_plugin.methods import answering

CAUSES = {"education": ["age"], "income": ["education"], "savings": ["gender", "income"]}
EDGES = [(cause, name) for name, own in CAUSES.items() for cause in own]
TIERS = [["gender", "age"], ["education"], ["loan_amount", "income"]]


def through_dice():
    """DiCE's data and model interfaces of a torch module, and rows that it refuses."""
    dice_ml = pytest.importorskip("dice_ml")
    from dear_dice import DiceDEAR
    from tests.adapters.dice import conftest as own

    frame = own.loan_frame()
    features, data = frame.drop(columns="approved"), own.interface(frame)
    module = own.linear_module(data, features, frame["approved"])
    model = dice_ml.Model(model=module, backend="PYT", func="ohe-min-max")
    scores = module(own.vectors(data, features))[:, 0].detach().numpy()
    refused = features[scores < 0.5].iloc[:20]

    def ask(explainer):
        found = explainer.generate_counterfactuals(refused, total_CFs=1).cf_examples_list
        frames = [(e.test_instance_df, e.final_cfs_df, e.actions) for e in found]
        return map(pd.concat, zip(*frames, strict=True))

    restricted = {"immutable": ["gender"], "increasing": ["age"]}
    return DiceDEAR, (data, model), ask, "dear", restricted, model


def through_alibi():
    """Label-encoded rows, a function of them, and rows that it refuses."""
    pytest.importorskip("alibi")
    from dear_alibi import DEAR
    from tests.adapters.alibi import conftest as own

    data = own.loans()
    pipeline = own.fitted_pipeline(data)
    refused = data.X[pipeline.predict(data.X) == 0][:20]

    def made(**options):
        return DEAR(pipeline.predict_proba, **data.description(), **options).fit(data.X)

    def ask(explainer):
        found = explainer.recourses(refused, 1)
        return found.factuals, found.counterfactuals, found.actions

    restricted = {"immutable_features": ["gender"], "ranges": {"age": [0, 1]}}
    return made, (), ask, "engine", restricted, pipeline.predict_proba


@pytest.fixture(scope="module", params=[through_dice, through_alibi], ids=["DiCE", "Alibi"])
def host(request):
    """How an explainer is made, asked, and its engine reached; arguments that restrict it."""
    make, given, ask, engine, restricted, model = request.param()
    return SimpleNamespace(
        model=model,
        make=lambda **options: make(*given, **options),
        ask=ask,
        engine=lambda explainer: getattr(explainer, engine),
        restricted=restricted,
    )


def test_answers_are_credible_by_default(host):
    explainer = host.make()
    assert host.engine(explainer).search == Search()
    *_, actions = host.ask(explainer)
    kept = actions[actions["credible"]]
    assert len(kept) > 0.5 * len(actions)
    assert (kept["confidence"] >= 0.9 - 1e-6).all()


def test_copies_that_are_the_model_agree_and_change_no_answer(host):
    given = host.make()
    other = host.make(copies=[host.model, host.model])
    (_, before, _), (_, after, actions) = host.ask(given), host.ask(other)
    pd.testing.assert_frame_equal(before, after)
    assert (actions["agreement"][actions["credible"]] == 1.0).all()
    assert len(host.engine(other).get_params()["copies"]) == 2


def test_criteria_reach_the_search(host):
    search = Search(max_reliance=0.0, min_confidence=0.5, min_plausibility=0.01)
    explainer = host.make(search=search)
    assert host.engine(explainer).search == search
    *_, actions = host.ask(explainer)
    assert (actions["reliance"] == 0.0)[actions["credible"]].all()
    assert actions["credible"].mean() > 0.5


def test_several_processes_give_the_same_answers(host, monkeypatch):
    monkeypatch.setattr(answering, "FEWEST_ROWS", 2)
    one, two = (host.ask(host.make(n_jobs=n_jobs)) for n_jobs in (1, 2))
    for here, there in zip(one, two, strict=True):
        pd.testing.assert_frame_equal(here, there)


def test_steps_are_those_of_the_schema(host):
    schema = host.engine(host.make(steps={"income": 5.0, "savings": None})).schema
    assert schema.steps["income"] == 5.0 and "savings" not in schema.steps


@pytest.mark.parametrize("act_on", [["income", "savings"], ["income", ("savings", "duration")]])
def test_only_features_and_groups_in_act_on_are_acted_on(host, act_on):
    explainer = host.make(act_on=act_on)
    *_, actions = host.ask(explainer)
    acted = {name for names in actions["acted_on"] for name in names.split(" + ")} - {""}
    assert acted <= set(np.hstack(act_on))
    groups = tuple((each,) if isinstance(each, str) else each for each in act_on)
    assert {*map(frozenset, host.engine(explainer).sets.names)} == {*map(frozenset, groups)}


@pytest.mark.parametrize(
    "order",
    [{"tiers": []}, {"tiers": TIERS}, {"causes": CAUSES}, {"causes": nx.DiGraph(EDGES)}],
    ids=["no order", "tiers", "causes", "graph"],
)
def test_what_cannot_follow_the_action_by_the_order_of_causes_does_not_change(host, order):
    explainer = host.make(**order, **host.restricted)
    schema = host.engine(explainer).schema
    assert schema.tiers == tuple(map(tuple, order.get("tiers", ())))
    assert {name: list(own) for name, own in schema.causes if own} == (
        CAUSES if "causes" in order else {}
    )
    before, after, actions = host.ask(explainer)
    for (_, old), (_, new), acted in zip(
        before.iterrows(), after.iterrows(), actions["acted_on"], strict=True
    ):
        members = schema.index(acted.split(" + "))
        held = [schema.names[j] for j in schema.causal_order.held(members)]
        assert old[held].tolist() == new[held].tolist()


def test_texts_use_labels_and_units(host):
    """And the engine's features of every kind have them."""
    labels, units = {"savings": "the savings", "gender": "the sex"}, {"savings": "euros"}
    explainer = host.make(act_on=["savings"], labels=labels, units=units)
    features = {f.name: f for f in host.engine(explainer).schema}
    assert {name: features[name].label for name in labels} == labels
    assert features["savings"].unit == "euros"
    with pytest.raises(ValueError, match="unknown features: 'sex'"):
        host.make(labels={"sex": "the sex"})


def test_costs_are_those_of_the_engine(host):
    """The same answers as by a call of the engine, which act on what costs more less often."""
    costs = {"loan_amount": 20, "duration": 0.5}
    plain, costly = (host.make(search=Search.cheapest(), costs=each) for each in (None, costs))
    (_, _, before), (factuals, after, actions) = host.ask(plain), host.ask(costly)
    assert {f.name: f.cost for f in host.engine(costly).schema if f.cost != 1.0} == costs
    within = Constraints(costs=costs)
    found = host.engine(plain).generate(factuals, 1, within=within)
    names = list(found.encoder.schema.names)
    pd.testing.assert_frame_equal(
        found.counterfactuals[names].reset_index(drop=True),
        after[names].reset_index(drop=True),
        check_dtype=False,
    )
    assert actions["direct_cost"].tolist() == found.actions["direct_cost"].tolist()
    acted = [each["acted_on"].str.contains("loan_amount").sum() for each in (before, actions)]
    assert acted[0] > acted[1]
    with pytest.raises(ValueError, match="cost must be a finite number above 0"):
        host.make(costs={"savings": 0})


def messages(caplog):
    return [r.getMessage() for r in caplog.records if r.name == "dear_plugin.look.names"]


def test_defaults_log_which_argument_to_give(host, caplog):
    explainer = host.make()
    (told,) = messages(caplog)
    name = next(iter(host.restricted))  # the host's own
    assert f": {name}=['gender', 'age'] keeps" in told
    host.ask(explainer)
    assert len(messages(caplog)) == 1


def test_explicit_arguments_print_and_log_nothing(host, caplog, capfd):
    host.ask(host.make(**host.restricted, tiers=TIERS))
    assert not [record for record in caplog.records if record.levelname == "WARNING"]
    assert capfd.readouterr() == ("", "")
    immutable = dict(list(host.restricted.items())[:1])
    host.make(**immutable, act_on=["savings"])
    assert not [text for text in messages(caplog) if "act_on" in text]
