"""Levels have names in texts for people; ranges as text are an order that models do not see."""

import numpy as np
import pandas as pd
import pytest

from dear_plugin import DEAR, Schema
from dear_plugin.errors import SchemaError

RNG = np.random.default_rng(0)
ROWS = 1_500
FLAGS = pd.DataFrame(
    {
        "volunteer": RNG.integers(0, 2, ROWS),
        "email": RNG.random(ROWS) < 0.5,
        "hours": RNG.integers(1, 40, ROWS),
    }
)


def score(frame):
    """Accepted where one of both flags is set and the other, too, or with many hours."""
    return 1 / (1 + np.exp(4 - 3 * frame["volunteer"] - 3 * frame["email"] - frame["hours"] / 9))


def answers(act_on, **labels):
    dear = DEAR(score, Schema.infer(FLAGS, labels=labels), act_on=[act_on]).fit(FLAGS)
    found = dear.generate(FLAGS[score(FLAGS) < 0.3])
    return found[found.actions.index[found.actions["credible"]][:3]]


@pytest.mark.parametrize(
    ("label", "called"),
    [
        ({0: "no", 1: "yes"}, "volunteer"),
        ({"": "the voluntary work", 0: "no", 1: "yes"}, "the voluntary work"),
    ],
)
def test_levels_have_names_in_every_text(label, called, tmp_path):
    found = answers("volunteer", volunteer=label)
    index = found.actions.index[0]
    assert f"change {called} from no to yes" in found.letter(index)
    assert f"change {called} from no to yes" in found.describe(index).lower()
    assert found.advice()["change"].tolist() == ["no → yes"]
    assert found.advice()["new"].tolist() == [1]
    found.to_html(tmp_path / "cards.html")
    assert ">yes</span>" in (tmp_path / "cards.html").read_text(encoding="utf8")
    assert set(found.counterfactuals["volunteer"]) == {1}


def test_a_bool_is_yes_or_no():
    found = answers("email")
    assert "change email from no to yes" in found.letter(found.actions.index[0])
    named = answers("email", email={True: "known"})
    assert "change email from no to known" in named.letter(named.actions.index[0])


def test_wrong_names_of_levels_are_one_error():
    for label, why in (
        ({2: "two"}, r"labels\['volunteer'\]: expected levels among \(0, 1\), got \[2\]"),
        ({0: 3}, r"labels\['volunteer'\] must be a text or \{level: text\}, got \{0: 3\}"),
    ):
        with pytest.raises(SchemaError, match=why):
            Schema.infer(FLAGS, labels={"volunteer": label})
    with pytest.raises(SchemaError, match=r"labels\['hours'\].*categorical="):
        Schema.infer(FLAGS, labels={"hours": {1: "one"}})


LEVELS = ["<1", "1-5", "6-20", ">20"]


@pytest.mark.parametrize("stated", [None, {"experience": LEVELS}])
def test_a_model_gets_the_categories_that_it_was_trained_on(stated):
    """Their codes are those of the training column, whatever the order of the levels."""
    places = np.arange(ROWS) % 4
    experience = pd.Categorical(np.array(LEVELS)[places], ["6-20", "<1", ">20", "1-5"])
    frame = pd.DataFrame({"experience": experience, "hours": RNG.integers(1, 40, ROWS)})
    seen = set()

    def model(rows):
        seen.add((tuple(rows["experience"].cat.categories), rows["experience"].cat.ordered))
        return np.where(rows["experience"].cat.codes == 2, 0.9, 0.1)  # ">20"

    schema = Schema.infer(frame, ordered=stated, increasing=["experience"])
    dear = DEAR(model, schema, act_on=["experience"]).fit(frame)
    rows = frame[frame["experience"] == "1-5"].head(5)
    found = dear.generate(rows)
    assert (found.counterfactuals["experience"] == ">20").all()
    assert found.counterfactuals["experience"].dtype == frame["experience"].dtype
    assert seen == {(("6-20", "<1", ">20", "1-5"), False)}
    assert "raise experience from 1-5 to >20" in found.describe(rows.index[0]).lower()
    again = Schema.from_dict(schema.to_dict())
    assert again == schema
