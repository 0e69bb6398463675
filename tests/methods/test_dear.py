"""DEAR: which feature to act on, by how much, and what else is expected to move."""

import logging
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from dear_plugin import DEAR, Constraints, Encoder, Schema, Search, Target
from dear_plugin.decoders import Transport
from dear_plugin.errors import ConstraintError, DearError, FileFormatError, NotFittedError


class TestAssembly:
    def test_every_mutable_feature_may_be_acted_on_by_default(self, mixed):
        assert DEAR(mixed.net, mixed.schema).sets.labels == mixed.schema.mutable

    def test_act_on_names_the_features_or_groups(self, mixed):
        dear = DEAR(mixed.net, mixed.schema, act_on=["debt", ("income", "job")])
        assert dear.sets.labels == ("debt", "income + job")
        actions = dear.fit(mixed.frame).generate(mixed.refused(30)).actions
        parts = set("+".join(actions["acted_on"]).replace(" ", "").split("+")) - {""}
        assert parts <= {"debt", "income", "job"}

    def test_decoders_go_by_name_or_as_they_are(self, mixed):
        mine = Transport(ranks=64)
        assert DEAR(mixed.net, mixed.schema, decoder=mine).decoder is mine
        assert isinstance(DEAR(mixed.net, mixed.schema).decoder, Transport)
        with pytest.raises(DearError, match=r"'transpot' \(did you mean 'transport'\?\)"):
            DEAR(mixed.net, mixed.schema, decoder="transpot")

    def test_an_immutable_feature_cannot_be_acted_on(self, mixed):
        with pytest.raises(ConstraintError, match=r"\['gender'\] cannot be acted on"):
            DEAR(mixed.net, mixed.schema, act_on=["gender"])

    def test_a_black_box_and_a_module_that_agree_get_nearly_the_same_answer(self, mixed, fitted):
        """Of a black box, which may have steps, a few more values are tried."""

        def service(frame):
            with torch.no_grad():
                return mixed.net(mixed.encoder.encode(frame)).sigmoid()[:, 0].numpy()

        people = mixed.refused(20)
        for search in (Search(), Search.cheapest()):
            one = fitted.with_search(search).generate(people).actions
            other = fitted.with_model(service).with_search(search).generate(people).actions
            assert one["success"].equals(other["success"])
            assert (one["acted_on"] == other["acted_on"]).mean() >= 0.9
            ratio = other["cost"] / one["cost"]
            assert ratio.median() == pytest.approx(1.0, abs=0.01)
            assert (ratio <= 1.05).all()


class TestFit:
    def test_few_rows_are_warned_of_in_the_log(self, mixed, caplog):
        with caplog.at_level(logging.WARNING, "dear_plugin"):
            DEAR(mixed.net, mixed.schema).fit(mixed.frame.iloc[:999])
        (record,) = caplog.records
        assert "999 rows" in record.message
        assert "below about 1000" in record.message

    def test_enough_rows_are_not(self, mixed, caplog):
        with caplog.at_level(logging.WARNING, "dear_plugin"):
            DEAR(mixed.net, mixed.schema).fit(mixed.frame.iloc[:1000])
        assert not caplog.records

    def test_what_needs_a_fit_says_so(self, mixed, tmp_path):
        dear = DEAR(mixed.net, mixed.schema)
        for early in (
            lambda: dear.generate(mixed.frame),
            lambda: dear.save(tmp_path),
            lambda: dear.diagnose(mixed.frame),
        ):
            with pytest.raises(NotFittedError, match="call fit"):
                early()

    def test_a_second_fit_forgets_the_first(self, mixed):
        def fresh():
            return DEAR(mixed.net, mixed.schema, search=Search(min_support=0.6))

        half, people = mixed.frame.iloc[:1000:], mixed.refused(30)
        dear = fresh().fit(mixed.frame)
        dear.generate(people)
        again, anew = dear.fit(half).generate(people), fresh().fit(half).generate(people)
        pd.testing.assert_frame_equal(again.counterfactuals, anew.counterfactuals)
        pd.testing.assert_frame_equal(again.actions, anew.actions)

    def test_one_decoder_may_be_given_to_several(self, mixed, loan):
        shared, people = Transport(ranks=64), mixed.refused(20)
        dear = DEAR(mixed.net, mixed.schema, decoder=shared).fit(mixed.frame)
        before = dear.generate(people)
        DEAR(loan.net, loan.schema, decoder=shared).fit(loan.frame)
        pd.testing.assert_frame_equal(
            dear.generate(people).counterfactuals, before.counterfactuals
        )

    def test_the_columns_may_come_in_any_order_with_others_among_them(self, mixed, fitted):
        odd = mixed.frame.assign(other="x")[["other", *mixed.frame.columns[::-1]]]
        people = mixed.refused(10)
        one = DEAR(mixed.net, mixed.schema).fit(odd).generate(people)
        pd.testing.assert_frame_equal(one.counterfactuals, fitted.generate(people).counterfactuals)


