"""Warnings in the log about columns that look immutable."""


def messages(caplog):
    return [r.getMessage() for r in caplog.records if r.name == "dear_plugin.data.sensitive"]


def test_defaults_log_which_arguments_to_give(fit, refused, caplog):
    explainer = fit()
    first, second = messages(caplog)
    assert "immutable=['gender', 'age']" in first
    assert "immutable_features in Alibi" in first
    assert "act_on=[...]" in second
    assert explainer.explain(refused[:3], 1).success.all()
    assert len(messages(caplog)) == 2


def test_explicit_arguments_log_nothing(fit, caplog):
    fit(immutable_features=["gender"], ranges={"age": [0, 1]})
    assert not [r for r in caplog.records if r.name.startswith("dear_plugin.data")]
    fit(immutable_features=["gender"], act_on=["savings"])
    assert not messages(caplog)


def test_an_age_that_may_fall_seems_to_count_time(fit, caplog):
    fit(immutable_features=["gender"], ranges={"age": [-0.5, 1]})
    (record,) = [r for r in caplog.records if r.name == "dear_plugin.data.clocks"]
    assert "columns ['age'] seem to count time" in record.getMessage()
