"""Conditioning: rows are compared with rows that have equal values of given features."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, ActionSets, Encoder, Schema
from dear_plugin.decoders import Transport
from dear_plugin.decoders.transport.conditioning import (
    FEW_VALUES,
    MAX_CELLS,
    MIN_ROWS,
    Conditioning,
)
from dear_plugin.errors import ConstraintError, SchemaError

N = 8000


def make_frame(n=N, seed=0) -> pd.DataFrame:
    """Men have higher wages and pay more often; so do rows with more school, which men have.

    The overall association of school and wage is therefore larger than that within each sex.
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


def fitted(frame, given, act_on=("school",), **options):
    """A decoder, its encoder and the rows it was fitted on."""
    encoder = Encoder(Schema.infer(frame, **options))
    rows, decoder = encoder.rows(frame), Transport(given=given)
    decoder.fit(rows, encoder, ActionSets.of(encoder.schema, act_on))
    return decoder, encoder, rows


def moved(decoder, rows, value, ties=None):
    """(n, p) the decoded rows at one value of the first set's feature."""
    wide, sets = torch.full((len(rows), 1, 1), value), torch.zeros(len(rows), dtype=torch.int64)
    return decoder.decode(rows, decoder.encode(rows, ties)[:, 0], wide, sets)[:, 0]