class TestGenerate:
    def test_the_refused_are_helped(self, fitted, mixed):
        assert fitted.generate(mixed.refused(300)).actions["success"].all()

    def test_the_split_is_into_an_action_and_what_moves_along(self, fitted, mixed):
        result = fitted.generate(mixed.refused(100))
        assert (result.proposal.direct.sum(1) == 1).all()
        assert (result.actions["indirect_cost"] > 0).mean() > 0.5

    def test_indirect_changes_follow_the_dependence(self, fitted, mixed):
        """Income grows with the rank of the job: who becomes a judge is expected to earn more."""
        porters = mixed.frame[mixed.frame["job"] == "porter"].iloc[:40]
        within = Constraints(act_on=["job"], categories={"job": ["judge"]})
        result = fitted.generate(porters, Target.of_class(1, 0.9), within=within)
        became = result.actions["acted_on"] == "job"
        raised = result.counterfactuals["income"] - porters["income"]
        assert became.sum() > 10
        assert raised[became].mean() == pytest.approx(18.0, abs=5.0)

    def test_a_higher_threshold_costs_more(self, fitted, mixed):
        people = mixed.refused(50)
        costs = [
            fitted.generate(people, Target.of_class(1, p)).actions["cost"].median()
            for p in (0.5, 0.7, 0.9)
        ]
        assert costs == sorted(costs)
        assert costs[0] < costs[2]

    def test_each_row_may_want_its_own_class(self, fitted, mixed):
        people = mixed.frame.iloc[:40]
        logits = mixed.net(mixed.encoder.encode(people))[:, 0]
        other = (logits <= 0).long().tolist()
        result = fitted.generate(people, Target.of_class(other))
        assert result.actions["success"].mean() > 0.8
        assert (result.actions["reason"] != "already accepted").all()

    def test_thousands_of_rows_are_answered_as_a_few(self, fitted, mixed):
        many = pd.concat([mixed.frame] * 2, ignore_index=True)
        some = fitted.generate(many.iloc[1490:1530])
        whole = fitted.generate(many)
        pd.testing.assert_frame_equal(
            whole.counterfactuals.iloc[1490:1530], some.counterfactuals, rtol=1e-5
        )

    def test_leaning_categories_are_told(self, fitted, mixed):
        result = fitted.generate(mixed.refused(60))
        spoken = [result.describe_row(i) for i in range(60)]
        shares = [s for s in spoken if "expected shares" in s]
        assert shares
        assert not any("gender" in s for s in spoken)


