"""Demo: refused people get recourse, through the engine, through DiCE and through Alibi."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from dear_plugin.benchmark.classifiers import accuracy, recipe, trained
from dear_plugin.datasets import (
    Dataset,
    load_adult,
    load_compas,
    load_give_me_some_credit,
    load_loan,
)
from dear_plugin.dear import DEAR
from dear_plugin.encoding import Encoder
from dear_plugin.errors import DataError
from dear_plugin.recourses import Recourses
from dear_plugin.schema import Feature, Kind, Schema
from dear_plugin.wording import ASSOCIATION

LOADERS: dict[str, Callable[[], Dataset]] = {
    "loan": load_loan,
    "adult": load_adult,
    "compas": load_compas,
    "gmc": load_give_me_some_credit,
}
PEOPLE_SHOWN = 5
FEWEST_REFUSED = 50


@dataclass(frozen=True)
class Demo:
    """What to show.

    Attributes:
        dataset: a name of `LOADERS`.
        decoder: "transport", "autoencoder" or "paper".
        rows: how many refused rows to explain, at most.
        seed: of the split and the first classifier.
        figure: where the picture goes; None is `dear-demo-<dataset>.png` here.
    """

    dataset: str = "loan"
    decoder: str = "transport"
    rows: int = 500
    seed: int = 0
    figure: Path | None = None


@dataclass(frozen=True)
class Stage:
    """A trained model and the people it refuses.

    Attributes:
        data: the data set.
        schema: its features.
        train: the rows everything was fitted on.
        test: held-out rows.
        refused: the test rows to explain.
        model: logits of the encoded tensor.
    """

    data: Dataset
    schema: Schema
    train: pd.DataFrame
    test: pd.DataFrame
    refused: pd.DataFrame
    model: nn.Module


@dataclass(frozen=True)
class Answer:
    """One route's answer: frames in, counterfactual frame out, and what it took."""

    route: str
    counterfactuals: pd.DataFrame
    seconds: float


def run(plan: Demo) -> None:
    """Train, refuse, explain, print and draw."""
    stage = _stage(plan)
    start = time.perf_counter()
    dear = _dear(stage, plan).fit(stage.train)
    fitted = time.perf_counter() - start
    recourses = dear.generate(stage.refused)
    _say(f"DEAR fitted in {fitted:.1f} s; {recourses!r}\n")
    _people(recourses)
    answers = [Answer("engine", recourses.counterfactuals, time.perf_counter() - start)]
    answers += list(_through_hosts(stage, plan))
    report = dear.diagnose(stage.test)
    _say(_summary(stage, recourses, answers).to_string(index=False))
    _say(f"\nHow far to believe the indirect changes (held-out rows): {report}\n")
    _draw(plan, recourses)


def _say(text: str) -> None:
    print(text, flush=True)


def _stage(plan: Demo) -> Stage:
    data = LOADERS[plan.dataset]()
    train, test = data.split(seed=plan.seed)
    schema = Schema.infer(
        train, target=data.target, immutable=data.immutable, increasing=data.increasing
    )
    encoder = Encoder(schema)
    x, x_test = encoder.encode(train), encoder.encode(test)
    labels, truth = _labels(train, data), _labels(test, data)
    for seed in range(plan.seed, plan.seed + 20):
        model = trained("ann", x, labels, recipe(data.name), seed)
        with torch.no_grad():
            refused = test[(model(x_test)[:, 0] <= 0).numpy()]
        if len(refused) >= FEWEST_REFUSED:
            break
    else:
        raise DataError(f"no classifier of 20 seeds refuses {FEWEST_REFUSED} rows of {data.name}")
    share = accuracy(model, x_test, truth)
    _say(
        f"{data.name}: {len(train):,} training rows; the paper's network (seed {seed}) is right on"
        f" {share:.1%} of {len(test):,} test rows and refuses {len(refused):,}."
    )
    return Stage(data, schema, train, test, refused.iloc[: plan.rows], model)


def _labels(frame: pd.DataFrame, data: Dataset) -> Tensor:
    return torch.tensor(frame[data.target].to_numpy())


