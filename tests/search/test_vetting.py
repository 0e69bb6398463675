"""Vetting: the cheapest successful action of each row that meets all criteria."""

from dataclasses import replace

import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, Search
from dear_plugin.search import (
    Actions,
    Choice,
    RankedCandidates,
    confidence,
    criteria,
    missing_text,
    reliance,
    tighten,
    vet,
)
from dear_plugin.search.criteria import CriterionResult
from tests.search.handmade import A, B, D, factual, make_world, training_frame

# The candidate values of a and of d.
STEPS = torch.linspace(0.0, 1.0, 41)
GAINS = torch.linspace(0.4, 1.2, 16)[torch.arange(16) * 7 % 16]


def both(x):
    """Accepts where a + b or d exceeds a threshold."""
    return torch.maximum(x[:, A] + x[:, B] - 0.9, x[:, D] - 0.85)


def tried(world):
    """Every row tries every step of a and of d."""
    n = len(world.problem)
    for which in range(2):
        rows, sets = torch.arange(n), torch.full((n,), which)
        yield rows, sets, STEPS.expand(n, -1)[..., None]


def chosen(world, search, problem=None):
    """The candidates, the criteria and the choice of a search."""
    problem = problem or world.problem
    same = replace(world, problem=problem)
    candidates = RankedCandidates.of(problem, tried(same), search)
    wanted = criteria(problem, search, world.evidence)
    choice = Choice.none(problem)
    vet(problem, candidates, list(wanted.values()), choice)
    return candidates, wanted, choice


def brute_force(world, search):
    """Per row, its successes as (cost, price, names of unmet criteria)."""
    problem, out = world.problem, [[] for _ in range(len(world.problem))]
    own = world.evidence.plausibility.of(problem.x)
    for rows, sets, values in tried(world):
        for i in range(values.shape[1]):
            actions = Actions.of(problem, rows, sets, values[:, i])
            cost = (actions.reached - problem.x).abs().sum(1)
            valid = both(actions.reached) >= search.slack
            confident, _ = confidence(problem, actions)
            relies = reliance(problem, actions)
            plausible = world.evidence.plausibility.of(actions.reached)
            share = world.evidence.support.of(actions.reached, problem.goal)
            for row in valid.nonzero()[:, 0].tolist():
                enough = {
                    "plausibility": plausible[row]
                    >= min(search.min_plausibility, own[row]) - 1e-6,
                    "reliance": relies[row] <= search.max_reliance + 1e-6,
                    "support": share[row] >= (search.min_support or 0.0) - 1e-6,
                    "confidence": confident[row] >= search.min_confidence - 1e-6,
                }
                less = 1.0 + search.prefer_alone if relies[row] == 0.0 else 1.0
                out[row].append(
                    (
                        float(cost[row]),
                        float(cost[row]) / less,
                        [k for k, v in enough.items() if not v],
                    )
                )
    return out


@pytest.fixture(scope="module")
def factuals():
    """Refused rows."""
    frame = training_frame(400, seed=1)
    refused = (frame["a"] + frame["b"] < 0.9) & (frame["d"] < 0.85)
    return frame[refused].iloc[:40]


@pytest.fixture(scope="module")
def world(factuals):
    return make_world(both, factuals, gains=GAINS)


SEARCHES = {
    "default": Search(),
    "alone": Search(max_reliance=0.0),
    "half": Search(max_reliance=0.5),
    "plausible": Search(min_confidence=0.0, min_plausibility=0.3, prefer_alone=0.0),
    "confident": Search(min_plausibility=0.0, min_confidence=1.0),
    "support": Search.cheapest(min_support=0.8),
    "support and others": Search(min_support=0.6, max_reliance=0.5),
}


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
class TestAgainstAllCandidates:
    def test_the_cheapest_that_meets_all_criteria_is_chosen(self, world, search):
        _, _, choice = chosen(world, search)
        some = 0
        for i, candidates in enumerate(brute_force(world, search)):
            passing = [price for _, price, unmet in candidates if not unmet]
            assert bool(choice.passed[i]) == bool(passing)
            if passing:
                some += 1
                assert float(choice.price[i]) == pytest.approx(min(passing), abs=1e-5)
        assert some >= 10

    def test_where_nothing_succeeds_nothing_is_chosen(self, world, search):
        _, _, choice = chosen(world, search)
        for i, candidates in enumerate(brute_force(world, search)):
            assert (int(choice.sets[i]) >= 0) == bool(candidates)

    def test_a_choice_does_not_depend_on_the_other_rows(self, world, search):
        _, _, whole = chosen(world, search)
        for i in range(0, 40, 3):
            one = world.problem.select(torch.tensor([i]))
            _, _, alone = chosen(world, search, one)
            assert int(alone.sets[0]) == int(whole.sets[i])
            torch.testing.assert_close(alone.values[0], whole.values[i])
            assert float(alone.score[0]) == pytest.approx(float(whole.score[i]))


