"""A third decoder, in one file: what the protocol asks for is enough for everything else.

`LineShift` moves everybody by the change of the conditional mean, a straight line in x_S:
`g(v, a) = v + B a`, with `v = x - B x_S`. It knows nothing of atoms or categories, which stay.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, Constraints, Schema, Search
from dear_plugin.datasets import load_loan
from dear_plugin.decoders import Decoder, register
from dear_plugin.errors import DearError, FileFormatError


@register
class LineShift(Decoder):
    """The whole of it; `shrink` is there so that there is a setting to be saved."""

    def __init__(self, shrink=0.0):
        self.shrink = shrink
        self.slopes = None

    def settings(self):
        return {"shrink": self.shrink}

    @classmethod
    def with_settings(cls, settings):
        return cls(**settings)

    def tensors(self):
        return {"slopes": self.slopes}

    def load_state(self, tensors, encoder, sets):
        self.slopes, self.sets = tensors["slopes"], sets

    def fit(self, rows, encoder, sets):
        centred = rows - rows.mean(0)
        number = torch.tensor([not f.categories for f in encoder.schema]).float()
        slopes = torch.zeros(len(sets), encoder.p, encoder.p)
        for i, members in enumerate(map(list, sets.members)):
            solved = torch.linalg.lstsq(centred[:, members], centred).solution
            slopes[i, members] = (1.0 - self.shrink) * solved * number
            slopes[i][members, members] = 0.0
        self.slopes, self.sets = slopes, sets

    def encode(self, rows, generator=None):
        return torch.stack([rows - rows @ b for b in self.slopes], 1)

    def decode(self, x, v, values, sets):
        positions = self.sets.positions[sets][:, None].expand(values.shape)
        there = x[:, None].expand(-1, values.shape[1], -1).scatter(2, positions, values)
        moved = v[:, None] + torch.bmm(there, self.slopes[sets])
        return moved.scatter(2, positions, values)


class Stranger(LineShift):
    """The same, but nobody registered it."""


SETS = ["income", "education", ("income", "savings")]


def people():
    return load_loan(1500, seed=0).features


def model():
    net = torch.nn.Linear(7, 1)
    with torch.no_grad():
        net.weight.copy_(torch.tensor([[0.1, 0.4, 0.9, -1.5, -1.0, 3.0, 2.0]]))
        net.bias.fill_(-2.6)
    return net


@pytest.fixture(scope="module")
def dear():
    schema = Schema.infer(people(), immutable=["gender"], increasing=["education", "age"])
    return DEAR(model(), schema, act_on=SETS, decoder=LineShift()).fit(people())


@pytest.fixture(scope="module")
def recourses(dear):
    return dear.generate(people().iloc[:200])


class TestItWorks:
    def test_people_are_helped(self, recourses):
        actions = recourses.actions
        assert actions["success"].all()
        assert (actions["indirect_cost"] > 0).mean() > 0.2

    def test_what_moves_along_is_the_mean_shift(self, dear, recourses):
        frame, (row,) = people(), np.flatnonzero(recourses.actions["acted_on"] == "income")[:1]
        step = recourses.counterfactuals["income"].iloc[row] - frame["income"].iloc[row]
        slope = np.polyfit(frame["income"], frame["loan_amount"], 1)[0]
        moved = recourses.counterfactuals["loan_amount"].iloc[row] - frame["loan_amount"].iloc[row]
        assert moved == pytest.approx(slope * step, abs=0.006)

    def test_immutables_directions_and_precision_hold(self, recourses):
        before, after = recourses.factuals, recourses.counterfactuals
        assert (after["gender"] == before["gender"]).all()
        assert (after["education"] >= before["education"]).all()
        assert after["age"].dtype == before["age"].dtype
        assert (after["income"] == after["income"].round(2)).all()

    def test_constraints_alternatives_and_words(self, dear, recourses):
        query = people().iloc[:200]
        frozen = dear.generate(query, within=Constraints(frozen=["savings"]))
        assert (frozen.counterfactuals["savings"] == query["savings"]).all()
        table = recourses.alternatives(3)
        assert table["success"].all()
        assert recourses.describe(query.index[0])
        assert recourses.support.between(0.0, 1.0).all()

    def test_support_can_be_asked_for(self):
        search = Search.cheapest(min_support=0.6)
        supported = DEAR(
            model(), Schema.infer(people()), act_on=SETS, decoder=LineShift(), search=search
        ).fit(people())
        found = supported.generate(people().iloc[:60])
        assert (found.support >= 0.6 - 1e-6).mean() > 0.5

    def test_pairs_are_learned_with_its_own_settings(self):
        decoder = LineShift(shrink=0.3)
        assert decoder.clone_unfitted() is not decoder
        assert decoder.clone_unfitted().settings() == {"shrink": 0.3}

    def test_without_derivatives_the_gradient_solver_says_so(self):
        search = Search(solver="gradient")
        dear = DEAR(
            model(), Schema.infer(people()), act_on=SETS, decoder=LineShift(), search=search
        ).fit(people())
        with pytest.raises(DearError, match="LineShift has no derivatives"):
            dear.generate(people().iloc[:200])


class TestItIsMeasured:
    def test_on_a_linear_gaussian_system_it_is_right(self):
        rng = np.random.default_rng(0)
        z = rng.normal(size=(6000, 4)) @ rng.normal(size=(4, 4))
        frame = pd.DataFrame(z, columns=list("abcd"))
        net = torch.nn.Linear(4, 1)
        dear = DEAR(net, Schema.infer(frame), decoder=LineShift()).fit(frame.iloc[:3000])
        report = dear.diagnose(frame.iloc[3000:])
        assert report.fidelity == pytest.approx(1.0, abs=0.02)
        assert report.distribution_fidelity == pytest.approx(1.0, abs=0.05)
        assert report.round_trip < 1e-5
        assert report.joint == pytest.approx(0.5, abs=0.05)
        assert report.entanglement.isna().all()

    def test_less_of_it_is_less_faithful(self):
        frame = load_loan(4000, seed=0).features
        schema = Schema.infer(frame)
        made = {}
        for shrink in (0.0, 0.5, 1.0):
            dear = DEAR(model(), schema, act_on=["income", "age"], decoder=LineShift(shrink))
            made[shrink] = dear.fit(frame.iloc[:2000]).diagnose(frame.iloc[2000:]).fidelity
        assert made[0.0] > made[0.5] > made[1.0]
        assert made[1.0] == pytest.approx(0.0, abs=0.05)


FRESH = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("third", sys.argv[1])
third = importlib.util.module_from_spec(spec)
spec.loader.exec_module(third)
dear = third.DEAR.load(sys.argv[2], third.model())
print(dear.generate(third.people().iloc[:40]).counterfactuals.to_json(double_precision=15))
"""


class TestItIsSaved:
    def test_and_loaded_with_the_same_answers(self, dear, recourses, tmp_path):
        dear.save(tmp_path)
        loaded = DEAR.load(tmp_path, model())
        assert isinstance(loaded.decoder, LineShift)
        again = loaded.generate(people().iloc[:200])
        pd.testing.assert_frame_equal(
            again.counterfactuals, recourses.counterfactuals, check_exact=True
        )

    def test_in_a_fresh_process_that_imports_its_file(self, dear, tmp_path):
        dear.save(tmp_path)
        command = [sys.executable, "-c", FRESH, str(Path(__file__)), str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        expected = dear.generate(people().iloc[:40]).counterfactuals
        assert done.stdout.strip() == expected.to_json(double_precision=15)

    def test_one_that_nobody_registered_is_refused(self, tmp_path):
        DEAR(model(), Schema.infer(people()), act_on=SETS, decoder=Stranger()).fit(people()).save(
            tmp_path
        )
        with pytest.raises(FileFormatError, match=r"Stranger.*register it first"):
            DEAR.load(tmp_path, model())
