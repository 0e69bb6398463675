"""Texts are made from an answer: they ask neither the model nor a decoder, and compute nothing."""

import pytest

from dear_plugin import DEAR
from dear_plugin.benchmark.work import counts, loan

CALLS = {"describe": 300, "letter": 500}


@pytest.fixture(scope="module")
def case():
    return loan()


@pytest.fixture(scope="module")
def found(case):
    dear = DEAR(case.model, case.schema, **case.how).fit(case.train)
    return dear.generate(case.refused.head(40), k=8)


@pytest.mark.parametrize("text", CALLS)
@pytest.mark.parametrize("row", range(0, 40, 8))
def test_a_text_of_a_row_has_few_calls_and_no_operation(case, found, text, row):
    label = case.refused.index[row]
    work, told = counts(lambda: getattr(found, text)(label), case.model)
    assert told
    assert (work["operations"], work["model calls"]) == (0, 0)
    assert work["calls"] <= CALLS[text]
    assert work["depth"] <= 12


@pytest.mark.parametrize("ask", ["letter", "describe", "_repr_html_", "advice"])
def test_so_have_those_of_all_rows(case, found, ask):
    work, _ = counts(getattr(found, ask), case.model)
    assert work["model calls"] == 0
    # The ends of the central values of what is acted on are read.
    assert work["operations"] <= (60 if ask == "advice" else 0)


def test_a_record_reads_what_is_known(case, found):
    label = case.refused.index[0]
    found.record(label)
    assert counts(lambda: found.record(label), case.model)[0]["model calls"] == 0


def test_what_a_letter_says_stands_in_the_changes(found):
    changes, letters = found.changes, found.letter()
    stated = changes[changes["stated"].notna() & (changes["kind"] == "direct")]
    assert stated["row"].nunique() == letters.str.contains("To get the decision").sum()
    first = stated[stated["rank"] == stated.groupby("row")["rank"].transform("min")]
    for line in first.itertuples():
        assert f"{line.stated:g}" in letters[line.row].replace(",", "")
