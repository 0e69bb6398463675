"""SeenPairs: indirect changes create no pair of values that no training row has."""

import numpy as np
import pandas as pd
import pytest

from dear_plugin import DEAR, Encoder, Schema
from dear_plugin.decoders import Transport
from dear_plugin.problem.rules import FEWEST, SeenPairs
from tests.still import Still

N = 3000
AGE, ROLE, MARRIED, SEX, PAY = range(5)
HUSBAND, SINGLE, WIFE = range(3)
LEFT_OUT = "actions are left out that create values that never occur together"


@pytest.fixture(scope="module")
def frame():
    """Husbands are married men, wives are married women, all of them at least 25."""
    rng = np.random.default_rng(0)
    age = rng.integers(15, 75, N)
    sex = rng.choice(["f", "m"], N)
    married = (age >= 25) & (rng.random(N) < 0.3 + 0.006 * age)
    role = np.where(married, np.where(sex == "m", "husband", "wife"), "single")
    pay = (20.0 + 15 * married + 0.4 * age + rng.normal(0, 5, N)).round(1)
    columns = {"age": age, "role": role, "married": np.where(married, "yes", "no")}
    return pd.DataFrame({**columns, "sex": sex, "pay": pay})


@pytest.fixture(scope="module")
def case(frame):
    encoder = Encoder(Schema.infer(frame))
    rows = encoder.rows(frame).numpy()
    return SeenPairs.of(rows, encoder), encoder, rows


def unseen(seen_pairs, rows):
    """(m, k, k) bool, the pairs of values that no training row has."""
    codes = seen_pairs.read(rows)
    return seen_pairs.absent[codes[:, :, None], codes[:, None]] > 0.0


def new_pairs(seen_pairs, rows, x):
    """(m, k, k) bool, the unseen pairs of each row that x does not have."""
    known = seen_pairs.read(rows) == seen_pairs.read(x)
    return unseen(seen_pairs, rows) & ~(known[:, :, None] & known[:, None])


def repaired_rows(seen_pairs, rows, moved, acted):
    """(m, p) the repaired rows of an action on one feature."""
    at = np.broadcast_to(np.arange(rows.shape[1]) == acted, rows.shape)
    return seen_pairs.repair(rows, moved[:, None].copy(), at)[:, 0]


def test_consistent_changes_are_kept(case):
    seen_pairs, _, rows = case
    man = (rows[:, SEX] == 1) & (rows[:, MARRIED] == 0)
    man &= (np.abs(rows[:, AGE] - 50.0) < 10.0) & (np.abs(rows[:, PAY] - 50.0) < 9.0)
    moved = rows[man].copy()
    assert len(moved) > 20
    moved[:, ROLE], moved[:, MARRIED] = HUSBAND, 1.0
    assert np.array_equal(repaired_rows(seen_pairs, rows[man], moved, AGE), moved)


def test_random_changes_leave_no_unseen_pair(case):
    seen_pairs, _, rows = case
    moved = np.random.default_rng(0).permuted(rows, axis=0)
    moved[:, AGE] = rows[:, AGE]
    assert new_pairs(seen_pairs, moved, rows).sum() > 1000
    repaired = repaired_rows(seen_pairs, rows, moved, AGE)
    assert not new_pairs(seen_pairs, repaired, rows).any()
    assert ((repaired == moved) | (repaired == rows)).all()
    assert (repaired != rows).mean() > 0.2


def test_a_factual_with_an_unseen_pair_may_keep_it(case):
    seen_pairs, _, rows = case
    unusual = rows[:20].copy()
    unusual[:, SEX], unusual[:, MARRIED], unusual[:, ROLE] = 0.0, 0.0, HUSBAND
    assert np.array_equal(repaired_rows(seen_pairs, unusual, unusual, AGE), unusual)


def test_numbers_alone_have_no_pairs():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(500, 3)), columns=list("abc"))
    encoder = Encoder(Schema.infer(frame))
    assert SeenPairs.of(encoder.rows(frame).numpy(), encoder) is None


@pytest.fixture(scope="module")
def delays():
    """Months since the last delay are a code for none, and the worst delay is 0 then."""
    rng = np.random.default_rng(0)
    late = rng.random(2000) < 0.5
    frame = pd.DataFrame(
        {
            "months": np.where(late, rng.integers(0, 80, 2000), -7),
            "worst": np.where(late, rng.integers(1, 40, 2000), 0),
            "income": rng.normal(50, 9, 2000).round(1),
        }
    )
    return frame, Schema.infer(frame, special={"months": [-7]})


def test_a_level_of_a_number_beside_values_of_another_is_unseen(delays):
    frame, schema = delays
    encoder = Encoder(schema)
    seen_pairs = SeenPairs.of(encoder.rows(frame).numpy(), encoder)
    never, late = frame[frame["months"] == -7].head(40), frame[frame["worst"] > 9].head(40)
    rows = encoder.rows(pd.concat([never, late])).numpy()
    other = pd.concat([never.assign(worst=20, income=50.0), late.assign(worst=0, income=50.0)])
    moved = encoder.rows(other).numpy()
    repaired = repaired_rows(seen_pairs, rows, moved, 2)
    assert np.array_equal(repaired[:, 1], rows[:, 1])
    assert np.array_equal(repaired[:, 2], moved[:, 2])


def test_few_rows_do_not_make_a_level_of_a_number_exclude_another(delays):
    frame, schema = delays
    held = Encoder(schema).rows(frame.tail(1500).reset_index(drop=True)).numpy()
    rng = np.random.default_rng(1)
    independent = frame.assign(worst=rng.permutation(frame["worst"]))
    encoder = Encoder(schema)
    assert SeenPairs.of(encoder.rows(independent).numpy(), encoder) is None
    seen_pairs = SeenPairs.of(encoder.rows(frame.head(500)).numpy(), encoder)
    new = unseen(seen_pairs, held).any((1, 2))
    assert new.mean() <= 0.005


