"""Audit: what every answer to a random table must keep, checked without the package.

python -m tests.sweep.audit [tables] [first seed]
"""

import logging
import sys
import traceback
import warnings
from collections import Counter
from itertools import chain

import numpy as np
import pandas as pd

from tests.sweep.models import KINDS, NATIVE, Net, fitted
from tests.sweep.routes import ROUTES
from tests.sweep.tables import CODES, DTYPES, random_table
from tests.sweep.traits import DEFINITIONS, IDENTIFIERS, STEPS

# The share of training rows that may break a definition by errors: 2 of 50 rows are none.
ERRORS = 0.025


def faults(table, model, after, success, reasons):
    """The kinds of faults in an answer."""
    before = table.query
    same = after.index.equals(before.index) and list(after) == list(before)
    if not same or not (after.dtypes == before.dtypes).all():
        return ["index, columns or dtypes changed"]
    # Its user passes rows in the dtypes of the training rows, but to an encoder of ours.
    typed = after if isinstance(model, Net) else after.astype(table.frame.dtypes.to_dict())
    accepted = np.ravel(model.predict(typed)) == 1
    fixed = [*table.immutable, *table.frozen]
    job = {"job"} & set(after)
    found = {
        "success is not the model's decision": list(accepted) != list(success),
        "a fixed value changed": before[fixed].map(repr).ne(after[fixed].map(repr)).any(axis=None),
        "an identifier changed": not after.filter(IDENTIFIERS).equals(before.filter(IDENTIFIERS)),
        "a number off its grid": any(
            (after[n][after[n] != before[n]] % STEPS[n]).any() for n in STEPS if n in after
        ),
        "an order of unlike units": any("share <=" in why for why in reasons),
        "a limit of its own is exceeded": table.limit is not None
        and (after["amount"] > before["amount"].combine(table.limit, max) + 1e-6).any(),
        "hours fell": (after["hours"] < before["hours"]).any(),
        "not exactly one of a group": any((after[g].sum(axis=1) != 1).any() for g in table.groups),
        "a code that no row has": not after.filter(["status"]).isin(CODES).all(axis=None),
        "a level was made up": any(
            _fresh(table, after, n) - {*table.frame[n]} for n in table.words
        ),
        "? was proposed": any("?" in _fresh(table, after, n) for n in job),
        "no reason": any(not ok and not why for ok, why in zip(success, reasons, strict=True)),
        "refused for a fixed new value": any("'brand'" in why for why in reasons),
    }
    found |= {
        f"a definition was broken: {trait}": (keeps(before, rows) & ~keeps(after, rows)).any()
        for rows in [table.frame]
        for trait, keeps in DEFINITIONS.items()
        if trait in table.traits and keeps(rows, rows).mean() >= 1 - ERRORS
    }
    return [kind for kind, wrong in found.items() if wrong]


def differ(together, alone):
    """Whether rows asked together have other answers than each alone."""
    frames, success, _ = zip(*alone, strict=True)
    a, b = together[0].astype(object), pd.concat([frame.astype(object) for frame in frames])
    cells = a.eq(b) | (a.isna() & b.isna())
    return not cells.all(axis=None) or [*chain(*success)] != list(together[1])


def _fresh(table, after, name):
    """The levels of a column that replace others."""
    return set(after[name][after[name].ne(table.query[name])])


def audited(seed):
    """The traits with the model and the route, and the faults, of the table of a seed."""
    kind = KINDS[seed % len(KINDS)]
    route = list(ROUTES)[seed // len(KINDS) % len(ROUTES)]
    without = set() if kind in NATIVE and route != "alibi" else {"missing"}
    # DiCE refuses nullable numbers, all numbers that its user names are amounts, and its ranges
    # are those of all rows.
    numbers = {"nullable", "identifier", "sparse number", "group number", "limits"}
    without |= numbers if route == "dice" else set()
    # These models take no objects; a torch module is passed as such.
    without |= {"object cells"} if kind in NATIVE else set()
    without |= {"labels"} if kind == "torch" else set()
    table = random_table(seed, NATIVE.get(kind, tuple(DTYPES)), without)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fitted(kind, table)
        try:
            ask = ROUTES[route](table, model)
            answer = ask(table.query)
            alone = [ask(table.query.loc[[row]]) for row in table.query.index]
            kinds = faults(table, model, *answer)
            kinds += ["rows alone have other answers"] * differ(answer, alone)
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1].name
            kinds = [f"raised {type(error).__name__} in {where}: {str(error).strip()[:150]}"]
    return (*table.traits, kind, route), kinds


def main(tables=1000, first=0):
    """Audit tables; print how many had each trait, and the seed of the smallest of each fault."""
    logging.disable(logging.WARNING)
    traits, wrong = Counter(), {}
    for seed in range(first, first + tables):
        names, kinds = audited(seed)
        traits.update(names)
        for kind in kinds:
            wrong.setdefault(kind, []).append((len(names), seed, names))
    print(f"{tables} tables:", ", ".join(f"{name} {n}" for name, n in sorted(traits.items())))
    for kind, cases in sorted(wrong.items(), key=lambda item: -len(item[1])):
        print(f"{len(cases)} x {kind}; seed {min(cases)[1]}: {', '.join(min(cases)[2])}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
