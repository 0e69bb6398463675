"""Transport: rows keep their conditional ranks; laws first, then systems of known truth."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import Encoder, Schema, Transport
from dear_plugin.decoders import Decoders, Sample
from dear_plugin.decoders.transport.held import Terms
from dear_plugin.decoders.transport.smooth import Columns, LeastSquares
from dear_plugin.decoders.transport.values import Values, normal_places
from dear_plugin.errors import ConstraintError, NotFittedError

EVERY = torch.arange(1, 17)


class Case:
    """Rows of a frame and decoders of them."""

    def __init__(self, frame, given=None, **schema):
        self.frame, self.encoder = frame, Encoder(Schema.infer(frame, **schema))
        self.rows = self.encoder.rows(frame)
        self.decoders = Decoders(Transport(given), Sample(self.rows, self.encoder), [])

    def of(self, *names):
        return self.decoders.of(tuple(sorted(self.encoder.schema.index(names))))

    def moved(self, names, change, count=300, generator=None):
        """(count, p) the first rows after x_S changes by so much, and their factuals.

        The change is a share of the range.
        """
        x, decoder = self.rows[:count], self.of(*names)
        acted = decoder._fitted.acted
        values = x[:, acted] + change * self.encoder.width[acted]
        return decoder.decode(x, decoder.encode(x, generator), values[:, None])[:, 0], x

    def reached(self, name, value, x, generator=None):
        """(m, p) rows, of which one feature is set to a value."""
        decoder, values = self.of(name), x.new_full((len(x), 1, 1), float(value))
        return decoder.decode(x, decoder.encode(x, generator), values)[:, 0]

    def resampled(self, names, x, values):
        """(m, 16, p) the rows under every resample."""
        return self.of(*names).resample(x, values, EVERY, None)


def ties():
    """Rows between two values go to one of them at random."""
    return torch.Generator().manual_seed(0)


def odd_frame(n=3000, seed=0):
    """A number that all others follow: an atom, an integer, a flag, a category, a copy, a twin."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n).round(3)
    b = a + rng.normal(size=n)
    return pd.DataFrame(
        {
            "a": a,
            "b": b.round(3),
            "atom": np.where(rng.random(n) < 0.5, 0.0, (a + rng.normal(size=n)).round(2)),
            "whole": (2 * a + rng.normal(size=n)).round(),
            "flag": (a + rng.normal(size=n) > 0).astype(int),
            "town": np.array(list("xyz"))[np.digitize(a + rng.normal(size=n), [-0.7, 0.7])],
            "copy": 2.0 * a + 1.0,
            "noise": rng.normal(size=n),
            "group": rng.choice(list("pq"), n),
        }
    )


@pytest.fixture(scope="module")
def odd():
    return Case(odd_frame(), immutable=["group"])


SETS = [("a",), ("whole",), ("flag",), ("town",), ("atom",), ("a", "town"), ("b", "whole", "flag")]


