"""`dear-plugin schema`: a commented file of what is inferred, with what the log advises."""

import logging

import numpy as np
import pandas as pd
import pytest

from dear_plugin import Schema
from dear_plugin.__main__ import main


@pytest.fixture
def train(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"age": rng.integers(20, 60, 200), "income": rng.integers(0, 90, 200) * 500}
    )
    path = tmp_path / "train.csv"
    frame.assign(answer=rng.integers(0, 2, 200)).to_csv(path, index=False)
    return path


def test_the_file_has_the_features_and_what_the_log_advises(train, capsys):
    assert main(["schema", str(train), "--target", "answer"]) == 0
    written = train.with_suffix(".toml")
    assert f"{written}: 2 features of 200 rows" in capsys.readouterr().out
    text = written.read_text(encoding="utf8")
    assert text.startswith("# What the log says of train.csv")
    assert "'age'" in text.split("[features.age]")[0]
    assert Schema.from_toml(written, pd.read_csv(train)).names == ("age", "income")


def test_a_file_that_somebody_edited_is_kept(train, capsys):
    written = train.with_suffix(".toml")
    written.write_text("target = 'answer'", encoding="utf8")
    assert main(["schema", str(train)]) == 2
    assert "exists" in capsys.readouterr().err
    assert written.read_text(encoding="utf8") == "target = 'answer'"


def test_the_log_is_left_as_it_was(train):
    logger = logging.getLogger("dear_plugin")
    before = logger.level, logger.propagate, [*logger.handlers]
    main(["schema", str(train)])
    assert (logger.level, logger.propagate, [*logger.handlers]) == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a;b\n1;2\n", "expected values separated by commas"),
        ("a,b\n", "expected rows, got none"),
        ("", "No columns to parse"),
    ],
)
def test_a_table_that_cannot_be_read_is_an_error(tmp_path, capsys, text, message):
    path = tmp_path / "rows.csv"
    path.write_text(text, encoding="utf8")
    assert main(["schema", str(path)]) == 2
    assert message in capsys.readouterr().err
