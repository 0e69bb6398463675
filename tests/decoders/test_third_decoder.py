"""A third decoder in one file: four short methods are enough for all features.

`LineShift` moves rows by the change of the conditional mean, linear in x_S: `g(v, a) = v + B a`
with `v = x - B x_S`. Categories do not move.
"""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, Schema, Transport
from dear_plugin.datasets import load_loan
from dear_plugin.decoders import Decoder, make_decoder
from dear_plugin.errors import SettingError
from dear_plugin.testing import LAWS, Subject


class LineShift(Decoder):
    """The decoder; `shrink` is a setting, so that one is saved."""

    def __init__(self, shrink=0.0):
        self.shrink = shrink
        self.slopes = None

    def settings(self):
        return {"shrink": self.shrink}

    def fit(self, sample, acted, held):
        centred = sample.rows - sample.rows.mean(0)
        number = torch.tensor([not f.categories for f in sample.encoder.schema]).float()
        self.acted = list(acted)
        solved = torch.linalg.lstsq(centred[:, self.acted], centred).solution
        self.slopes = (1.0 - self.shrink) * solved * number
        self.slopes[:, self.acted] = 0.0

    def encode(self, x, generator=None):
        return x - x[:, self.acted] @ self.slopes

    def decode(self, x, v, values):
        moved = v[:, None] + values @ self.slopes
        moved[..., self.acted] = values
        return moved


SETS = ["income", "education", ("income", "savings")]


def loan():
    return load_loan(1500, seed=0).features


def model():
    net = torch.nn.Linear(7, 1)
    with torch.no_grad():
        net.weight.copy_(torch.tensor([[0.1, 0.4, 0.9, -1.5, -1.0, 3.0, 2.0]]))
        net.bias.fill_(-2.6)
    return net


@pytest.fixture(scope="module")
def dear():
    schema = Schema.infer(loan(), immutable=["gender"], increasing=["education", "age"])
    return DEAR(model(), schema, act_on=SETS, decoder=LineShift()).fit(loan())


@pytest.fixture(scope="module")
def recourses(dear):
    return dear.generate(loan().iloc[:200])


class TestRecourse:
    def test_indirect_changes_are_the_mean_shift(self, dear, recourses):
        frame, (row,) = loan(), np.flatnonzero(recourses.actions["acted_on"] == "income")[:1]
        step = recourses.counterfactuals["income"].iloc[row] - frame["income"].iloc[row]
        slope = np.polyfit(frame["income"], frame["loan_amount"], 1)[0]
        moved = recourses.counterfactuals["loan_amount"].iloc[row] - frame["loan_amount"].iloc[row]
        assert moved == pytest.approx(slope * step, abs=0.006)

    @pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
    def test_the_laws_hold(self, dear, law):
        law(Subject.of(dear, loan().iloc[:8]))


class TestSaving:
    def test_a_loaded_one_gives_the_same_results(self, dear, recourses, tmp_path):
        dear.save(tmp_path)
        loaded = DEAR.load(tmp_path, model(), decoder=LineShift)
        assert isinstance(loaded.decoder, LineShift)
        again = loaded.generate(loan().iloc[:200])
        pd.testing.assert_frame_equal(
            again.counterfactuals, recourses.counterfactuals, check_exact=True
        )


class TestByClass:
    def test_a_class_is_made_with_its_default_settings(self):
        dear = DEAR(model(), Schema.infer(loan()), act_on=SETS, decoder=LineShift)
        assert type(dear.decoder) is LineShift
        assert dear.decoder.settings() == {"shrink": 0.0}
        assert dear.fit(loan()).generate(loan().iloc[:20]).actions["success"].all()

    @pytest.mark.parametrize("name", ["transport", "Transport"])
    def test_the_names_of_the_documentation_stand_for_classes(self, name):
        assert type(make_decoder(name)) is Transport

    @pytest.mark.parametrize("given", ["LineShift", int, 3, None])
    def test_anything_else_is_refused(self, given):
        with pytest.raises(SettingError, match=r"unknown decoder.*known are: transport, auto"):
            make_decoder(given)