class TestPreferAlone:
    """Raising a by 0.35 raises b as much, at a cost of 0.7; d alone succeeds from a bar on."""

    def chosen_set(self, bar, prefer_alone=0.25):
        def margin(x):
            return torch.maximum(x[:, B] - 0.44, x[:, D] - bar)

        world = make_world(margin, factual(town="yes"), gains=[1.0] * 16)
        search = Search(prefer_alone=prefer_alone, min_plausibility=0.0)
        values = torch.tensor([[[0.45]], [[bar + 0.001]]])
        rows = torch.tensor([0])
        actions = [(rows, torch.tensor([i]), values[[i]]) for i in range(2)]
        candidates = RankedCandidates.of(world.problem, actions, search)
        assert len(candidates.rows) == 2
        choice = Choice.none(world.problem)
        wanted = criteria(world.problem, search, world.evidence)
        vet(world.problem, candidates, list(wanted.values()), choice)
        return int(choice.sets[0])

    def test_it_is_chosen_up_to_a_quarter_more(self):
        assert self.chosen_set(bar=0.1 + 0.87) == 1

    def test_it_is_not_chosen_beyond(self):
        assert self.chosen_set(bar=0.1 + 0.88) == 0

    def test_the_discount_is_a_setting(self):
        assert self.chosen_set(bar=0.1 + 0.72, prefer_alone=0.0) == 0
        assert self.chosen_set(bar=0.1 + 0.72, prefer_alone=0.1) == 1


class TestScores:
    """Criteria count in their order; then how much is missing of the next one."""

    @staticmethod
    def pick(shares, wanted=(0.9, 0.9)):
        """The choice among candidates with shares of two criteria, cheapest first."""
        world = make_world(both, factual(), gains=[1.0])
        shares = torch.tensor(shares)
        values = torch.linspace(0.5, 0.9, len(shares))
        candidates = RankedCandidates(
            torch.zeros(len(shares), dtype=torch.int64),
            torch.zeros(len(shares), dtype=torch.int64),
            values[:, None],
            torch.arange(len(shares)).float(),
            torch.zeros(len(shares)),
        )

        def criterion(place):
            def criterion_of(actions):
                at = (actions.values[:, :1] == values).int().argmax(1)
                return CriterionResult(shares[at, place], wanted[place])

            return criterion_of

        choice = Choice.none(world.problem)
        vet(world.problem, candidates, [criterion(0), criterion(1)], choice)
        return int((values == choice.values[0, 0]).int().argmax()), bool(choice.passed[0])

    def test_the_cheapest_that_passes_is_chosen_over_larger_values(self):
        assert self.pick([[0.5, 1.0], [0.9, 0.9], [1.0, 1.0]]) == (1, True)

    def test_the_largest_value_of_the_first_criterion_is_chosen_where_none_meets_it(self):
        assert self.pick([[0.1, 1.0], [0.3, 0.0], [0.2, 1.0]]) == (1, False)

    def test_meeting_the_first_criterion_counts_more_than_the_second(self):
        assert self.pick([[0.8, 0.9], [0.9, 0.1], [0.95, 0.3]]) == (2, False)

    def test_the_cheapest_of_equal_scores_is_chosen(self):
        assert self.pick([[0.9, 0.1], [0.9, 0.5], [1.0, 0.5]]) == (1, False)

    def test_rounding_is_tolerated(self):
        assert self.pick([[0.9 - 1e-7, 0.9 - 1e-7], [1.0, 1.0]]) == (0, True)

    def test_a_choice_that_passes_is_kept(self, world):
        search = Search()
        candidates, wanted, choice = chosen(world, search)
        before = choice.values.clone(), choice.price.clone()
        passed = choice.passed
        vet(world.problem, candidates, list(wanted.values()), choice)
        assert torch.equal(choice.values[passed], before[0][passed])
        assert torch.equal(choice.price[passed], before[1][passed])


