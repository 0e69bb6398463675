import os
import warnings

import pytest
import torch
from alibi.api.interfaces import Explainer
from alibi.saving import load_explainer, save_explainer

from dear_alibi import DEAR
from dear_plugin.errors import NotFittedError


@pytest.fixture(autouse=True)
def warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture
def saved(explainer, tmp_path):
    explainer.save(tmp_path / "saved")
    return tmp_path / "saved"


@pytest.mark.parametrize("load", [load_explainer, Explainer.load, DEAR.load])
def test_a_loaded_explainer_gives_the_saved_ones_answers(
    explainer, saved, predictor, refused, load
):
    loaded = load(saved, predictor)
    assert loaded.meta == explainer.meta
    assert loaded.predictor is predictor
    before, after = explainer.explain(refused, 1), loaded.explain(refused, 1)
    assert (before.cf["X"] == after.cf["X"]).all()
    assert before.to_json() == after.to_json()


@pytest.mark.parametrize("save", [DEAR.save, save_explainer])
def test_the_predictor_stays_out_of_the_file(data, module, refused, saved, tmp_path, save):
    # 12 MB that no output depends on; the pairs that only one explainer learned are 4 MB.
    many = 3_000_000
    big = torch.nn.Sequential(module)
    big.register_buffer("ballast", torch.zeros(many))
    explainer = DEAR(big, **data.description(), immutable_features=["gender"]).fit(data.X)
    explainer.explain(refused[:5])
    save(explainer, tmp_path / "big")
    sizes = [os.path.getsize(folder / "explainer.dill") for folder in (saved, tmp_path / "big")]
    assert sizes[1] < sizes[0] + 2 * many
    assert explainer.predictor is big
    loaded = load_explainer(tmp_path / "big", module)
    assert loaded.explain(refused[:5]).success.all()


def test_a_failed_save_leaves_a_live_explainer_and_the_old_files(data, module, refused, tmp_path):
    explainer = DEAR(module, **data.description()).fit(data.X)
    explainer.save(tmp_path)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    explainer.note = Unpicklable()
    with pytest.raises(TypeError, match="not to be saved"):
        explainer.save(tmp_path)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before
    assert explainer.predictor is module
    assert explainer.explain(refused[:5]).success.all()


class Unpicklable:
    def __reduce__(self):
        raise TypeError("not to be saved")


def test_copies_are_not_saved_and_have_to_be_given_again(data, pipeline, refused, tmp_path):
    predictor = pipeline.predict_proba
    explainer = DEAR(predictor, **data.description(), copies=[predictor] * 2).fit(data.X)
    explainer.save(tmp_path / "saved")
    loaded = Explainer.load(tmp_path / "saved", predictor)
    with pytest.raises(NotFittedError, match="saved with 2 copies"):
        loaded.explain(refused, 1)
    loaded.reset_predictor(predictor, copies=[predictor] * 2)
    before, after = explainer.explain(refused, 1), loaded.explain(refused, 1)
    assert (before.cf["X"] == after.cf["X"]).all()
    assert (after.data["agreement"] == before.data["agreement"]).all()
    assert loaded.meta == explainer.meta