class TestAnotherModel:
    def test_what_was_learned_serves_another_model(self, fitted, mixed):
        people = mixed.refused(20)
        other = fitted.with_model(mixed.pipeline)
        anew = DEAR(mixed.pipeline, mixed.schema).fit(mixed.frame)
        pd.testing.assert_frame_equal(
            other.generate(people).counterfactuals, anew.generate(people).counterfactuals
        )
        pd.testing.assert_series_equal(
            other.generate(people).support, anew.generate(people).support
        )

    def test_the_first_keeps_its_own(self, fitted, mixed):
        people = mixed.refused(20)
        before = fitted.generate(people)
        fitted.with_model(mixed.pipeline).generate(people)
        pd.testing.assert_frame_equal(
            fitted.generate(people).counterfactuals, before.counterfactuals
        )

    def test_neither_follows_a_later_fit_of_the_other(self, mixed):
        people = mixed.refused(20)
        dear = DEAR(mixed.net, mixed.schema).fit(mixed.frame)
        other = dear.with_model(mixed.pipeline)
        before = other.generate(people)
        dear.fit(mixed.frame.iloc[::2])
        pd.testing.assert_frame_equal(
            other.generate(people).counterfactuals, before.counterfactuals
        )


class TestAnotherSearch:
    @pytest.mark.parametrize(
        "search", [Search(coarse=8), Search(min_support=1.0), Search(refine=2, groups=False)]
    )
    def test_answers_as_if_it_had_been_made_so(self, mixed, search):
        people = mixed.refused(20)
        fitted = DEAR(mixed.pipeline, mixed.schema).fit(mixed.frame)
        made = DEAR(mixed.pipeline, mixed.schema, search=search).fit(mixed.frame)
        pd.testing.assert_frame_equal(
            fitted.with_search(search).generate(people).actions, made.generate(people).actions
        )

    def test_leaves_the_first_as_it_was(self, mixed):
        people = mixed.refused(20)
        fitted = DEAR(mixed.pipeline, mixed.schema).fit(mixed.frame)
        before = fitted.generate(people).actions
        fitted.with_search(Search(coarse=4, refine=0)).generate(people)
        pd.testing.assert_frame_equal(fitted.generate(people).actions, before)


class TestSaveAndLoad:
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"act_on": ["debt", ("income", "job")]},
            {"search": Search(min_support=0.5, coarse=8), "decoder": Transport(ranks=64)},
        ],
        ids=["default", "groups", "settings"],
    )
    def test_what_was_saved_gives_the_same_answers(self, mixed, tmp_path, options):
        dear = DEAR(mixed.net, mixed.schema, **options).fit(mixed.frame)
        dear.save(tmp_path / "dear")
        loaded = DEAR.load(tmp_path / "dear", mixed.net)
        people = mixed.refused(15)
        one, other = dear.generate(people), loaded.generate(people)
        pd.testing.assert_frame_equal(one.counterfactuals, other.counterfactuals, check_exact=True)
        pd.testing.assert_frame_equal(one.actions, other.actions, check_exact=True)
        pd.testing.assert_series_equal(one.support, other.support)

    def test_in_a_fresh_process_too(self, mixed, fitted, tmp_path):
        people = mixed.refused(15)
        fitted.save(tmp_path / "dear")
        torch.save(mixed.net.state_dict(), tmp_path / "net.pt")
        people.to_pickle(tmp_path / "people.pkl")
        subprocess.run([sys.executable, "-c", FRESH, str(tmp_path)], check=True)
        after = pd.read_pickle(tmp_path / "after.pkl")
        pd.testing.assert_frame_equal(
            after, fitted.generate(people).counterfactuals, check_exact=True
        )

    def test_no_code_lies_in_the_folder(self, fitted, tmp_path):
        fitted.save(tmp_path / "dear")
        names = sorted(path.name for path in (tmp_path / "dear").iterdir())
        assert names == ["dear.json", "dear.safetensors"]

    def test_a_folder_that_holds_none(self, mixed, tmp_path):
        with pytest.raises(FileFormatError, match=r"dear\.json"):
            DEAR.load(tmp_path, mixed.net)


