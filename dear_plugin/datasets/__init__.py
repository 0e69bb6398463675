"""Data sets for recourse: one simulated, three published.

Every loader returns a `Dataset`. `load_loan` needs no file and no network. The other loaders
search their file in `data_home`, in the folder of the environment variable `DEAR_DATA_HOME`, and
in the user's cache. If it is in none, they download it from its publisher. Rows with missing
values or codes are dropped, as in the recourse literature, unless `missing="keep"` (Adult, Give Me
Some Credit).
"""

from __future__ import annotations

from dear_plugin.datasets.adult import load_adult
from dear_plugin.datasets.compas import load_compas
from dear_plugin.datasets.credit import load_give_me_some_credit
from dear_plugin.datasets.dataset import Dataset
from dear_plugin.datasets.loan import load_loan

__all__ = ["Dataset", "load_adult", "load_compas", "load_give_me_some_credit", "load_loan"]
