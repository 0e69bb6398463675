"""How far off no order, tiers and a graph of causes are: python docs/orders.py

By training rows, of the health system of `python -m dear_plugin.benchmark effects`: the mean error
of what is told to follow half a standard deviation of each feature, and the largest, in standard
deviations over three draws.
"""

import numpy as np
import pandas as pd

from dear_plugin import DEAR, Schema
from dear_plugin.benchmark.systems import SYSTEMS

health = SYSTEMS["health"]
orders = {
    "no order": {},
    "two tiers": {"tiers": [["age"], ["exercise", "salt", "weight", "pressure", "glucose"]]},
    "five tiers": {"tiers": health.tiers},
    "graph": {
        "causes": {
            "exercise": ["age"],
            "salt": ["age"],
            "weight": ["age", "exercise"],
            "pressure": ["age", "salt", "weight"],
            "glucose": ["weight"],
            "costs": ["pressure", "glucose"],
        }
    },
}


def errors(rows, order, seed):
    """Told minus true mean changes, in standard deviations, of actions on one feature each."""
    rng = np.random.default_rng(seed)
    train, noise = health.solve(health.noise(rows, rng), {}), health.noise(4_000, rng)
    schema, before = Schema.infer(train, immutable=["age"], **order), health.solve(noise, {})
    dear = DEAR(lambda people: np.full(len(people), 0.25), schema).fit(train)
    for name in schema.mutable:
        action = (before[[name]] + before[name].std() / 2).round(2)
        told = dear.apply(before, action).counterfactuals
        true = health.solve(noise, {name: told[name]})
        yield ((told - true).mean() / before.std()).abs().drop([name, "age"])


def mean_and_worst(rows, order):
    runs = [pd.concat(errors(rows, order, seed)) for seed in range(3)]
    return f"{np.mean(runs):.3f}, {np.mean([run.max() for run in runs]):.2f}"


def table():
    """The errors as a frame: training rows by what is stated."""
    sizes = (1_000, 4_000)
    found = {how: [mean_and_worst(n, order) for n in sizes] for how, order in orders.items()}
    return pd.DataFrame(found, index=sizes)


if __name__ == "__main__":
    print(table().to_string())
