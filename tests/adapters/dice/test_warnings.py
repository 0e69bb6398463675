"""Columns that look like what nobody can act on: the log names them, and the answer comes."""

from dear_dice import DiceDEAR


def told(caplog):
    return [r.getMessage() for r in caplog.records if r.name == "dear_plugin.data.sensitive"]


def test_who_said_nothing_is_told_which_arguments_to_give(loan, torch_model, refused, caplog):
    explainer = DiceDEAR(loan.data, torch_model)
    first, second = told(caplog)
    assert "immutable=['gender', 'age']" in first
    assert "act_on=[...]" in second
    result = explainer.generate_counterfactuals(refused.iloc[:3], 1)
    assert [len(example.final_cfs_df) for example in result.cf_examples_list] == [1, 1, 1]
    assert len(told(caplog)) == 2


def test_pairs_of_everything_are_no_less_worth_a_word(loan, torch_model, caplog):
    DiceDEAR(loan.data, torch_model, immutable=["gender"], pairs=True)
    (message,) = told(caplog)
    assert "['age']" in message


def test_who_says_it_all_is_left_alone(loan, torch_model, caplog):
    DiceDEAR(loan.data, torch_model, immutable=["gender"], increasing=["age"])
    DiceDEAR(loan.data, torch_model, immutable=["gender"], act_on=["savings"])
    assert not told(caplog)
