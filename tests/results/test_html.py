"""Results as HTML: a table in notebooks, a page with one card for each row, all text escaped."""

import pytest

from dear_plugin import DEAR
from dear_plugin.results import html


@pytest.fixture(scope="module")
def result(mixed):
    dear = DEAR(mixed.net, mixed.schema).fit(mixed.frame)
    query = mixed.frame.iloc[:25]
    return dear.generate(query.set_axis([f"<{i}>" for i in range(len(query))]))


class TestTable:
    def test_it_has_the_first_rows_and_says_how_many_more_there_are(self, result):
        table = result._repr_html_()
        assert table.count("<tr>") == 1 + html.MOST_ROWS
        assert "and 5 more rows" in table

    def test_direct_and_indirect_changes_are_marked_apart(self, result):
        table = result._repr_html_()
        acts = (result.changed & result.proposal.direct)[: html.MOST_ROWS].sum()
        follows = (result.changed & ~result.proposal.direct)[: html.MOST_ROWS].sum()
        assert table.count('class="direct"') == int(acts) > 0
        assert table.count('class="expected"') == int(follows) > 0

    def test_it_says_whether_the_action_alone_is_enough(self, result):
        actions = result.actions.iloc[: html.MOST_ROWS]
        acting = actions[actions["acted_on"] != ""]
        table = result._repr_html_()
        assert table.count("is enough") == (acting["reliance"] == 0.0).sum()
        assert table.count("is not enough") == (acting["reliance"] > 0.0).sum()

    def test_indirect_changes_are_called_associations(self, result):
        assert "associations in the data, not causal effects" in result._repr_html_()

    def test_labels_are_escaped(self, result):
        assert "&lt;0&gt;" in result._repr_html_()
        assert "<0>" not in result._repr_html_()


class TestPage:
    def test_it_has_one_card_for_each_row_with_its_description(self, result, tmp_path):
        result.to_html(tmp_path / "page.html", title="Loans & others")
        page = (tmp_path / "page.html").read_text("utf8")
        assert page.count("<article>") == len(result)
        assert "Loans &amp; others" in page
        assert "raise income" in page or "change job" in page

    def test_it_needs_neither_scripts_nor_a_network(self, result):
        page = html.page(result, "t")
        assert "<script" not in page
        assert "http" not in page
