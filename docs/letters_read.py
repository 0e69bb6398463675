"""Letters: those of twenty refused rows of a table as found, to be read aloud.

python docs/letters_read.py FOLDER [table ...]

FOLDER has the tables as parquet files, named as in https://github.com/vincentarelbundock/Rdatasets
(package-name); "loans" is drawn here. docs/letters-read.md has what a reader said of them.
"""

import logging
import sys
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector as having
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from dear_plugin import DEAR, Schema

ROWS = 20
MODELS = {
    "line": LogisticRegression(max_iter=2000),
    "boosting": HistGradientBoostingClassifier(max_iter=80, random_state=0),
    "forest": RandomForestClassifier(60, min_samples_leaf=5, random_state=0, n_jobs=1),
}


@dataclass(frozen=True)
class Found:
    """A table and what somebody states of it in five minutes.

    Attributes:
        target: its column.
        wanted: of the target, whether the decision is the wanted one.
        model: one of `MODELS`.
        act_on: what an applicant may act on.
        schema: the arguments of `Schema.infer`.
        left_out: columns that are left out.
    """

    target: str
    wanted: Any
    model: str
    act_on: list[Any]
    schema: dict[str, Any] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()


TABLES = {
    "loans": Found(
        "approved",
        lambda v: v == 1,
        "boosting",
        ["income", "amount", "term", "late"],
        {
            "immutable": ["age", "region"],
            "labels": {"amount": "the loan", "income": "your income", "term": "the term"}
            | {"late": "late payments"},
            "units": {"amount": "dollars", "income": "dollars a year", "term": "months"},
            "decreasing": ["amount", "late"],
        },
    ),
    "modeldata-wa_churn": Found(
        "churn",
        lambda v: v == "No",
        "boosting",
        [
            *("contract", "payment_method", "paperless_billing", "monthly_charges"),
            *("online_security", "tech_support", "online_backup"),
        ],
        {
            "immutable": ["female", "senior_citizen", "partner", "dependents", "tenure"],
            "labels": {"monthly_charges": "the monthly charges", "contract": "the contract"}
            | {"payment_method": "the way of payment", "online_security": "online security"}
            | {"paperless_billing": "paperless billing", "tech_support": "technical support"}
            | {"online_backup": "online backup", "total_charges": "the total charges"},
            "units": {"monthly_charges": "dollars", "total_charges": "dollars"},
        },
    ),
    "AER-NMES1988": Found(
        "insurance",
        lambda v: v == "yes",
        "line",
        ["income", "employed", "health"],
        {
            "immutable": ["age", "afam", "gender", "region", "married", "school"],
            "ordered": {"health": ["poor", "average", "excellent"]},
            "labels": {"income": "your income", "employed": "employment", "health": "health"},
            "units": {"income": "ten thousand dollars"},
        },
    ),
    "mosaicData-SaratogaHouses": Found(
        "price",
        lambda v: v > 200_000,
        "forest",
        ["livingArea", "bathrooms", "fireplaces", "centralAir", "heating", "bedrooms"],
        {
            "immutable": [
                *("lotSize", "age", "landValue", "pctCollege"),
                *("waterfront", "newConstruction", "sewer"),
            ],
            "increasing": ["livingArea", "bathrooms", "fireplaces"],
            "labels": {"livingArea": "the living area", "bathrooms": "the number of bathrooms"}
            | {"fireplaces": "the number of fireplaces", "centralAir": "central air"}
            | {"heating": "the heating", "bedrooms": "the number of bedrooms"}
            | {"rooms": "the number of rooms", "fuel": "the fuel"},
            "units": {"livingArea": "square feet"},
        },
    ),
    "openintro-acs12": Found(
        "income",
        lambda v: v >= 40_000,
        "boosting",
        ["hrs_work", "edu", "employment"],
        {
            "immutable": ["race", "age", "gender", "birth_qrtr", "disability", "citizen", "lang"],
            "ordered": {"edu": ["hs or lower", "college", "grad"]},
            "increasing": ["edu"],
            "tiers": [
                ["race", "age", "gender", "birth_qrtr", "citizen", "lang"],
                *(["edu"], ["disability", "married"], ["employment"]),
                ["hrs_work", "time_to_work"],
            ],
            "labels": {"hrs_work": "the hours at work", "edu": "education"}
            | {"lang": "the language at home", "time_to_work": "the way to work"},
            "units": {"hrs_work": "hours a week", "time_to_work": "minutes"},
        },
    ),
    "ISLR-College": Found(
        "Grad.Rate",
        lambda v: v > 65,
        "forest",
        ["Outstate", "Room.Board", "S.F.Ratio", "PhD", "Expend", "perc.alumni", "Books"],
        {
            "immutable": ["Private"],
            "labels": {"Outstate": "tuition", "Room.Board": "room and board"}
            | {"S.F.Ratio": "students for each teacher", "PhD": "teachers with a doctorate"}
            | {"Expend": "spending for each student", "perc.alumni": "alumni who give"}
            | {"Top10perc": "students of the best tenth", "Apps": "applications"},
            "units": {"Outstate": "dollars", "Room.Board": "dollars", "Expend": "dollars"}
            | {"PhD": "%", "perc.alumni": "%", "Books": "dollars"},
        },
    ),
}


