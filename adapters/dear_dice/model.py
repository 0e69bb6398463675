"""DiCE's model interface as a model of the engine, and as scores of frames."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from dice_ml.constants import ModelTypes
from dice_ml.model_interfaces.pytorch_model import PyTorchModel
from raiutils.exceptions import UserConfigValidationException
from torch import Tensor, nn

from dear_dice.interface import Interface
from dear_plugin import DEAR, Encoder, Feature, errors, evaluating

Outcomes = npt.NDArray[Any]
# The engine's column, a factor and an offset that make one of DiCE's columns of it.
Source = tuple[int, float, float]


class Host:
    """A model interface bound to one data interface; of the engine, a model of frames.

    DiCE's explainers write their data interface into the model interface. This one writes into a
    copy, so that two explainers can share a model interface.

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
        output = inspect.signature(self.interface.get_output).parameters
        self._by_name = "model_score" in output and not isinstance(self.interface, PyTorchModel)
        wanted = "predict" if self.regression else "predict_proba"
        if self._by_name and not hasattr(self.interface.model, wanted):
            raise UserConfigValidationException(
                f"DEAR calls {wanted}, which {type(self.interface.model).__name__} does not have."
                " A classifier needs predict_proba (CalibratedClassifierCV adds it); a model"
                " whose predict returns a number needs dice_ml.Model(..., model_type='regressor')"
            )

    @property
    def regression(self) -> bool:
        """Whether it predicts values rather than classes."""
        return bool(self.interface.model_type == ModelTypes.Regressor)

    @property
    def is_module(self) -> bool:
        """Whether it is a torch module behind DiCE's PyTorch backend."""
        module = isinstance(self.interface.model, nn.Module)
        return module and isinstance(self.interface, PyTorchModel)

    def encode(self, frame: pd.DataFrame) -> Outcomes:
        """The vectors, (m, D), that DiCE hands to the model."""
        encoded = self.interface.transformer.transform(frame.copy())
        try:
            return np.asarray(encoded, dtype=np.float64)
        except ValueError as error:
            words = f"The model takes numbers, but {error}: func='ohe-min-max' encodes categories"
            raise UserConfigValidationException(words) from error

    def scores(self, frame: pd.DataFrame) -> Outcomes:
        """(m, c) the model's output as DiCE reads it, for rows in the user's own format."""
        return np.asarray(self._output(frame, True), dtype=np.float64).reshape(len(frame), -1)

    __call__ = predict_proba = scores

    @property
    def predict(self) -> Callable[[pd.DataFrame], Outcomes]:
        """The model's own decision, (m,), where DiCE can read it besides its scores."""
        both = (getattr(self.interface.model, name, None) for name in ("predict", "predict_proba"))
        if not self._by_name or self.regression or not all(map(callable, both)):
            raise AttributeError("the model has no decision that DiCE can read")
        return partial(self._output, score=False)

    @property
    def classes_(self) -> Outcomes:
        """(c,) the model's own labels, where it has some."""
        if self.regression or not hasattr(self.interface.model, "classes_"):
            raise AttributeError("classes are numbers")
        return np.asarray(self.interface.model.classes_)

    def labels(self, numbers: Outcomes) -> Outcomes:
        """(m,) class numbers as the model's own labels, where it has some; values as they are."""
        return self.classes_[numbers] if hasattr(self, "classes_") else numbers

    def takes(self, frame: pd.DataFrame) -> bool:
        """Whether the model takes a frame that is written in some way."""
        try:
            return len(self.scores(frame)) == len(frame)
        except Exception:  # of the user's model
            return False

    def _output(self, frame: pd.DataFrame, score: bool) -> Outcomes:
        if not self.is_module:
            how = {} if score else {"model_score": False}
            return np.asarray(self.interface.get_output(frame.copy(), **how))
        # DiCE does not move tensors, so the input goes to the module's own device.
        parameter = next(self.interface.model.parameters(), torch.empty(0))
        with torch.no_grad(), evaluating(self.interface.model):
            x = torch.tensor(self.encode(frame)).to(parameter)
            return np.asarray(self.interface.get_output(x, out_tensor=True).cpu())


