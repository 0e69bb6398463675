"""Parameters: get_params, set_params and scikit-learn's clone, from a constructor's arguments."""

from __future__ import annotations

import inspect
from typing import Any, Self


class Parameters:
    """An object that can be made again from its constructor's arguments."""

    # Arguments that are not attributes of the same names.
    _params: dict[str, Any]

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
