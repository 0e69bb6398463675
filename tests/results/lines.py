"""Lines of `changes` made by hand."""

import math

from dear_plugin.results.changes import Line


def line(feature, old, new, kind="direct", **more):
    """A line of an amount that all redraws agree on, unless more is given."""
    known = {"label": feature, "alone": new if kind != "indirect" else old, "least": old}
    ends = {"low": math.nan, "high": math.nan, "low_one": math.nan, "high_one": math.nan}
    if all(isinstance(each, int | float) for each in (old, new)):
        ends = dict.fromkeys(ends, new - old)
    rest = {
        "agree": 16,
        "redraws": 16,
        "size": 1.0,
        "unit": "",
        "exact": True,
        "row": 0,
        "rank": 0,
    }
    return Line(
        **{
            "feature": feature,
            "old": old,
            "new": new,
            "kind": kind,
            **known,
            **ends,
            **rest,
            **more,
        }
    )
