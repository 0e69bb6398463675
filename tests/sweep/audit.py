"""Audit: what every answer to a random table must keep, checked without the package.

python -m tests.sweep.audit [frames] [first seed]
"""

import logging
import operator
import sys
import time
import traceback
import warnings
from collections import Counter

from tests.sweep.models import MODELS, NATIVE, decisions, fitted
from tests.sweep.routes import ROUTES, ask
from tests.sweep.tables import CODES, DTYPES, random_table


def faults(table, model, answer):
    """The kinds of faults in an answer."""
    before, after = table.query, answer.frame
    shaped = after.index.equals(before.index) and list(after) == list(before)
    if not shaped or not (after.dtypes == before.dtypes).all():
        return ["index, columns or dtypes changed"]
    found = {
        "success is not the model's decision": _wrong_success(table, model, answer),
        "a fixed value changed": _changed(before, after, [*table.immutable, *table.frozen]),
        "an identifier changed": _changed(before, after, {"customer_id"} & set(after)),
        "hours fell": (after["hours"] < before["hours"]).any(),
        "not exactly one of a group": any((after[g].sum(axis=1) != 1).any() for g in table.groups),
        "a code that no row has": "status" in after and not after["status"].isin(CODES).all(),
        "a level was made up": any(_made_up(table, after, name) for name in table.words),
        "? was proposed": "job" in after and _proposed(before["job"], after["job"], "?"),
        "no reason": not all(map(operator.or_, answer.success, map(bool, answer.reasons))),
        "refused for a fixed new value": any("'brand'" in why for why in answer.reasons),
    }
    return [kind for kind, wrong in found.items() if wrong]


def _wrong_success(table, model, answer):
    accepted = decisions(model, answer.frame, table.frame.dtypes) == 1
    return list(accepted) != answer.success


def _changed(before, after, names):
    return any(repr(a) != repr(b) for n in names for a, b in zip(before[n], after[n], strict=True))


def _proposed(before, after, level):
    return bool((after.eq(level) & before.ne(level)).any())


def _made_up(table, after, name):
    fresh = after[name][after[name].ne(table.query[name])]
    return not fresh.isin(set(table.frame[name])).all()


def audited(seed):
    """(traits with model and route, kinds of faults) of the table of a seed."""
    kind = list(MODELS)[seed % len(MODELS)]
    route = list(ROUTES)[seed // len(MODELS) % len(ROUTES)]
    without = set() if kind in NATIVE and route == "python" else {"missing"}
    without |= {"nullable"} if route == "dice" else set()  # DiCE's own data interface refuses it
    table = random_table(seed, NATIVE.get(kind, tuple(DTYPES)), without)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fitted(kind, table)
        try:
            kinds = faults(table, model, ask(route, table, model))
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            text = str(error).strip().partition("\n")[0][:150]
            kinds = [f"raised {type(error).__name__} in {where.name}: {text}"]
    return (*table.traits, kind, route), kinds


def main(frames=1000, first=0):
    """Audit tables, and print how many had each trait, and the seeds of each fault."""
    logging.disable(logging.WARNING)
    traits, wrong, begin = Counter(), {}, time.process_time()
    for seed in range(first, first + frames):
        names, kinds = audited(seed)
        traits.update(names)
        for kind in kinds:
            wrong.setdefault(kind, []).append((seed, names))
    print(f"{frames} tables, {time.process_time() - begin:.0f} CPU seconds")
    print(", ".join(f"{name} {count}" for name, count in sorted(traits.items())))
    for kind, cases in sorted(wrong.items(), key=lambda item: -len(item[1])):
        seed, names = min(cases, key=lambda case: len(case[1]))
        print(f"{len(cases)} x {kind}; seed {seed}: {', '.join(names)}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
