"""COMPAS: high risk scores of defendants (ProPublica, Broward County, 2013-2014)."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd

from dear_plugin.datasets.dataset import Dataset
from dear_plugin.datasets.fetch import (
    Source,
    locate,
    reading,
    require_columns,
    require_numbers,
    require_values,
)

SOURCE = Source(
    names=("compas-scores-two-years.csv",),
    page="https://github.com/propublica/compas-analysis",
    # A commit instead of a branch, so that the checksum stays valid.
    url=(
        "https://raw.githubusercontent.com/propublica/compas-analysis/"
        "bafff5da3f2e45eca6c2d5055faad269defd135a/compas-scores-two-years.csv"
    ),
    sha256="c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",
)

_NUMBERS = ("age", "priors_count", "two_year_recid", "days_b_screening_arrest", "is_recid")
_WORDS = ("sex", "race", "c_charge_degree", "c_jail_in", "c_jail_out", "score_text")
_COLUMNS = _NUMBERS + _WORDS
_JAIL_TIME = "%Y-%m-%d %H:%M:%S"


def load_compas(data_home: str | os.PathLike[str] | None = None) -> Dataset:
    """Load ProPublica's COMPAS table; `not_high_risk` = 1 is a score of Low or Medium.

    The rows are the 6,172 of 7,214 in ProPublica's analysis: screened within 30 days of arrest,
    with known recidivism and a score, and without ordinary traffic offences. Names and birth dates
    are not read. `length_of_stay` is the number of whole days from `c_jail_in` to `c_jail_out`.
    183 stays whose recorded end is before their start count as 0. Charges are Felony or
    Misdemeanor, recidivism is Yes or No, race is African-American or Other.

    Only the length of the stay in jail is actionable, since a bail can end it. The charge, later
    records and prior counts are immutable. The data set is included because the literature uses
    it, with sex and race immutable (`Dataset.protected`) and all other features mutable.

    `Dataset.tiers` is the order in time: sex and age, earlier offences, the charge, the stay in
    jail, and the two years after it.

    Args:
        data_home: the folder to search first; see `dear_plugin.datasets`.

    Returns:
        A `Dataset` with 7 features, target `not_high_risk`.

    Raises:
        DataError: the file is missing, or does not have ProPublica's format.

    References:
        J. Larson, S. Mattu, L. Kirchner, J. Angwin: How we analyzed the COMPAS recidivism
        algorithm. ProPublica, 2016. https://github.com/propublica/compas-analysis
    """
    path = locate(SOURCE, data_home)
    with reading(path):
        frame = _prepare(_read(path))
    return Dataset(
        name="compas",
        frame=frame,
        target="not_high_risk",
        immutable=("age", "two_year_recid", "c_charge_degree", "race", "sex", "priors_count"),
        act_on=("length_of_stay",),
        tiers=(
            ("age", "race", "sex"),
            ("priors_count",),
            ("c_charge_degree",),
            ("length_of_stay",),
            ("two_year_recid",),
        ),
        protected=("sex", "race"),
        labels={
            "age": "the age",
            "two_year_recid": "a new offence within two years",
            "c_charge_degree": "the charge",
            "race": "the race",
            "sex": "the sex",
            "priors_count": "the record",
            "length_of_stay": "the stay in jail",
        },
        units={"age": "years", "priors_count": "earlier offences", "length_of_stay": "days"},
        description="One row is one defendant; not_high_risk = 1 is a score of Low or Medium.",
        source="Larson et al., ProPublica 2016, https://github.com/propublica/compas-analysis",
    )


def _read(path: Path) -> pd.DataFrame:
    require_columns(path, pd.read_csv(path, nrows=0), _COLUMNS)
    rows = pd.read_csv(path, usecols=list(_COLUMNS))
    require_numbers(path, rows, _NUMBERS)
    kept = rows[
        rows["days_b_screening_arrest"].between(-30, 30)
        & (rows["is_recid"] != -1)
        & (rows["c_charge_degree"] != "O")
        & rows["score_text"].notna()
    ].reset_index(drop=True)
    require_values(path, kept["c_charge_degree"], ("F", "M"))
    require_values(path, kept["score_text"], ("Low", "Medium", "High"))
    return kept


def _prepare(rows: pd.DataFrame) -> pd.DataFrame:
    arrived, left = (
        pd.to_datetime(rows[name], format=_JAIL_TIME) for name in ("c_jail_in", "c_jail_out")
    )
    return pd.DataFrame(
        {
            "age": rows["age"],
            "two_year_recid": rows["two_year_recid"].map({0: "No", 1: "Yes"}),
            "c_charge_degree": rows["c_charge_degree"].map({"F": "Felony", "M": "Misdemeanor"}),
            "race": rows["race"].where(rows["race"] == "African-American", "Other"),
            "sex": rows["sex"],
            "priors_count": rows["priors_count"],
            "length_of_stay": (left - arrived).dt.days.clip(lower=0).astype(np.int64),
            "not_high_risk": (rows["score_text"] != "High").astype(np.int64),
        }
    )
