"""The demo: its output for rows and routes."""

import io
import re
from contextlib import redirect_stdout

import pytest

from dear_plugin import DEAR, Constraints
from dear_plugin.demo import Demo
from dear_plugin.demo.experiment import (
    Experiment,
    make_experiment,
)
from dear_plugin.demo.show import LENGTH, run, story, summary


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    return make_experiment(Demo("loan", rows=30))


@pytest.fixture(scope="module")
def dear(experiment) -> DEAR:
    return DEAR(experiment.model, experiment.schema, **experiment.how).fit(experiment.train)


@pytest.mark.ci
class TestStory:
    @pytest.fixture(scope="class")
    @classmethod
    def episodes(cls, dear, experiment):
        recourses = dear.generate(experiment.refused, within=experiment.within)
        return story(dear, recourses, experiment.data.act_on, within=experiment.within)

    def test_five_different_rows_have_a_credible_answer_each(self, episodes, experiment):
        labels = [answer.factuals.index[0] for answer, _ in episodes]
        assert len(set(labels)) == len(labels) == LENGTH
        assert set(labels) <= set(experiment.refused.index)
        assert all(answer.actions["credible"].all() for answer, _ in episodes)

    def test_a_restricted_row_acts_on_that_feature_only(self, episodes):
        restricted = [(answer, only) for answer, only in episodes if only]
        assert restricted
        for answer, only in restricted:
            assert answer.actions["acted_on"].tolist() == [only]


@pytest.mark.ci
class TestRun:
    @pytest.fixture(scope="class")
    @classmethod
    def output(cls, tmp_path_factory):
        figure = tmp_path_factory.mktemp("demo") / "figure.png"
        text = io.StringIO()
        with redirect_stdout(text), pytest.MonkeyPatch.context() as patch:
            patch.setattr("dear_plugin.demo.show.find_spec", no_host)
            run(Demo("loan", rows=12, figure=figure))
        return text.getvalue(), figure

    def test_every_row_of_the_story_says_what_its_action_is_worth(self, output):
        text, _ = output
        words = " ".join(text.split())
        assert words.count("The action is enough") + words.count("The action alone is") == 5
        assert "an effect, if the stated order is right and nothing unobserved" in words
        assert re.search(r"Row \d+, if it acts on \w+ only: probability of", words)

    def test_hosts_that_are_not_installed_are_left_out(self, output):
        assert "DiCE: skipped, as dice_ml is not installed" in output[0]
        assert "Alibi: skipped, as alibi is not installed" in output[0]


def no_host(name):
    return None if name in ("dice_ml", "alibi") else name


class TestSummary:
    def test_each_route_has_the_support_of_its_own_rows(self, dear, experiment):
        recourses = dear.generate(experiment.refused)
        found, train = recourses.counterfactuals, experiment.train
        approved = train[train[experiment.data.target] == 1].head(len(found))
        others = found.assign(**{n: approved[n].to_numpy() for n in experiment.schema.names})
        routes = {"Python": found, "DiCE": others}
        # Rows that are accepted are their own answers.
        answers = dear.generate(others)
        own = answers.support[answers.actions["reason"] == "already accepted"]
        table = summary(experiment, recourses, routes)["mean support"]
        assert table.tolist() == [f"{each.mean():.2f}" for each in (recourses.support, own)]
        assert table.nunique() == 2

    def test_rows_are_the_same_where_both_routes_have_none_or_equal_ones(self, dear, experiment):
        recourses = dear.generate(experiment.refused, within=Constraints(act_on=["duration"]))
        failed = ~recourses.actions["success"]
        assert 0 < failed.sum() < len(failed)
        attempts, factuals = recourses.counterfactuals, experiment.refused
        assert (attempts[failed] != factuals.loc[failed, attempts.columns]).any(axis=None)
        others = attempts.where(~failed, factuals)
        routes = {"Python": attempts, "DiCE": others, "Alibi": factuals}
        table = summary(experiment, recourses, routes)
        n, none = len(failed), failed.sum()
        same = [f"{n} of {n}", f"{n} of {n}", f"{none} of {n}"]
        assert table["same rows as in Python"].tolist() == same
