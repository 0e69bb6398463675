"""Many rows: a fitted DEAR on a real Dask cluster answers as it does in memory."""

import pandas as pd
import pytest

from dear_plugin import DEAR

dataframe = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.filterwarnings("ignore:::dask"),
    pytest.mark.filterwarnings("ignore:::distributed"),
]


def answered(part: pd.DataFrame, dear: DEAR) -> pd.DataFrame:
    """Counterfactuals and actions of one partition, side by side."""
    recourses = dear.generate(part)
    return recourses.counterfactuals.join(recourses.actions)


@pytest.fixture(scope="module")
def cluster():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_a_partitioned_file_is_answered_as_in_memory(cluster, loan, tmp_path):
    dear = DEAR(loan.net, loan.schema).fit(loan.frame)
    people = loan.refused(600).reset_index(drop=True)
    names = list(loan.schema.names)
    dataframe.from_pandas(people[names], npartitions=4).to_parquet(tmp_path / "people")

    stored = dataframe.read_parquet(tmp_path / "people")
    meta = answered(people[names].iloc[:1], dear).iloc[:0]
    found = stored.map_partitions(answered, dear, meta=meta).compute()

    assert stored.npartitions == 4
    here = answered(people[names], dear)
    pd.testing.assert_frame_equal(found, here, check_dtype=False)
    assert len(cluster.scheduler_info()["workers"]) == 2


def test_chunks_of_one_call_do_not_show(loan, monkeypatch):
    dear = DEAR(loan.net, loan.schema).fit(loan.frame)
    people = loan.refused(300)
    whole = dear.generate(people)
    monkeypatch.setattr("dear_plugin.dear.ROWS_A_CHUNK", 64)
    parts = dear.generate(people)
    pd.testing.assert_frame_equal(parts.counterfactuals, whole.counterfactuals)
    pd.testing.assert_frame_equal(parts.actions, whole.actions)
