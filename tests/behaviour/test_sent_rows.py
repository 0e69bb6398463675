"""Rows as clients send them: other dtypes than the training frame's, and values it does not have.

A black box always gets the training dtypes, and the result has those of the input.
"""

import io

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, Constraints, Encoder, Schema, Search, Vetted
from dear_plugin.datasets import load_loan
from dear_plugin.evaluation.trained import Neighbours, Trained
from dear_plugin.models.classifier import Classifier
from dear_plugin.rivals import NearestAccepted

HOMES = ["rent", "own", "mortgage"]  # not in alphabetical order, which the codes depend on


@pytest.fixture(scope="module")
def frame():
    """Loan applications with two native categories."""
    frame = load_loan(400).frame
    home = np.array(HOMES)[(frame["savings"].rank(pct=True) * 2.99).astype(int)]
    return frame.assign(
        gender=frame["gender"].astype("category"), home=pd.Categorical(home, HOMES)
    )


class Strict:
    """A model that takes nothing but the dtypes that it was trained on."""

    def __init__(self, frame):
        self.dtypes = frame.dtypes

    def predict_proba(self, frame):
        for name, dtype in self.dtypes.items():
            assert frame.dtypes[name] == dtype, name
            if dtype == "category":
                assert frame[name].cat.categories.tolist() == dtype.categories.tolist()
        score = frame["savings"] / 60 + (frame["home"].cat.codes == 2) * 0.1
        return np.column_stack([1 - score.clip(0, 1), score.clip(0, 1)])


SENT = {
    "as trained": lambda row: row,
    "a dict": lambda row: pd.DataFrame([row.iloc[0].to_dict()]),
    "JSON": lambda row: pd.read_json(io.StringIO(row.to_json(orient="records"))),
    "a row of a frame": lambda row: row.iloc[0].to_frame().T,
    "string": lambda row: row.astype({"gender": "string", "home": "string"}),
    "string[pyarrow]": lambda row: row.astype({"gender": "string[pyarrow]"}),
    "a category of one level": lambda row: row.astype({"home": str}).astype({"home": "category"}),
    "nullable": lambda row: row.convert_dtypes(),
    "Arrow": lambda row: row.convert_dtypes(dtype_backend="pyarrow"),
    "other numbers": lambda row: row.astype({"age": float, "income": "float32"}),
}


@pytest.fixture(scope="module")
def routes(frame):
    """Every call of a method, by name: a frame in, `Recourses` out."""
    features = frame.drop(columns="approved")
    schema, model = Schema.infer(frame, target="approved"), Strict(features)
    dear = DEAR(model, schema, act_on=["savings", "home"]).fit(frame)
    nearest = NearestAccepted(model, schema).fit(frame)
    return {
        "generate": dear.generate,
        "apply": lambda rows: dear.apply(rows, {"savings": 40.0}),
        "vetted": Vetted(nearest, Search()).generate,
    }


class TestDtypes:
    @pytest.mark.parametrize("sent", SENT)
    @pytest.mark.parametrize("route", ["generate", "apply", "vetted"])
    def test_a_model_gets_the_training_dtypes_and_the_user_his_own(
        self, frame, routes, route, sent
    ):
        if "rrow" in sent:
            pytest.importorskip("pyarrow")
        if sent == "Arrow" and pd.__version__ < "2":
            pytest.skip("pandas before 2 makes no Arrow columns of others")
        refused = frame[frame["savings"] < 20].head(1).drop(columns="approved")
        row = SENT[sent](refused)
        result = routes[route](row)
        assert result.actions["success"].all()
        # A category of one level gains the one that it changes to.
        assert result.counterfactuals.dtypes.map(str).equals(row.dtypes.map(str))
        assert result.counterfactuals.index.equals(row.index)
        expected = routes[route](refused)
        assert result.actions["acted_on"].tolist() == expected.actions["acted_on"].tolist()

    def test_a_value_that_the_dtype_cannot_hold_is_passed_as_it_is(self, frame):
        """No half year is cut off an age without a word."""
        seen = []

        def model(rows):
            # All others are training rows.
            seen.extend(rows["age"].tolist() if rows["age"].nunique() == 1 else [])
            return rows["savings"] / 60

        dear = DEAR(model, Schema.infer(frame, target="approved"), act_on=["savings"]).fit(frame)
        dear.apply(frame.head(1).assign(age=33.5), {"savings": 30.0})
        assert set(seen) == {33.5}


