"""Given: people are compared with those who are like them in what cannot move."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, ActionSets, Encoder, Schema
from dear_plugin.decoders import Transport
from dear_plugin.decoders.transport.conditioning import (
    FEW_VALUES,
    LEAST_ROWS,
    MOST_CELLS,
    Conditioning,
)
from dear_plugin.errors import ConstraintError, SchemaError

N = 8000


def people(n=N, seed=0) -> pd.DataFrame:
    """Men earn more and pay more often; schooling helps both alike, but men have more of it.

    So among everybody schooling goes with pay more closely than it does among men or women.
    """
    rng = np.random.default_rng(seed)
    male, age = rng.random(n) < 0.5, rng.uniform(20, 70, n)
    school = rng.binomial(8, np.where(male, 0.65, 0.35))
    pays = rng.random(n) < 0.1 + 0.05 * school + 0.4 * male
    wage = 10 + 1.0 * school + 8.0 * male + 0.3 * age + rng.normal(0, 2, n)
    return pd.DataFrame(
        {
            "sex": np.where(male, "male", "female"),
            "age": age,
            "school": school,
            "pays": np.where(pays, "yes", "no"),
            "wage": wage,
        }
    )


def fitted(frame, given, act_on=("school",), **marks):
    """A decoder, its gate and the rows it was fitted on."""
    encoder = Encoder(Schema.infer(frame, **marks))
    rows, decoder = encoder.rows(frame), Transport(given=given)
    decoder.fit(rows, encoder, ActionSets.of(encoder.schema, act_on))
    return decoder, encoder, rows


def moved(decoder, rows, value, ties=None):
    """(n, p) everybody at one value of the first set's feature."""
    wide, sets = torch.full((len(rows), 1, 1), value), torch.zeros(len(rows), dtype=torch.int64)
    return decoder.decode(rows, decoder.encode(rows, ties)[:, 0], wide, sets)[:, 0]


