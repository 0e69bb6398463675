"""Vetting: of the actions that succeed, the cheapest that has what is asked of an answer."""

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
    lacking,
    reliance,
    tighten,
    vet,
)
from dear_plugin.search.criteria import CriterionResult
from tests.search.handmade import A, B, D, crowd, person, world

# As many values of a and of d as there are candidates.
STEPS = torch.linspace(0.0, 1.0, 41)
GAINS = torch.linspace(0.4, 1.2, 16)[torch.arange(16) * 7 % 16]


def both(x):
    """Accepts where a and b together pass a bar, or d alone does."""
    return torch.maximum(x[:, A] + x[:, B] - 0.9, x[:, D] - 0.85)


def tried(told):
    """Every person tries every step of a and of d."""
    n = len(told.problem)
    for which in range(2):
        rows, sets = torch.arange(n), torch.full((n,), which)
        yield rows, sets, STEPS.expand(n, -1)[..., None]


def chosen(told, search, problem=None):
    """The candidates, the criteria and the choice of a search."""
    problem = problem or told.problem
    same = replace(told, problem=problem)
    candidates = RankedCandidates.of(problem, tried(same), search)
    wanted = criteria(problem, search, told.evidence)
    choice = Choice.none(problem)
    vet(problem, candidates, list(wanted.values()), choice)
    return candidates, wanted, choice


def by_hand(told, search):
    """Per person, of all successes (cost, cost as it is compared, what is lacking by name)."""
    problem, out = told.problem, [[] for _ in range(len(told.problem))]
    own = told.evidence.plausibility.of(problem.x)
    for rows, sets, values in tried(told):
        for i in range(values.shape[1]):
            actions = Actions.of(problem, rows, sets, values[:, i])
            cost = (actions.reached - problem.x).abs().sum(1)
            valid = both(actions.reached) >= search.slack
            sure, _ = confidence(problem, actions)
            needs = reliance(problem, actions)
            likely = told.evidence.plausibility.of(actions.reached)
            share = told.evidence.support.of(actions.reached, problem.goal)
            for row in valid.nonzero()[:, 0].tolist():
                enough = {
                    "plausibility": likely[row] >= min(search.min_plausibility, own[row]) - 1e-6,
                    "reliance": needs[row] <= search.max_reliance + 1e-6,
                    "support": share[row] >= (search.min_support or 0.0) - 1e-6,
                    "confidence": sure[row] >= search.min_confidence - 1e-6,
                }
                less = 1.0 + search.prefer_alone if needs[row] == 0.0 else 1.0
                out[row].append(
                    (
                        float(cost[row]),
                        float(cost[row]) / less,
                        [k for k, v in enough.items() if not v],
                    )
                )
    return out


@pytest.fixture(scope="module")
def people():
    """Refused people of every sort."""
    frame = crowd(400, seed=1)
    refused = (frame["a"] + frame["b"] < 0.9) & (frame["d"] < 0.85)
    return frame[refused].iloc[:40]


@pytest.fixture(scope="module")
def told(people):
    return world(both, people, gains=GAINS)


SEARCHES = {
    "default": Search(),
    "alone": Search(max_reliance=0.0),
    "half": Search(max_reliance=0.5),
    "plausible": Search(min_confidence=0.0, min_plausibility=0.3, prefer_alone=0.0),
    "sure": Search(min_plausibility=0.0, min_confidence=1.0),
    "support": Search.cheapest(min_support=0.8),
    "support and all else": Search(min_support=0.6, max_reliance=0.5),
}


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
class TestAgainstAllCandidates:
    def test_the_cheapest_that_has_all_that_is_asked_is_chosen(self, told, search):
        _, _, choice = chosen(told, search)
        some = 0
        for i, mine in enumerate(by_hand(told, search)):
            passing = [price for _, price, lacks in mine if not lacks]
            assert bool(choice.passed[i]) == bool(passing)
            if passing:
                some += 1
                assert float(choice.price[i]) == pytest.approx(min(passing), abs=1e-5)
        assert some >= 10

    def test_where_nothing_succeeds_nothing_is_chosen(self, told, search):
        _, _, choice = chosen(told, search)
        for i, mine in enumerate(by_hand(told, search)):
            assert (int(choice.sets[i]) >= 0) == bool(mine)

    def test_nobody_s_answer_depends_on_the_others(self, told, search):
        _, _, whole = chosen(told, search)
        for i in range(0, 40, 3):
            one = told.problem.select(torch.tensor([i]))
            _, _, alone = chosen(told, search, one)
            assert int(alone.sets[0]) == int(whole.sets[i])
            torch.testing.assert_close(alone.values[0], whole.values[i])
            assert float(alone.score[0]) == pytest.approx(float(whole.score[i]))


