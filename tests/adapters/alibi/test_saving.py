import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from alibi.api.interfaces import Explainer
from alibi.saving import load_explainer, save_explainer

import dear_plugin
from dear_alibi import DEAR
from dear_plugin.errors import NotFittedError

ADAPTERS = Path(__file__).parents[3] / "adapters"


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


@pytest.mark.slow
def test_a_fresh_process_answers_the_same(explainer, saved, pipeline, refused, tmp_path):
    import joblib

    joblib.dump((pipeline, refused), tmp_path / "model.joblib")
    code = f"""
import sys; sys.path.insert(0, {str(ADAPTERS)!r})
import joblib, numpy
from alibi.saving import load_explainer
pipeline, rows = joblib.load({str(tmp_path / "model.joblib")!r})
found = load_explainer({str(saved)!r}, pipeline.predict_proba).explain(rows, 1)
numpy.save({str(tmp_path / "cf.npy")!r}, found.cf["X"])
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    assert (np.load(tmp_path / "cf.npy") == explainer.explain(refused, 1).cf["X"]).all()


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


def test_an_explainer_that_is_not_fitted_can_be_saved(data, predictor, refused, tmp_path):
    DEAR(predictor, **data.description()).save(tmp_path)
    loaded = load_explainer(tmp_path, predictor)
    assert loaded.fit(data.X).explain(refused[:3], 1).success.all()


@pytest.mark.ci
def test_another_predictor_gets_its_own_answers(fit, predictor, data, module):
    explainer = fit()
    rows = data.X[:30]

    def contrary(rows):
        return predictor(rows)[:, ::-1]

    explainer.reset_predictor(contrary)
    found = explainer.explain(rows, 1)
    assert (contrary(found.cf["X"]).argmax(1) == 1)[found.success[:, 0]].all()
    fresh = DEAR(contrary, **data.description()).fit(data.X)
    assert (found.cf["X"] == fresh.explain(rows, 1).cf["X"]).all()
    explainer.reset_predictor(module)
    assert explainer.type == explainer.meta["type"] == ["whitebox"]
    assert explainer.explain(rows).orig["class"].shape == (30, 1)


def test_a_copy_keeps_its_predictor(explainer, refused):
    import copy

    twin = copy.deepcopy(explainer)
    assert twin.predictor is not None
    assert (
        twin.explain(refused[:5], 1).cf["X"] == explainer.explain(refused[:5], 1).cf["X"]
    ).all()


def test_a_loaded_explainer_without_a_predictor_is_refused(saved):
    with pytest.raises(dear_plugin.errors.ModelError, match="got NoneType"):
        load_explainer(saved, None)


def test_tiers_are_kept_and_in_the_metadata(data, predictor, refused, tmp_path):
    tiers = [["gender", "age"], ["education"]]
    DEAR(predictor, **data.description(), tiers=tiers).fit(data.X).save(tmp_path)
    loaded = DEAR.load(tmp_path, predictor)
    assert loaded.engine.schema.tiers == (("gender", "age"), ("education",))
    assert loaded.explain(refused[:2], 1).params["tiers"] == tiers


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