class TestMissingText:
    def test_unmet_criteria_are_given_with_numbers(self, factuals):
        """Under half of the redraws b does not change."""
        low_confidence = make_world(lambda x: x[:, B] - 0.9, factuals, gains=[0.0] * 8 + [1.0] * 8)
        search = Search(max_reliance=0.0, min_plausibility=0.0)
        _, _, choice = chosen(low_confidence, search)
        wanted = criteria(low_confidence.problem, search, low_confidence.evidence, whole=True)
        texts = missing_text(low_confidence.problem, choice, wanted)
        some = [text for text in texts if text]
        assert len(some) >= 10
        for text in some:
            assert text.startswith("no credible action was found; the nearest has reliance ")
            assert text.endswith(
                "(at most 0 is required) and confidence 0.5 (at least 0.9 is required)"
            )

    def test_whole_criteria_agree_on_which_rows_pass(self, world):
        search, rows = SEARCHES["support and others"], torch.arange(len(world.problem))
        for value in (0.5, 0.8):
            actions = world.actions([0] * len(rows), [value] * len(rows))
            for name, criterion in criteria(world.problem, search, world.evidence).items():
                whole = criteria(world.problem, search, world.evidence, whole=True)[name]
                one, other = criterion(actions), whole(actions)
                assert torch.equal(one.share >= one.least, other.share >= other.least)
                assert (one.share <= other.share + 1e-6).all()

    def test_only_unmet_criteria_have_a_text(self, world):
        search = Search()
        _, wanted, choice = chosen(world, search)
        texts = missing_text(world.problem, choice, wanted)
        assert [bool(text) for text in texts] == (~choice.passed & (choice.sets >= 0)).tolist()

    def test_a_row_without_success_has_no_text(self):
        unsolvable = make_world(lambda x: -1.0 - x[:, A], factual(times=3), gains=[1.0])
        _, wanted, choice = chosen(unsolvable, Search())
        assert missing_text(unsolvable.problem, choice, wanted) == ["", "", ""]
        assert choice.sets.tolist() == [-1, -1, -1]


class TestTighten:
    @pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
    def test_a_tightened_choice_passes_and_costs_no_more(self, world, search):
        _, wanted, choice = chosen(world, search)
        before = choice.price.clone()
        rows = choice.passed.nonzero()[:, 0]
        tighten(world.problem, rows, list(wanted.values()), choice, search)
        assert choice.passed[rows].all()
        assert (choice.price <= before).all()
        assert (choice.price[rows] < before[rows]).any()
        again = Actions.of(world.problem, rows, choice.sets[rows], choice.values[rows])
        assert (both(again.reached) >= 0.0).all()
        for criterion in wanted.values():
            result = criterion(again)
            assert (result.share >= torch.as_tensor(result.least) - 1e-6).all()

    def test_other_rows_stay(self, world):
        search = Search()
        _, wanted, choice = chosen(world, search)
        before = choice.values.clone()
        rows = choice.passed.nonzero()[:, 0]
        tighten(world.problem, rows[:3], list(wanted.values()), choice, search)
        rest = torch.ones(len(before), dtype=torch.bool)
        rest[rows[:3]] = False
        assert torch.equal(choice.values[rest], before[rest])

    def test_no_rows(self, world):
        search = Search()
        _, wanted, choice = chosen(world, search)
        before = choice.values.clone()
        tighten(world.problem, torch.arange(0), list(wanted.values()), choice, search)
        assert torch.equal(choice.values, before)


class TestCriteria:
    def test_only_required_criteria_exist(self, world):
        names = {
            name: list(criteria(world.problem, search, world.evidence))
            for name, search in SEARCHES.items()
        }
        assert names["default"] == ["plausibility", "confidence"]
        assert names["alone"] == ["plausibility", "reliance", "confidence"]
        assert names["support"] == ["support"]
        assert names["support and others"] == [
            "plausibility",
            "reliance",
            "support",
            "confidence",
        ]
        assert not criteria(world.problem, Search.cheapest(), world.evidence)

    def test_the_required_plausibility_is_at_most_the_factual_s_own(self):
        """An outlier that stays as unusual meets the criterion."""
        outlier = pd.DataFrame({"a": [3.0], "b": [-2.0], "d": [0.5], "town": ["no"]})
        frame = pd.concat([training_frame(), outlier], ignore_index=True)
        world = make_world(both, outlier, gains=[1.0], frame=frame)
        own = world.evidence.plausibility.of(world.problem.x)
        assert own.item() < 0.05
        wanted = criteria(world.problem, Search(), world.evidence)["plausibility"]
        result = wanted(world.actions([0], [float(world.problem.x[0, A])]))
        assert result.least.item() == pytest.approx(own.item())
        assert result.share.item() >= result.least.item() - 1e-6


