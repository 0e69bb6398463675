"""The demo: what it prints of people, and of each route."""

import numpy as np
import pytest

from dear_plugin import DEAR, Constraints
from dear_plugin.demo import Demo
from dear_plugin.demo.show import Answer, _people, _summary
from dear_plugin.demo.stage import Stage, stage
from dear_plugin.evaluation.neighbours import Neighbours
from dear_plugin.evaluation.support import Support


@pytest.fixture(scope="module")
def scene() -> Stage:
    return stage(Demo("loan", rows=30))


@pytest.fixture(scope="module")
def dear(scene) -> DEAR:
    return DEAR(scene.model, scene.schema, act_on=scene.data.act_on).fit(scene.train)


class TestPeople:
    def test_who_acts_on_something_is_told_what_it_costs(self, dear, scene, capsys):
        _people(dear.generate(scene.refused))
        said = capsys.readouterr().out
        assert said.count("cost ") == said.count("support ") == 5

    def test_who_has_no_action_is_told_why_and_no_cost(self, dear, scene, capsys):
        _people(dear.generate(scene.refused, within=Constraints(act_on=[])))
        said = capsys.readouterr().out
        assert said.count("no recourse found: nothing admissible to act on.") == 5
        assert "cost" not in said


class TestSummary:
    def test_each_route_has_the_support_of_its_own_answers(self, dear, scene):
        recourses = dear.generate(scene.refused)
        mine = recourses.counterfactuals
        approved = scene.train[scene.train[scene.data.target] == 1].head(len(mine))
        others = mine.copy()
        for name in scene.schema.names:
            others[name] = approved[name].to_numpy()
        table = _summary(scene, recourses, [Answer("engine", mine, 0), Answer("DiCE", others, 0)])
        encoder = dear.encoder
        scores = dear.classifier.frame_scores(others)[:, 0]
        rows = encoder.rows(others)[scores > 0]
        own = Support(Neighbours(encoder.rows(scene.train), encoder), dear.classifier)
        goal = recourses.hooks.support.case.goal
        expected = own.of(rows, goal).mean()
        assert table["mean support"].tolist() == [
            f"{recourses.support.mean():.2f}",
            f"{expected:.2f}",
        ]
        assert table["mean support"].nunique() == 2

    def test_a_route_without_success_has_none(self, dear, scene):
        recourses = dear.generate(scene.refused)
        table = _summary(scene, recourses, [Answer("DiCE", scene.refused, 0.0)])
        assert table["mean support"].tolist() == ["-"]
        assert table["success"].tolist() == ["0.000"]
        assert np.isnan(float(table["median cost"].iloc[0]))
