"""The long frame of changes: its lines give the counterfactuals, and all that is told."""

import pandas as pd
import pytest

from dear_plugin.results.changes import COLUMNS


@pytest.fixture(scope="module")
def query(mixed):
    return mixed.frame.head(60)


@pytest.fixture(scope="module")
def result(query, fitted):
    return fitted.generate(query)


def test_it_has_the_documented_columns_and_what_is_acted_on_comes_first(result):
    changes = result.changes
    assert tuple(changes.columns) == COLUMNS
    assert set(changes["kind"]) <= {"direct", "forced", "indirect"}
    for _, own in changes.groupby("row"):
        direct = own["kind"].eq("direct").tolist()
        assert direct == sorted(direct, reverse=True)


def test_an_indirect_number_has_its_range_and_a_category_its_redraws(result):
    follows = result.changes[result.changes["kind"] == "indirect"]
    numbers = follows["low"].notna()
    assert numbers.any()
    assert (~numbers).any()
    change = (follows["new"] - follows["old"].where(numbers))[numbers].astype(float)
    assert (follows["low"][numbers] <= change + 1e-6).all()
    assert (follows["high"][numbers] >= change - 1e-6).all()
    assert follows.loc[~numbers, ["low", "high"]].isna().all(axis=None)
    assert (follows["agree"] <= follows["redraws"]).all()


def test_it_is_written_to_csv_and_read_again(result, tmp_path):
    result.changes.to_csv(tmp_path / "changes.csv", index=False)
    again = pd.read_csv(tmp_path / "changes.csv")
    assert list(again.columns) == list(COLUMNS)
    assert len(again) == len(result.changes)


def test_alternatives_have_lines_with_their_ranks(result, fitted, query):
    found = fitted.generate(query, k=4)
    table = found.alternatives(4)
    acts = table[table["acted_on"] != ""]
    told = found.changes[["row", "rank"]].drop_duplicates()
    assert sorted(map(tuple, told.to_numpy())) == sorted(
        map(tuple, acts[["index", "rank"]].to_numpy())
    )
    first = found.changes.query("rank == 0").reset_index(drop=True)
    assert first.to_csv() == result.changes.to_csv()


def test_a_selection_has_the_lines_of_its_rows(result):
    label = result.factuals.index[5]
    whole = result.changes
    own = whole[whole["row"] == label]
    assert result[label].changes.to_csv(index=False) == own.to_csv(index=False)