class Marrying(Still):
    """Whatever is acted on, everybody is expected to become a husband, women and singles too."""

    def decode(self, x, v, values):
        out = super().decode(x, v, values)
        if ROLE not in self.acted:
            out[..., ROLE] = HUSBAND
        return out


@pytest.mark.parametrize("decoder", ["transport", Transport(given=()), Marrying()])
def test_no_answer_has_a_new_unseen_pair(frame, case, decoder):
    seen_pairs, encoder, _ = case

    def rich(rows):
        score = 1.0 / (
            1.0 + np.exp(-(rows["pay"] - 55.0) / 4.0 - 2.0 * (rows["role"] == "husband"))
        )
        return np.column_stack([1.0 - score, score])

    schema = Schema.infer(frame, immutable=["sex"])
    dear = DEAR(rich, schema, act_on=["age", "pay", "married"], decoder=decoder).fit(frame)
    refused = frame[rich(frame)[:, 1] < 0.5].iloc[:200]
    recourses = dear.generate(refused)
    done = recourses.actions["success"].to_numpy()
    assert done.mean() > 0.5
    x, repaired = (encoder.rows(e).numpy() for e in (refused, recourses.counterfactuals))
    followed = seen_pairs.read(repaired) != seen_pairs.read(x)
    followed &= ~recourses.proposal.direct.numpy()[:, seen_pairs.features]
    assert not (unseen(seen_pairs, repaired) & followed[:, :, None])[done].any()


def test_no_action_creates_an_impossible_pair(frame, case):
    """Men who would be accepted as wives are not told to become so; women are, if they marry."""
    seen_pairs, encoder, _ = case
    schema = Schema.infer(frame, immutable=["sex", "age"], definitions={})

    def by_role(rows):
        score = 0.1 + 0.3 * (rows["role"] == "husband") + 0.5 * (rows["role"] == "wife")
        return np.column_stack([1.0 - score, score])

    act_on = ["role", "married", ["role", "married"]]
    dear = DEAR(by_role, schema, act_on=act_on, decoder=Still()).fit(frame)
    some = (frame["role"] != "wife") & (frame["age"] >= 25) & frame["pay"].between(45, 60)
    refused = frame[some].head(60)
    recourses = dear.generate(refused)
    assert not recourses.actions["success"][(refused["sex"] == "m")].any()
    x, reached = (encoder.rows(e).numpy() for e in (refused, recourses.counterfactuals))
    assert not seen_pairs.created(x, reached).any()
    reasons = recourses.actions["reason"][refused["sex"] == "m"]
    assert reasons.str.endswith(LEFT_OUT).all()
    women = recourses.actions.loc[(refused["sex"] == "f") & (refused["role"] == "single")]
    assert women["success"].all()
    assert set(women["acted_on"]) == {"role + married"}


def test_where_every_action_creates_an_impossible_pair_that_is_all_the_reason_says(frame):
    schema = Schema.infer(frame, immutable=["sex", "age"], definitions={})
    model = lambda rows: 0.9 * (rows["role"] == "wife")  # noqa: E731
    dear = DEAR(model, schema, act_on=["role"], decoder=Still()).fit(frame)
    actions = dear.generate(frame[frame["role"] == "husband"].head(20)).actions
    assert not actions["success"].any()
    assert set(actions["reason"]) == {LEFT_OUT}


def test_a_rule_is_named_where_there_is_one(frame):
    def wives_earn(rows):
        return (rows["role"] != "wife") | (rows["pay"] > 0)

    schema = Schema.infer(frame, immutable=["sex", "age"], rules=[wives_earn], definitions={})
    model = lambda rows: 0.9 * (rows["role"] == "wife")  # noqa: E731
    dear = DEAR(model, schema, act_on=["role"], decoder=Still()).fit(frame)
    actions = dear.generate(frame[frame["role"] == "husband"].head(3)).actions
    told = f"{LEFT_OUT}, or break what holds between columns, such as: wives_earn"
    assert set(actions["reason"]) == {told}


def test_pairs_that_are_absent_by_chance_may_be_created():
    """Six of 300 rows have each rare level; levels are independent, and some pairs are unseen."""
    rng = np.random.default_rng(0)
    levels = np.array(list("abcdefghij"))
    draw = lambda: rng.choice(levels, 300, p=[0.46] + 9 * [0.06])  # noqa: E731
    frame = pd.DataFrame({"a": draw(), "b": draw(), "c": draw(), "z": rng.normal(size=300)})
    encoder = Encoder(Schema.infer(frame))
    seen_pairs = SeenPairs.of(encoder.rows(frame).numpy(), encoder)
    assert (seen_pairs.absent > 0.0).sum() > 40
    assert seen_pairs.absent.max() < FEWEST


def test_no_action_sets_a_level_beside_values_that_never_go_along_with_it(delays):
    """Whoever was late some months ago is not told that the worst delay becomes none."""
    frame, schema = delays
    dear = DEAR(
        lambda rows: 0.9 - rows["worst"] / 50, schema, act_on=["worst"], decoder=Still()
    ).fit(frame)
    late = frame[frame["worst"] > 22].head(40)
    reached = dear.generate(late).counterfactuals
    assert (reached["worst"] > 0).all()
    assert (reached["worst"] < late["worst"]).mean() > 0.9
    never = DEAR(lambda rows: 1.0 * (rows["worst"] == 0), schema, act_on=["worst"]).fit(frame)
    result = never.generate(late)
    assert not result.actions["success"].any()
    assert result.actions["reason"].str.contains("never occur together").all()
