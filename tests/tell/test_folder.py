"""The folder of `dear-plugin letters`: whose it is, and what is counted in it."""

import pandas as pd
import pytest

from dear_plugin.errors import InputError
from dear_plugin.tell import run


def test_a_folder_without_letters_may_be_of_another_run(tmp_path):
    """A first try that failed left a mark, and the next was refused."""
    run._claim(tmp_path / "out", {"want": ""})
    run._claim(tmp_path / "out", {"want": "yes"})
    (tmp_path / "out" / "letters" / "1.md").write_text("Dear ...", encoding="utf8")
    with pytest.raises(InputError, match="letters of another run, with another want"):
        run._claim(tmp_path / "out", {"want": "no"})


def test_a_folder_whose_letters_were_moved_away_is_left_alone(tmp_path):
    """Another run took its answers for its own, and ended in a traceback."""
    run._claim(tmp_path, {"want": ""})
    run._part(tmp_path, 0, "actions").write_text("case", encoding="utf8")
    with pytest.raises(InputError, match="letters of another run, with another want"):
        run._claim(tmp_path, {"want": "yes"})


def test_reasons_that_are_not_named_are_counted():
    """They were cut after three, and the numbers did not add up."""
    reasons = [*"aaabbbcccde"]
    told = run._in_words(pd.DataFrame({"letter": "none", "letter_reason": reasons}))
    assert told.endswith("\n  2: other reasons, which actions.csv has as letter_reason")
    few = run._in_words(pd.DataFrame({"letter": "none", "letter_reason": reasons[:9]}))
    assert "other reasons" not in few
