"""Host: DiCE's model interface, as scores of frames and as a model that the engine can ask."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from dice_ml.constants import ModelTypes
from dice_ml.model_interfaces.pytorch_model import PyTorchModel
from raiutils.exceptions import UserConfigValidationException
from torch import nn

import dear_plugin
from dear_dice.dialect import QueryFormat
from dear_dice.interface import Interface
from dear_dice.ohe import OheMinMax
from dear_plugin import Encoder, evaluating

Scores = npt.NDArray[np.float64]
Decided = npt.NDArray[Any]

# Of a model that does not name them.
MOST_CLASSES = 1 << 10


class Host:
    """A model interface bound to one data interface.

    Every DiCE explainer writes its data interface into the model interface that it is given. This
    one writes into a copy, so that two explainers can share a model interface.

    Args:
        model_interface: DiCE's model interface, of any backend.
        data_interface: DiCE's data interface.

    Attributes:
        interface: the bound copy; its `model` is the user's own object.
    """

    def __init__(self, model_interface: Any, data_interface: Any) -> None:
        self.interface = copy.copy(model_interface)
        transformer = copy.copy(model_interface.transformer)
        transformer.kw_args = dict(transformer.kw_args or {})
        transformer.feed_data_params(data_interface)
        transformer.initialize_transform_func()
        self.interface.transformer = transformer
        self.interface.load_model()

    @property
    def regression(self) -> bool:
        """Whether it predicts values rather than classes."""
        return bool(self.interface.model_type == ModelTypes.Regressor)

    @property
    def is_module(self) -> bool:
        """Whether it is a torch module behind DiCE's PyTorch backend."""
        module = isinstance(self.interface.model, nn.Module)
        return module and isinstance(self.interface, PyTorchModel)

    @property
    def is_ohe_module(self) -> bool:
        """Whether it is a torch module on DiCE's own encoding, so that gradients can be had."""
        return self.is_module and self.interface.transformer.func == "ohe-min-max"

    def scores(self, frame: pd.DataFrame) -> Scores:
        """What DiCE itself reads off the model, (m, c), for rows in the user's own dialect."""
        if not self.is_module:
            return _columns(self.interface.get_output(frame.copy()), len(frame))
        # DiCE leaves tensors where they are; so a module may live on an accelerator.
        home = next(self.interface.model.parameters(), torch.empty(0))
        with torch.no_grad(), evaluating(self.interface.model):
            x = torch.tensor(self.encoded(frame)).to(home)
            return _columns(self.interface.get_output(x, out_tensor=True).cpu(), len(frame))

    def encoded(self, frame: pd.DataFrame) -> Scores:
        """The vectors, (m, D), that DiCE hands to the model."""
        return np.asarray(self.interface.transformer.transform(frame.copy()), dtype=np.float64)

    @property
    def decides(self) -> bool:
        """Whether the model has a decision of its own that DiCE can read: `predict`."""
        if self.regression or self.is_module:
            return False
        model, asked = self.interface.model, inspect.signature(self.interface.get_output)
        both = (getattr(model, name, None) for name in ("predict", "predict_proba"))
        return "model_score" in asked.parameters and all(map(callable, both))

    def decided(self, frame: pd.DataFrame, scores: Scores) -> Decided:
        """(m,) class numbers by the model's own decision, or predicted values.

        Without one it is DiCE's rule: the likeliest class, of a tie the first.

        Args:
            frame: the rows, in the user's own dialect.
            scores: (m, c) what DiCE reads off the model for them.
        """
        if self.regression:
            return scores[:, 0]
        if self.decides:
            return self.predicted(frame)
        if scores.shape[1] == 1:
            return np.asarray(np.round(scores[:, 0]), dtype=np.int64)
        return np.asarray(scores.argmax(1), dtype=np.int64)

    def predicted(self, frame: pd.DataFrame) -> Decided:
        """(m,) what the model's `predict` says, as class numbers."""
        told = np.asarray(self.interface.get_output(frame.copy(), model_score=False)).reshape(-1)
        labels = getattr(self.interface.model, "classes_", range(MOST_CLASSES))
        known = {label: i for i, label in enumerate(np.asarray(labels).tolist())}
        places = np.array([known.get(label, -1) for label in told.tolist()], dtype=np.int64)
        if (places < 0).any():
            raise UserConfigValidationException(
                f"The model's predict returned {told[places < 0][0]!r}, which is no class that its"
                " classes_ names, nor a number of one"
            )
        return places

    def labels(self, decided: Decided) -> Decided:
        """(m,) class numbers as the model's own labels, where it has some."""
        labels = None if self.regression else getattr(self.interface.model, "classes_", None)
        return decided if labels is None else np.asarray(labels)[decided]


