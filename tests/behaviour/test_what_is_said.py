"""What is said is so: the action alone, what it forces, what it needs, and letters about it."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

from dear_plugin import DEAR, LetterTemplate, Schema, Search
from dear_plugin.data.relations import Relation
from dear_plugin.datasets import load_loan
from tests.asked import chance, fitted
from tests.sweep.sentences import audited

NONE = LetterTemplate.of("en")["none"]
DATA = load_loan(3_000)


def with_changes(result, *frames):
    """The factuals with the cells of some frames in place, which are missing elsewhere."""
    rows = result.factuals.copy()
    for frame in frames:
        for name in rows:
            known = frame[name].notna()
            rows.loc[known, name] = frame.loc[known, name].astype(rows[name].dtype)
    return rows


@pytest.mark.parametrize("seed", range(12))
def test_every_sentence_on_a_random_table_is_what_the_model_says(seed):
    read, faults = audited(seed)
    assert read
    assert not faults


@pytest.mark.ci
@pytest.mark.parametrize("first", range(100, 200, 10))
def test_every_sentence_on_many_random_tables_is_what_the_model_says(first):
    assert not [fault for seed in range(first, first + 10) for fault in audited(seed)[1]]


class TestWhatAnActionForces:
    """The area of a square with one side: the model reads the area alone."""

    @pytest.fixture(scope="class")
    @classmethod
    def squares(cls):
        side = np.random.default_rng(0).integers(1, 30, 2000)
        frame = pd.DataFrame({"side": side, "area": side**2, "age": side[::-1]})
        model = lambda rows: chance((rows["area"] - 250) / 20)  # noqa: E731
        dear = fitted(model, frame, act_on=["side"], immutable=["age"])
        return dear.generate(frame[(side > 14) & (side < 16)].head(20))

    def test_it_stands_by_itself_and_is_neither_direct_nor_indirect(self, squares):
        result = squares
        assert result.actions["success"].all()
        own = result.changes[result.changes["row"] == result.factuals.index[0]]
        kinds = own.set_index("feature")["kind"]
        assert kinds.to_dict() == {"side": "direct", "area": "forced"}
        assert list(result.forced) == list(result.factuals)
        assert result.forced["area"].notna().all()
        assert result.forced[["side", "age"]].isna().all(axis=None)

    def test_it_is_told_as_a_definition_and_nothing_else_is_not_said(self, squares):
        result = squares
        for label in result.factuals.index:
            text, letter = result.describe(label), result.letter(label)
            side = result.direct["side"][label]
            assert f"with it, area is {side**2} by definition" in text
            assert "The action is enough, with what it changes by definition." in text
            told = int(re.search(r"side from \d+ to (\d+)[. ]", letter)[1])
            assert f"By definition, this sets area to {told**2}." in letter
            assert "Nothing else" not in letter and "usually" not in letter

    @staticmethod
    def shares():
        """Shares of 100: meetings leave less time for projects, and the rest is the rest."""
        rng = np.random.default_rng(0)
        projects = rng.integers(10, 60, 2000)
        meetings = (0.3 * (90 - projects) + rng.normal(0, 5, 2000)).round().clip(0).astype(int)
        frame = pd.DataFrame({"projects": projects, "meetings": meetings})
        return frame.assign(rest=100 - frame.sum(axis=1))

    def test_what_follows_moves_on_what_the_action_forces(self):
        """It was told once, as it is with the action alone, and with ranges of one value."""
        frame = self.shares()
        model = lambda rows: chance((rows["projects"] - 45) / 4)  # noqa: E731
        definitions = {"rest": ["projects", "meetings"]}
        dear = fitted(model, frame, act_on=["projects"], definitions=definitions)
        result = dear.generate(frame[frame["projects"].between(31, 37)].head(20))
        told = result.changes[result.changes["feature"] == "rest"].set_index("row")
        assert len(told) == 20 and (told["kind"] == "forced").all()
        assert (told["alone"] != told["new"]).all()
        change = (told["new"] - told["old"]).astype(float)
        assert (told["low"] < told["high"]).all()
        assert change.between(told["low"], told["high"]).all()
        moved = told[told["alone"] != told["old"]]
        assert len(moved) > 10
        for label, line in moved.iterrows():
            text = result.describe(label)
            assert (
                f"with it alone, rest is {line['alone']:.0f} by definition; along with it expect"
                in text
            )
            assert ", and by definition rest to fall" in text

    def test_a_letter_does_not_say_of_it_what_holds_without_what_must_follow(self):
        """Beside "it is with meetings at 14 or less" stood a rest that left less than 100."""
        frame = self.shares()
        model = lambda r: chance(r["projects"] / 8 - 1.5 * r["meetings"] + 16)  # noqa: E731
        tiers, parts = [["projects"], ["meetings", "rest"]], ["projects", "meetings"]
        stated = {"definitions": {"rest": parts}, "tiers": tiers}
        dear = fitted(model, frame, act_on=["projects"], **stated)
        letters = dear.generate(frame[model(frame).between(0.02, 0.5)].head(60)).letter()
        told = letters[letters.str.contains("together with meetings")]
        assert len(told) > 3
        assert not told.str.contains("rest").any()

    @pytest.mark.parametrize(
        "margin",
        [lambda r: (r["limit"] - 3000 + r["income"]) / 100, lambda r: (r["income"] - 100) / 4],
        ids=["both are asked for", "the income alone"],
    )
    def test_a_relation_that_nearly_always_holds_forces_nothing_and_is_not_broken(self, margin):
        """Limits follow incomes closely: an action alone is not enough where it breaks that."""
        rng = np.random.default_rng(0)
        income = rng.integers(20, 200, 2000)
        limit = 30 * income + rng.normal(0, 100, 2000).round()
        frame = pd.DataFrame({"income": income, "limit": limit, "age": rng.permutation(income)})
        near = Relation("limit", ("income",), 0.0, (30.0,), low=-400.0, high=400.0)
        schema = Schema(Schema.infer(frame, immutable=["age"]).features, None, (near,))
        dear = DEAR(lambda r: chance(margin(r)), schema, act_on=["income"]).fit(frame)
        result = dear.generate(frame[chance(margin(frame)) < 0.001].head(20))
        assert result.actions["success"].all()
        assert result.forced.isna().all(axis=None)
        assert (result.actions["reliance"] > 0.0).all()


class TestWhatAnActionNeeds:
    def test_accepted_alone_and_refused_half_way_is_told_as_that_and_not_recommended(self):
        """Few amounts for many payments are fine, many are fine, between is not."""
        rng = np.random.default_rng(0)
        count = rng.integers(10, 100, 3000)
        amount = (60.0 * count + rng.normal(0, 250, 3000)).round()
        frame = pd.DataFrame({"count": count, "amount": amount})

        def model(rows):
            size = rows["amount"] / rows["count"]
            return np.where((rows["count"] >= 60) & ((size < 42) | (size > 54)), 0.9, 0.1)

        dear = fitted(model, frame, act_on=["count"], orders=[])
        result = dear.generate(frame[(model(frame) < 0.5) & (count < 40)].head(40))
        between = result.actions["success"] & (result.actions["reliance"] > 0.0)
        alone = model(with_changes(result, result.direct)) > 0.5
        assert (between & alone).any()
        texts = result.describe()[between & alone]
        assert texts.str.contains("it depends on how much of that happens").all()
        assert not texts.str.contains("not enough").any()
        assert result.letter()[between & alone].str.startswith(NONE).all()
        assert "depends on what follows" in result[texts.index[:3]]._repr_html_()

    def test_a_level_that_must_follow_is_accepted_as_it_is_told(self):
        """The letter told a level on the way; the model had been asked about the last one."""
        rng, levels = np.random.default_rng(0), ["bad", "poor", "fair", "good"]
        pain = rng.integers(0, 11, 3000)
        place = np.clip(((10 - pain) / 3 + rng.normal(0, 0.3, 3000)).round(), 0, 3).astype(int)
        pulse = (60 + 1.2 * pain + rng.normal(0, 5, 3000)).round()
        frame = pd.DataFrame({"pain": pain, "state": np.array(levels)[place], "pulse": pulse})

        def model(rows):
            state = rows["state"].map(levels.index).astype(float)
            return chance(6 * state - (rows["pulse"] - 60) - 8 - 0.1 * rows["pain"])

        stated = {"ordered": {"state": levels}, "tiers": [["pain"], ["state", "pulse"]]}
        dear = fitted(model, frame, act_on=["pain"], **stated)
        rows = frame[(pain > 5) & (model(frame) < 0.5)].head(60)
        letters, count = dear.generate(rows).letter(), 0
        for label, letter in letters[letters.str.contains("state being")].items():
            told = re.search(r"pain from \d+ to (\d+).*together with (.*?)\.", letter)
            pulse = re.search(r"pulse at (?:\d+ to )?(\d+)", told[2])
            state = re.search(r"state being (\w+)", told[2])[1]
            row = rows.loc[[label]].assign(pain=int(told[1]), state=state)
            row = row.assign(pulse=float(pulse[1])) if pulse else row
            assert model(row).iloc[0] >= 0.5
            count += state != "good"
        assert count

    def test_what_a_follower_defines_is_not_asked_of_anybody(self):
        """The visits follow the pay, and their square follows by definition."""
        rng = np.random.default_rng(0)
        pay = rng.integers(10, 100, 2000)
        visits = (pay / 5 + rng.normal(0, 1.5, 2000)).round().clip(1).astype(int)
        frame = pd.DataFrame({"pay": pay, "visits": visits, "squared": visits**2})
        model = lambda r: chance(r["pay"] / 20 + r["visits"] - 20 + r["squared"] / 1e3)  # noqa
        tiers = [["pay"], ["visits", "squared"]]
        dear = fitted(model, frame, act_on=["pay"], tiers=tiers)
        result = dear.generate(frame[model(frame) < 0.1].head(20))
        needs = result.actions["credible"] & (result.actions["reliance"] > 0.0)
        assert needs.sum() > 5
        for label in needs.index[needs]:
            text, letter = result.describe(label), result.letter(label)
            assert "follow: visits at" in text and "squared at" not in text
            if letter.startswith(NONE):
                continue
            told = re.search(r"together with visits at (\d+)(?: to \d+)? \(now \d+\), as", letter)
            assert told and "squared" not in letter
            pay, visits = re.search(r"pay from \d+ to (\d+)", letter)[1], int(told[1])
            row = result.factuals.loc[[label]].assign(pay=int(pay), visits=visits)
            assert model(row.assign(squared=visits**2)).iloc[0] >= 0.5


class TestWithinATier:
    """The housing expense is a part of all obligations; both follow the assets."""

    @pytest.fixture(scope="class")
    @classmethod
    def result(cls):
        rng = np.random.default_rng(0)
        housing = rng.gamma(9, 2.8, 3000).round(1)
        every = (housing + rng.gamma(2, 4, 3000)).round(1)
        frame = pd.DataFrame({"assets": rng.gamma(2, 20, 3000).round(), "housing": housing})
        frame = frame.assign(all=every, rate=(every / 9 + rng.normal(0, 0.3, 3000)).round(2))
        model = lambda r: chance((34 + r["assets"] / 20 - r["all"]) / 2)  # noqa: E731
        tiers = [["assets"], ["housing", "all"], ["rate"]]
        dear = fitted(model, frame, act_on=["all"], tiers=tiers)
        assert ("housing", "all") in dear.schema.orders
        return dear.generate(frame[model(frame).between(0.001, 0.4)].head(60))

    def test_no_letter_says_of_an_order_that_it_is_a_definition(self, result):
        for language, by_definition, bound in (
            ("en", "definition", "Then housing cannot be more than"),
            ("de", "feste Regel", "Dann ist nur noch möglich: housing: höchstens"),
        ):
            letters = result.letter(template=language)
            assert not letters.str.contains(by_definition).any()
            assert letters.str.contains(bound).sum() > 3

    def test_what_an_order_forces_has_no_other_value(self, result):
        changes = result.changes
        forced = changes[changes["kind"] == "forced"].set_index("row")
        new = result.counterfactuals["all"]
        assert len(forced) and not forced["exact"].any() and (forced["feature"] == "housing").all()
        assert (forced["alone"] == new[forced.index]).all()
        assert (forced["old"] > new[forced.index]).all()

    def test_a_letter_tells_of_what_follows_only_the_effects(self, result):
        letters = result.letter()
        assert not letters.str.contains("housing will").any()
        assert letters.str.contains("rate will usually fall").sum() > 10
        assert not result.letter(template="de").str.contains("housing sinkt").any()

    def test_changes_and_texts_say_which_is_an_association(self, result):
        follows = result.changes.query("kind == 'indirect'")
        assert (follows["link"] == "effect").eq(follows["feature"] == "rate").all()
        assert (follows["link"] == "association").eq(follows["feature"] == "housing").all()
        assert result.changes.query("kind != 'indirect'")["link"].eq("").all()
        assert result.describe().str.contains("then expect rate to fall").any()
        assert result.describe().str.contains("along with it expect housing to fall").any()
        assert not result.describe().str.contains("then expect housing").any()


# A letter asks for the least that the criteria accept, or says what the model accepts.
@pytest.fixture(scope="module")
def debts():
    """Late payments follow a debt ratio, and boosted trees read both."""
    rng, n = np.random.default_rng(0), 2000
    income = rng.lognormal(8.2, 0.4, n).round(-1)
    ratio = np.clip(rng.normal(36 - 4 * (np.log(income) - 8.2), 9, n), 3, 80).round(1)
    late = rng.poisson(np.clip(0.4 + 0.03 * (ratio - 30), 0.05, 3))
    frame = pd.DataFrame({"income": income, "ratio": ratio, "late": late})
    score = 0.9 * np.log(income / 3600) - 0.12 * (ratio - 36) - 0.8 * late
    label = (score + rng.logistic(0, 0.7, n) - 2 * (ratio > 45) > -0.5).astype(int)
    model = HistGradientBoostingClassifier(max_iter=60, random_state=0).fit(frame, label)
    dear = fitted(model, frame, act_on=["ratio"], tiers=[["income"], ["ratio"], ["late"]])
    rows = frame[model.predict(frame) == 0].head(60)
    letters = dear.generate(rows).letter()
    told = letters.str.extract(
        r"want, reduce ratio from [\d.]+ to (?P<told>[\d.]*\d)"
        r"(?: \((?P<least>[\d.]*\d) may be enough\))?[. ]"
    )
    told = told[told["told"].notna()].astype(float)
    return dear, rows.loc[told.index], told


def test_what_may_be_enough_is_accepted_with_what_follows(debts):
    dear, rows, told = debts
    some = told["least"].notna()
    assert some.sum() > 10
    ratio = told.loc[some, ["least"]].set_axis(["ratio"], axis=1)
    assert dear.apply(rows[some], ratio).actions["success"].all()
    assert (told["told"][some] < ratio["ratio"]).all()
    assert (ratio["ratio"] < rows["ratio"][some]).all()


def test_where_a_third_more_than_that_is_asked_for_the_letter_says_so(debts):
    dear, rows, told = debts
    part = (rows["ratio"] - 0.75 * (rows["ratio"] - told["told"])).round(1)
    every = [
        dear.apply(rows, pd.DataFrame({"ratio": part - share * (part - told["told"])}).round(1))
        for share in np.linspace(0, 0.9, 10)
    ]
    enough = np.all([each.actions["success"] for each in every], axis=0)
    assert enough.sum() > 10
    assert told["least"][enough].notna().all()


class TestACombinationThatNoRowHas:
    """Nobody without work has hours, or a sector: the model takes such rows all the same."""

    @pytest.fixture(scope="class")
    @classmethod
    def workers(cls):
        rng, n = np.random.default_rng(5), 2000
        work = rng.choice(["employed", "retired", "none"], n, p=[0.6, 0.2, 0.2])
        works = work == "employed"
        hours = np.where(works, rng.integers(10, 50, n), 0)
        sector = np.where(works, rng.choice(["public", "private"], n), "not working")
        frame = pd.DataFrame({"work": work, "hours": hours, "sector": sector})
        frame["savings"] = rng.gamma(3, 9, n).round(1)
        gain = lambda r: 0.9 * r["hours"] + 9 * (r["sector"] == "public")  # noqa: E731
        model = lambda r: chance((r["savings"] + gain(r) - 50) / 5)  # noqa: E731
        return frame, model, frame[(model(frame) < 0.5) & ~works].head(20)

    @staticmethod
    def cannot_be(rows):
        works = rows["work"] == "employed"
        return (works != (rows["hours"] > 0)) | (works != (rows["sector"] != "not working"))

    @pytest.mark.parametrize("act_on", [["hours"], ["work"], [("hours", "sector")], None])
    @pytest.mark.parametrize("tiers", [[], [["savings"], ["work"], ["hours", "sector"]]])
    def test_it_does_not_show_that_an_action_is_enough(self, workers, act_on, tiers):
        frame, model, query = workers
        dear = fitted(model, frame, act_on=act_on, tiers=tiers)
        every = dear.generate(query, k=3)
        for rank in range(3):
            result = every[every.rank == rank]
            impossible = self.cannot_be(with_changes(result, result.direct, result.forced))
            impossible &= result.actions["success"] & (result.actions["acted_on"] != "")
            assert (result.actions["reliance"][impossible] > 0.0).all()
            assert not result.describe()[impossible].str.contains("enough by itself").any()
            assert not result.letter()[impossible].str.contains("Nothing else").any()

    def test_the_text_names_what_goes_with_the_action(self, workers):
        frame, model, query = workers
        result = fitted(model, frame, act_on=["hours"]).generate(query)
        assert (model(with_changes(result, result.direct)) >= 0.5).any()
        assert (result.actions["reliance"] == 0.5).all()
        texts = result.describe()
        assert texts.str.contains("The action alone is not feasible").any()
        assert texts.str.contains("work being employed and sector being p").all()

    def test_a_letter_names_what_goes_with_the_action(self, workers):
        """Training leads to work, and the model reads the training alone."""
        frame, _, _ = workers
        rng = np.random.default_rng(0)
        works = frame["work"] == "employed"
        frame = frame.assign(months=np.where(works, rng.integers(12, 60, len(frame)), 0))
        model = lambda r: chance((r["months"] - 20) / 2)  # noqa: E731
        tiers = [["savings"], ["months"], ["work", "hours", "sector"]]
        dear = fitted(model, frame, act_on=["months"], tiers=tiers)
        letters = dear.generate(frame[~works].head(20)).letter()
        told = letters[letters.str.contains("To get the decision")]
        assert told.str.contains("Then work will usually become employed").all()
        assert not told.str.contains("only together|Nothing else").any()


# The model rewards many payments; a larger amount, which goes along, counts against.
@pytest.fixture(scope="module")
def payments():
    rng = np.random.default_rng(0)
    count = rng.integers(10, 140, 3000)
    amount = (count * 50 * rng.lognormal(0, 0.15, 3000)).round()
    frame = pd.DataFrame({"amount": amount, "count": count})
    model = lambda r: chance((r["count"] - 70) / 4 - r["amount"] / 5000)  # noqa: E731
    return frame, model, frame[(model(frame) < 0.5) & (count < 55)].head(40)


def test_an_action_that_does_not_help_is_not_credible_without_tiers_and_has_a_reason(payments):
    frame, model, rows = payments
    result = fitted(model, frame, act_on=["amount"]).generate(rows)
    assert result.actions["success"].any()
    assert not result.actions["credible"].any()
    told = result.actions["reason"][result.actions["success"]]
    assert told.str.contains("an action that does not help by itself").all()
    assert result.letter().str.startswith(NONE).all()


def test_what_does_help_is_proposed_where_it_may_be_acted_on(payments):
    frame, model, rows = payments
    result = fitted(model, frame).generate(rows)
    assert result.actions["credible"].all()
    assert (result.actions["acted_on"] == "count").all()


def test_an_action_that_does_not_help_is_a_chain_of_effects_with_tiers_and_told_as_one(payments):
    frame, model, rows = payments
    dear = fitted(model, frame, act_on=["amount"], tiers=[["amount"], ["count"]])
    result = dear.generate(rows)
    good = result.actions["credible"]
    assert good.any()
    assert result.describe()[good].str.contains("works through what follows, not by").all()


def test_the_search_may_be_told_not_to_ask_whether_an_action_helps(payments):
    frame, model, rows = payments
    dear = fitted(model, frame, act_on=["amount"], search=Search(own_gain=False))
    assert dear.generate(rows).actions["credible"].any()


class TestLetters:
    def test_what_goes_along_is_described_whatever_the_typing_errors(self):
        rng = np.random.default_rng(0)
        high = rng.normal(130, 17, 4000).round()
        low = (high * 0.6 + 4 + rng.normal(0, 4, 4000)).round()
        wrong = rng.random(4000) < 0.015
        low = np.where(wrong, low * rng.uniform(9, 120, 4000), low).round()
        frame = pd.DataFrame({"high": high, "low": low, "age": rng.integers(30, 70, 4000)})
        model = lambda rows: chance((120 - rows["high"]) / 5)  # noqa: E731
        dear = fitted(model, frame, act_on=["high"], immutable=["age"], orders=[])
        result = dear.generate(frame[(high > 150) & ~wrong].head(30))
        fell = result.actions["credible"] & (frame["low"] - result.counterfactuals["low"] >= 15)
        assert fell.sum() > 10
        assert result.describe()[fell].str.contains("along with it expect low to fall").all()
        letters = result.letter()[fell]
        # Without an order of causes no letter says that anything follows.
        assert not letters.str.contains("low").any()
        assert not letters.str.replace("will be decided anew", "").str.contains(" will ").any()

    def test_a_direction_that_resamples_leave_open_is_not_told(self):
        rng = np.random.default_rng(1)
        kind = rng.integers(0, 3, 330)
        mass = np.round(np.array([3700, 3730, 5080])[kind] + rng.normal(0, 430, 330), -1)
        frame = pd.DataFrame(
            {
                "length": np.round(
                    np.array([38.8, 48.8, 47.5])[kind] + rng.normal(0, 2.5, 330), 1
                ),
                "depth": np.round(np.array([18.3, 18.4, 15.0])[kind] + rng.normal(0, 0.9, 330), 1),
                "mass": mass,
            }
        )
        model = RandomForestClassifier(30, random_state=0).fit(frame, kind == 1)
        tiers = [["length"], ["depth", "mass"]]
        dear = fitted(model, frame, act_on=["length"], tiers=tiers)
        result = dear.generate(frame[model.predict(frame) == 0].head(40))
        opened = 0
        for label in result.actions.index[result.actions["success"]]:
            found = re.findall(r"(\w+) to fall by up to [\d.]+ or rise", result.describe(label))
            opened += len(found)
            assert not any(f"{name} will" in result.letter(label) for name in found)
        assert opened

    @staticmethod
    def of_loans(act_on, **more):
        """Answers that need the term to follow the loan, and their letters."""
        frame = DATA.frame.drop(columns="approved")
        model = lambda rows: chance(0.4 * (61 - rows["duration"]))  # noqa: E731
        search = Search(own_gain=False)
        dear = fitted(model, frame, act_on=act_on, search=search, immutable=["gender"], **more)
        result = dear.generate(frame.head(80))
        needs = result.actions["credible"] & (result.actions["reliance"] > 0.0)
        assert needs.sum() > 3
        return result, result.letter()[needs]

    def test_without_tiers_what_nobody_can_see_to_is_not_asked_of_them(self):
        assert self.of_loans(["loan_amount"])[1].str.startswith(NONE).all()

    def test_with_tiers_what_must_follow_is_an_effect_and_a_condition(self):
        _, letters = self.of_loans(["loan_amount"], tiers=DATA.tiers)
        letters = letters[letters.str.contains("To get the decision")]
        assert len(letters) > 3
        condition = r"only together with duration at \d+(?: to \d+)? \(now \d+\), as usually"
        assert letters.str.contains(condition).all()
        assert not letters.str.contains("duration will usually").any()

    def test_a_choice_does_not_just_happen(self):
        act_on = [("loan_amount", "income"), "loan_amount"]
        letters = self.of_loans(act_on, tiers=DATA.tiers)[0].letter()
        assert letters.str.contains("duration at .*, as usually happens").any()
        assert not letters.str.contains("income will usually").any()

    def test_what_the_model_does_not_clearly_favour_is_not_recommended(self):
        """Every other thousand is accepted: a change up gains as often as it loses."""
        frame = pd.DataFrame({"pay": np.arange(0, 40_000, 10), "age": np.arange(4000) % 50})
        model = lambda rows: 0.2 + 0.6 * (rows["pay"] // 1000 % 2)  # noqa: E731
        dear = fitted(model, frame, immutable=["age"], numeric=["pay"])
        result = dear.generate(frame.iloc[[850, 1450]])
        assert result.actions["credible"].any()
        assert (result.actions["consistency"] < 0.7).all()
        assert result.letter().str.startswith(NONE).all()
        harms = r"change that we found \(increase pay from .*\) helps some people and harms others"
        assert result.letter().str.contains(harms).any()
