"""DEAR as an explainer of Alibi: which feature to act on, how far, and what else moves with it.

`DEAR(predictor, feature_names, category_map).fit(X).explain(X)` stands where
`CounterfactualRLTabular` stands and takes what it takes: label-encoded arrays and a category map.

`wrap_alibi(explainer)` goes the other way: Alibi's own `CounterfactualRLTabular` as a
`dear_plugin.RecourseMethod`.
"""

from __future__ import annotations

try:
    import alibi as _alibi
except ModuleNotFoundError as error:
    if error.name not in ("alibi", "click"):
        raise  # alibi is here, something else that it needs is not: that message is the true one
    cause = "alibi" if error.name == "alibi" else "click, which Alibi's spaCy imports unlisted"
    raise ModuleNotFoundError(
        f"dear_alibi needs {cause}: pip install 'dear-plugin[alibi]'", name=error.name
    ) from error

from dear_alibi.explainer import DEAR
from dear_alibi.explanation import DEFAULT_DATA_DEAR
from dear_alibi.settings import DEFAULT_META_DEAR
from dear_alibi.wrapped import wrap_alibi

__all__ = ["DEAR", "DEFAULT_DATA_DEAR", "DEFAULT_META_DEAR", "wrap_alibi"]

del _alibi
