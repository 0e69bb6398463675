"""Asked: what a DiCE explainer gives for a query, one example or one frame for each row."""


def examples(explainer, query, total_CFs=1, **arguments):
    """The example of each row of a query."""
    return explainer.generate_counterfactuals(query, total_CFs, **arguments).cf_examples_list


def answers(explainer, query, total_CFs=1, **arguments):
    """The counterfactuals of each row of a query."""
    found = examples(explainer, query, total_CFs, **arguments)
    return [example.final_cfs_df for example in found]


def logged(caplog):
    """What the adapter logs; once in a session the engine logs what its answers count on."""
    return [r.getMessage() for r in caplog.records if r.name == "dear_dice"]


def same_frames(found, expected):
    """Whether two lists of frames are equal, dtypes and index included."""
    return all(a.equals(b) for a, b in zip(found, expected, strict=True))
