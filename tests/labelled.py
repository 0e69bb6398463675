"""Labelled: loans whose features have labels, units and an order of causes."""

from dear_plugin import Schema
from dear_plugin.datasets import load_loan

DATA = load_loan(3_000)
TEXTS = {"labels": DATA.labels, "units": DATA.units}


def loan_schema(**texts):
    """Where money and schooling may only rise, with texts or without."""
    marks = {"immutable": ["gender", "age"], "increasing": ["education", "income", "savings"]}
    return Schema.infer(DATA.frame, target="approved", tiers=DATA.tiers, **marks, **texts)