def loans(n=10_000, seed=0):
    """25 columns of applicants for a loan, half of them numbers without a story."""
    r = np.random.default_rng(seed)
    z = r.normal(size=(n, 4))
    own = np.where(r.random(n) < 0.5, "rent", "mortgage")
    table = {
        "age": np.clip((40 + 10 * z[:, 0] + 3 * r.normal(size=n)).round(), 18, 90).astype(int),
        "region": r.choice(list("ABCDEFGH"), n),
        "income": np.exp(10.5 + 0.4 * z[:, 1] + 0.2 * r.normal(size=n)).round(-2),
        "amount": np.exp(9.3 + 0.3 * z[:, 1] + 0.4 * r.normal(size=n)).round(-2),
        "term": r.choice([12, 24, 36, 48, 60], n),
        "purpose": r.choice(["car", "home", "debt", "school", "other"], n),
        "home": np.where(z[:, 0] + r.normal(size=n) > 0.3, "own", own),
        "employed": r.choice(["full", "part", "self", "none"], n, p=[0.6, 0.15, 0.15, 0.1]),
    }
    for i in range(12):
        noise = r.normal(size=n) * (1 + i % 3)
        table[f"n{i}"] = (z[:, i % 4] * (1 + i / 6) + noise).round(2)
    for i in range(3):
        table[f"c{i}"] = r.poisson(np.exp(0.5 + 0.4 * z[:, (i + 2) % 4]))
    table |= {"late": r.poisson(np.exp(-1 - 0.4 * z[:, 2])), "lines": r.poisson(6, n)}
    frame = pd.DataFrame(table)
    score = 0.8 * (np.log(frame["income"]) - 10.5) / 0.4 - 0.02 * (frame["term"] - 36)
    score -= 0.7 * (np.log(frame["amount"]) - 9.3) / 0.5 + 0.5 * frame["late"] - 0.6 * z[:, 2]
    score += 0.3 * (frame["home"] == "own") + 0.5 * r.logistic(size=n)
    return frame.assign(approved=(score > 0.2).astype(int))


def pipeline(kind):
    """A model of scikit-learn on numbers and categories."""
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    categories = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = make_column_transformer(
        (numbers, having(dtype_include="number")), (categories, having(dtype_exclude="number"))
    )
    return make_pipeline(columns, MODELS[kind])


def read(name, folder):
    """Print the letters of a table, each with what its answer lacks, if it does."""
    known = TABLES[name]
    frame = loans() if name == "loans" else pd.read_parquet(Path(folder) / f"{name}.parquet")
    frame = frame.dropna(subset=[known.target]).reset_index(drop=True)
    rows = frame.drop(columns=[known.target, *known.left_out])
    model = pipeline(known.model).fit(rows, known.wanted(frame[known.target]).astype(int))
    schema = Schema.infer(rows, **known.schema)
    refused = rows[model.predict(rows) == 0].head(ROWS)
    result = DEAR(model, schema, act_on=known.act_on).fit(rows).generate(refused)
    letters, actions = result.letter(), result.actions
    print(f"\n# {name}: {len(rows)} rows, {rows.shape[1]} columns, {known.model}")
    for label, letter in letters.items():
        why = "" if actions["credible"][label] else f"  [{actions['reason'][label]}]"
        body = [line for line in letter.split("\n") if "promise" not in line][1:]
        print(f"{label}: {' / '.join(body)}{why}")


def main(folder, *names):
    """Print the letters of some tables, or of all."""
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    for name in names or TABLES:
        read(name, folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
