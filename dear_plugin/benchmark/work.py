"""The work of a call, in counts that are equal on every machine and for every number of threads.

The counts are own Python calls (functions of the engine and the adapters), the depth of their
stack, own modules, torch operations and the millions of entries that these write, calls of the
user's model and thousands of rows that it scores, and scikit-learn trees.

    PYTHONPATH=../other-checkout python dear_plugin/benchmark/work.py loan

counts another version of the package; the cases use only its public names.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import torch
from sklearn.tree import DecisionTreeRegressor
from torch.utils._python_dispatch import TorchDispatchMode

import dear_plugin
from dear_plugin import DEAR, Schema
from dear_plugin.benchmark.runner import Option, Spec, grid
from dear_plugin.benchmark.tables import Table
from dear_plugin.datasets import load_adult, load_loan

Array: TypeAlias = np.ndarray[Any, Any]
PACKAGES = ("dear_plugin", "dear_dice", "dear_alibi")
LOANS = "loans.parquet"
# Rows of the first two calls; calls of one row before the counted one; alternatives.
MANY, WARM, WAYS = 40, 4, 4
# The columns of the published loans that a borrower can act on, and all columns that are used.
ACT_ON = (
    *("loan_amount", "term", "total_credit_utilized", "debt_to_income", "open_credit_lines"),
    *("num_open_cc_accounts", "num_cc_carrying_balance"),
)
READ = (
    *("emp_length", "homeownership", "annual_income", "verified_income", "debt_to_income"),
    *("delinq_2y", "earliest_credit_line", "inquiries_last_12m", "total_credit_lines"),
    *("open_credit_lines", "total_credit_limit", "total_credit_utilized"),
    *("num_historical_failed_to_pay", "accounts_opened_24m", "num_satisfactory_accounts"),
    *("num_total_cc_accounts", "num_open_cc_accounts", "num_cc_carrying_balance"),
    *("num_mort_accounts", "account_never_delinq_percent", "public_record_bankrupt"),
    *("loan_purpose", "application_type", "loan_amount", "term"),
)


class Counted:
    """A classifier of scikit-learn's interface that counts its calls and rows.

    Args:
        model: the classifier.
    """

    def __init__(self, model: Any) -> None:
        self.model, self.classes_ = model, model.classes_
        self.calls = self.rows = 0

    def predict_proba(self, rows: Any) -> Any:
        """The probabilities, (m, c)."""
        return self._counted(self.model.predict_proba, rows)

    def predict(self, rows: Any) -> Any:
        """The classes, (m,)."""
        return self._counted(self.model.predict, rows)

    def _counted(self, call: Callable[[Any], Any], rows: Any) -> Any:
        self.calls, self.rows = self.calls + 1, self.rows + len(rows)
        return call(rows)


class CountedModule(torch.nn.Module):
    """A torch module that counts its calls and rows.

    Args:
        model: the module.
    """

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model, self.calls, self.rows = model, 0, 0

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """The outputs of the module."""
        self.calls, self.rows = self.calls + 1, self.rows + len(rows)
        return self.model(rows)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Case:
    """A fitted model, training rows, and the rows that the model rejects.

    Attributes:
        model: the model, which counts its calls.
        schema: the features.
        train: the training rows.
        refused: the rejected rows.
        target: the labels of training rows, 0 and 1; None leaves out the calls through hosts.
        how: further arguments of `DEAR`.
    """

    model: Any
    schema: Schema
    train: pd.DataFrame
    refused: pd.DataFrame
    target: Array | None = None
    how: Mapping[str, Any] = field(default_factory=dict)


class Work(TorchDispatchMode):
    """Counts the work within a `with` block.

    Args:
        model: the user's model, which counts its calls.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls = self.depth = self.deepest = self.operations = self.entries = self.trees = 0
        self.modules: set[str] = set()
        self._model, self._grow = model, DecisionTreeRegressor.fit
        homes = [sys.modules[name].__file__ for name in PACKAGES if name in sys.modules]
        self._roots = tuple(str(Path(home).parent) + os.sep for home in homes if home)

    def __enter__(self) -> Work:
        """Start to count."""

        def _grow(*given: Any, **named: Any) -> Any:
            self.trees += 1
            return self._grow(*given, **named)

        self._model.calls = self._model.rows = 0
        DecisionTreeRegressor.fit = _grow
        super().__enter__()  # type: ignore[no-untyped-call]
        sys.setprofile(self._seen)
        return self

    def __exit__(self, *raised: Any) -> None:
        """Stop to count."""
        sys.setprofile(None)
        super().__exit__(*raised)  # type: ignore[no-untyped-call]
        DecisionTreeRegressor.fit = self._grow

    def __torch_dispatch__(self, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Count and execute one operation."""
        found = function(*args, **(kwargs or {}))
        self.operations += 1
        parts = found if isinstance(found, tuple | list) else (found,)
        self.entries += sum(part.numel() for part in parts if isinstance(part, torch.Tensor))
        return found

    def _seen(self, frame: FrameType, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        if event not in ("call", "return") or not file.startswith(self._roots) or file == __file__:
            return
        self.depth += 1 if event == "call" else -1
        if event == "call":
            self.calls += 1
            self.deepest = max(self.deepest, self.depth)
            self.modules.add(file)

    def counts(self) -> dict[str, float]:
        """The counts by name."""
        return {
            "calls": self.calls,
            "depth": self.deepest,
            "modules": len(self.modules),
            "operations": self.operations,
            "M entries": round(self.entries / 1e6, 3),
            "model calls": self._model.calls,
            "k rows": self._model.rows / 1e3,
            "trees": self.trees,
        }


def counts(call: Callable[[], Any], model: Any) -> tuple[dict[str, float], Any]:
    """The counts of one call, and its result."""
    with Work(model) as work:
        found = call()
    return work.counts(), found


def steps(case: Case) -> Iterator[tuple[str, dict[str, float]]]:
    """Every step of a case with its counts, in the order of use."""
    dear = DEAR(case.model, case.schema, **case.how)
    refused, model = case.refused, case.model
    yield "fit", counts(lambda: dear.fit(case.train), model)[0]
    for name, at in (("first 40 rows", 0), ("next 40 rows", MANY)):
        rows = refused.iloc[at : at + MANY]
        yield name, counts(lambda rows=rows: dear.generate(rows).actions, model)[0]  # type: ignore[misc]
    for i in range(2 * MANY, 2 * MANY + WARM):
        _ = dear.generate(refused.iloc[[i]]).letter()
    row = refused.iloc[[2 * MANY]]
    one, found = counts(lambda: dear.generate(row), model)
    yield "one row, warm", one
    yield "its actions", counts(lambda: found.actions, model)[0]
    yield "its description", counts(lambda: found.describe(row.index[0]), model)[0]
    yield "its letter", counts(lambda: found.letter(row.index[0]), model)[0]
    yield "four alternatives", counts(lambda: found.alternatives(WAYS), model)[0]
    if case.target is not None:
        yield "DiCE, one row x 4", _through_dice(case, row)
        if not case.train.isna().any(axis=None):  # Alibi does not support missing values
            yield "Alibi, one row", _through_alibi(case, row)


def _through_dice(case: Case, row: pd.DataFrame) -> dict[str, float]:
    """The counts of the second call of a fitted `DiceDEAR`: four counterfactuals of one row."""
    import dice_ml

    from dear_dice import DiceDEAR

    numbers = [name for name in row if row[name].dtype != "category"]
    train = case.train[list(row)].assign(outcome=case.target)
    data = dice_ml.Data(dataframe=train, continuous_features=numbers, outcome_name="outcome")
    host = dice_ml.Model(model=case.model, backend="sklearn")
    fixed = [feature.name for feature in case.schema if feature.immutable]
    explainer = DiceDEAR(data, host, immutable=fixed, tiers=case.schema.tiers, **case.how)
    texts = row.astype({name: object for name in row if name not in numbers})
    call = partial(
        explainer.generate_counterfactuals, texts, total_CFs=WAYS, desired_class=1, verbose=False
    )
    call()
    return counts(call, case.model)[0]


def _through_alibi(case: Case, row: pd.DataFrame) -> dict[str, float]:
    """The counts of the second call of a fitted `dear_alibi.DEAR` for one row."""
    from dear_alibi import DEAR as Explainer

    dtypes = case.train[list(row)].dtypes
    labels = {i: list(t.categories) for i, t in enumerate(dtypes) if t == "category"}

    def _encoded(rows: pd.DataFrame) -> Array:
        codes = [rows[n].cat.codes if i in labels else rows[n] for i, n in enumerate(rows)]
        return np.column_stack(codes).astype(float)

    def _predict(rows: Array) -> Array:
        frame = pd.DataFrame(rows, columns=list(row))
        for i in labels:
            codes = frame.iloc[:, i].fillna(-1).astype(int)
            frame.isetitem(i, pd.Categorical.from_codes(codes, dtype=dtypes.iloc[i]))
        return case.model.predict_proba(frame)  # type: ignore[no-any-return]

    given = {"feature_names": list(row), "category_map": labels, **case.how}
    fixed = [feature.name for feature in case.schema if feature.immutable]
    explainer = Explainer(_predict, immutable_features=fixed, **given).fit(
        _encoded(case.train[list(row)])
    )
    query = _encoded(row)
    explainer.explain(query, Y_t=1)
    return counts(lambda: explainer.explain(query, Y_t=1), case.model)[0]


def loan() -> Case:
    """The simulated loans with an order of causes, and boosted trees."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    frame = load_loan().frame.astype({"gender": "category"})
    train, test = frame.iloc[:8000], frame.iloc[8000:].drop(columns="approved")
    made = HistGradientBoostingClassifier(max_iter=50, random_state=0)
    model = Counted(made.fit(train[test.columns], train["approved"]))
    order = [["gender", "age"], ["education"], ["loan_amount", "income"], ["duration", "savings"]]
    schema = Schema.infer(train, target="approved", immutable=["gender", "age"], tiers=order)
    refused = test[made.predict(test) == 0]
    return Case(model, schema, train, refused, train["approved"].to_numpy())


def loans() -> Case:
    """The published loans of 25 columns from the folder `DEAR_DATA_HOME`, and LightGBM."""
    frame = pd.read_parquet(Path(os.environ["DEAR_DATA_HOME"]) / LOANS)
    good, features = (
        frame["grade"].isin(["A", "B"]).astype(int),
        _with_categories(frame[list(READ)]),
    )
    train, test = features.iloc[:8000], features.iloc[8000:]
    model = _boosted(train, good[:8000], n_estimators=120, num_leaves=15, learning_rate=0.05)
    fixed = [name for name in READ if name not in ACT_ON]
    less = ["loan_amount", "total_credit_utilized"]
    schema = Schema.infer(train, immutable=fixed, decreasing=less)
    refused = test[model.model.predict(test) == 0]
    return Case(model, schema, train, refused, good[:8000].to_numpy())


def adult() -> Case:
    """Adult with its categories, and LightGBM."""
    data = load_adult()
    features = _with_categories(data.frame.drop(columns=data.target))
    train, test, rich = features.iloc[:30000], features.iloc[30000:], data.frame[data.target]
    model = _boosted(train, rich[:30000], n_estimators=100, num_leaves=31)
    schema = Schema.infer(train, immutable=data.immutable, increasing=data.increasing)
    refused = test[model.model.predict(test) == 0]
    how = {"act_on": data.act_on}
    return Case(model, schema, train, refused, rich[:30000].to_numpy(), how=how)


def network() -> Case:
    """Adult and the paper's network."""
    from dear_plugin.benchmark.splits import case_of

    data, made = case_of(Path("results") / "models", "adult-own ann")
    how = {"act_on": data.act_on}
    return Case(CountedModule(made.model), made.schema, data.parts[0], made.refused, how=how)


def _with_categories(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.astype(dict.fromkeys(frame.select_dtypes(["object", "string"]), "category"))


def _boosted(rows: pd.DataFrame, good: pd.Series, **settings: Any) -> Counted:
    from lightgbm import LGBMClassifier

    model = LGBMClassifier(n_jobs=1, verbose=-1, random_state=0, **settings)
    return Counted(model.fit(rows, good))


CASES: Mapping[str, Callable[[], Case]] = {
    "loan": loan,
    "loans": loans,
    "adult": adult,
    "network": network,
}


def measured(case: str) -> pd.DataFrame:
    """The counts of a case, one line for each step."""
    return pd.DataFrame([{"step": step, **found} for step, found in steps(CASES[case]())])


def tables(found: pd.DataFrame) -> Iterator[tuple[str, Table]]:
    """The counts of all cases."""
    whole = dict.fromkeys(found.select_dtypes("number").drop(columns=["M entries", "k rows"]), int)
    yield "work", found[["case", *found.columns.drop("case")]].astype(whole).to_dict("records")


def known(names: Collection[str]) -> list[str]:
    """The cases whose data exist."""
    home = os.environ.get("DEAR_DATA_HOME")
    return [n for n in names if n != "loans" or (home and (Path(home) / LOANS).exists())]


WORK = Spec(
    "work",
    "the work of calls, in counts",
    {"cases": Option("data and models", ("loan",), CASES)},
    lambda options: grid(case=known(options.cases)),
    lambda folder, *, case: measured(case),
    tables,
    ("dice-ml", "alibi", "scikit-learn"),
)


if __name__ == "__main__":
    import logging
    import warnings

    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    for chosen in sys.argv[1:] or CASES:
        sys.stdout.write(f"{chosen} {dear_plugin.__version__}\n{measured(chosen).to_string()}\n")
        sys.stdout.flush()
