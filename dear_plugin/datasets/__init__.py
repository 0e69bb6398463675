"""Data sets for recourse: one simulated, three published.

`load_loan` needs no file and no network. The others look for their file in `data_home`, in the
folder of the environment variable `DEAR_DATA_HOME`, and in the user's cache, and otherwise
download it from its publisher. Every loader returns a `Dataset`. With `missing="keep"`, Adult and
Give Me Some Credit include missing values and special codes; by default such rows are dropped, as
in the recourse literature.
"""

from __future__ import annotations

from dear_plugin.datasets.adult import load_adult
from dear_plugin.datasets.compas import load_compas
from dear_plugin.datasets.credit import load_give_me_some_credit
from dear_plugin.datasets.dataset import Dataset
from dear_plugin.datasets.loan import load_loan

__all__ = [
    "Dataset",
    "load_adult",
    "load_compas",
    "load_give_me_some_credit",
    "load_loan",
]
