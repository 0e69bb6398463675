"""Give Me Some Credit: delinquency of 90 days or more within two years (Kaggle, 2011)."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd

from dear_plugin.datasets.dataset import Dataset, Missing, require_missing
from dear_plugin.datasets.fetch import Source, locate, reading, require_columns, require_numbers

SOURCE = Source(
    names=("cs-training.csv.zip", "cs-training.csv"),
    page="https://www.kaggle.com/c/GiveMeSomeCredit/data (a free login is needed)",
)

_LABEL = "SeriousDlqin2yrs"
_LABELS = {
    "RevolvingUtilizationOfUnsecuredLines": "the used share of the credit limits",
    "age": "the age",
    "NumberOfTime30-59DaysPastDueNotWorse": "the number of payments 30 to 59 days late",
    "DebtRatio": "the ratio of debts and living costs to income",
    "MonthlyIncome": "the income",
    "NumberOfOpenCreditLinesAndLoans": "the number of loans and credit lines",
    "NumberOfTimes90DaysLate": "the number of payments 90 days late",
    "NumberRealEstateLoansOrLines": "the number of mortgages",
    "NumberOfTime60-89DaysPastDueNotWorse": "the number of payments 60 to 89 days late",
    "NumberOfDependents": "the number of dependents",
}
_UNITS = {"age": "years", "MonthlyIncome": "dollars a month"}
_CODES = {
    "NumberOfTime30-59DaysPastDueNotWorse": (96, 98),
    "NumberOfTimes90DaysLate": (96, 98),
    "NumberOfTime60-89DaysPastDueNotWorse": (96, 98),
}
_RATIOS = ("RevolvingUtilizationOfUnsecuredLines", "DebtRatio")


def load_give_me_some_credit(
    data_home: str | os.PathLike[str] | None = None, *, missing: Missing = "drop"
) -> Dataset:
    """Load Give Me Some Credit; `no_serious_delinquency` = 1 is a debtor without delinquency.

    As in the recourse literature, rows with a missing value are dropped, then rows where any
    feature lies 3 or more standard deviations from its mean: 115,527 of 150,000 remain. The label
    is upstream's `SeriousDlqin2yrs` with 0 and 1 swapped, hence its new name; the features keep
    their names. The two ratios are rounded to 4 decimals, all other values are whole numbers.

    `missing="keep"` keeps missing values and codes: 144,850 rows remain by the same criterion on
    all other values. MonthlyIncome is missing in 29,176 of them, NumberOfDependents in 3,865. In
    rows without an income, upstream's DebtRatio is the payments in dollars, and is set to missing.
    The codes 96 and 98 of the times past due (268 rows) are in `Dataset.special`. Columns with
    missing values are floats.

    Income, debts and credit lines are actionable. Age and times past due are immutable. The number
    of dependents may change indirectly but is not actionable.

    `Dataset.tiers`: age comes before the number of dependents, and both before the income.
    Payments past due are past events that depend on the income. Lenders grant loans and credit
    lines on income and history. Only a granted line can be used. The debt ratio is computed from
    the payments on all of these.

    Args:
        data_home: the folder to search first; see `dear_plugin.datasets`. Kaggle requires a login,
            so this file is never downloaded: get `cs-training.csv` manually, zipped or not.
        missing: "drop" the rows with a missing value or a code, or "keep" them.

    Returns:
        A `Dataset` with 10 numeric features, 4 of them immutable; target `no_serious_delinquency`.

    Raises:
        DataError: the file is missing, or does not have Kaggle's format.
        InputError: an invalid value of `missing`.

    References:
        Give Me Some Credit. Kaggle competition, 2011. https://www.kaggle.com/c/GiveMeSomeCredit
    """
    require_missing(missing)
    path = locate(SOURCE, data_home)
    with reading(path):
        frame = _prepare(_read(path), missing)
    return Dataset(
        name="gmc",
        frame=frame,
        target="no_serious_delinquency",
        immutable=("age", *(name for name in _LABELS if name.startswith("NumberOfTime"))),
        act_on=(
            "RevolvingUtilizationOfUnsecuredLines",
            "DebtRatio",
            "MonthlyIncome",
            "NumberOfOpenCreditLinesAndLoans",
            "NumberRealEstateLoansOrLines",
        ),
        tiers=(
            ("age",),
            ("NumberOfDependents",),
            ("MonthlyIncome",),
            tuple(_CODES),
            ("NumberOfOpenCreditLinesAndLoans", "NumberRealEstateLoansOrLines"),
            ("RevolvingUtilizationOfUnsecuredLines",),
            ("DebtRatio",),
        ),
        special=_CODES if missing == "keep" else {},
        labels=_LABELS,
        units=_UNITS,
        description="One row is one debtor; no_serious_delinquency = 1 is never 90 days behind.",
        source="Kaggle 2011, https://www.kaggle.com/c/GiveMeSomeCredit",
    )


def _read(path: Path) -> pd.DataFrame:
    rows = pd.read_csv(path)
    require_columns(path, rows, (_LABEL, *_LABELS))
    require_numbers(path, rows, (_LABEL, *_LABELS))
    return rows[[*_LABELS, _LABEL]]


def _prepare(rows: pd.DataFrame, missing: Missing) -> pd.DataFrame:
    features = rows[list(_LABELS)]
    complete = features.dropna()
    if missing == "keep":
        features = features.assign(
            DebtRatio=features["DebtRatio"].where(features["MonthlyIncome"].notna())
        )
    # Comparisons with missing values are False.
    usual = (features - complete.mean()).abs() < 3 * complete.std()
    if missing == "keep":
        usual |= features.isna() | features.isin(_CODES)
    kept = usual.all(axis=1)
    shown = features[kept].round(dict.fromkeys(_RATIOS, 4))
    whole = [name for name in _LABELS if name not in _RATIOS and not shown[name].isna().any()]
    label = (rows.loc[kept, _LABEL] == 0).astype(np.int64)
    shown = shown.astype(dict.fromkeys(whole, np.int64))
    return shown.assign(no_serious_delinquency=label).reset_index(drop=True)
