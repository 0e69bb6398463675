"""What answers are worth: the columns confidence, reliance, plausibility and credible."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, Constraints, Search, Target
from dear_plugin.baselines import NearestAccepted

NUMBERS = ["confidence", "reliance", "plausibility"]
WORTH = [*NUMBERS, "credible"]


@pytest.fixture(scope="module")
def dear(mixed):
    """The default without pairs."""
    return DEAR(mixed.net, mixed.schema, search=Search(groups=False)).fit(mixed.frame)


@pytest.fixture(scope="module")
def people(mixed):
    return mixed.refused(40)


@pytest.fixture(scope="module")
def result(dear, people):
    return dear.generate(people)


@pytest.fixture(scope="module")
def cheapest(dear, people):
    return dear.with_search(Search.cheapest(groups=False)).generate(people)


def plausible(study, rows, k=5):
    """(m,) the conformal p-values of rows, by brute force."""
    encoder, far = study.encoder, {"compute_mode": "donot_use_mm_for_euclid_dist"}
    crowd = encoder.encode(study.frame).double()
    own = torch.cdist(crowd, crowd, **far).fill_diagonal_(torch.inf)
    own = own.topk(k, largest=False).values.mean(1)
    away = torch.cdist(encoder.expand(rows).double(), crowd, **far).topk(k, largest=False).values
    odder = (own >= away.mean(1)[:, None] - 1e-12).sum(1)
    return (1.0 + odder.double()) / (len(crowd) + 1.0)


class TestTheColumns:
    def test_every_answer_has_all_four(self, result):
        done = result.actions["success"]
        assert done.sum() > 30
        assert result.actions[NUMBERS][done].notna().all(axis=None)
        assert result.actions["credible"].dtype == bool

    def test_they_are_computed_when_they_are_looked_at(self, dear, people):
        result = dear.generate(people.iloc[:3])
        assert "actions" not in vars(result)
        assert result.actions is result.actions
        assert list(result.actions)[-4:] == WORTH
        assert not set(WORTH) & set(result.outcome)

    def test_confidence_is_a_share_of_the_redraws(self, result, dear):
        count = dear._moves.redraws.count
        held = result.actions["confidence"].dropna() * count
        assert np.allclose(held, held.round())
        assert held.between(0, count).all()

    def test_reliance_is_one_of_five_shares(self, result, cheapest):
        for some in (result, cheapest):
            shares = some.actions["reliance"].dropna()
            assert set(shares) <= {0.0, 0.25, 0.5, 0.75, 1.0}

    def test_plausibility_is_the_conformal_p_value_of_the_answer(self, result, mixed):
        expected = plausible(mixed, result.proposal.rows)
        done = result.actions["success"].to_numpy()
        gap = np.abs(result.actions["plausibility"].to_numpy() - expected.numpy())[done]
        assert gap.max() <= 2.0 / len(mixed.frame)

    def test_credible_is_who_meets_all_that_is_asked(self, result, mixed):
        actions = result.actions
        own = plausible(mixed, result.x).clamp_max(0.05).numpy()
        numbers = (actions["confidence"] >= 0.9) & (actions["plausibility"] >= own - 1e-6)
        lacks = actions["reason"].str.contains("no credible action|margin asked for")
        assert actions["credible"].tolist() == (actions["success"] & numbers & ~lacks).tolist()
        assert actions["credible"].mean() > 0.5

    def test_who_lacks_something_is_told_the_numbers_of_the_columns(self, dear, mixed):
        picky = Search(min_confidence=1.0, min_plausibility=0.6, groups=False)
        actions = dear.with_search(picky).generate(mixed.refused(120)).actions
        said = actions["reason"].str.extract(r"confidence ([\d.]+) \(1 is asked for\)")[0]
        some = said.dropna().astype(float)
        lacking = actions.loc[some.index]
        assert not lacking["credible"].any()
        assert np.allclose(some, lacking["confidence"], atol=0.006)
        odd = (
            actions["reason"].str.extract(r"plausibility ([\d.e-]+) \(")[0].dropna().astype(float)
        )
        assert np.allclose(odd, actions.loc[odd.index, "plausibility"], rtol=0.06)
        assert min(len(some), len(odd)) > 0

    def test_an_accepted_person_does_nothing_and_relies_on_nothing(self, dear, mixed):
        accepted = mixed.frame.drop(mixed.refused(len(mixed.frame)).index).iloc[:20]
        actions = dear.generate(accepted).actions
        assert (actions["confidence"] == 1.0).all()
        assert (actions["reliance"] == 0.0).all()
        # Nobody has to be less odd than they are.
        assert actions["credible"].all()

    def test_nobody_s_depend_on_the_others(self, result, dear, people):
        for i in (0, 7, 23):
            one = dear.generate(people.iloc[[i]]).actions[WORTH]
            pd.testing.assert_frame_equal(one, result.actions[WORTH].iloc[[i]])

    def test_the_cheapest_have_them_too_and_are_judged_by_what_is_asked_by_default(
        self, cheapest, mixed
    ):
        actions = cheapest.actions
        own = plausible(mixed, cheapest.x).clamp_max(0.05).numpy()
        fine = (actions["confidence"] >= 0.9) & (actions["plausibility"] >= own - 1e-6)
        assert actions["credible"].tolist() == (actions["success"] & fine).tolist()
        assert 0.0 < actions["credible"].mean() < 1.0


class TestWithoutAnAnswer:
    def test_a_failed_row_has_none_of_them(self, dear, people):
        actions = dear.generate(people, within=Constraints(act_on=[])).actions
        assert not actions["success"].any()
        assert actions[NUMBERS].isna().all(axis=None)
        assert not actions["credible"].any()

    def test_nor_has_a_row_that_cannot_be_read(self, dear, people):
        rows = people.iloc[:4].copy()
        rows["town"] = ["A", "Z", "B", "A"]
        actions = dear.generate(rows).actions
        assert actions["success"].tolist()[1] is False
        assert actions[NUMBERS].iloc[1].isna().all()
        assert not actions["credible"].iloc[1]
        assert actions[NUMBERS].iloc[[0, 2, 3]].notna().all(axis=None)

    def test_of_nobody_there_are_none(self, dear, people):
        actions = dear.generate(people.iloc[:0]).actions
        assert list(actions)[-4:] == WORTH
        assert len(actions) == 0


class TestElsewhere:
    def test_a_rival_s_answers_rely_on_nothing(self, mixed, people):
        result = NearestAccepted(mixed.net, mixed.schema).fit(mixed.frame).generate(people)
        done = result.actions["success"]
        assert done.any()
        assert (result.actions["confidence"][done] == 1.0).all()
        assert (result.actions["reliance"][done] == 0.0).all()
        expected = plausible(mixed, result.proposal.rows)[torch.tensor(done.to_numpy())]
        gap = np.abs(result.actions["plausibility"][done] - expected.numpy())
        assert gap.max() <= 2.0 / len(mixed.frame)
        own = plausible(mixed, result.x).clamp_max(0.05).numpy()
        fine = done & (result.actions["plausibility"] >= own - 1e-6)
        assert result.actions["credible"].tolist() == fine.tolist()

    def test_the_same_action_applied_has_the_same_worth(self, dear, result, people):
        again = dear.apply(people, result.direct)
        # What was not searched for says nothing of a margin.
        pd.testing.assert_frame_equal(again.actions[NUMBERS], result.actions[NUMBERS])
        assert (again.actions["credible"] >= result.actions["credible"]).all()

    def test_alternatives_begin_with_the_answer_and_have_them_too(self, result):
        table = result.alternatives(3)
        first = table[table["rank"] == 0].set_index("index")
        pd.testing.assert_frame_equal(
            first[["reason", *WORTH]], result.actions[["reason", *WORTH]], check_names=False
        )
        others = table[table["rank"] > 0]
        assert others[NUMBERS].notna().all(axis=None)
        assert len(others["confidence"].unique()) > 1

    def test_support_that_is_asked_for_is_a_part_of_it(self, dear, people):
        """Of alternatives too, which nobody vets."""
        search = Search.cheapest(groups=False, min_support=0.8)
        table = dear.with_search(search).generate(people).alternatives(3)
        support = dear._support.of(
            dear.encoder.rows(table[list(people)]),
            Target.of_class(1).resolve(len(table), None),
        )
        assert (support[table["credible"].to_numpy()] >= 0.8 - 1e-6).all()
        assert 0.0 < table["credible"].mean() < 1.0

    def test_they_are_kept_by_saving(self, dear, result, people, mixed, tmp_path):
        dear.save(tmp_path)
        again = DEAR.load(tmp_path, mixed.net).generate(people)
        pd.testing.assert_frame_equal(again.actions, result.actions, check_exact=True)


class TestTheCheapest:
    def test_it_asks_none_of_it(self):
        search = Search.cheapest()
        assert not search.vets
        assert (search.margin, search.prefer_alone, search.max_reliance) == (0.0, 0.0, 1.0)
        assert search.min_support is None

    def test_any_setting_may_be_given_besides(self):
        assert Search.cheapest(coarse=4, min_support=0.5).coarse == 4
        assert Search.cheapest(min_support=0.5).vets
        assert Search.cheapest(margin=0.2).margin == 0.2

    def test_nothing_is_redrawn_and_nobody_s_neighbours_are_looked_for(self, mixed, people):
        cheap = DEAR(mixed.net, mixed.schema, search=Search.cheapest()).fit(mixed.frame)
        result = cheap.generate(people)
        assert result.outcome["success"].all()
        assert "redraws" not in vars(cheap._moves)
        for name in ("_evidence", "_plausibility", "_neighbours", "_support", "_spread"):
            assert name not in vars(cheap)

    def test_its_answers_are_the_least_that_the_search_finds(self, dear, cheapest, people):
        """Right at the boundary, whatever they are worth."""
        moves, n = dear._moves, len(people)
        case = cheapest.hooks.worth.case
        found = moves.find(moves.question(case), Search.cheapest(groups=False))
        torch.testing.assert_close(
            torch.from_numpy(cheapest.outcome["cost"].to_numpy()).float(),
            found.cost.amin(1),
            atol=1e-5,
            rtol=1e-4,
        )
        assert found.cost.shape[0] == n

    def test_the_default_costs_no_less(self, result, cheapest):
        both = result.actions["success"] & cheapest.actions["success"]
        ratio = result.actions["cost"][both] / cheapest.actions["cost"][both]
        assert (ratio >= 1.0 - 1e-4).mean() >= 0.97
        assert ratio.median() > 1.0


class TestSufficientAlone:
    @pytest.fixture(scope="class")
    @classmethod
    def alone(cls, dear, people):
        return dear.with_search(Search(max_reliance=0.0, groups=False)).generate(people)

    def test_what_is_credible_relies_on_nothing(self, alone):
        credible = alone.actions["credible"]
        assert credible.mean() > 0.5
        assert (alone.actions["reliance"][credible] == 0.0).all()

    def test_the_action_by_itself_is_accepted_by_the_model(self, alone, people, mixed):
        """Only what is acted on changes."""
        direct = alone.plan.direct.numpy()
        after = people.copy()
        for j, name in enumerate(mixed.schema.names):
            after[name] = after[name].where(~direct[:, j], alone.counterfactuals[name])
        with torch.no_grad():
            fine = (mixed.net(mixed.encoder.encode(after))[:, 0] > 0).numpy()
        assert fine[alone.actions["credible"]].all()
