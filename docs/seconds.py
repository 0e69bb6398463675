"""CPU seconds of some calls in several versions, one after the other on one machine.

    python docs/seconds.py 0.4.0=../checkout-of-0.4 0.5.0=../checkout-of-0.5 0.6.0=.

runs every version in processes of its own, twice in turn, and writes the lower of the two to
docs/results/work/seconds.md. The machine has to be idle. The cases are those of
`python -m dear_plugin.benchmark work`, whose counts of each version stand beside the seconds.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
from tables import read

from dear_plugin.benchmark.tables import write

HERE = Path(__file__).resolve().parent
RUNS = 2
CASES = {"loans": (40, 40), "adult": (100, 1000)}
# What a process measures, in the version that its path leads to, by the cases of this one.
MEASURED = """
import importlib.util, json, logging, sys, time, warnings
warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
spec = importlib.util.spec_from_file_location("work", sys.argv[1])
work = sys.modules["work"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(work)
from dear_plugin import DEAR
case, (first, more) = work.CASES[sys.argv[2]](), map(int, sys.argv[3:])
laps, found = [time.process_time()], DEAR(case.model, case.schema, **case.how).fit(case.train)
for rows in (case.refused.iloc[:first], case.refused.iloc[first : first + more]):
    found.generate(rows).actions
    laps.append(time.process_time())
print(json.dumps([b - a for a, b in zip(laps, laps[1:])]))
"""


def measured(folder, case):
    """CPU seconds of the fit and the first rows, and of the next rows."""
    work = HERE.parent / "dear_plugin" / "benchmark" / "work.py"
    given = [str(work), case, *map(str, CASES[case])]
    paths = {"PYTHONPATH": str(Path(folder).resolve()), "OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        [sys.executable, "-c", MEASURED, *given],
        env=os.environ | paths,
        check=True,
        capture_output=True,
        text=True,
        cwd="/",
    )
    return json.loads(run.stdout.splitlines()[-1])


def thousand_operations(version, case):
    """Torch operations of the fit and the first 40 rows, and of the next 40, in thousands."""
    counted = read(f"work/{version}") or read("work/work")
    lines = {line["step"]: int(line["operations"]) for line in counted if line["case"] == case}
    once = lines["fit"] + lines["first 40 rows"]
    return round(once / 1000), round(lines["next 40 rows"] / 1000)


def table(versions):
    """One line for each version, with the lower of two measurements of each case."""
    found = [
        {"case": case, "version": version, "fit and first, s": once, "next, s": then}
        for _ in range(RUNS)
        for version, folder in versions.items()
        for case in CASES
        for once, then in [measured(folder, case)]
    ]
    least = pd.DataFrame(found).groupby(["case", "version"], sort=False).min().round(2)
    counts = [thousand_operations(version, case) for case, version in least.index]
    least[["thousand operations, fit and 40 rows", "next 40"]] = counts
    return least.reset_index()


if __name__ == "__main__":
    chosen = dict(each.split("=", 1) for each in sys.argv[1:])
    lines = table(chosen).to_dict("records")
    sys.stdout.write(write("seconds", lines, HERE / "results" / "work"))
