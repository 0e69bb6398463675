"""DEAR solves every row that an exhaustive scan over singletons and pairs solves."""

from dataclasses import replace

import pandas as pd
import pytest
import torch
from sklearn.ensemble import RandomForestRegressor

from dear_plugin import DEAR, ActionSets, Encoder, Schema, Target
from dear_plugin.datasets import load_adult, load_loan
from dear_plugin.demo.classifiers import Recipe, trained
from dear_plugin.methods.answering import PAST
from dear_plugin.methods.base import Case
from dear_plugin.problem.constraints import admissible
from dear_plugin.problem.goals import goal_of
from dear_plugin.search import SearchProblem
from dear_plugin.search.problem import arrays, evaluate, tensors

SINGLE, PAIR = 300, 24


def exhaustive(dear: DEAR, frame: pd.DataFrame, target: Target | None) -> torch.Tensor:
    """(n,) bool: whether any value of any set reaches the target."""
    x = dear.encoder.rows(frame)
    feasible = admissible(None, x, dear.encoder, dear.encoder.held(frame))
    goal = goal_of(target, len(x), dear.classifier.classes, dear.classifier.output)
    goal = goal.bind(dear.classifier.frame_scores(frame, x), lambda: dear.trained.cutoffs)
    case = Case(x, goal, feasible, goal.aim(PAST[0]))
    solved = torch.zeros(len(x), dtype=torch.bool)
    names = [dear.schema.names[m[0]] for m in dear.sets.members]
    for each in (dear.sets, ActionSets.pairs(dear.schema, names)):
        problem = SearchProblem.of(case, each, dear.trained)
        problem = replace(problem, in_steps=dear.search.in_steps)
        for i, members in enumerate(problem.sets.members):
            rows = (torch.from_numpy(problem.may_act[:, i]) & ~solved).nonzero()[:, 0]
            sets = torch.full((len(rows),), i)
            values = _all_values(dear, members).expand(len(rows), -1, -1)
            (values,) = tensors(problem.snapped(*arrays(rows, sets, values)))
            every = (each.repeat_interleave(values.shape[1]) for each in (rows, sets))
            margin = evaluate(problem, *every, values.flatten(0, 1))[1].view(values.shape[:2])
            solved[rows] |= (margin >= case.aim[rows, None]).any(1)
    return solved


def _all_values(dear: DEAR, members: tuple[int, ...]) -> torch.Tensor:
    columns = []
    for j in members:
        seen = dear.trained.rows[:, j].unique()
        most = SINGLE if len(members) == 1 else PAIR
        shares = torch.linspace(0, 1, most)
        columns.append(seen if len(seen) <= most else torch.quantile(seen, shares.to(seen)))
    return torch.cartesian_prod(*columns).view(-1, len(members))


def check(dear: DEAR, frame: pd.DataFrame, target: Target | None = None) -> None:
    actions = dear.generate(frame, target).actions
    failed = ~actions["success"]
    assert actions.loc[failed, "reason"].str.len().gt(0).all()
    if failed.any():
        assert not exhaustive(dear, frame[failed], target).any()


@pytest.mark.real_data
@pytest.mark.slow
def test_adult_with_all_its_categories(data_home):
    data = load_adult(categories="full", data_home=data_home)
    schema = Schema.infer(
        data.frame, target=data.target, immutable=data.immutable, increasing=data.increasing
    )
    assert sum(len(f.categories) > 2 for f in schema) == 7
    train, test = data.split(seed=0)
    encoder = Encoder(schema)
    labels = torch.tensor(train[data.target].to_numpy())
    model = trained("ann", encoder.encode(train), labels, Recipe(512, 6, 0.003))
    with torch.no_grad():
        refused = test[(model(encoder.encode(test))[:, 0] <= 0).numpy()].iloc[:120]
    check(DEAR(model, schema, act_on=data.act_on).fit(train), refused)
    hard = ["hours-per-week", "education", "occupation", "workclass"]
    check(DEAR(model, schema, act_on=hard).fit(train), refused)


@pytest.fixture(scope="module")
def loans():
    frame = load_loan(6000).frame.drop(columns="approved")
    schema = Schema.infer(frame, immutable=["gender"], increasing=["age", "education"])
    return frame, schema, Encoder(schema)


ACT_ON = ("education", "loan_amount", "duration")


@pytest.mark.parametrize(
    "target", [Target.of_class(c) for c in range(3)] + [Target.of_class(2, 0.9)]
)
@pytest.mark.ci
def test_three_classes(loans, target):
    frame, schema, encoder = loans
    score = 0.5 * frame["savings"] + frame["income"] - 0.4 * frame["loan_amount"]
    labels_of_three = torch.tensor(pd.qcut(score, 3, labels=False).to_numpy())
    dear = DEAR(_three_classes(encoder.encode(frame), labels_of_three), schema, act_on=ACT_ON)
    check(dear.fit(frame), frame.iloc[:150], target)


@pytest.mark.ci
def test_a_regression_forest_as_a_black_box(loans):
    frame, schema, encoder = loans
    forest = RandomForestRegressor(20, min_samples_leaf=5, random_state=0)
    forest.fit(encoder.encode(frame).numpy(), frame["savings"])
    dear = DEAR(
        lambda rows: forest.predict(encoder.encode(rows).numpy()),
        schema,
        output="values",
        act_on=("income", "loan_amount", "duration"),
    )
    check(dear.fit(frame), frame.iloc[:60], Target.of_range(38, 40))


def _three_classes(x: torch.Tensor, labels: torch.Tensor) -> torch.nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layers = torch.nn.Linear(x.shape[1], 24), torch.nn.ReLU(), torch.nn.Linear(24, 3)
        model = torch.nn.Sequential(*layers)
    optimiser = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(200):
        loss = torch.nn.functional.cross_entropy(model(x), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model
