"""Estimator: what scikit-learn and notebooks need of a method: parameters, a state, texts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from torch import Tensor

from dear_plugin import _html
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.schema import Schema
from dear_plugin.errors import NotFittedError, SettingError, shown
from dear_plugin.evaluation.trained import Trained
from dear_plugin.models.classifier import Classifier, Output
from dear_plugin.search import Search

if TYPE_CHECKING:
    from sklearn.utils import Tags


class Estimator:
    """What can be made again from its constructor's arguments, is fitted, and has a `repr`."""

    # Its criteria are those of its answers, if it has any.
    search: Search = Search.cheapest()
    _copies: Sequence[Classifier] = ()

    def __init__(
        self,
        model: Any,
        schema: Schema,
        *,
        output: Output | None = None,
        encode: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        if not isinstance(schema, Schema):
            swapped, fix = isinstance(model, Schema), "Schema.infer(frame) makes one"
            raise SettingError(
                f"schema must be a Schema, got {shown(schema)}:"
                f" {'the model comes first' if swapped else fix}"
            )
        self.schema = schema
        self.encoder = Encoder(schema)
        self.classifier = Classifier(model, self.encoder, output=output, encode=encode)
        self._trained: Trained | None = None
        # Arguments that are not attributes of the same names.
        self._params: dict[str, Any] = {"model": model, "schema": schema}
        self._params |= {"output": output, "encode": encode}

    def __repr__(self) -> str:
        """The features, the model, and how many rows it is fitted on."""
        known = self._trained
        fitted = "not fitted" if known is None else f"fitted on {len(known.rows):,} rows"
        model = type(self.classifier.model).__name__
        return f"{type(self).__name__}({', '.join([*self._repr_parts, f'model {model}', fitted])})"

    def _repr_html_(self) -> str:
        """The method and its features, for notebooks."""
        return _html.note(repr(self)) + self.schema._repr_html_()

    @property
    def _repr_parts(self) -> Sequence[str]:
        """The parts of `repr` besides the model and the rows."""
        return [f"{len(self.schema)} features"]

    @property
    def trained(self) -> Trained:
        """The training rows, and what answers are compared with.

        Raises:
            NotFittedError: `fit` was not called.
        """
        if self._trained is None:
            raise NotFittedError(f"{type(self).__name__} is not fitted; call fit(frame) first")
        return self._trained

    def __sklearn_clone__(self) -> Self:
        """The same method with the same model, not fitted: what `sklearn.base.clone` returns."""
        return type(self)(**self.get_params())

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments by name, like those of a scikit-learn estimator.

        A subclass stores its own arguments as attributes of the same names.

        Args:
            deep: has no effect; parameters of the model are not included.
        """
        _, *names = inspect.signature(type(self).__init__).parameters
        known = self._params
        return {name: known[name] if name in known else getattr(self, name) for name in names}

    def set_params(self, **params: Any) -> Self:
        """Set some of the constructor's arguments; the method is not fitted afterwards.

        Args:
            params: by name, as in `get_params`.

        Raises:
            TypeError: a name that the constructor does not have.
        """
        vars(self).update(vars(type(self)(**{**self.get_params(), **params})))
        return self

    @property
    def feature_names_in_(self) -> npt.NDArray[np.object_]:
        """The names of the columns of a frame, in the order of the training rows.

        Raises:
            NotFittedError: `fit` was not called; `hasattr` is False then.
        """
        _ = self.trained  # raises the error
        return np.array(self.schema.column_names, dtype=object)

    @property
    def n_features_in_(self) -> int:
        """The number of columns; for errors see `feature_names_in_`."""
        return len(self.feature_names_in_)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` was called: what `sklearn.utils.validation.check_is_fitted` asks."""
        return self._trained is not None

    def __sklearn_tags__(self) -> Tags:
        """What the rows may have, for scikit-learn 1.6 and later."""
        from sklearn.utils import InputTags, Tags, TargetTags

        rows = InputTags(two_d_array=False, categorical=True, string=True, allow_nan=True)
        return Tags(None, TargetTags(required=False), input_tags=rows)