@dataclass(frozen=True)
class BlackBox:
    """A model that the engine asks about frames, through DiCE's model interface.

    Attributes:
        host: the model interface.
        dialect: the values that the model knows; None for those of the data interface.
    """

    host: Host
    dialect: QueryFormat | None = None

    def __call__(self, frame: pd.DataFrame) -> Scores:
        """Probabilities or values, (m, c), of the engine's frame."""
        return self.host.scores(self._written(frame))

    def predict_proba(self, frame: pd.DataFrame) -> Scores:
        """The same of a classifier, under the name by which the engine knows one."""
        return self(frame)

    @property
    def predict(self) -> Callable[[pd.DataFrame], Decided]:
        """The model's own decision, (m,) class numbers; only where it has one."""
        if not self.host.decides:
            raise AttributeError("the model has no decision that DiCE can read")
        return self._decided

    def _decided(self, frame: pd.DataFrame) -> Decided:
        return self.host.predicted(self._written(frame))

    def _written(self, frame: pd.DataFrame) -> pd.DataFrame:
        return frame if self.dialect is None else self.dialect.write(frame)


def to_ask(host: Host, interface: Interface) -> dict[str, Any]:
    """DiCE's model as the arguments `model`, `output` and `encode` of a `RecourseMethod`.

    Args:
        host: the model.
        interface: the data.
    """
    encoder, sample = Encoder(interface.schema), interface.sample
    output = "values" if host.regression else "probabilities"
    encode = OheMinMax(encoder, interface.data.continuous_feature_names)
    if not host.is_ohe_module or not _agrees(encode, encoder, host, sample):
        return {"model": BlackBox(host), "output": output}
    return {"model": host.interface.model, "output": output, "encode": encode}


@contextmanager
def probabilities_expected() -> Iterator[None]:
    """A model's wrong answer, told as DiCE tells a wrong configuration."""
    try:
        yield
    except dear_plugin.errors.ModelError as error:
        if error.__cause__ is not None:
            raise UserConfigValidationException(
                "The torch model does not take the vector that func='ohe-min-max' makes of this"
                f" data: {error.__cause__}. Train it on"
                " data_interface.get_ohe_min_max_normalized_data(features)"
            ) from error
        raise UserConfigValidationException(
            "DiCE expects probabilities of a classifier and one value of a regressor:"
            f" {error}. A torch model that ends in logits needs one layer more:"
            " torch.nn.Sequential(model, torch.nn.Sigmoid()), or Softmax(dim=1) where each class"
            " has a column."
        ) from error


def _columns(raw: Any, m: int) -> Scores:
    """A model's answer for m rows, of whatever type, as (m, c)."""
    return np.asarray(raw, dtype=np.float64).reshape(m, -1)


def _agrees(encode: OheMinMax, encoder: Encoder, host: Host, sample: pd.DataFrame) -> bool:
    """Whether our map gives what DiCE's own transformer gives."""
    ours, theirs = encode(encoder.encode(sample)).numpy(), host.encoded(sample)
    return ours.shape == theirs.shape and bool(np.allclose(ours, theirs, atol=1e-5))