class TestWhatNeedsNothingToFollow:
    """Who raises a by .35 gets b raised by as much, for .7; d alone does it from a bar on."""

    def taken(self, bar, prefer_alone=0.25):
        def margin(x):
            return torch.maximum(x[:, B] - 0.44, x[:, D] - bar)

        told = world(margin, person(town="yes"), gains=[1.0] * 16)
        search = Search(prefer_alone=prefer_alone, min_plausibility=0.0)
        values = torch.tensor([[[0.45]], [[bar + 0.001]]])
        rows = torch.tensor([0])
        actions = [(rows, torch.tensor([i]), values[[i]]) for i in range(2)]
        candidates = RankedCandidates.of(told.problem, actions, search)
        assert len(candidates.rows) == 2
        choice = Choice.none(told.problem)
        wanted = criteria(told.problem, search, told.evidence)
        vet(told.problem, candidates, list(wanted.values()), choice)
        return int(choice.sets[0])

    def test_wins_up_to_a_quarter_more(self):
        assert self.taken(bar=0.1 + 0.87) == 1

    def test_and_not_beyond(self):
        assert self.taken(bar=0.1 + 0.88) == 0

    def test_how_much_more_is_a_choice(self):
        assert self.taken(bar=0.1 + 0.72, prefer_alone=0.0) == 0
        assert self.taken(bar=0.1 + 0.72, prefer_alone=0.1) == 1


class TestWhereNonePasses:
    """The order is plausibility, reliance, support, confidence; then how much of the next."""

    @staticmethod
    def pick(shares, wanted=(0.9, 0.9)):
        """The choice among candidates with shares of two criteria, cheapest first."""
        told = world(both, person(), gains=[1.0])
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
            def judge(actions):
                at = (actions.values[:, :1] == values).int().argmax(1)
                return CriterionResult(shares[at, place], wanted[place])

            return judge

        choice = Choice.none(told.problem)
        vet(told.problem, candidates, [criterion(0), criterion(1)], choice)
        return int((values == choice.values[0, 0]).int().argmax()), bool(choice.passed[0])

    def test_the_cheapest_that_passes_wins_whatever_dearer_ones_have(self):
        assert self.pick([[0.5, 1.0], [0.9, 0.9], [1.0, 1.0]]) == (1, True)

    def test_more_of_the_first_wins_where_none_has_enough_of_it(self):
        assert self.pick([[0.1, 1.0], [0.3, 0.0], [0.2, 1.0]]) == (1, False)

    def test_enough_of_the_first_wins_over_more_of_the_second(self):
        assert self.pick([[0.8, 0.9], [0.9, 0.1], [0.95, 0.3]]) == (2, False)

    def test_of_equals_the_cheapest_wins(self):
        assert self.pick([[0.9, 0.1], [0.9, 0.5], [1.0, 0.5]]) == (1, False)

    def test_a_hair_less_is_enough(self):
        assert self.pick([[0.9 - 1e-7, 0.9 - 1e-7], [1.0, 1.0]]) == (0, True)

    def test_who_has_an_answer_that_passes_keeps_it(self, told):
        search = Search()
        candidates, wanted, choice = chosen(told, search)
        before = choice.values.clone(), choice.price.clone()
        passed = choice.passed
        vet(told.problem, candidates, list(wanted.values()), choice)
        assert torch.equal(choice.values[passed], before[0][passed])
        assert torch.equal(choice.price[passed], before[1][passed])


