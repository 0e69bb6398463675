"""What is shown of amounts: their separators and units."""

from types import SimpleNamespace

import pytest

pytest.importorskip("panel")

from dear_plugin import Feature, Kind, LetterTemplate
from dear_plugin.page.shown import advice_text, text_of
from dear_plugin.tell.describe import in_short
from tests.results.lines import line


class TestAmounts:
    """A unit had separators as in "2,015 euros", and one number of a pair alone."""

    @pytest.mark.parametrize(
        ("unit", "old", "new", "told"),
        [
            ("", 9500, 12410, "9,500 → 12,410"),
            ("", 950, 1241, "950 → 1241"),
            ("euros", 950, 1241, "950 → 1,241 euros"),
            ("2015 euros", 3, 4, "3 → 4 2015 euros"),
        ],
    )
    def test_a_pair_has_separators_as_in_a_letter(self, unit, old, new, told):
        price = Feature("price", Kind.NUMERIC, unit=unit)
        assert in_short(line(price, old, new), grouped=True) == told
        assert LetterTemplate.of("en")._ends(price, old, new) == tuple(told.split(" → "))

    def test_its_range_is_in_the_same_form(self):
        price = Feature("price", Kind.NUMERIC, bounds=(0.0, 20_000.0))
        follows = line(price, 9000, 9900, kind="indirect")
        told = in_short(follows._replace(low=500.0, high=1200.0), grouped=True)
        assert told == "9,000 → 9,900 (9,500 to 10,200)"

    def test_a_unit_is_told_as_it_is(self):
        price = Feature("price", Kind.NUMERIC, unit="2015 euros")
        assert text_of(price, 12500.5) == "12,500.5 2015 euros"
        assert text_of(price, 3.5) == "3.5 2015 euros"

    def test_amounts_of_a_kind_are_in_one_form(self):
        price = Feature("price", Kind.NUMERIC)
        known = SimpleNamespace(features={"price": price}, rows=[0])
        kind = SimpleNamespace(feature="price", change="up", rows=1, old=9500.0, new=12410.0)
        kind.goes, kind.at_edge, kind.follows = "2910 (150 to 4000)", 0.0, ""
        told = advice_text(known, kind)
        assert told.endswith("about 9,500 to about 12,410, by 2,910 (150 to 4,000).")
