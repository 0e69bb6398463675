"""DEAR as an explainer of Alibi: which feature to act on, how far, and which changes follow.

`DEAR(predictor, feature_names, category_map).fit(X).explain(X)` replaces
`CounterfactualRLTabular` and takes the same label-encoded arrays and category map.

`wrap_alibi(explainer)` is the inverse: a counterfactual explainer of Alibi as a
`dear_plugin.RecourseMethod`.
"""

from __future__ import annotations

try:
    import alibi as _alibi
except ModuleNotFoundError as error:
    if error.name not in ("alibi", "click"):
        raise  # alibi is installed but another dependency of it is not: keep that message
    cause = "alibi" if error.name == "alibi" else "click, which Alibi's spaCy imports unlisted"
    raise ModuleNotFoundError(
        f"dear_alibi needs {cause}: pip install 'dear-plugin[alibi]'", name=error.name
    ) from error

from dear_alibi.explainer import DEAR
from dear_alibi.explanation import DEFAULT_DATA_DEAR, DEFAULT_META_DEAR
from dear_alibi.wrapped import wrap_alibi

__all__ = ["DEAR", "DEFAULT_DATA_DEAR", "DEFAULT_META_DEAR", "wrap_alibi"]

del _alibi