class TestInWords:
    def test_a_lacking_answer_says_in_numbers_what_it_lacks(self, people):
        """Under half of the redraws b does not follow at all."""
        sunk = world(lambda x: x[:, B] - 0.9, people, gains=[0.0] * 8 + [1.0] * 8)
        search = Search(max_reliance=0.0, min_plausibility=0.0)
        _, _, choice = chosen(sunk, search)
        wanted = criteria(sunk.problem, search, sunk.evidence, whole=True)
        said = lacking(sunk.problem, choice, wanted)
        some = [text for text in said if text]
        assert len(some) >= 10
        for text in some:
            assert text.startswith("no credible action was found; the nearest has reliance ")
            assert text.endswith("(at most 0 is asked for) and confidence 0.5 (0.9 is asked for)")

    def test_whole_criteria_agree_on_who_passes(self, told):
        search, rows = SEARCHES["support and all else"], torch.arange(len(told.problem))
        for value in (0.5, 0.8):
            actions = told.actions([0] * len(rows), [value] * len(rows))
            for name, criterion in criteria(told.problem, search, told.evidence).items():
                whole = criteria(told.problem, search, told.evidence, whole=True)[name]
                one, other = criterion(actions), whole(actions)
                assert torch.equal(one.share >= one.least, other.share >= other.least)
                assert (one.share <= other.share + 1e-6).all()

    def test_only_those_that_lack_something(self, told):
        search = Search()
        _, wanted, choice = chosen(told, search)
        said = lacking(told.problem, choice, wanted)
        assert [bool(text) for text in said] == (~choice.passed & (choice.sets >= 0)).tolist()

    def test_nothing_is_said_of_who_has_no_answer(self):
        nobody = world(lambda x: -1.0 - x[:, A], person(times=3), gains=[1.0])
        _, wanted, choice = chosen(nobody, Search())
        assert lacking(nobody.problem, choice, wanted) == ["", "", ""]
        assert choice.sets.tolist() == [-1, -1, -1]


class TestTighten:
    @pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
    def test_what_is_drawn_back_passes_and_costs_no_more(self, told, search):
        _, wanted, choice = chosen(told, search)
        before = choice.price.clone()
        rows = choice.passed.nonzero()[:, 0]
        tighten(told.problem, rows, list(wanted.values()), choice, search)
        assert choice.passed[rows].all()
        assert (choice.price <= before).all()
        assert (choice.price[rows] < before[rows]).any()
        again = Actions.of(told.problem, rows, choice.sets[rows], choice.values[rows])
        assert (both(again.reached) >= 0.0).all()
        for criterion in wanted.values():
            verdict = criterion(again)
            assert (verdict.share >= torch.as_tensor(verdict.least) - 1e-6).all()

    def test_those_not_asked_about_stay(self, told):
        search = Search()
        _, wanted, choice = chosen(told, search)
        before = choice.values.clone()
        rows = choice.passed.nonzero()[:, 0]
        tighten(told.problem, rows[:3], list(wanted.values()), choice, search)
        others = torch.ones(len(before), dtype=torch.bool)
        others[rows[:3]] = False
        assert torch.equal(choice.values[others], before[others])

    def test_of_nobody(self, told):
        search = Search()
        _, wanted, choice = chosen(told, search)
        before = choice.values.clone()
        tighten(told.problem, torch.arange(0), list(wanted.values()), choice, search)
        assert torch.equal(choice.values, before)


class TestAsked:
    def test_what_is_not_asked_is_no_criterion(self, told):
        names = {
            name: list(criteria(told.problem, search, told.evidence))
            for name, search in SEARCHES.items()
        }
        assert names["default"] == ["plausibility", "confidence"]
        assert names["alone"] == ["plausibility", "reliance", "confidence"]
        assert names["support"] == ["support"]
        assert names["support and all else"] == [
            "plausibility",
            "reliance",
            "support",
            "confidence",
        ]
        assert not criteria(told.problem, Search.cheapest(), told.evidence)

    def test_nobody_has_to_be_less_odd_than_they_are(self):
        """One person alone in a corner: who stays as odd has done nothing wrong."""
        odd = pd.DataFrame({"a": [3.0], "b": [-2.0], "d": [0.5], "town": ["no"]})
        frame = pd.concat([crowd(), odd], ignore_index=True)
        told = world(both, odd, gains=[1.0], frame=frame)
        own = told.evidence.plausibility.of(told.problem.x)
        assert own.item() < 0.05
        wanted = criteria(told.problem, Search(), told.evidence)["plausibility"]
        verdict = wanted(told.actions([0], [float(told.problem.x[0, A])]))
        assert verdict.least.item() == pytest.approx(own.item())
        assert verdict.share.item() >= verdict.least.item() - 1e-6