class TestNewCategories:
    """Categories that no training row has, in columns that are not acted on."""

    @pytest.fixture
    def shop(self, frame):
        """A brand that `savings` go with, and a contract number that nothing goes with."""
        brand = np.array(["Aldo", "Bexo", "Caro"])[(frame["savings"] * 7 % 3).astype(int)]
        return frame.assign(brand=brand, contract=[f"K{i}" for i in range(len(frame))])

    @pytest.fixture
    def sent(self, shop):
        """One refused row as a new applicant sends it."""
        row = shop[shop["savings"] < 20].head(1).drop(columns="approved")
        return row.assign(brand="Dino", contract="K9999", home="boat", gender="other")

    @staticmethod
    def model(seen):
        def score(rows):
            seen.update(map(str, rows[["brand", "contract", "home", "gender"]].to_numpy().ravel()))
            return (rows["savings"] / 60 + 0.1 * (rows["brand"] == "Dino")).clip(0, 1)

        return score

    @pytest.mark.parametrize(
        ("immutable", "act_on", "frozen"),
        [
            (["brand", "contract", "home", "gender"], None, ()),
            ([], ["savings"], ()),
            (["gender"], None, ["brand", "contract", "home"]),
        ],
        ids=["immutable", "not acted on", "frozen"],
    )
    def test_are_passed_to_the_model_and_come_back(self, shop, sent, immutable, act_on, frozen):
        seen = set()
        schema = Schema.infer(shop, target="approved", immutable=immutable)
        dear = DEAR(self.model(seen), schema, act_on=act_on).fit(shop)
        seen.clear()
        result = dear.generate(sent, within=Constraints(frozen=frozen))
        assert {"Dino", "K9999", "nan"} <= seen  # a boat is no level of the trained dtype
        assert result.actions["success"].all()
        fixed = ["brand", "contract", "home", "gender"]
        pd.testing.assert_frame_equal(result.counterfactuals[fixed], sent[fixed])
        again = dear.apply(sent, result.direct, within=Constraints(frozen=frozen))
        assert again.counterfactuals.equals(result.counterfactuals)
        assert result.alternatives(k=2)["brand"].eq("Dino").all()

    def test_are_told_of_rows_that_are_read_and_no_others(self, shop, sent, caplog):
        """The log said that they are passed to the model, which never saw the row."""
        dear = DEAR(self.model(set()), Schema.infer(shop, target="approved"), act_on=["savings"])
        dear.fit(shop).generate(sent.assign(savings=np.nan))
        assert "they are passed to the model" not in caplog.text
        dear.generate(sent)
        assert "they are passed to the model" in caplog.text

    def test_make_no_difference_where_the_model_ignores_them(self, shop, sent):
        """A row is compared with all rows in a feature that it shares with none."""
        schema = Schema.infer(shop, target="approved", immutable=["brand"])
        dear = DEAR(lambda rows: rows["savings"] / 60, schema, act_on=["income"]).fit(shop)
        known = sent.assign(home="rent", gender="male")
        moved = [
            dear.apply(known.assign(brand=brand), {"income": 40.0}).counterfactuals
            for brand in ("Dino", "Aldo", "Bexo", "Caro")
        ]
        savings = [float(rows["savings"].iloc[0]) for rows in moved]
        assert min(savings[1:]) - 2.0 <= savings[0] <= max(savings[1:]) + 2.0

    def test_are_a_difference_to_every_training_row(self, shop):
        """As far from all brands as these are from each other."""
        some = shop[["brand", "gender", "savings"]]
        encoder = Encoder(Schema.infer(some))
        rows, every = encoder.rows(some), torch.ones(1, 3, dtype=torch.bool)
        for change, size in (({"brand": "Dino"}, 2.0), ({"gender": "other"}, 1.0)):
            new = encoder.rows(some.head(1).assign(**change), every)
            near = Neighbours(rows, encoder).query(new, 1)[0][0, 0]
            assert near**2 == pytest.approx(size)
            model = Classifier(lambda f: np.zeros(len(f)), encoder)
            plausibility = Trained(rows, model).plausibility
            assert plausibility(new) < plausibility(rows[:1])

    def test_a_torch_module_gets_none_of_the_categories(self, shop):
        some = shop[["brand", "gender"]]
        encoder = Encoder(Schema.infer(some))
        new = some.head(1).assign(brand="Dino", gender="other")
        rows = encoder.rows(new, torch.ones(1, 2, dtype=torch.bool))
        assert encoder.expand(rows).tolist() == [[0.0, 0.0, 0.0, 0.5]]
        assert encoder.frame(rows)["brand"].tolist() == ["Dino"]
