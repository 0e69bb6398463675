"""Results as HTML: a table in notebooks, a page with one card for each row, all text escaped."""

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from dear_plugin import DEAR, Constraints, Schema
from dear_plugin.tell import cards


@pytest.fixture(scope="module")
def result(mixed, fitted):
    query = mixed.frame.iloc[:25]
    return fitted.generate(query.set_axis([f"<{i}>" for i in range(len(query))]))


class Parsed(HTMLParser):
    """The tags, attributes and text of HTML, in which every tag that is opened is closed."""

    VOID = frozenset({"meta", "br"})

    def __init__(self, text):
        super().__init__()
        self.opened, self.tags, self.attributes, self.text = [], [], [], ""
        self.feed(text)
        self.close()
        assert not self.opened

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        if tag not in self.VOID:
            self.opened.append(tag)

    def handle_endtag(self, tag):
        assert self.opened.pop() == tag

    def handle_data(self, data):
        self.text += data


def page(result, title):
    return cards.page(result, title, result.letter())


SCRIPT = "<script>alert('&')</script>"


@pytest.fixture(scope="module")
def hostile(mixed):
    """Answers with a category and a label that are HTML, one of them failed."""
    frame = mixed.frame.replace({"town": {"A": SCRIPT}})
    accept = (frame["town"] == SCRIPT).to_numpy()
    dear = DEAR(
        lambda f: (f["town"] == SCRIPT).to_numpy().astype(float),
        Schema.infer(frame),
        act_on=["town"],
    ).fit(frame)
    query = frame[~accept].iloc[:2].set_axis(["</table>", "second"])
    return dear.generate(query), dear.generate(query, within=Constraints(act_on=[]))


class TestTable:
    def test_it_has_the_first_rows_and_says_how_many_more_there_are(self, result):
        table = result._repr_html_()
        assert table.count("<tr>") == 1 + cards.MOST_ROWS
        assert "and 5 more rows" in table

    def test_direct_and_indirect_changes_are_marked_apart(self, result):
        table = result._repr_html_()
        acts = (result.changed & result.proposal.direct)[: cards.MOST_ROWS].sum()
        follows = (result.changed & ~result.proposal.direct)[: cards.MOST_ROWS].sum()
        assert table.count('class="direct"') == int(acts) > 0
        assert table.count('class="expected"') == int(follows) > 0

    def test_with_tiers_they_are_called_effects_on_conditions(self, mixed, tmp_path):
        schema = replace(mixed.schema, tiers=[["age"]])
        result = DEAR(mixed.net, schema).fit(mixed.frame).generate(mixed.frame.iloc[:3])
        result.to_html(tmp_path / "page.html")
        for text in (result._repr_html_(), (tmp_path / "page.html").read_text(encoding="utf8")):
            assert "if the stated order is right and nothing unobserved causes both" in text
            assert "associations" not in text

    def test_a_failed_row_is_marked_as_not_solved(self, hostile):
        solved, failed = (result._repr_html_() for result in hostile)
        assert "not solved" not in solved
        assert failed.count('<span class="no">not solved</span>') == 2


class TestPage:
    def test_it_has_one_card_for_each_row_with_its_description(self, result, tmp_path):
        result.to_html(tmp_path / "page.html", title="Loans & others")
        page = (tmp_path / "page.html").read_text("utf8")
        assert page.count("<article>") == len(result)
        assert "Loans &amp; others" in page
        assert "Raise income" in page or "Change job" in page

    def test_it_is_well_formed_and_a_category_is_no_script(self, hostile):
        for result in hostile:
            text = Parsed(page(result, "<title>"))
            assert {"script", "link", "img", "iframe", "object"}.isdisjoint(text.tags)
            assert text.tags.count("article") == text.tags.count("h2") == len(result)
            assert "</table>" in text.text
            Parsed(result._repr_html_())
        assert SCRIPT in Parsed(page(hostile[0], "t")).text

    def test_a_card_has_the_score_before_and_after(self, result):
        text = page(result, "t")
        acting = result.actions["acted_on"] != ""
        assert acting.any()
        for label, row in result.actions[acting].iterrows():
            name = f"Row {label}".replace("<", "&lt;").replace(">", "&gt;")
            before, after = f"{row['score_before']:.0%}", f"{row['score_after']:.0%}"
            assert f"{name}: probability of the wanted decision {before} → {after}" in text

    def test_a_row_that_cannot_be_read_has_a_card_with_the_reason(self, mixed, fitted):
        query = mixed.frame.iloc[:2].assign(town=["Atlantis", "A"])
        card = page(fitted.generate(query), "t").split("<article>")[1]
        assert "Atlantis" in card
        assert "nan" not in card

    def test_it_loads_nothing(self, result):
        text = page(result, "t")
        assert {"src", "href", "srcset", "data", "action"}.isdisjoint(Parsed(text).attributes)
        assert "url(" not in text
        assert "@import" not in text