def _dear(stage: Stage, plan: Demo) -> DEAR:
    return DEAR(stage.model, stage.schema, act_on=stage.data.act_on, decoder=plan.decoder)


def _people(recourses: Recourses) -> None:
    _say(f"{PEOPLE_SHOWN} of them. {ASSOCIATION}")
    support = recourses.support
    for i in range(min(PEOPLE_SHOWN, len(recourses))):
        row = recourses.actions.iloc[i]
        _say(
            f"  row {recourses.factuals.index[i]}: {recourses.describe_row(i)}.\n"
            f"      cost {row['cost']:.2f} = direct {row['direct_cost']:.2f} + expected indirect"
            f" {row['indirect_cost']:.2f}; support {support.iloc[i]:.1f}; probability"
            f" {row['score_before']:.0%} -> {row['score_after']:.0%}"
        )
    _say("")


def _through_hosts(stage: Stage, plan: Demo) -> Iterator[Answer]:
    routes: dict[str, tuple[str, Callable[[Stage, Demo], pd.DataFrame]]] = {
        "DiCE": ("dice_ml", _through_dice),
        "Alibi": ("alibi", _through_alibi),
    }
    for route, (package, explain) in routes.items():
        if find_spec(package) is None:
            _say(f"{route}: {package} is not installed, left out")
            continue
        start = time.perf_counter()
        frame = explain(stage, plan)
        yield Answer(route, frame, time.perf_counter() - start)


def _through_dice(stage: Stage, plan: Demo) -> pd.DataFrame:
    """The same model as a DiCE user wraps it: probabilities of DiCE's own encoding."""
    import dice_ml

    import dear_dice

    numeric = [f.name for f in stage.schema if f.kind is Kind.NUMERIC]
    data = dice_ml.Data(
        dataframe=stage.train, continuous_features=numeric, outcome_name=stage.data.target
    )
    model = dice_ml.Model(
        model=_OnDice(stage.model, stage.schema), backend="PYT", func="ohe-min-max"
    )
    explainer = dear_dice.DiceDEAR(
        data,
        model,
        act_on=stage.data.act_on,
        immutable=stage.data.immutable,
        increasing=stage.data.increasing,
        decoder=plan.decoder,
    )
    query = stage.refused[list(stage.schema.names)]
    result = explainer.generate_counterfactuals(query, total_CFs=1, desired_class="opposite")
    rows = [
        example.final_cfs_df.iloc[:1] if len(example.final_cfs_df) else query.iloc[[i]]
        for i, example in enumerate(result.cf_examples_list)
    ]
    return pd.concat(rows)[list(query.columns)].set_axis(query.index)


class _OnDice(nn.Module):
    """A logit model of our encoding, as probabilities of DiCE's: numbers first, then one-hot."""

    def __init__(self, model: nn.Module, schema: Schema) -> None:
        super().__init__()
        self.model = model
        self.columns = _dice_columns(schema)

    def forward(self, x: Tensor) -> Tensor:
        """(m, DiCE's columns) -> (m, 1)."""
        logits: Tensor = self.model(x[:, self.columns])
        return torch.sigmoid(logits)


def _dice_columns(schema: Schema) -> list[int]:
    """For each column of ours, DiCE's."""
    numeric = [(f.name, None) for f in schema if f.kind is Kind.NUMERIC]
    levels = [(f.name, c) for f in schema if f.kind is not Kind.NUMERIC for c in f.categories]
    place: dict[tuple[str, Any], int] = {key: i for i, key in enumerate([*numeric, *levels])}
    return [place[key] for f in schema for key in _keys(f)]


def _keys(feature: Feature) -> list[tuple[str, Any]]:
    """What each of our columns stands for: a number, or a category."""
    if feature.kind is Kind.NUMERIC:
        return [(feature.name, None)]
    shown = feature.categories[-1:] if feature.kind is Kind.BINARY else feature.categories
    return [(feature.name, c) for c in shown]


