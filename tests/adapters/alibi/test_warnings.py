"""Columns that look like what nobody can act on: the log names them, and the answer comes."""


def told(caplog):
    return [r.getMessage() for r in caplog.records if r.name == "dear_plugin.data.sensitive"]


def test_who_said_nothing_is_told_which_arguments_to_give(fit, refused, caplog):
    explainer = fit()
    first, second = told(caplog)
    assert "immutable=['gender', 'age']" in first
    assert "immutable_features in Alibi" in first
    assert "act_on=[...]" in second
    assert explainer.explain(refused[:3], 1).success.all()
    assert len(told(caplog)) == 2


def test_who_says_it_all_is_left_alone(fit, caplog):
    fit(immutable_features=["gender"], ranges={"age": [0, 1]})
    fit(immutable_features=["gender"], act_on=["savings"])
    assert not told(caplog)