FRESH = """
import sys, pandas, torch
from pathlib import Path
from dear_plugin import DEAR, Encoder
home = Path(sys.argv[1])
state = torch.load(home / "net.pt")
wide, deep = state["0.weight"].shape[::-1]
net = torch.nn.Sequential(torch.nn.Linear(wide, deep), torch.nn.Tanh(), torch.nn.Linear(deep, 1))
net.load_state_dict(state)
people = pandas.read_pickle(home / "people.pkl")
DEAR.load(home / "dear", net).generate(people).counterfactuals.to_pickle(home / "after.pkl")
"""


class TestDiagnose:
    def test_dependence_is_followed(self, loan):
        dear = DEAR(loan.net, loan.schema).fit(loan.frame.iloc[:1100])
        report = dear.diagnose(loan.frame.iloc[1100:])
        assert report.fidelity > 0.5
        assert report.round_trip < 0.05
        assert set(report.per_set["set"]) == set(dear.sets.labels)

    def test_it_is_the_same_twice(self, fitted, mixed):
        one, other = (fitted.diagnose(mixed.frame) for _ in range(2))
        assert one.fidelity == other.fidelity
        assert np.isfinite(one.distribution_fidelity)


def test_five_people_are_enough_to_run(mixed, caplog):
    few = mixed.frame.iloc[:5]
    schema = Schema.infer(few)
    constant = [f.name for f in schema if f.immutable]
    net = torch.nn.Linear(DEAR(mixed.pipeline, schema).encoder.d, 1)
    result = DEAR(net, schema).fit(few).generate(few)
    assert len(result) == 5
    assert "5 rows" in caplog.text
    pd.testing.assert_frame_equal(result.counterfactuals[constant], few[constant])


def tensors(thing, met):
    """Every tensor that can be reached from a thing of ours."""
    if id(thing) in met:
        return
    met[id(thing)] = thing
    if isinstance(thing, torch.Tensor):
        yield thing
    elif isinstance(thing, dict | list | tuple | set):
        for each in thing.values() if isinstance(thing, dict) else thing:
            yield from tensors(each, met)
    elif type(thing).__module__.startswith("dear_plugin"):
        yield from tensors(vars(thing), met)


@pytest.mark.parametrize(
    ("decoder", "solver"),
    [("transport", "line"), ("autoencoder", "line"), ("autoencoder", "gradient")],
)
def test_nothing_that_outlives_a_call_is_marked_by_inference(loan, decoder, solver):
    """It could not be differentiated: decoders are trained, and results looked into, later."""
    schema = Schema.infer(loan.frame)
    encoder = Encoder(schema)
    torch.manual_seed(0)
    net = nn.Linear(encoder.d, 1)
    with torch.no_grad():
        net.bias -= net(encoder.encode(loan.frame)).max() - 0.01  # some need pairs, some fail
    # The redraws of a decoder that is trained take long: they are made once.
    sure = 0.0 if solver == "gradient" else 0.9
    search = Search(solver=solver, min_support=0.5, min_confidence=sure)
    dear = DEAR(net, schema, decoder=decoder, search=search).fit(loan.frame)
    found = dear.generate(loan.frame.iloc[:30])
    assert found.support.notna().any()
    assert dear._larger_sets.pairs is not None
    kept = [*tensors(dear, {}), *tensors(found, {})]
    assert len(kept) > 20
    assert not any(each.is_inference() for each in kept)


class Descending(Transport):
    """A decoder that finds latents by a descent of its own."""

    def encode(self, rows, generator=None):
        with torch.enable_grad():
            v = super().encode(rows, generator).requires_grad_()
            (slope,) = torch.autograd.grad((v * v).sum(), v)
        return slope / 2.0


def test_a_decoder_may_differentiate_while_it_encodes(mixed):
    people = mixed.refused(20)
    found, plain = (
        DEAR(mixed.net, mixed.schema, decoder=decoder).fit(mixed.frame).generate(people)
        for decoder in (Descending(), Transport())
    )
    pd.testing.assert_frame_equal(found.counterfactuals, plain.counterfactuals)
