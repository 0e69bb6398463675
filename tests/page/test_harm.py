"""What the page offers to nobody: less schooling, gaps, losses, more debts."""

import numpy as np
import pytest

pytest.importorskip("panel")

from dear_plugin import Feature, Kind
from dear_plugin.page.harm import better, not_worse

LESS, MORE, NEITHER = 1, -1, 0
DEGREES = ("Bachelors", "11th", "Masters", "HS-grad", "1st-4th", "Preschool", "Some-college")


def number(name, **more):
    return Feature(name, Kind.NUMERIC, bounds=(0.0, 100.0), **more)


def category(name, *levels):
    return Feature(name, Kind.CATEGORICAL, categories=levels)


class TestWhichDirectionIsWorse:
    @pytest.mark.parametrize(
        ("name", "worse"),
        [
            *dict.fromkeys(
                ("education", "yearsOfSchool", "special_skills", "salary"), LESS
            ).items(),
            *dict.fromkeys(("employment_holes", "capital-loss", "MissedPayments"), MORE).items(),
            *dict.fromkeys(
                ("loan_amount", "education_loan", "hours", "glossary"), NEITHER
            ).items(),
        ],
    )
    def test_by_the_words_of_a_name(self, name, worse):
        assert better(number(name)) == worse

    def test_by_the_words_of_a_label(self):
        assert better(number("x7", label="the years of schooling")) == LESS

    def test_a_stated_direction_decides(self):
        assert better(number("education", direction=-1)) == NEITHER


class TestWhatIsLeft:
    def test_of_a_number_its_own_value_and_better_ones(self):
        years = number("education")
        assert not_worse(years, LESS, 12.0) == (12.0, np.inf)
        assert not_worse(years, MORE, 12.0) == (-np.inf, 12.0)
        assert not_worse(years, NEITHER, 12.0) is None

    def test_of_a_reach_the_part_that_is_not_worse(self):
        years = number("education")
        assert not_worse(years, LESS, 12.0, (5.0, 16.0)) == (12.0, 16.0)
        assert not_worse(years, LESS, 12.0, (14.0, None)) == (14.0, np.inf)
        assert not_worse(years, LESS, 17.0, (5.0, 16.0)) == (17.0, 17.0)
        assert not_worse(years, MORE, 3.0, (5.0, 16.0)) == (3.0, 3.0)

    def test_of_answers_those_that_are_not_worse(self):
        skills, gaps = category("special_skills", "0", "1"), category("gaps", "no", "yes")
        assert not_worse(skills, LESS, "1") == ["1"]
        assert not_worse(skills, LESS, "0") == ["0", "1"]
        assert not_worse(gaps, MORE, "no") == ["no"]
        assert not_worse(gaps, MORE, "yes") == ["no", "yes"]

    def test_of_degrees_and_grades_those_that_are_not_less(self):
        education = category("education", *DEGREES)
        assert not_worse(education, LESS, "Bachelors") == ["Bachelors", "Masters"]
        assert {*DEGREES} - {*not_worse(education, LESS, "11th")} == {"1st-4th", "Preschool"}

    def test_of_levels_whose_order_is_not_known_all(self):
        town = category("skills", "welding", "law")
        assert not_worse(town, LESS, "law") == ["welding", "law"]

    @pytest.mark.parametrize("own", [np.nan, None, "never seen"])
    def test_of_what_is_missing_or_new_all(self, own):
        assert not_worse(category("education", *DEGREES), LESS, own) is None
