"""Many rows: a fitted DEAR answers in the workers of an engine as it does in memory."""

import sys
from collections.abc import Callable, Iterator

import pandas as pd
import pytest

from dear_plugin import DEAR

pytestmark = [
    pytest.mark.filterwarnings(f"ignore:::{engine}")
    for engine in ("dask", "distributed", "pyspark", "ray")
]

WORKERS, PARTS, FEW = 2, 4, 25
Answer = Callable[[pd.DataFrame], pd.DataFrame]


@pytest.fixture(scope="module")
def dask():
    """Answers the partitions of a folder on a cluster of processes."""
    frames = pytest.importorskip("dask.dataframe")
    distributed = pytest.importorskip("distributed")

    def answers(folder: str, answer: Answer, empty: pd.DataFrame) -> pd.DataFrame:
        stored = frames.read_parquet(folder)
        assert stored.npartitions == PARTS
        assert len(client.scheduler_info()["workers"]) == WORKERS
        return stored.map_partitions(answer, meta=empty).compute()

    with (
        distributed.LocalCluster(
            n_workers=WORKERS, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield answers


@pytest.fixture(scope="module")
def spark():
    """Answers them in the Python workers of a Spark session."""
    sql = pytest.importorskip("pyspark.sql")

    def answers(folder: str, answer: Answer, empty: pd.DataFrame) -> pd.DataFrame:
        def each(parts: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
            yield from map(answer, parts)

        stored = session.read.parquet(folder).repartitionByRange(PARTS, "person")
        columns = session.createDataFrame(empty).schema
        return stored.mapInPandas(each, schema=columns).toPandas()

    build = sql.SparkSession.builder.master(f"local[{WORKERS}]")
    with pytest.MonkeyPatch.context() as patch:
        # Its workers are started by Java, which knows of no virtual environment.
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        session = build.config("spark.ui.enabled", "false").getOrCreate()
        yield answers
        session.stop()


@pytest.fixture(scope="module")
def ray():
    """Answers them in Ray's tasks."""
    engine = pytest.importorskip("ray")
    data = pytest.importorskip("ray.data")

    def answers(folder: str, answer: Answer, empty: pd.DataFrame) -> pd.DataFrame:
        stored = data.read_parquet(folder)
        # Small blocks are joined otherwise.
        return stored.map_batches(answer, batch_format="pandas", batch_size=FEW).to_pandas()

    engine.init(num_cpus=WORKERS, include_dashboard=False)
    yield answers
    engine.shutdown()


ENGINES = pytest.mark.parametrize("engine", ["dask", "spark", "ray"])


def told(dear: DEAR) -> Answer:
    """The answer to a partition: the counterfactuals and what to do."""

    # A function within another travels whole: the workers need not know this file.
    def answer(part: pd.DataFrame) -> pd.DataFrame:
        recourses = dear.generate(part)
        return pd.concat([recourses.counterfactuals, recourses.actions], axis=1)

    return answer


def same(found: pd.DataFrame, here: pd.DataFrame) -> None:
    """Whether an engine's answers, in any order, are those in memory."""
    ordered = found.sort_values("person").reset_index(drop=True)
    pd.testing.assert_frame_equal(ordered.astype(here.dtypes), here, check_names=False)


@pytest.mark.ci
@ENGINES
def test_a_partitioned_file_is_answered_as_in_memory(engine, request, loan, tmp_path):
    answers = request.getfixturevalue(engine)
    answer = told(DEAR(loan.net, loan.schema).fit(loan.frame))
    people = loan.refused(600)[list(loan.schema.names)].reset_index(names="person")
    for part in range(PARTS):
        people[part::PARTS].to_parquet(tmp_path / f"{part}.parquet")
    here = answer(people)
    same(answers(str(tmp_path), answer, here.head(1)), here)


def test_an_empty_partition_has_the_dtypes_of_a_full_one(loan):
    """Which is how Dask learns what to expect: `meta=answer(frame.head(0))`."""
    answer = told(DEAR(loan.net, loan.schema).fit(loan.frame))
    people = loan.refused(5)
    pd.testing.assert_series_equal(answer(people.head(0)).dtypes, answer(people).dtypes)


def test_chunks_of_one_call_do_not_show(loan, monkeypatch):
    dear = DEAR(loan.net, loan.schema).fit(loan.frame)
    people = loan.refused(50)
    whole = dear.generate(people)
    monkeypatch.setattr("dear_plugin.methods.answering.ROWS_A_CHUNK", 16)
    parts = dear.generate(people)
    pd.testing.assert_frame_equal(parts.counterfactuals, whole.counterfactuals)
    pd.testing.assert_frame_equal(parts.actions, whole.actions)
