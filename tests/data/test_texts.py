"""Labels and units: what texts call a feature; frames and answers keep the names of columns."""

import numpy as np
import pandas as pd
import pytest

from dear_plugin import DEAR, Constraints, Feature, Kind, Schema
from dear_plugin.errors import SchemaError
from tests.labelled import DATA, TEXTS, loan_schema


def model(rows):
    return 1 / (1 + np.exp(0.3 * (rows["duration"] - 60) - 0.3 * (rows["savings"] - 30)))


@pytest.fixture(scope="module")
def answers():
    """The same answers without and with labels and units."""
    found = []
    for schema in (loan_schema(), loan_schema(**TEXTS)):
        dear = DEAR(model, schema, act_on=["loan_amount"]).fit(DATA.frame)
        found.append(dear.generate(DATA.frame.head(60)))
    return found


def test_a_feature_is_called_by_its_label_or_its_name():
    plain = Feature("loan_amount", Kind.NUMERIC)
    assert (plain.called, plain.title, plain.unit) == ("loan_amount", "loan_amount", "")
    loan = Feature("loan_amount", Kind.NUMERIC, label="the loan", unit="thousand euros")
    assert (loan.called, loan.title) == ("the loan", "Loan")


def test_every_wrong_name_and_text_is_in_one_error():
    with pytest.raises(
        SchemaError, match=r"labels: unknown features: 'loan'.*units\['age'\] must"
    ):
        loan_schema(labels={"loan": "the loan"}, units={"age": 3})
    with pytest.raises(SchemaError, match=r"labels must be \{feature: \.\.\.\}"):
        loan_schema(labels=["age"])
    with pytest.raises(SchemaError, match="label must be a text, got 3"):
        loan_schema().replace("age", label=3)


def test_answers_do_not_depend_on_them(answers):
    plain, labelled = answers
    pd.testing.assert_frame_equal(plain.counterfactuals, labelled.counterfactuals)
    assert (labelled.actions["acted_on"] == plain.actions["acted_on"]).all()


def test_descriptions_cards_and_figures_use_them(answers, tmp_path):
    plain, labelled = answers
    acted = labelled.actions.query("success and acted_on == 'loan_amount'").index[0]
    assert "ower the loan from" in labelled.describe(acted)
    assert "thousand euros" in labelled.describe(acted)
    assert "the term" in labelled.describe(acted)
    assert "loan_amount" not in labelled.describe(acted)
    assert "ower loan_amount from" in plain.describe(acted)
    labelled[[acted]].to_html(tmp_path / "cards.html")
    page = (tmp_path / "cards.html").read_text(encoding="utf8")
    assert "Loan: " in page
    assert "loan_amount" not in page
    names = labelled.plot(acted).get_yticklabels()
    assert names[0].get_text() == "Loan"


def test_reasons_use_labels():
    dear = DEAR(model, loan_schema(**TEXTS), act_on=["loan_amount"]).fit(DATA.frame)
    row, within = DATA.frame.head(1), Constraints(frozen=["savings"])
    tried = dear.apply(row, {"savings": 40.0}, within=within)
    assert tried.actions["reason"].iloc[0] == "the savings may not be acted on"


@pytest.mark.parametrize("labels", [{"job_a": "the job", "job_b": "the job"}, {}])
def test_a_group_has_the_label_that_its_columns_share(labels):
    frame = pd.DataFrame({"job_a": [0, 1] * 20, "job_b": [1, 0] * 20, "pay": range(40)})
    schema = Schema.infer(frame, labels=labels)
    dear = DEAR(lambda rows: rows["job_a"] * 0.9, schema, act_on=["job"]).fit(frame)
    text = dear.generate(frame.head(1)).describe(0)
    assert f"change {'the job' if labels else 'job'} from b to a" in text


def test_notebooks_show_both():
    table = loan_schema(**TEXTS)._repr_html_()
    assert "loan_amount (the loan)" in table
    assert " months" in table