class TestLaws:
    @pytest.mark.parametrize("names", SETS, ids=" + ".join)
    def test_at_their_own_values_rows_are_returned_bit_for_bit(self, odd, names):
        for generator in (None, ties()):
            reached, x = odd.moved(names, 0.0, generator=generator)
            assert torch.equal(reached, x)
        drawn = odd.resampled(names, x, x[:, odd.of(*names)._fitted.acted])
        assert torch.equal(drawn, x[:, None].expand_as(drawn))

    def test_further_resamples_are_others_in_any_order(self, odd):
        x, decoder = odd.rows[:20], odd.of("a")
        first, further, some = (
            decoder.resample(x, x[:, :1] + 0.1, draws, None)
            for draws in (EVERY, EVERY + 16, torch.tensor([20, 3, 1, 32]))
        )
        assert torch.equal(some[:, [2, 1]], first[:, [0, 2]])
        assert torch.equal(some[:, [0, 3]], further[:, [3, 15]])
        assert not (first[:, :, None] == further[:, None]).all((0, 3)).any()

    @pytest.mark.parametrize("names", SETS, ids=" + ".join)
    def test_a_row_does_not_depend_on_the_others_of_its_batch(self, odd, names):
        x, decoder = odd.rows[:40], odd.of(*names)
        values = x[:, decoder._fitted.acted].roll(1, 0)
        together = decoder.decode(x, decoder.encode(x), values[:, None])
        drawn = decoder.resample(x, values, EVERY, None)
        for i in (0, 7, 39):
            one = slice(i, i + 1)
            alone = decoder.decode(x[one], decoder.encode(x[one]), values[one, None])
            assert torch.equal(alone, together[one])
            again = decoder.resample(x[one], values[one], EVERY, None)
            assert torch.equal(again, drawn[one])

    def test_no_row_is_so_near_a_cut_of_the_cells_that_rounding_decides(self):
        # Held features of few combinations: many rows have equal expectations of x_S.
        rng = np.random.default_rng(0)
        age, sex = rng.integers(20, 60, 4000), rng.integers(0, 2, 4000)
        pay = age + 9.0 * sex + rng.normal(size=4000)
        frame = pd.DataFrame({"age": age, "sex": sex, "pay": pay, "home": pay + age})
        case = Case(frame, immutable=["age", "sex"])
        groups = case.of("pay")._fitted.cells._cuts[0]
        score = groups.of(case.rows.numpy())
        assert len(groups.at) > 5
        assert abs(score[:, None] - groups.at).min() > 1e-6

    def test_decoded_values_of_counted_features_are_observed_ones(self, odd):
        reached, _ = odd.moved(["a"], 0.2, 2000)
        for name in ("atom", "whole", "flag", "town"):
            (j,) = odd.encoder.schema.index([name])
            assert set(reached[:, j].tolist()) <= set(odd.rows[:, j].tolist())


