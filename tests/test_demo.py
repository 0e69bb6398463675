"""The demo: its output for rows and routes."""

import numpy as np
import pytest

from dear_plugin import DEAR, Constraints
from dear_plugin.demo import Demo
from dear_plugin.demo.experiment import Experiment, make_experiment
from dear_plugin.demo.show import RouteResult, _print_rows, _summary
from dear_plugin.evaluation.neighbours import Neighbours
from dear_plugin.evaluation.support import Support


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    return make_experiment(Demo("loan", rows=30))


@pytest.fixture(scope="module")
def dear(experiment) -> DEAR:
    return DEAR(experiment.model, experiment.schema, act_on=experiment.data.act_on).fit(
        experiment.train
    )


class TestRows:
    def test_a_row_with_an_action_has_its_cost(self, dear, experiment, capsys):
        _print_rows(dear.generate(experiment.refused))
        output = capsys.readouterr().out
        assert output.count("cost ") == output.count("support ") == 5

    def test_a_row_without_an_action_has_a_reason_and_no_cost(self, dear, experiment, capsys):
        _print_rows(dear.generate(experiment.refused, within=Constraints(act_on=[])))
        output = capsys.readouterr().out
        assert output.count("no recourse found: nothing admissible to act on.") == 5
        assert "cost" not in output


class TestSummary:
    def test_each_route_has_the_support_of_its_own_rows(self, dear, experiment):
        recourses = dear.generate(experiment.refused)
        found = recourses.counterfactuals
        approved = experiment.train[experiment.train[experiment.data.target] == 1].head(len(found))
        others = found.copy()
        for name in experiment.schema.names:
            others[name] = approved[name].to_numpy()
        table = _summary(
            experiment,
            recourses,
            [RouteResult("engine", found, 0), RouteResult("DiCE", others, 0)],
        )
        encoder = dear.encoder
        scores = dear.classifier.frame_scores(others)[:, 0]
        rows = encoder.rows(others)[scores > 0]
        own = Support(Neighbours(encoder.rows(experiment.train), encoder), dear.classifier)
        goal = recourses.lazy_answers.case.goal
        expected = own.of(rows, goal).mean()
        assert table["mean support"].tolist() == [
            f"{recourses.support.mean():.2f}",
            f"{expected:.2f}",
        ]
        assert table["mean support"].nunique() == 2

    def test_a_route_without_success_has_none(self, dear, experiment):
        recourses = dear.generate(experiment.refused)
        table = _summary(experiment, recourses, [RouteResult("DiCE", experiment.refused, 0.0)])
        assert table["mean support"].tolist() == ["-"]
        assert table["success"].tolist() == ["0.000"]
        assert np.isnan(float(table["median cost"].iloc[0]))
