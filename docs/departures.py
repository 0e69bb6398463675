"""From the paper's DEAR to the default, one departure at a time, on the same rows.

python docs/departures.py            (writes docs/results/departures.md)
"""

import time
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp

from dear_plugin import DEAR, Autoencoder, Search
from dear_plugin.benchmark.tables import write
from dear_plugin.demo.experiment import Demo, make_experiment

PAPER = Autoencoder.paper((8, 10, 5))
REMAINDER = Autoencoder(replace(PAPER.design, reconstruct="remainder"))
LINE = Search.cheapest(max_features=1)
LITERAL = Search.cheapest(solver="paper", max_features=1)
CONFIGURATIONS = {
    "the paper's method": (PAPER, LITERAL),
    "... with the line search": (PAPER, LINE),
    "... and the factual's remainder": (REMAINDER, LINE),
    "... and latents independent of x_S": (Autoencoder(), LINE),
    "ranks in place of networks": ("transport", Search.cheapest()),
    "credible answers, the default": ("transport", Search()),
}


def evaluate(name, experiment):
    """Success, costs, fidelity and times of one configuration."""
    decoder, search = CONFIGURATIONS[name]
    dear = DEAR(
        experiment.model,
        experiment.schema,
        act_on=experiment.data.act_on,
        decoder=decoder,
        search=search,
    )
    start = time.process_time()
    dear.fit(experiment.train)
    fitted = time.process_time()
    actions = dear.generate(experiment.refused).outcome
    generated = time.process_time()
    report, done = dear.diagnose(experiment.test), actions[actions["success"]]
    return {
        "way": name,
        "success": actions["success"].mean(),
        "cost": done["cost"].median(),
        "direct": done["direct_cost"].median(),
        "indirect": done["indirect_cost"].median(),
        "round_trip": report.round_trip,
        "fidelity": report.fidelity,
        "distribution": report.distribution_fidelity,
        "fit_cpu_s": fitted - start,
        "cpu_ms_a_row": 1000 * (generated - fitted) / len(actions),
    }


if __name__ == "__main__":
    experiment = make_experiment(Demo(rows=300))
    table = [evaluate(name, experiment) for name in CONFIGURATIONS]
    text = write("departures", table, Path(mkdtemp()))
    (Path(__file__).parent / "results" / "departures.md").write_text(text, encoding="utf8")
    print(text)