class TestCells:
    @staticmethod
    def cells(frame, names):
        encoder = Encoder(Schema.infer(frame))
        rows = encoder.rows(frame)
        given = Conditioning.of(rows, encoder, encoder.schema.index(names))
        return given, given.cells(rows)

    def test_without_given_features_there_is_one_cell(self):
        given, cells = self.cells(make_frame(), [])
        assert len(given) == 1
        assert (cells == 0).all()

    def test_few_values_are_strata(self):
        frame = make_frame()
        _, cells = self.cells(frame, ["sex", "school"])
        groups = frame.groupby(["sex", "school"]).ngroup().to_numpy()
        frequent = frame.groupby(["sex", "school"])["age"].transform("size") >= MIN_ROWS
        pairs = set(
            zip(cells[torch.tensor(frequent.to_numpy())].tolist(), groups[frequent], strict=True)
        )
        assert len(pairs) == len({c for c, _ in pairs}) == len({a for _, a in pairs}) > 5

    def test_many_values_are_cut_at_quintiles(self):
        frame = make_frame()
        _, cells = self.cells(frame, ["age"])
        ends = frame["age"].groupby(cells.numpy()).agg(["min", "max", "size"]).sort_values("min")
        assert ends["size"].tolist() == pytest.approx([N / 5] * 5, abs=1)
        assert (ends["max"].to_numpy()[:-1] < ends["min"].to_numpy()[1:]).all()

    def test_a_cell_with_few_rows_falls_back_to_a_coarser_one(self):
        """With 40 rows of town B and 7,960 of A, only women and men of A are finer cells."""
        frame = make_frame().assign(town=np.where(np.arange(N) < 40, "B", "A"))
        given, cells = self.cells(frame, ["sex", "town"])
        few = frame["town"] == "B"
        assert len(given) == 5  # all rows; women, men; and those of A among them
        for sex in ("female", "male"):
            here = cells[torch.tensor(few & (frame["sex"] == sex))].unique()
            assert len(here) == 1
            sample = given.training_sample(*self.inputs(frame))
            assert len(sample.cells[int(here)]) == (frame["sex"] == sex).sum()

    @staticmethod
    def inputs(frame):
        encoder = Encoder(Schema.infer(frame))
        return encoder.rows(frame), encoder, ActionSets.of(encoder.schema, ["school"])

    def test_cells_have_their_rows_and_the_first_has_all(self):
        frame = make_frame(3000)
        given, cells = self.cells(frame, ["sex"])
        sample = given.training_sample(*self.inputs(frame))
        assert sample.cells[0].tolist() == list(range(3000))
        for cell in (1, 2):
            assert torch.equal(sample.cells[cell], (cells == cell).nonzero()[:, 0])

    def test_few_rows_are_one_cell(self):
        given, _ = self.cells(make_frame(200), ["sex", "age"])
        assert len(given) == 1

    def test_of_many_categories_the_most_frequent_are_strata(self):
        town = np.arange(12_000) % 16
        town[: 12_000 // 2] %= 4
        frame = make_frame(12_000).assign(town=[f"t{i:02}" for i in town])
        _, cells = self.cells(frame, ["town"])
        found = pd.Series(cells.numpy()).groupby(frame["town"]).agg(["nunique", "first"])
        assert (found["nunique"] == 1).all()
        assert found["first"].nunique() == FEW_VALUES

    def test_the_number_of_cells_is_bounded(self):
        rng = np.random.default_rng(0)
        frame = make_frame(4000)
        for j in range(30):
            frame[f"flag{j}"] = rng.integers(0, 2 if j % 2 else 1, 4000)
        given, cells = self.cells(frame, [f"flag{j}" for j in range(30)])
        assert 2 < len(given) <= 2 * MAX_CELLS
        assert (cells > 0).all()

    def test_rows_outside_the_training_range_have_a_cell(self):
        frame = make_frame()
        given, _ = self.cells(frame, ["sex", "age"])
        encoder = Encoder(Schema.infer(frame))
        outside = encoder.rows(frame[:50]) + torch.tensor([0.0, 3.0, 0.0, 0.0, 0.0])
        assert (given.cells(outside) < len(given)).all()


class TestAtoms:
    """A feature with atoms is counted among rows of the same cell."""

    @pytest.mark.parametrize("given", [(), ("sex",)])
    @pytest.mark.parametrize("school", [2, 4, 6])
    def test_with_random_ties_shares_are_those_of_the_cell(self, given, school):
        frame = make_frame(20_000)
        decoder, encoder, rows = fitted(frame, given)
        rng = torch.Generator().manual_seed(0)
        made = moved(decoder, rows, school / 8, rng)[:, encoder.schema.index(["pays"])[0]]
        here = frame[frame["school"] == school]
        for sex in ("female", "male"):
            cell = here[here["sex"] == sex] if given else here
            share = made[torch.tensor(frame["sex"] == sex)].mean().item()
            if given:
                assert share == pytest.approx((cell["pays"] == "yes").mean(), abs=0.04)
        if not given:
            assert made.mean().item() == pytest.approx((here["pays"] == "yes").mean(), abs=0.03)

    def test_flip_probabilities_are_those_of_the_cell(self):
        frame = make_frame(20_000)
        decoder, _, rows = fitted(frame, ["sex"])
        values, sets = torch.tensor([[[0.25], [0.75]]]), torch.tensor([0])
        for sex in ("female", "male"):
            own = frame[frame["sex"] == sex]
            x = rows[own.index[:1]]
            probabilities = decoder.flip_probabilities(x, values, sets)[3]
            before, after = ((own[own["school"] == k]["pays"] == "yes").mean() for k in (2, 6))
            kept = min(1.0, (1 - after) / (1 - before))
            paid = own["pays"].iloc[0] == "yes"
            expected = (1.0, min(1.0, after / before)) if paid else (0.0, 1.0 - kept)
            assert probabilities == pytest.approx(expected, abs=0.03)


class TestNumbers:
    """An atom-free feature follows the partial slope, at equal values of given features."""

    @staticmethod
    def slope(given):
        """The change of wage per year of school, on average."""
        decoder, encoder, rows = fitted(make_frame(20_000), given)
        low, high = (moved(decoder, rows[:500], a / 8)[:, 4].mean().item() for a in (2, 6))
        return (high - low) * encoder.schema.features[4].width / 4

    @pytest.mark.parametrize("given", [["sex"], ["sex", "age"]])
    def test_the_slope_is_that_within_cells(self, given):
        assert self.slope(given) == pytest.approx(1.0, abs=0.06)

    def test_without_given_features_the_slope_is_the_overall_one(self):
        assert self.slope(()) > 2.2

    def test_a_category_has_its_partial_effect(self):
        """Men earn 8 more at equal schooling."""
        frame = make_frame(20_000)
        decoder, encoder, rows = fitted(frame, ["school", "age"], act_on=["sex"])
        gap = moved(decoder, rows, 1.0)[:, 4] - moved(decoder, rows, 0.0)[:, 4]
        assert gap.mean().item() * encoder.schema.features[4].width == pytest.approx(8, abs=0.15)

    def test_a_group_has_its_partial_effect(self):
        frame = make_frame(20_000)
        decoder, encoder, rows = fitted(frame, ["sex"], act_on=[("school", "age")])
        v, sets = decoder.encode(rows[:500])[:, 0], torch.zeros(500, dtype=torch.int64)
        values = torch.tensor([[0.25, 0.2], [0.75, 0.2], [0.75, 0.8]]).expand(500, -1, -1)
        wage = decoder.decode(rows[:500], v, values, sets)[:, :, 4].mean(0)
        steps = wage.diff() * encoder.schema.features[4].width
        assert steps.tolist() == pytest.approx([4.0, 9.0], rel=0.06)

    def test_ranks_are_independent_of_given_features(self):
        frame = make_frame(20_000)
        for given, shift in ((["sex"], 0.0), ((), 0.3)):
            decoder, _, rows = fitted(frame, given)
            v = decoder.encode(rows)[:, 0, 4]
            male = torch.tensor((frame["sex"] == "male").to_numpy())
            gap = (v[male].mean() - v[~male].mean()).item()
            assert gap == pytest.approx(shift, abs=0.15 if shift else 0.02)


class TestGivenFeatures:
    @pytest.mark.parametrize("given", [["sex"], ["age"], ["sex", "age", "pays"]])
    def test_they_do_not_change(self, given):
        decoder, encoder, rows = fitted(make_frame(), given)
        at = list(encoder.schema.index(given))
        for value in (0.0, 0.5, 1.0):
            assert torch.equal(moved(decoder, rows[:300], value)[:, at], rows[:300, at])

    @pytest.mark.parametrize("ties", [False, True])
    @pytest.mark.parametrize("given", [["sex"], ["age", "wage"], ["pays", "sex"]])
    def test_rows_are_unchanged_at_their_own_value(self, given, ties):
        decoder, _, rows = fitted(make_frame(), given)
        rng = torch.Generator().manual_seed(0) if ties else None
        v, sets = decoder.encode(rows, rng)[:, 0], torch.zeros(N, dtype=torch.int64)
        assert torch.equal(decoder.decode(rows, v, rows[:, None, 2:3], sets)[:, 0], rows)

    def test_immutable_stands_for_all_immutable_features(self):
        by_word = fitted(make_frame(), "immutable", immutable=["sex", "age"])[0]
        by_name = fitted(make_frame(), ["age", "sex"], immutable=["sex", "age"])[0]
        assert sorted(by_word.given_features.tolist()) == [0, 1]
        for name, tensor in by_name.tensors().items():
            torch.testing.assert_close(by_word.tensors()[name], tensor, equal_nan=True)

    def test_immutable_features_are_given_by_default(self):
        assert Transport().settings()["given"] == "immutable"

    def test_fit_warns_of_too_few_rows_in_cells(self, caplog):
        fitted(make_frame(1000), ["sex", "age", "pays"])
        assert any("too few training rows agree in all of" in m for m in caplog.messages)
        caplog.clear()
        fitted(make_frame(), ["sex"])
        assert not [m for m in caplog.messages if "agree" in m]

    def test_without_immutable_features_nothing_is_given(self):
        decoder, _, rows = fitted(make_frame(2000), "immutable")
        plain = fitted(make_frame(2000), ())[0]
        assert torch.equal(moved(decoder, rows, 0.5), moved(plain, rows, 0.5))

    def test_they_cannot_be_acted_on(self):
        with pytest.raises(ConstraintError, match=r"\['school'\] are given, so .* act_on"):
            fitted(make_frame(), ["sex", "school"])

    def test_they_cannot_be_acted_on_in_a_group(self):
        with pytest.raises(ConstraintError, match=r"\['age'\] are given"):
            fitted(make_frame(), ["age"], act_on=["school", ("wage", "age")])

    def test_an_unknown_name_is_refused(self):
        with pytest.raises(SchemaError, match="sexe"):
            fitted(make_frame(), ["sexe"])

    def test_a_single_string_is_refused(self):
        with pytest.raises(ConstraintError, match=r"list of features or 'immutable'.*'sex'"):
            Transport(given="sex")


class TestInDEAR:
    """`DEAR(model, schema, decoder=Transport(given="immutable"))`."""

    @pytest.fixture(scope="class")
    @classmethod
    def dear(cls, mixed):
        return DEAR(mixed.net, mixed.schema, decoder=Transport(given="immutable")).fit(mixed.frame)

    def test_rows_are_solved_and_given_features_stay(self, dear, mixed):
        refused = mixed.refused(60)
        recourses = dear.generate(refused)
        assert recourses.actions["success"].mean() > 0.9
        assert (recourses.counterfactuals["gender"] == refused["gender"]).all()

    def test_a_saved_and_loaded_method_gives_the_same_recourses(self, dear, mixed, tmp_path):
        dear.save(tmp_path)
        loaded = DEAR.load(tmp_path, mixed.net)
        assert loaded.decoder.settings()["given"] == "immutable"
        assert loaded.decoder.given_features.tolist() == dear.decoder.given_features.tolist()
        refused = mixed.refused(60)
        one, other = dear.generate(refused), loaded.generate(refused)
        pd.testing.assert_frame_equal(one.counterfactuals, other.counterfactuals)
        pd.testing.assert_frame_equal(one.actions, other.actions)

    def test_it_can_be_diagnosed(self, dear, mixed):
        report = dear.diagnose(mixed.frame)
        assert report.fidelity > 0.8
        assert report.round_trip == 0.0

    def test_the_decoder_of_pairs_has_the_same_settings(self, dear):
        assert dear._larger_sets.pairs.decoder.settings() == dear.decoder.settings()
