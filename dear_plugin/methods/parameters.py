"""Parameters: what scikit-learn asks of an estimator, but for `predict`."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from dear_plugin.data.schema import Schema

if TYPE_CHECKING:
    from sklearn.utils import Tags


class Parameters:
    """An object that can be made again from its constructor's arguments."""

    schema: Schema
    # Arguments that are not attributes of the same names.
    _params: dict[str, Any]
    _trained: Any

    @property
    def trained(self) -> Any:
        """The training rows; see `RecourseMethod`."""

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
