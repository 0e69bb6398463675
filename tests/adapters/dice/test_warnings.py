"""Warnings in the log about columns that look immutable."""

from dear_dice import DiceDEAR


def messages(caplog):
    return [r.getMessage() for r in caplog.records if r.name == "dear_plugin.data.sensitive"]


def test_defaults_log_which_arguments_to_give(loan, torch_model, refused, caplog):
    explainer = DiceDEAR(loan.data, torch_model)
    first, second = messages(caplog)
    assert "immutable=['gender', 'age']" in first
    assert "act_on=[...]" in second
    result = explainer.generate_counterfactuals(refused.iloc[:3], 1)
    assert [len(example.final_cfs_df) for example in result.cf_examples_list] == [1, 1, 1]
    assert len(messages(caplog)) == 2


def test_explicit_arguments_log_nothing(loan, torch_model, caplog):
    DiceDEAR(loan.data, torch_model, immutable=["gender"], increasing=["age"])
    DiceDEAR(loan.data, torch_model, immutable=["gender"], act_on=["savings"])
    assert not messages(caplog)
