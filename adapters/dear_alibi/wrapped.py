"""Wrapped: placeholder."""

from typing import Any


def wrap_alibi(explainer: Any, schema: Any) -> Any: ...