class TestCells:
    """Whom people are compared with."""

    @staticmethod
    def cells(frame, names):
        encoder = Encoder(Schema.infer(frame))
        rows = encoder.rows(frame)
        given = Conditioning.of(rows, encoder, encoder.schema.index(names))
        return given, given.cells(rows)

    def test_without_anything_given_all_are_compared_with_all(self):
        given, cells = self.cells(people(), [])
        assert len(given) == 1
        assert (cells == 0).all()

    def test_few_values_are_strata(self):
        frame = people()
        _, cells = self.cells(frame, ["sex", "school"])
        apart = frame.groupby(["sex", "school"]).ngroup().to_numpy()
        common = frame.groupby(["sex", "school"])["age"].transform("size") >= LEAST_ROWS
        pairs = set(
            zip(cells[torch.tensor(common.to_numpy())].tolist(), apart[common], strict=True)
        )
        assert len(pairs) == len({c for c, _ in pairs}) == len({a for _, a in pairs}) > 5

    def test_many_values_are_cut_at_quintiles(self):
        frame = people()
        _, cells = self.cells(frame, ["age"])
        ends = frame["age"].groupby(cells.numpy()).agg(["min", "max", "size"]).sort_values("min")
        assert ends["size"].tolist() == pytest.approx([N / 5] * 5, abs=1)
        assert (ends["max"].to_numpy()[:-1] < ends["min"].to_numpy()[1:]).all()

    def test_a_cell_with_few_rows_falls_back_to_a_coarser_one(self):
        """Of 40 people from B and 7,960 from A, men and women of A alone make cells."""
        frame = people().assign(town=np.where(np.arange(N) < 40, "B", "A"))
        given, cells = self.cells(frame, ["sex", "town"])
        few = frame["town"] == "B"
        assert len(given) == 5  # everyone; women, men; and those of A among them
        for sex in ("female", "male"):
            here = cells[torch.tensor(few & (frame["sex"] == sex))].unique()
            assert len(here) == 1
            crowd = given.crowd(*self.crowded(frame))
            assert len(crowd.cells[int(here)]) == (frame["sex"] == sex).sum()

    @staticmethod
    def crowded(frame):
        encoder = Encoder(Schema.infer(frame))
        return encoder.rows(frame), encoder, ActionSets.of(encoder.schema, ["school"])

    def test_everyone_and_whoever_shares_a_cell_are_its_members(self):
        frame = people(3000)
        given, cells = self.cells(frame, ["sex"])
        crowd = given.crowd(*self.crowded(frame))
        assert crowd.cells[0].tolist() == list(range(3000))
        for cell in (1, 2):
            assert torch.equal(crowd.cells[cell], (cells == cell).nonzero()[:, 0])

    def test_few_people_are_one_cell(self):
        given, _ = self.cells(people(200), ["sex", "age"])
        assert len(given) == 1

    def test_of_many_categories_the_most_frequent_stay_apart(self):
        town = np.arange(12_000) % 16
        town[: 12_000 // 2] %= 4
        frame = people(12_000).assign(town=[f"t{i:02}" for i in town])
        _, cells = self.cells(frame, ["town"])
        found = pd.Series(cells.numpy()).groupby(frame["town"]).agg(["nunique", "first"])
        assert (found["nunique"] == 1).all()
        assert found["first"].nunique() == FEW_VALUES

    def test_however_much_is_given_the_cells_stay_few_and_people_are_found(self):
        rng = np.random.default_rng(0)
        frame = people(4000)
        for j in range(30):
            frame[f"flag{j}"] = rng.integers(0, 2 if j % 2 else 1, 4000)
        given, cells = self.cells(frame, [f"flag{j}" for j in range(30)])
        assert 2 < len(given) <= 2 * MOST_CELLS
        assert (cells > 0).all()

    def test_people_never_seen_have_a_cell_too(self):
        frame = people()
        given, _ = self.cells(frame, ["sex", "age"])
        encoder = Encoder(Schema.infer(frame))
        strange = encoder.rows(frame[:50]) + torch.tensor([0.0, 3.0, 0.0, 0.0, 0.0])
        assert (given.cells(strange) < len(given)).all()


class TestAtoms:
    """A feature with atoms is counted among people of the same cell."""

    @pytest.mark.parametrize("given", [(), ("sex",)])
    @pytest.mark.parametrize("school", [2, 4, 6])
    def test_with_random_ties_as_many_pay_as_among_the_like(self, given, school):
        frame = people(20_000)
        decoder, encoder, rows = fitted(frame, given)
        rng = torch.Generator().manual_seed(0)
        made = moved(decoder, rows, school / 8, rng)[:, encoder.schema.index(["pays"])[0]]
        here = frame[frame["school"] == school]
        for sex in ("female", "male"):
            like = here[here["sex"] == sex] if given else here
            came = made[torch.tensor(frame["sex"] == sex)].mean().item()
            if given:
                assert came == pytest.approx((like["pays"] == "yes").mean(), abs=0.04)
        if not given:
            assert made.mean().item() == pytest.approx((here["pays"] == "yes").mean(), abs=0.03)

    def test_the_shares_that_are_told_are_those_of_the_like(self):
        frame = people(20_000)
        decoder, _, rows = fitted(frame, ["sex"])
        values, sets = torch.tensor([[[0.25], [0.75]]]), torch.tensor([0])
        for sex in ("female", "male"):
            own = frame[frame["sex"] == sex]
            x = rows[own.index[:1]]
            told = decoder.flip_probabilities(x, values, sets)[3]
            before, after = ((own[own["school"] == k]["pays"] == "yes").mean() for k in (2, 6))
            kept = min(1.0, (1 - after) / (1 - before))
            paid = own["pays"].iloc[0] == "yes"
            expected = (1.0, min(1.0, after / before)) if paid else (0.0, 1.0 - kept)
            assert told == pytest.approx(expected, abs=0.03)


class TestNumbers:
    """An atom-free feature follows the partial slope: as far as it goes at equal values."""

    @staticmethod
    def worth(given):
        """What a year of school brings, in wage, on average."""
        decoder, encoder, rows = fitted(people(20_000), given)
        low, high = (moved(decoder, rows[:500], a / 8)[:, 4].mean().item() for a in (2, 6))
        return (high - low) * encoder.schema.features[4].width / 4

    @pytest.mark.parametrize("given", [["sex"], ["sex", "age"]])
    def test_a_year_of_school_is_worth_what_it_is_among_the_like(self, given):
        assert self.worth(given) == pytest.approx(1.0, abs=0.06)

    def test_among_everybody_it_is_worth_more_for_those_with_more_of_it_are_men(self):
        assert self.worth(()) > 2.2

    def test_what_is_given_to_a_category_too(self):
        """Acting on sex: men earn 8 more, not 8 and what their schooling brings."""
        frame = people(20_000)
        decoder, encoder, rows = fitted(frame, ["school", "age"], act_on=["sex"])
        gap = moved(decoder, rows, 1.0)[:, 4] - moved(decoder, rows, 0.0)[:, 4]
        assert gap.mean().item() * encoder.schema.features[4].width == pytest.approx(8, abs=0.15)

    def test_to_a_group_too(self):
        frame = people(20_000)
        decoder, encoder, rows = fitted(frame, ["sex"], act_on=[("school", "age")])
        v, sets = decoder.encode(rows[:500])[:, 0], torch.zeros(500, dtype=torch.int64)
        values = torch.tensor([[0.25, 0.2], [0.75, 0.2], [0.75, 0.8]]).expand(500, -1, -1)
        wage = decoder.decode(rows[:500], v, values, sets)[:, :, 4].mean(0)
        steps = wage.diff() * encoder.schema.features[4].width
        assert steps.tolist() == pytest.approx([4.0, 9.0], rel=0.06)

    def test_standings_are_independent_of_what_is_given(self):
        frame = people(20_000)
        for given, shift in ((["sex"], 0.0), ((), 0.3)):
            decoder, _, rows = fitted(frame, given)
            v = decoder.encode(rows)[:, 0, 4]
            male = torch.tensor((frame["sex"] == "male").to_numpy())
            gap = (v[male].mean() - v[~male].mean()).item()
            assert gap == pytest.approx(shift, abs=0.15 if shift else 0.02)


class TestWhatIsGiven:
    @pytest.mark.parametrize("given", [["sex"], ["age"], ["sex", "age", "pays"]])
    def test_does_not_move(self, given):
        decoder, encoder, rows = fitted(people(), given)
        at = list(encoder.schema.index(given))
        for value in (0.0, 0.5, 1.0):
            assert torch.equal(moved(decoder, rows[:300], value)[:, at], rows[:300, at])

    @pytest.mark.parametrize("ties", [False, True])
    @pytest.mark.parametrize("given", [["sex"], ["age", "wage"], ["pays", "sex"]])
    def test_at_ones_own_value_one_is_oneself_exactly(self, given, ties):
        decoder, _, rows = fitted(people(), given)
        rng = torch.Generator().manual_seed(0) if ties else None
        v, sets = decoder.encode(rows, rng)[:, 0], torch.zeros(N, dtype=torch.int64)
        assert torch.equal(decoder.decode(rows, v, rows[:, None, 2:3], sets)[:, 0], rows)

    def test_immutable_names_all_that_cannot_change(self):
        by_word = fitted(people(), "immutable", immutable=["sex", "age"])[0]
        by_name = fitted(people(), ["age", "sex"], immutable=["sex", "age"])[0]
        assert sorted(by_word.given_features.tolist()) == [0, 1]
        for name, tensor in by_name.tensors().items():
            torch.testing.assert_close(by_word.tensors()[name], tensor, equal_nan=True)

    def test_what_cannot_change_is_given_unless_something_else_is_said(self):
        assert Transport().settings()["given"] == "immutable"

    def test_too_few_people_alike_in_all_of_it_are_worth_a_word(self, caplog):
        fitted(people(1000), ["sex", "age", "pays"])
        assert any("too few rows are alike in all of" in m for m in caplog.messages)
        caplog.clear()
        fitted(people(), ["sex"])
        assert not [m for m in caplog.messages if "alike" in m]

    def test_without_immutable_features_that_is_nothing(self):
        decoder, _, rows = fitted(people(2000), "immutable")
        plain = fitted(people(2000), ())[0]
        assert torch.equal(moved(decoder, rows, 0.5), moved(plain, rows, 0.5))

    def test_is_never_acted_on(self):
        with pytest.raises(ConstraintError, match=r"\['school'\] are given, so .* act_on"):
            fitted(people(), ["sex", "school"])

    def test_nor_as_part_of_a_group(self):
        with pytest.raises(ConstraintError, match=r"\['age'\] are given"):
            fitted(people(), ["age"], act_on=["school", ("wage", "age")])

    def test_a_name_that_nobody_knows_is_refused(self):
        with pytest.raises(SchemaError, match="sexe"):
            fitted(people(), ["sexe"])

    def test_one_name_is_not_taken_for_a_list_of_letters(self):
        with pytest.raises(ConstraintError, match=r"list of features or 'immutable'.*'sex'"):
            Transport(given="sex")


class TestInDEAR:
    """The user writes `DEAR(model, schema, decoder=Transport(given="immutable"))`."""

    @pytest.fixture(scope="class")
    @classmethod
    def dear(cls, mixed):
        return DEAR(mixed.net, mixed.schema, decoder=Transport(given="immutable")).fit(mixed.frame)

    def test_people_are_helped_and_what_is_given_stays(self, dear, mixed):
        refused = mixed.refused(60)
        recourses = dear.generate(refused)
        assert recourses.actions["success"].mean() > 0.9
        assert (recourses.counterfactuals["gender"] == refused["gender"]).all()

    def test_saved_and_loaded_it_gives_the_same_answers(self, dear, mixed, tmp_path):
        dear.save(tmp_path)
        again = DEAR.load(tmp_path, mixed.net)
        assert again.decoder.settings()["given"] == "immutable"
        assert again.decoder.given_features.tolist() == dear.decoder.given_features.tolist()
        refused = mixed.refused(60)
        one, other = dear.generate(refused), again.generate(refused)
        pd.testing.assert_frame_equal(one.counterfactuals, other.counterfactuals)
        pd.testing.assert_frame_equal(one.actions, other.actions)

    def test_it_can_be_diagnosed(self, dear, mixed):
        report = dear.diagnose(mixed.frame)
        assert report.fidelity > 0.8
        assert report.round_trip == 0.0

    def test_pairs_are_learned_given_the_same(self, dear):
        assert dear._larger_sets.pairs.decoder.settings() == dear.decoder.settings()
