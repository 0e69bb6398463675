"""The base class of baselines: a recourse method with one frozen dataclass of settings."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

from torch import Tensor

from dear_plugin.data.schema import Schema
from dear_plugin.errors import ModelError
from dear_plugin.methods.base import RecourseMethod
from dear_plugin.models.classifier import Output

Config = TypeVar("Config")


class Baseline(RecourseMethod, ABC, Generic[Config]):
    """A method that DEAR is compared with.

    Args:
        model: see `RecourseMethod`.
        schema: the features.
        config: the method's settings; None for the defaults.
        output: see `RecourseMethod`.
        encode: see `RecourseMethod`.

    Raises:
        ModelError: the method does not support the model.

    Attributes:
        default_config: the settings if none are given.
        needs_gradient: whether the model must be a torch module.
    """

    default_config: Any
    needs_gradient: ClassVar[bool] = False

    def __init__(
        self,
        model: Any,
        schema: Schema,
        *,
        config: Config | None = None,
        output: Output | None = None,
        encode: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        super().__init__(model, schema, output=output, encode=encode)
        self._check_model()
        self.config: Config = self.default_config if config is None else config
        self._params |= {"config": config}

    def _learn(self, rows: Tensor) -> None:
        """Nothing is learned by default."""

    def _check_model(self) -> None:
        """Raise a `ModelError` if the method does not support the model."""
        kind, model = type(self).__name__, type(self.classifier.model).__name__
        if self.needs_gradient and not self.classifier.is_module:
            raise ModelError(
                f"{kind} descends the model's gradient: it needs a torch module, got {model};"
                " GrowingSpheres and NearestAccepted support any model"
            )