class TestWhatMayMove:
    @pytest.mark.parametrize("seed", range(5))
    def test_independent_features_never_move_in_the_estimate_or_a_resample(self, seed):
        rng, n = np.random.default_rng(seed), (800, 2000, 6000)[seed % 3]
        frame = pd.DataFrame(
            {
                "number": rng.normal(size=n),
                "tail": rng.exponential(size=n),
                "count": rng.poisson(3, n),
                "flag": rng.integers(0, 2, n),
                "town": rng.choice(list("uvwxyz"), n, p=[0.4, 0.3, 0.15, 0.1, 0.04, 0.01]),
            }
        )
        case = Case(frame)
        for name in frame:
            decoder, x = case.of(name), case.rows[:100]
            values = x[:, decoder._fitted.acted].roll(1, 0)
            others = [j for j in range(5) if j not in decoder._fitted.acted]
            reached = decoder.decode(x, decoder.encode(x), values[:, None])[:, 0]
            assert torch.equal(reached[:, others], x[:, others])
            drawn = case.resampled([name], x, values)[..., others]
            assert torch.equal(drawn, x[:, None, others].expand_as(drawn))

    def test_a_linear_copy_follows_in_every_row(self, odd):
        (j,) = odd.encoder.schema.index(["copy"])
        reached, x = odd.moved(["a"], 0.11)
        change = 2.0 * 0.11 * odd.encoder.width[0]
        torch.testing.assert_close(reached[:, j], x[:, j] + change, atol=1e-5, rtol=0.0)

    @pytest.mark.parametrize("kind", ["smooth", "counted"])
    def test_twins_are_never_parted(self, kind):
        rng = np.random.default_rng(0)
        a, n = rng.normal(size=4000), 4000
        b = a + rng.normal(size=n)
        b = b if kind == "smooth" else b.round()
        case = Case(pd.DataFrame({"a": a, "b": b, "twin": b}))
        reached, x = case.moved(["a"], 0.2)
        assert torch.equal(reached[:, 1], reached[:, 2])
        assert not torch.equal(reached[:, 1], x[:, 1])
        drawn = case.resampled(["a"], x, x[:, :1] + 2.0)
        assert torch.equal(drawn[..., 1], drawn[..., 2])

    def test_a_twin_of_what_is_acted_on_takes_its_value_bit_for_bit(self):
        a = np.random.default_rng(0).normal(size=4000)
        case = Case(pd.DataFrame({"a": a, "twin": a}))
        reached, x = case.moved(["a"], 0.1234, 4000)
        assert torch.equal(reached[:, 0], x[:, 0] + 0.1234 * case.encoder.width[0])
        assert torch.equal(reached[:, 1], reached[:, 0])
        values = x[:50, :1] + 0.1234
        drawn = case.resampled(["a"], x[:50], values)
        assert torch.equal(drawn[..., 1], values.expand(-1, len(EVERY)))

    def test_what_a_cell_has_never_seen_stays_impossible_there(self):
        """Nobody of group q is in town z."""
        rng, n = np.random.default_rng(0), 4000
        a, group = rng.normal(size=n), rng.choice(list("pq"), n)
        town = np.array(list("xyz"))[np.digitize(a + 0.3 * rng.normal(size=n), [0.0, 1.0])]
        town[(group == "q") & (town == "z")] = "y"
        case = Case(pd.DataFrame({"a": a, "town": town, "group": group}), immutable=["group"])
        reached, _ = case.moved(["a"], 0.5, 4000)
        moved = case.encoder.frame(reached)
        assert (moved["town"] == "z").mean() > 0.3
        assert not ((moved["town"] == "z") & (moved["group"] == "q")).any()

    def test_a_held_category_without_training_rows_is_compared_with_all_rows(self):
        """Rows of the category p have a cell of their own, as do those of q; r has none."""
        rng = np.random.default_rng(0)
        a = rng.integers(0, 10, 3000)
        frame = pd.DataFrame({"a": a, "b": a // 2 + rng.integers(0, 3, 3000)})
        frame["group"] = rng.choice(list("pqr"), 3000)
        case, known = Case(frame, immutable=["group"]), torch.tensor(frame["group"] != "r")
        case.decoders = Decoders(Transport(), Sample(case.rows[known], case.encoder), [])
        moved = case.reached("a", 9.0, case.rows[~known])[:, 1]
        # At a = 9 these are 4, 5 and 6, a third each.
        shares = [(moved == value).double().mean().item() for value in (4, 5, 6)]
        assert shares == pytest.approx([1 / 3] * 3, abs=0.1)

    def test_given_replaces_what_the_schema_holds(self, odd):
        case = Case(odd.frame, given=["noise"], immutable=["group"])
        assert case.decoders.held((0,)) == case.encoder.schema.index(["noise"])
        with pytest.raises(ConstraintError, match=r"\['noise'\] are given, so they cannot"):
            case.of("noise")
        with pytest.raises(ConstraintError, match="given must be a list"):
            Transport("immutable")


class TestKnownTruth:
    def test_a_flag_and_a_category_have_the_probabilities_of_the_data(self, odd):
        """With ties at random, rows moved to a place look like those that are there."""
        (flag, town), a = odd.encoder.schema.index(["flag", "town"]), odd.rows[:, 0]
        at = float(a.quantile(0.85))
        near = (a - at).abs() < 0.03 * odd.encoder.width[0]
        reached = odd.reached("a", at, odd.rows, ties())
        for feature, level in ((flag, 1), (town, 0), (town, 1), (town, 2)):
            there = float((odd.rows[near, feature] == level).float().mean())
            share = float((reached[:, feature] == level).float().mean())
            assert share == pytest.approx(there, abs=0.08)

    def test_a_straight_line_and_a_bent_one_are_followed(self):
        rng, n = np.random.default_rng(0), 8000
        a = rng.uniform(-1, 1, n)
        frame = pd.DataFrame({"a": a, "line": 2 * a, "bend": np.abs(a)})
        frame[["line", "bend"]] += rng.normal(size=(n, 2)) * 0.3
        case = Case(frame)
        reached, _ = case.moved(["a"], 0.1, n)
        change = (reached - case.rows).numpy()
        step, low = 0.1 * case.encoder.schema.features[0].width, a < -0.3
        assert change[:, 1].mean() == pytest.approx(2 * step, rel=0.05)
        assert change[low, 2].mean() == pytest.approx(-step, rel=0.15)
        assert change[a > 0.3, 2].mean() == pytest.approx(step, rel=0.15)

    def test_an_outlier_of_what_is_acted_on_is_no_evidence_of_a_slope(self):
        """Two in a thousand use ten thousand times their limit; the others follow a line."""
        rng, n = np.random.default_rng(0), 5000
        use = rng.uniform(0, 1, n)
        age = 60 - 20 * use + 8 * rng.normal(size=n)
        use[:10] = 10_000 * rng.uniform(1, 2, 10)
        frame = pd.DataFrame({"use": use, "age": age, "percent": 100.0 * use + 3.0})
        case = Case(frame)
        x = case.rows[10:]
        moved = case.reached("use", case.encoder.high[0], x)
        assert -30 < float((moved - x)[:, 1].mean()) < -10
        assert torch.allclose(moved[:, 2], case.encoder.high[2], rtol=1e-6)

    def test_the_spread_is_rescaled_where_it_follows_x_s(self):
        rng, n = np.random.default_rng(0), 8000
        a = rng.uniform(0, 1, n)
        case = Case(pd.DataFrame({"a": a, "b": np.exp(a) * rng.normal(size=n)}))
        low = case.rows[torch.from_numpy(a < 0.2)]
        ratio = float(case.reached("a", 1.0, low)[:, 1].std() / low[:, 1].std())
        assert ratio == pytest.approx(np.exp(0.9), rel=0.15)


class TestWhatFollowsIsTheEffect:
    @pytest.mark.parametrize("decimals", [0, 3])
    def test_a_heavy_value_may_be_a_jump_that_is_told_there_only(self, decimals):
        rng, n = np.random.default_rng(0), 4000
        hours = np.where(rng.random(n) < 0.47, 40.0, (38 + 8 * rng.normal(size=n)).round(1))
        pay = (1000 + 300 * (hours == 40) + 150 * rng.normal(size=n)).round(decimals)
        case = Case(pd.DataFrame({"hours": hours, "pay": pay}))
        x = case.rows[hours < 35]
        for value, expected in ((38.0, 0.0), (40.0, 300.0)):
            change = (case.reached("hours", value, x) - x)[:, 1]
            assert float(change.mean()) == pytest.approx(expected, abs=20.0)

    def test_held_features_that_say_little_of_x_s_are_no_effect_of_it(self):
        """Nearly half have no loan; of the others income and children say a little how much."""
        rng, n = np.random.default_rng(0), 6000
        kids, income = rng.poisson(0.6, n), np.exp(7.5 + 0.5 * rng.normal(size=n))
        held = {"kids": kids, "income": income.round(-1)}
        held |= {name: rng.normal(size=n).round(2) for name in "abcd"}
        loans = (0.04 * income + 30 * kids + 70 * rng.normal(size=n)).clip(0).round(-1)
        frame = pd.DataFrame(held | {"loans": np.where(rng.random(n) < 0.45, 0.0, loans)})
        area = 20 + 18 * kids + 0.006 * income + 8 * rng.normal(size=n)
        frame["area"] = area.clip(18).round()
        case = Case(frame, tiers=[[*held], ["loans"], ["area"]])
        x = case.rows[(frame["loans"] >= 150).to_list()]
        decoder, acted = case.of("loans"), case.encoder.schema.index(["loans"])
        change = decoder.decode(x, decoder.encode(x), x[:, None, acted] - 100)[:, 0] - x
        assert abs(float(change[:, -1].mean())) < 0.05 * frame["area"].std()

    def test_rows_of_equal_expectation_that_differ_in_how_many_are_0_are_not_compared(self):
        """An immutable score depends on the loan: of those with a high one most have none."""
        rng, n = np.random.default_rng(0), 8000
        kids, income = rng.poisson(0.6, n), np.exp(7.5 + 0.5 * rng.normal(size=n))
        loans = (60 + 0.05 * income + 30 * kids + 40 * rng.normal(size=n)).clip(0).round(-1)
        loans = np.where(rng.random(n) < 0.45, 0.0, loans)
        score = (72 - 0.06 * loans + 0.004 * income + 4 * rng.normal(size=n)).round()
        area = (20 + 18 * kids + 0.006 * income + 8 * rng.normal(size=n)).clip(18).round()
        own = {"kids": kids, "income": income.round(-1)}
        frame = pd.DataFrame(own | {"loans": loans, "score": score, "area": area})
        tiers = [[*own], ["loans"], ["score"], ["area"]]
        case = Case(frame, tiers=tiers, immutable=["score"])
        x = case.rows[loans >= 150]
        decoder, acted = case.of("loans"), case.encoder.schema.index(["loans"])
        change = decoder.decode(x, decoder.encode(x), x[:, None, acted] - 100)[:, 0] - x
        assert abs(float(change[:, -1].mean())) < 0.05 * area.std()

    @pytest.mark.parametrize("n", [4000, 20_000])
    def test_counts_follow_counts_also_from_and_to_the_rare_ones(self, n):
        rng = np.random.default_rng(0)
        h = rng.normal(size=n)
        visits = rng.poisson(np.exp(1 + 0.3 * h))
        frame = pd.DataFrame({"h": h, "visits": visits})
        frame["bills"] = rng.poisson(np.exp(0.5 + 0.15 * visits + 0.3 * h))
        case = Case(frame, tiers=[["h"], ["visits"], ["bills"]])
        step = 2 / case.encoder.schema.features[1].width
        reached, x = case.moved(["visits"], step, n, ties())
        change = (reached - x)[:, 2].numpy()
        true = np.exp(0.5 + 0.15 * visits + 0.3 * h) * (np.exp(0.3) - 1)
        some = visits <= np.quantile(visits, 0.99) - 2
        assert change[some].mean() == pytest.approx(
            true[some].mean(), abs=0.08 * frame["bills"].std()
        )
        rare = some & (visits >= np.quantile(visits, 0.9))
        assert change[rare].mean() > 0.5 * true[rare].mean()

    def test_where_ratios_beyond_the_outer_bins_would_be_negative_a_value_stays_possible(self):
        """Nearly all with twenty rooms or more live away, but in one group nobody does."""
        rng, n = np.random.default_rng(0), 4000
        rooms, only = np.r_[np.arange(n - 80) % 20, 20 + np.arange(80) % 4], rng.random(n) < 0.3
        away = ~only & (rng.random(n) < np.where(rooms < 20, 0.1, 0.98))
        frame = pd.DataFrame({"only": only.astype(int), "rooms": rooms, "away": away.astype(int)})
        case = Case(frame, immutable=["only"])
        assert bool((case.reached("rooms", 23.0, case.rows[only])[:, 2] == 0.0).all())

    def test_rows_of_equal_expected_x_s_are_compared_with_rows_like_them(self):
        """The young and the old have little schooling; of the young hardly anybody is married."""
        rng, n = np.random.default_rng(0), 24_000
        age = rng.uniform(20, 80, n)
        school = 12 - np.abs(age - 50) / 10 + rng.normal(size=n)
        odds = np.exp(school - 10.5 - 5 * (age < 50))
        married = (rng.random(n) < odds / (1 + odds)).astype(int)
        frame = pd.DataFrame({"age": age, "school": school, "married": married})
        case = Case(frame, tiers=[["age"], ["school"], ["married"]])
        case.decoders = Decoders(Transport(), Sample(case.rows, case.encoder), [(1,)])
        step = 1 / case.encoder.schema.features[1].width
        reached, before = case.moved(["school"], step, n, ties())
        change = (reached - before)[:, 2].numpy()
        true = odds * np.e / (1 + odds * np.e) - odds / (1 + odds)
        assert change[age < 45].mean() == pytest.approx(true[age < 45].mean(), abs=0.01)

    def test_a_heavy_value_is_a_place_of_its_own_for_counted_features(self):
        """Nobody who saves anything is without an account."""
        rng, n = np.random.default_rng(0), 4000
        none = rng.random(n) < 0.6
        savings = np.where(none, 0.0, np.exp(0.5 * rng.normal(size=n)).round(2))
        frame = pd.DataFrame({"savings": savings, "account": (~none).astype(int)})
        case = Case(frame)
        reached = case.reached("savings", savings[~none].min(), case.rows[none])
        assert bool((reached[:, 1] == 1.0).all())

    def test_a_count_of_three_that_act_has_the_mean_that_each_of_them_adds(self):
        """One row in 250 has all three as high."""
        rng, n = np.random.default_rng(0), 6000
        x = rng.normal(size=(n, 3)).round(3)
        effect = np.array([0.2, 0.15, 0.25])
        frame = pd.DataFrame(x, columns=["a", "b", "c"])
        frame["count"] = rng.poisson(np.exp(0.3 + x @ effect))
        case = Case(frame, tiers=[["a", "b", "c"], ["count"]])
        decoder, rows = case.of("a", "b", "c"), case.rows[:2000]
        values = torch.tensor([-1.0, 0.0, 1.0]).double()[:, None].expand(2000, 3, 3)
        reached = decoder.decode(rows, decoder.encode(rows, ties()), values)[..., 3].mean(0)
        true = np.exp(0.3 + np.array([-1.0, 0.0, 1.0]) * effect.sum())
        assert reached.numpy() == pytest.approx(true, rel=0.08)

    def test_what_a_held_category_of_many_levels_explains_is_not_told_of_what_acts(self):
        """Forty towns of unequal size, of 100 rows on average, move both."""
        rng, n = np.random.default_rng(0), 4000
        town = np.minimum(rng.geometric(0.05, n) - 1, 39)
        adds = rng.normal(size=40)
        frame = pd.DataFrame({"town": np.array([f"t{i}" for i in range(40)])[town]})
        frame["x"] = adds[town] + rng.normal(size=n)
        frame["count"] = rng.poisson(np.exp(0.5 + 0.6 * adds[town]))
        case = Case(frame, tiers=[["town"], ["x"], ["count"]])
        reached, x = case.moved(["x"], 1.0 / case.encoder.schema.features[1].width, n, ties())
        change = float((reached - x)[:, 2].mean()) / frame["count"].std()
        assert change == pytest.approx(0.0, abs=0.03)


class TestPlaces:
    """Along them the mean of a count is log-linear."""

    @staticmethod
    def of(column):
        case = Case(pd.DataFrame({"a": np.arange(len(column)) % 7, "b": column}))
        values = Values.of(case.decoders.sample, 1)
        rows = torch.bincount(values.codes, minlength=len(values.levels)).double()
        return values.place, normal_places(rows * ~values.levels.isnan())

    def test_those_of_a_poisson_count_are_its_values(self):
        place, _ = self.of(np.random.default_rng(0).poisson(2.0, 5000).astype(float))
        assert place.diff()[:6].numpy() == pytest.approx(float(place.diff()[0]), rel=0.08)

    def test_those_of_a_lognormal_amount_are_its_ranks(self):
        amounts = np.exp(torch.special.ndtri((torch.arange(3000) + 0.5) / 3000).double().numpy())
        place, ranks = self.of(np.r_[amounts, np.ones(60)])
        middle = slice(3, -3)
        assert torch.allclose(place[middle], ranks[middle], atol=0.15)

    def test_those_of_a_number_below_zero_are_its_ranks(self):
        place, ranks = self.of(np.arange(3000) % 9 - 4.0)
        assert torch.equal(place, ranks)


class TestOddTables:
    @pytest.mark.parametrize("n", [2, 5, 30])
    def test_a_few_rows_are_enough(self, n):
        frame = odd_frame(300).iloc[:n]
        frame = frame.assign(town=pd.Categorical(frame["town"], list("xyz")), flag=1.0)
        case = Case(frame)
        for name in ("a", "whole", "town"):
            reached, x = case.moved([name], 0.0, n)
            assert torch.equal(reached, x)
            assert case.resampled([name], x, x[:, :1]).isfinite().all()

    def test_special_levels_are_places_of_their_own(self):
        """Where the number is -9, the flag is never set."""
        rng, n = np.random.default_rng(0), 4000
        a = rng.uniform(1, 2, n)
        coded = rng.random(n) < 0.3
        flag = ((rng.random(n) < a - 1) & ~coded).astype(int)
        frame = pd.DataFrame({"a": np.where(coded, -9.0, a), "flag": flag})
        case = Case(frame, special={"a": [-9.0]})
        x = case.rows[(~coded) & (flag == 1)][:50]
        assert not case.reached("a", case.rows[coded][0, 0], x)[:, 1].any()

    def test_categories_that_determine_each_other_and_are_missing_together_are_followed(self):
        """Where work is missing or unpaid, no row reaches the splits of the other sectors."""
        rng, n = np.random.default_rng(0), 4000
        work = rng.choice(["state", "city", "own", "unpaid", "none"], n)
        sector = {"state": "ab", "city": "cd", "own": "ef", "unpaid": "g", "none": "-"}
        frame = pd.DataFrame({"work": work, "sector": [rng.choice([*sector[w]]) for w in work]})
        frame = frame.replace({"none": None, "-": None})
        case = Case(frame)
        x = case.rows
        for level in range(5):
            moved = case.reached("work", level, x, ties())[:, 1]
            there = x[x[:, 0] == level, 1]
            shares = [
                torch.bincount(each.long(), minlength=8) / len(each) for each in (moved, there)
            ]
            assert shares[0].tolist() == pytest.approx(shares[1].tolist(), abs=0.05)
        assert case.resampled(["work"], x, x[:, :1]).isfinite().all()

    def test_a_known_number_stays_known_and_is_missing_in_some_resamples(self):
        """Three quarters of the rows are known where a is low, and a third where it is high."""
        rng, n = np.random.default_rng(0), 4000
        a = rng.normal(size=n)
        known = rng.normal(size=n) > 0.8 * a
        b = np.where(known, a + rng.normal(size=n), np.nan)
        case = Case(pd.DataFrame({"a": a, "b": b}))
        few = case.rows[known][:300]
        rows = case.reached("a", 1.5, few)
        assert case.encoder.amounts(rows).all()
        drawn = case.resampled(["a"], few, torch.full((300, 1), 1.5).double())
        assert 0.2 < float((~case.encoder.amounts(drawn))[..., 1].double().mean()) < 0.9
        assert (rows[:, 1] - few[:, 1]).mean() == pytest.approx(
            float((1.5 - few[:, 0]).mean()), abs=0.25
        )

    def test_resamples_place_a_row_elsewhere_among_its_equals(self):
        """The flag is on in half of the rows and then in four fifths: three in five change."""
        rng, n = np.random.default_rng(0), 20_000
        a = rng.integers(0, 2, n)
        flag = (rng.random(n) < np.where(a > 0, 0.8, 0.5)).astype(int)
        case = Case(pd.DataFrame({"a": a, "flag": flag}))
        rows = case.rows[(a == 0) & (flag == 0)][:5]
        drawn = case.resampled(["a"], rows, torch.ones(5, 1).double())[..., 1]
        assert (drawn == drawn[:1]).all()
        assert float(drawn.mean()) == pytest.approx(0.6, abs=0.1)

    def test_cells_cut_by_all_held_features_compare_equal_rows_only(self):
        frame = odd_frame(3000)
        frame["half"] = np.arange(3000) % 2
        assert Case(frame, immutable=["group", "half"]).of("a").uncompared == 0.0

    def test_before_fit_it_raises(self):
        with pytest.raises(NotFittedError, match="call fit first"):
            Transport().encode(torch.zeros(1, 2))

    def test_of_very_many_rows_a_part_is_fitted_on_the_same_in_every_call(self, odd, monkeypatch):
        monkeypatch.setattr("dear_plugin.decoders.collection.MOST_ROWS", 2000)
        monkeypatch.setattr("dear_plugin.decoders.collection.FEWER_ROWS", 500)
        sample = Sample(odd.rows, odd.encoder)
        made = [Decoders(Transport(), sample, [(0,)]) for _ in range(2)]
        (given, other), (again, _) = ([d.fit_of((j,)).sample for j in (0, 3)] for d in made)
        assert (len(given), len(other), len(sample)) == (2000, 500, 3000)
        assert torch.equal(given.rows, again.rows)
        assert len(given.rows[:, 7].unique()) == 2000  # noise: no row is taken twice
        assert sample.at_most(3000) is sample

    def test_sets_on_fewer_rows_have_the_trees_of_those_on_more(self, odd, monkeypatch):
        monkeypatch.setattr("dear_plugin.decoders.collection.FEWER_ROWS", 500)
        decoders = Decoders(Transport(), Sample(odd.rows, odd.encoder), [(0,)])
        one, both = (decoders.of(each)._fitted for each in [(0,), (0, 1)])
        assert (len(one._set.sample), len(both._set.sample)) == (3000, 500)
        assert both._columns._balance[0] is one._columns._balance[0]

    def test_what_grew_a_tree_of_the_whole_does_not_test_it_on_fewer_rows(self, odd):
        # Trees grow on the even rows.
        numbered = odd.rows.clone()
        numbered[:, 7] = torch.arange(3000)
        some = Sample(numbered, odd.encoder).at_most(501, shares=True)
        assert torch.equal(some.rows[:, 7] % 2, torch.arange(501).double() % 2)
        assert len(some.rows[:, 7].unique()) == 501


def test_only_complete_rows_count_where_it_is_tested_whether_spreads_follow():
    rng = np.random.default_rng(0)
    n = 700  # no multiple of 64
    x, held = rng.normal(size=n), rng.normal(size=n).round(1)
    frame = pd.DataFrame({"x": x, "held": held, "y": x + rng.normal(size=n)})
    frame.loc[:299, "held"] = np.nan
    encoder = Encoder(Schema.infer(frame, immutable=["held"]))
    sample = Sample(encoder.rows(frame), encoder)
    moves = torch.tensor([False, False, True])
    fit = LeastSquares(sample, Columns(sample, (0,), (1,), ()), moves, tested=1)
    ((part, plain, more),) = fit._parts()
    left = fit._values[part][:, fit._own] - np.concatenate([plain, more], 1) @ fit._fit.numpy()
    one, none = torch.ones(1).bool(), torch.zeros(1).bool()
    logs = fit._targets(part, plain, more, (none, one))
    np.testing.assert_allclose(logs[300:], np.log(abs(left[300:])))
    assert not logs[:300].any()


def test_a_category_that_no_training_row_has_is_like_the_mean_of_those_that_they_have():
    frame = pd.DataFrame({"town": list("abbc") * 100, "x": np.arange(400.0)})
    encoder = Encoder(Schema.infer(frame))
    terms = Terms(Sample(encoder.rows(frame), encoder), (0,))
    columns = terms(np.array([[1.0], [3.0]]))
    np.testing.assert_allclose(columns, [[0, 1, 0], [1 / 3] * 3])


def test_what_cannot_follow_has_no_part_in_the_groups_of_what_does():
    rng = np.random.default_rng(0)
    age, x = rng.normal(size=(2, 4000))
    y = np.where(age > 0.5, 2.0, -1.0) * x + rng.normal(size=4000)
    causes, reached = {"x": ["age"], "y": ["x", "age"], "z": ["age"]}, []
    for z in (np.where(age > -0.5, 9.0, -9.0) * x, rng.normal(size=4000)):
        frame = pd.DataFrame({"age": age, "x": x, "y": y, "z": z})
        case = Case(frame, immutable=["age"], causes=causes)
        reached.append(case.moved(["x"], 0.1)[0][:, :3])
    assert torch.equal(*reached)


def test_fitted_sets_share_the_rows_and_targets_of_their_regressions():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 6)), columns=list("abcdef"))
    encoder = Encoder(Schema.infer(frame))
    sets = [(j,) for j in range(6)]
    decoders = Decoders(Transport(), Sample(encoder.rows(frame), encoder), sets)
    decoders.fit(sets)
    one, *others = [decoders.of(each)._estimate._fits[0]._held for each in sets]
    assert all(other is one for other in others)
