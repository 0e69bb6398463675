"""Not fitted: the error of this package that is scikit-learn's as well."""

from __future__ import annotations

import sklearn.exceptions

from dear_plugin.errors import NotFittedError


class SharedNotFittedError(NotFittedError, sklearn.exceptions.NotFittedError):  # type: ignore[misc]
    """What `NotFittedError(...)` makes."""
