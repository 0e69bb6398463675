"""UCI Adult: incomes above 50,000 dollars a year (US census of 1994)."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import pandas as pd

from dear_plugin.datasets.dataset import Dataset, Missing, require_missing
from dear_plugin.datasets.fetch import (
    Source,
    locate,
    reading,
    require_columns,
    require_numbers,
    require_values,
)
from dear_plugin.errors import DataError, InputError, unknown

Categories = Literal["binary", "full"]

SOURCE = Source(
    names=("adult.zip",),
    page="https://archive.ics.uci.edu/dataset/2/adult",
    url="https://archive.ics.uci.edu/static/public/2/adult.zip",
    sha256="7537312dd56c2b98035880805ce99e68183a30ee468aa5329d6df0fbb3cc21bb",
)

_MEMBERS = ("adult.data", "adult.test")
_COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
)
_LABELS = {
    "age": "the age",
    "workclass": "the kind of employer",
    "fnlwgt": "the survey weight",
    "education": "the education",
    "education-num": "the level of schooling",
    "marital-status": "the marital status",
    "occupation": "the occupation",
    "relationship": "the role in the family",
    "race": "the race",
    "sex": "the sex",
    "capital-gain": "the capital gains",
    "capital-loss": "the capital losses",
    "hours-per-week": "the working time",
    "native-country": "the native country",
}
_UNITS = {
    "age": "years",
    "fnlwgt": "people",
    "education-num": "of 16",
    "capital-gain": "dollars a year",
    "capital-loss": "dollars a year",
    "hours-per-week": "hours a week",
}
_CODES = {"capital-gain": (99_999,)}
# For each column: the levels that are joined, their label, and the label of other levels.
_BINARY: Mapping[str, tuple[tuple[str, ...], str, str]] = {
    "workclass": (("Private",), "Private", "Other"),
    "marital-status": (("Married-civ-spouse", "Married-AF-spouse"), "Married", "Not married"),
    "occupation": (
        ("Adm-clerical", "Exec-managerial", "Machine-op-inspct", "Prof-specialty"),
        "Managerial-Specialist",
        "Other",
    ),
    "relationship": (("Husband",), "Husband", "Other"),
    "race": (("White",), "White", "Non-White"),
    "sex": (("Male",), "Male", "Female"),
    "native-country": (("United-States",), "United-States", "Other"),
}


def load_adult(
    categories: Categories = "binary",
    data_home: str | os.PathLike[str] | None = None,
    *,
    missing: Missing = "drop",
) -> Dataset:
    """Load UCI Adult, `adult.data` and `adult.test` together; `income` = 1 is more than 50K.

    Rows with any missing value (`?`) are dropped: 45,222 of 48,842 remain. (Published recourse
    tables often use 48,832 rows, after another preprocessing.)

    `"binary"` is the preprocessing of the recourse literature, for comparison. It has 13 features,
    7 of them binary (workclass Private or Other, and so on). `education` is dropped, since
    `education-num` has the same information.

    `"full"` has 13 features, 8 of them with all categories (41 native countries). `education` is
    kept and `education-num` is dropped, so that the two cannot contradict each other.

    `missing="keep"` keeps all 48,842 rows: 2,799 workclasses, 2,809 occupations and 857 native
    countries are missing. A capital-gain of 99,999 (244 rows) is in `Dataset.special`: it is the
    census' code for this amount or more. All other values are at most 41,310.

    Schooling, work and investments are actionable. `marital-status`, `relationship` and
    `capital-loss` may change indirectly but are not actionable, since a model should not recommend
    to change them. `fnlwgt` (a survey weight) and age are immutable.

    `Dataset.tiers`: attributes given at birth come first. Schooling is completed before most
    marriages and jobs. Work comes after the family, as a new job is no reason for a marriage.
    Hours depend on the job, and investments on its earnings. The survey weight causes nothing, so
    that no tier has it.

    Args:
        categories: "binary" or "full".
        data_home: the folder to search first; see `dear_plugin.datasets`.
        missing: "drop" the rows with a missing value, or "keep" them.

    Returns:
        A `Dataset` with 13 features, target `income`; in the paper sex and race are protected.

    Raises:
        DataError: the file is missing, or does not have UCI's format.
        InputError: an invalid value of `categories` or `missing`.

    References:
        B. Becker, R. Kohavi: Adult. UCI Machine Learning Repository, 1996.
        https://doi.org/10.24432/C5XW20 (CC BY 4.0)
    """
    if categories not in get_args(Categories):
        raise InputError(unknown("categories", [categories], get_args(Categories)))
    require_missing(missing)
    rows = _read(locate(SOURCE, data_home))
    if missing == "drop":
        rows = rows.dropna().reset_index(drop=True)
    frame = _binary(rows) if categories == "binary" else rows.drop(columns="education-num")
    schooling = "education-num" if categories == "binary" else "education"
    return Dataset(
        name="adult",
        frame=frame,
        target="income",
        immutable=("age", "fnlwgt", "race", "sex", "native-country"),
        increasing=("education-num",) if categories == "binary" else (),
        act_on=("workclass", schooling, "occupation", "capital-gain", "hours-per-week"),
        tiers=(
            ("age", "race", "sex", "native-country"),
            (schooling,),
            ("marital-status", "relationship"),
            ("workclass", "occupation"),
            ("hours-per-week",),
            ("capital-gain", "capital-loss"),
        ),
        protected=("sex", "race"),
        special=_CODES if missing == "keep" else {},
        labels={name: label for name, label in _LABELS.items() if name in frame.columns},
        units={name: unit for name, unit in _UNITS.items() if name in frame.columns},
        description="One row is one adult of the US census of 1994; income = 1 is more than 50K.",
        source="Becker and Kohavi, UCI, https://doi.org/10.24432/C5XW20, CC BY 4.0",
    )


def _read(path: Path) -> pd.DataFrame:
    """The rows of both members, with `?` as missing and the label as 0 and 1."""
    with reading(path), zipfile.ZipFile(path) as archive:
        missing = [name for name in _MEMBERS if name not in archive.namelist()]
        if missing:
            found = ", ".join(archive.namelist()) or "none"
            raise DataError(f"{path}: expected the members {', '.join(missing)}; got: {found}")
        rows = pd.concat([_read_member(path, archive, m) for m in _MEMBERS], ignore_index=True)
    rows["income"] = (rows["income"] == ">50K").astype(np.int64)
    return rows


def _read_member(path: Path, archive: zipfile.ZipFile, member: str) -> pd.DataFrame:
    """The rows of one member; `adult.test` starts with a comment line."""
    with archive.open(member) as file:
        rows = pd.read_csv(file, header=None, skipinitialspace=True, na_values="?", comment="|")
    rows.columns = pd.Index(_COLUMNS[: rows.shape[1]])
    inside = path / member
    require_columns(inside, rows, _COLUMNS)
    require_numbers(inside, rows, _UNITS)
    rows["income"] = rows["income"].str.rstrip(".")
    require_values(inside, rows["income"], ("<=50K", ">50K"))
    return rows


def _binary(rows: pd.DataFrame) -> pd.DataFrame:
    recoded = {
        name: pd.Series(np.where(rows[name].isin(levels), label, rest), dtype=object).where(
            rows[name].notna()
        )
        for name, (levels, label, rest) in _BINARY.items()
    }
    return rows.drop(columns="education").assign(**recoded)