@pytest.fixture(scope="module", params=["loan", "mixed"])
def study(request, studies):
    return studies[request.param]


ASKED = 0.8


@pytest.fixture(scope="module")
def supported(study):
    """DEAR without and with a support to reach, alone and beside everything else."""
    dear = DEAR(study.net, study.schema, search=Search.cheapest()).fit(study.frame)
    return {
        "free": dear,
        "enough": dear.with_search(Search.cheapest(min_support=ASKED)),
        "all": dear.with_search(Search.cheapest(min_support=1.0)),
        "besides": dear.with_search(Search(min_support=ASKED, groups=False)),
    }


@pytest.fixture(scope="module")
def answers(study, supported):
    people = study.refused(200)
    return {name: dear.generate(people) for name, dear in supported.items()}


def neighbours_accepted(study, rows, k=5):
    """(m,) the share of accepted ones among the k nearest training rows, by brute force."""
    everybody = study.encoder.encode(study.frame).double()
    with torch.no_grad():
        accepted = study.net(everybody.float())[:, 0] > 0
    gap = torch.cdist(study.encoder.expand(rows).double(), everybody)
    return accepted[gap.topk(k, largest=False).indices].double().mean(1)


def named(reasons, what):
    """The number that notes name, NaN where they name none."""
    return reasons.str.extract(rf"the nearest has .*{what} ([\d.]+) \(")[0].astype(float)


class TestSupportToReach:
    def test_support_is_the_share_of_accepted_neighbours(self, study, answers):
        for recourses in answers.values():
            expected = neighbours_accepted(study, recourses.proposal.rows)
            # Rows at the same distance may be taken in either order.
            assert (abs(recourses.support - expected.numpy()) < 1e-6).mean() >= 0.97

    @pytest.mark.parametrize(
        ("name", "wish"), [("enough", ASKED), ("all", 1.0), ("besides", ASKED)]
    )
    def test_it_is_reached_or_the_row_says_what_it_has(self, answers, name, wish):
        recourses = answers[name]
        done, reason = recourses.actions["success"], recourses.actions["reason"]
        has = recourses.support
        short = named(reason, "support")
        low = done & (has < wish - 1e-6) & ~reason.str.contains("margin asked for")
        assert short[low].notna().all()
        assert short[done & (has >= wish)].isna().all()
        assert (has[low] - short[low]).abs().max() < 1e-2 or not low.any()
        assert done.sum() > low.sum()

    def test_most_people_can_have_what_is_asked(self, answers):
        assert (answers["enough"].support >= ASKED - 1e-6).mean() >= 0.8
        assert answers["enough"].support.mean() > answers["free"].support.mean() + 0.1

    def test_it_costs_no_less_than_without(self, answers):
        """But for the few rows where a denser grid finds a slightly cheaper success besides."""
        free = answers["free"].actions
        for name in ("enough", "all"):
            tied = answers[name].actions
            ratio = tied["cost"] / free["cost"]
            assert (ratio >= 1.0 - 1e-4).mean() >= 0.95
            assert tied["cost"].mean() > free["cost"].mean()

    def test_no_success_is_lost(self, answers):
        for name in ("enough", "all", "besides"):
            assert (answers[name].actions["success"] >= answers["free"].actions["success"]).all()

    def test_who_already_has_it_keeps_the_cheapest(self, answers):
        free, tied = answers["free"], answers["enough"]
        already = free.actions["success"] & (free.support >= ASKED)
        assert already.sum() >= 5
        ratio = tied.actions["cost"][already] / free.actions["cost"][already]
        assert (ratio <= 1.0 + 1e-4).all()
        assert (ratio >= 0.95).mean() >= 0.9

    def test_how_many_neighbours_look_is_a_choice(self, study, supported):
        one = supported["free"].with_search(Search.cheapest(min_support=1.0, k_neighbours=1))
        recourses = one.generate(study.refused(40))
        expected = neighbours_accepted(study, recourses.proposal.rows, k=1)
        short = named(recourses.actions["reason"], "support").notna().to_numpy()
        assert (expected.numpy()[~short] == 1.0).mean() >= 0.95
