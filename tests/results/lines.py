"""Lines of `changes` made by hand."""

import math

from dear_plugin.results.changes import Line


def line(feature, old, new, kind="direct", **more):
    """A line of a feature that all redraws agree on, unless more is given."""
    alone = new if kind != "indirect" else old
    known = {"label": feature.called, "of": feature, "alone": alone, "least": old}
    ends = {"low": math.nan, "high": math.nan, "low_one": math.nan, "high_one": math.nan}
    if all(isinstance(each, int | float) for each in (old, new)):
        ends = dict.fromkeys(ends, new - old)
    rest = {"agree": 16, "redraws": 16, "size": 1.0, "exact": True, "row": 0, "rank": 0}
    rest |= {"in_sd": 1.0, "consistency": math.nan}
    stated = "stated", "stated_least", "stated_usual", "stated_forced"
    rest |= dict.fromkeys(stated)
    rest["link"] = "effect" if kind == "indirect" else ""
    told = {"feature": feature.name, "old": old, "new": new, "kind": kind, "unit": feature.unit}
    rest["role"] = "advised" if kind == "direct" else ""
    return Line(**{**told, **known, **ends, **rest, **more})