def _through_alibi(stage: Stage, plan: Demo) -> pd.DataFrame:
    """The same model as an Alibi user wraps it: numpy rows of category numbers."""
    import dear_alibi

    schema = stage.schema
    names = list(schema.names)
    maps = {
        j: [str(c) for c in f.categories]
        for j, f in enumerate(schema)
        if f.kind is not Kind.NUMERIC
    }
    predictor = _OnAlibi(stage.model, schema)
    explainer = dear_alibi.DEAR(
        predictor,
        names,
        category_map=maps,
        act_on=list(stage.data.act_on),
        immutable_features=list(stage.data.immutable),
        ranges={n: [0.0, 1.0] for n in stage.data.increasing},
        decoder=plan.decoder,
    ).fit(predictor.array(stage.train))
    found = explainer.explain(predictor.array(stage.refused), Y_t=1)
    return predictor.frame(np.asarray(found.data["cf"]["X"]), stage.refused[names])


class _OnAlibi:
    """A logit model of our encoding, as probabilities of label-encoded rows."""

    def __init__(self, model: nn.Module, schema: Schema) -> None:
        self.model, self.encoder = model, Encoder(schema)

    def array(self, frame: pd.DataFrame) -> Any:
        """(n, p) numbers in user units, categories by their place."""
        columns = [
            frame[f.name].to_numpy(dtype=float)
            if f.kind is Kind.NUMERIC
            else pd.Categorical(frame[f.name], categories=list(f.categories)).codes
            for f in self.encoder.schema
        ]
        return np.column_stack(columns).astype(float)

    def frame(self, x: Any, like: pd.DataFrame) -> pd.DataFrame:
        """The inverse, with the dtypes and index of a frame."""
        columns = {
            f.name: x[:, j]
            if f.kind is Kind.NUMERIC
            else np.array(f.categories, dtype=object)[x[:, j].astype(int)]
            for j, f in enumerate(self.encoder.schema)
        }
        return pd.DataFrame(columns, index=like.index).astype(like.dtypes)

    def __call__(self, x: Any) -> Any:
        """(n, p) -> (n, 2) probabilities."""
        like = pd.DataFrame(columns=list(self.encoder.schema.names), index=range(len(x)))
        frame = self.frame(x, like.astype({f.name: f.dtype for f in self.encoder.schema}))
        with torch.no_grad():
            p = torch.sigmoid(self.model(self.encoder.encode(frame))).numpy()
        return np.concatenate([1.0 - p, p], axis=1)


def _summary(stage: Stage, recourses: Recourses, answers: list[Answer]) -> pd.DataFrame:
    """One line per route; the rows are scored again by the user's own model."""
    encoder, names = recourses.encoder, list(stage.schema.names)
    held = [*stage.data.protected, *stage.data.immutable]
    first = answers[0].counterfactuals[names]
    lines = []
    for answer in answers:
        frame = answer.counterfactuals[names]
        with torch.no_grad():
            accepted = (stage.model(encoder.encode(frame))[:, 0] > 0).numpy()
        cost = encoder.distance(encoder.rows(frame), recourses.x).sum(1).numpy()
        changed = (frame[held] != stage.refused[held]).to_numpy().sum()
        lines.append(
            {
                "route": answer.route,
                "people": len(frame),
                "success": f"{accepted.mean():.3f}",
                "held features changed": int(changed),
                "median cost": f"{np.median(cost[accepted]) if accepted.any() else np.nan:.3f}",
                "mean support": f"{recourses.support[accepted].mean():.2f}",
                "same rows as engine": f"{(frame == first).all(axis=1).mean():.3f}",
                "seconds": f"{answer.seconds:.1f}",
            }
        )
    return pd.DataFrame(lines)


def _draw(plan: Demo, recourses: Recourses) -> None:
    if find_spec("matplotlib") is None:
        _say("no picture: matplotlib is not installed (pip install 'dear-plugin[plots]')")
        return
    from dear_plugin.plots import overview

    where = plan.figure or Path(f"dear-demo-{plan.dataset}.png")
    overview(recourses, f"DEAR on {plan.dataset}").savefig(where, dpi=130)
    _say(f"picture: {where}")