@pytest.fixture(scope="module", params=["loan", "mixed"])
def study(request, studies):
    return studies[request.param]


REQUIRED = 0.8


@pytest.fixture(scope="module")
def supported(study):
    """DEAR without and with a required support, alone and with the other criteria."""
    dear = DEAR(study.net, study.schema, search=Search.cheapest()).fit(study.frame)
    return {
        "free": dear,
        "enough": dear.with_search(Search.cheapest(min_support=REQUIRED)),
        "all": dear.with_search(Search.cheapest(min_support=1.0)),
        "besides": dear.with_search(Search(min_support=REQUIRED, groups=False)),
    }


@pytest.fixture(scope="module")
def answers(study, supported):
    factuals = study.refused(200)
    return {name: dear.generate(factuals) for name, dear in supported.items()}


def neighbours_accepted(study, rows, k=5):
    """(m,) the share of accepted rows among the k nearest training rows, by brute force."""
    training = study.encoder.encode(study.frame).double()
    with torch.no_grad():
        accepted = study.net(training.float())[:, 0] > 0
    distance = torch.cdist(study.encoder.expand(rows).double(), training)
    return accepted[distance.topk(k, largest=False).indices].double().mean(1)


def named(reasons, what):
    """The number in the notes, NaN without one."""
    return reasons.str.extract(rf"the nearest has .*{what} ([\d.]+) \(")[0].astype(float)


class TestMinSupport:
    def test_support_is_the_share_of_accepted_neighbours(self, study, answers):
        for recourses in answers.values():
            expected = neighbours_accepted(study, recourses.proposal.rows)
            # Rows at the same distance may be taken in either order.
            assert (abs(recourses.support - expected.numpy()) < 1e-6).mean() >= 0.97

    @pytest.mark.parametrize(
        ("name", "required"), [("enough", REQUIRED), ("all", 1.0), ("besides", REQUIRED)]
    )
    def test_it_is_reached_or_the_reason_gives_the_support(self, answers, name, required):
        recourses = answers[name]
        done, reason = recourses.actions["success"], recourses.actions["reason"]
        support = recourses.support
        short = named(reason, "support")
        low = done & (support < required - 1e-6) & ~reason.str.contains("required margin")
        assert short[low].notna().all()
        assert short[done & (support >= required)].isna().all()
        assert (support[low] - short[low]).abs().max() < 1e-2 or not low.any()
        assert done.sum() > low.sum()

    def test_most_rows_reach_it(self, answers):
        assert (answers["enough"].support >= REQUIRED - 1e-6).mean() >= 0.8
        assert answers["enough"].support.mean() > answers["free"].support.mean() + 0.1

    def test_it_costs_no_less_than_without(self, answers):
        """Except for the few rows where the denser grid finds a slightly cheaper success."""
        free = answers["free"].actions
        for name in ("enough", "all"):
            constrained = answers[name].actions
            ratio = constrained["cost"] / free["cost"]
            assert (ratio >= 1.0 - 1e-4).mean() >= 0.95
            assert constrained["cost"].mean() > free["cost"].mean()

    def test_no_success_is_lost(self, answers):
        for name in ("enough", "all", "besides"):
            assert (answers[name].actions["success"] >= answers["free"].actions["success"]).all()

    def test_rows_that_have_it_keep_the_cheapest(self, answers):
        free, constrained = answers["free"], answers["enough"]
        already = free.actions["success"] & (free.support >= REQUIRED)
        assert already.sum() >= 5
        ratio = constrained.actions["cost"][already] / free.actions["cost"][already]
        assert (ratio <= 1.0 + 1e-4).all()
        assert (ratio >= 0.95).mean() >= 0.9

    def test_the_number_of_neighbours_is_a_setting(self, study, supported):
        one = supported["free"].with_search(Search.cheapest(min_support=1.0, k_neighbours=1))
        recourses = one.generate(study.refused(40))
        expected = neighbours_accepted(study, recourses.proposal.rows, k=1)
        short = named(recourses.actions["reason"], "support").notna().to_numpy()
        assert (expected.numpy()[~short] == 1.0).mean() >= 0.95
