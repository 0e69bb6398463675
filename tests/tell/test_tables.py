"""Tables of the command line: files are read as they are written, or refused with what to do."""

import gzip
import pickle
import re

import numpy as np
import pandas as pd
import pytest

from dear_plugin import Schema
from dear_plugin.errors import InputError
from dear_plugin.tell.files import read_cases, read_table


@pytest.fixture
def rows():
    return pd.DataFrame(
        {
            "case": ["0007", "0008", "0009"],
            "income": [1200.5, 980.0, 3100.25],
            "town": ["Köln", "Bonn", "Ulm"],
            "code": ["01", "02", "02"],
        }
    )


def in_text(rows, **how):
    return rows.to_csv(index=False, **how)


# How a file is written, and what the error says of it.
REFUSED = {
    "semicolons": (lambda f: in_text(f, sep=";"), "separated by commas, got one column with ';'"),
    "decimal commas": (lambda f: in_text(f, sep=";", decimal=","), "decimal=',' for decimal com"),
    "tabs": (lambda f: in_text(f, sep="\t"), r"sep='\\t'"),
    "Excel's first line": (lambda f: "sep=;\n" + in_text(f, sep=";"), "skiprows=1"),
    "Latin-1": (lambda f: in_text(f).encode("latin-1"), "expected a file in UTF-8: .*cp1252"),
    "UTF-16": (lambda f: in_text(f).encode("utf-16"), "expected a file in UTF-8: .*utf-16"),
    "a workbook": (lambda f: b"PK\x03\x04...", "expected a CSV file, got a workbook"),
    "an old workbook": (lambda f: b"\xd0\xcf\x11\xe0...", "got a workbook: pd.read_excel"),
    "a Parquet file": (lambda f: b"PAR1\x15\x04...", "got a Parquet file: pd.read_parquet"),
    "a compressed file": (
        lambda f: gzip.compress(in_text(f).encode()),
        r"got a compressed file: pd.read_csv\(path\)\.to_csv",
    ),
    "a model": (lambda f: pickle.dumps(f), "expected a CSV file, got a file that is no text"),
    "a name twice": (
        lambda f: in_text(f).replace("town", "income", 1),
        r"got twice: \['income'\]",
    ),
    "a value less": (lambda f: in_text(f).replace(",Bonn", ""), "line 3 has 3 values, .* line 4:"),
    "a value more": (lambda f: in_text(f).replace("Bonn", "Bonn,Bad"), "line 3 has 5 values"),
    "no rows": (lambda f: in_text(f.head(0)), "expected rows, got none"),
    "nothing": (lambda f: "", "No columns to parse"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_pandas_would_read_in_another_way_is_refused(kind, rows, tmp_path):
    """Lines of other lengths were filled up or shifted, and names changed, without a word."""
    write, message = REFUSED[kind]
    content = write(rows)
    content = content if isinstance(content, bytes) else content.encode()
    (tmp_path / "rows.csv").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_table(tmp_path / "rows.csv", "rows")


@pytest.mark.parametrize("kind", ["semicolons", "tabs", "Excel's first line", "Latin-1", "UTF-16"])
def test_the_line_that_an_error_names_writes_a_file_that_is_read(
    kind, rows, tmp_path, monkeypatch
):
    content, path = REFUSED[kind][0](rows), tmp_path / "rows.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError) as error:
        read_table(path, "rows")
    (line,) = re.findall(r"pd\.read_csv\(.*?index=False\)", str(error.value))
    monkeypatch.chdir(tmp_path)
    eval(line, {"pd": pd, "path": path})
    read = read_table(tmp_path / "new.csv", "rows", ["case", "code"])
    assert read["town"].tolist() == rows["town"].tolist()
    assert read["income"].tolist() == rows["income"].tolist()


def test_a_byte_order_mark_is_no_part_of_a_name(rows, tmp_path):
    rows.to_csv(tmp_path / "rows.csv", index=False, encoding="utf-8-sig")
    assert [*read_table(tmp_path / "rows.csv", "rows")] == [*rows]


def test_what_is_read_as_missing_is_told(rows, tmp_path, caplog):
    rows.astype({"income": object}).replace(980.0, "n/a").to_csv(tmp_path / "a.csv", index=False)
    assert np.isnan(read_table(tmp_path / "a.csv", "rows")["income"][1])
    assert "a.csv: column 'income': 'n/a' is read as a missing value" in caplog.text


class TestCases:
    def test_they_are_texts_of_any_column_also_of_one_that_is_no_feature(self, rows, tmp_path):
        """ "0007" became 7, and where it is a feature of numbers it stays one."""
        rows.to_csv(tmp_path / "rows.csv", index=False)
        for names in (["income", "code"], ["case", "income", "code"]):
            train = pd.concat([rows[names]] * 20, ignore_index=True)
            train = train.assign(case=range(60)) if "case" in names else train
            read = read_cases(tmp_path / "rows.csv", "rows", "case", Schema.infer(train))
            assert read.index.tolist() == ["0007", "0008", "0009"]
            assert read["code"].tolist() == ["01", "02", "02"]
            assert pd.api.types.is_numeric_dtype(read["case"])

    def test_a_row_without_one_is_an_error(self, rows, tmp_path):
        rows.assign(case=["7", None, "9"]).to_csv(tmp_path / "rows.csv", index=False)
        with pytest.raises(InputError, match="expected a case in each row, got none in 1"):
            read_cases(tmp_path / "rows.csv", "rows", "case", Schema.infer(rows))