class OheMinMax:
    """The vector of DiCE's `func="ohe-min-max"`, built from names and levels, not from prefixes.

    Continuous features come first, in the order of DiCE's `continuous_features` argument, then
    one group of columns per categorical feature in frame order, its levels sorted. The map is
    differentiable and can be pickled.
    """

    def __init__(self, encoder: Encoder, continuous: Sequence[str]) -> None:
        schema, names = encoder.schema, encoder.schema.column_names
        columns = {
            column.name: (column, encoder.starts[j] + level)
            for j, feature in enumerate(schema)
            for level, column in enumerate(feature.members)
        }
        order = [*continuous, *(name for name in names if name not in continuous)]
        sources = [source for name in order for source in _sources(*columns[name])]
        column, factor, offset = zip(*sources, strict=True)
        self.column, self.factor, self.offset = map(torch.tensor, (column, factor, offset))

    def __call__(self, x: Tensor) -> Tensor:
        """The engine's encoded columns, (m, d), as DiCE's, (m, D)."""
        column, factor, offset = (t.to(x.device) for t in (self.column, self.factor, self.offset))
        return x[..., column] * factor.to(x.dtype) + offset.to(x.dtype)


def _sources(feature: Feature, start: int) -> list[Source]:
    """Of each of DiCE's columns of a feature; of one or two levels the engine has one column."""
    if feature.has_order:
        return [(start, float(feature.bounds[0] < feature.bounds[1]), 0.0)]
    if feature.columns > 1:
        return [(start + level, 1.0, 0.0) for level in range(feature.columns)]
    return [(start, -1.0, 1.0), (start, 1.0, 0.0)][: len(feature.choices)]


def model_arguments(host: Host, interface: Interface) -> dict[str, Any]:
    """A host as the arguments `model`, `output` and, for a torch module, `encode` of a method.

    A module is passed as it is only if the engine can reproduce its input; otherwise it is a
    black box.
    """
    output = "values" if host.regression else "probabilities"
    if host.is_module and host.interface.transformer.func == "ohe-min-max":
        encoder, sample = Encoder(interface.schema), interface.sample
        encode = OheMinMax(encoder, interface.data.continuous_feature_names)
        ours, theirs = encode(encoder.encode(sample)).numpy(), host.encode(sample)
        if ours.shape == theirs.shape and np.allclose(ours, theirs, atol=1e-5):
            return {"model": host.interface.model, "output": output, "encode": encode}
    return {"model": host, "output": output}


def engine_of(hosts: Sequence[Host], interface: Interface, **options: Any) -> DEAR:
    """The engine of a model and of its copies, not fitted; `options` are those of `DEAR`."""
    model, *copies = (model_arguments(host, interface) for host in hosts)
    others = [each["model"] for each in copies]
    dear = DEAR(schema=interface.schema, copies=others, **model, **options)
    if dear.classifier.is_module:
        with as_configuration_error():
            dear.classifier.frame_scores(interface.sample)
    return dear


@contextmanager
def as_configuration_error() -> Iterator[None]:
    """Raise the engine's `ModelError` as DiCE's `UserConfigValidationException`."""
    try:
        yield
    except errors.ModelError as error:
        if error.__cause__ is not None:
            raise UserConfigValidationException(
                "The torch model does not take the vector that func='ohe-min-max' makes of this"
                f" data: {error.__cause__}. Train it on"
                " data_interface.get_ohe_min_max_normalized_data(features)"
            ) from error
        raise UserConfigValidationException(
            f"{error}. DiCE expects probabilities of a classifier and one value of a regressor: a"
            " torch model that returns logits needs a layer, torch.nn.Sequential(model,"
            " torch.nn.Sigmoid()), or Softmax(dim=1) where each class has a column."
        ) from error
