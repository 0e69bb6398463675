"""Search for files, downloads from a local server, and damaged files."""

from __future__ import annotations

import functools
import hashlib
import http.server
import threading
import zipfile
from pathlib import Path

import pytest

from dear_plugin.datasets import load_adult, load_compas, load_give_me_some_credit
from dear_plugin.datasets.fetch import Source, locate
from dear_plugin.errors import DataError

CONTENT = b"a,b\n1,2\n"
SHA256 = hashlib.sha256(CONTENT).hexdigest()
FILES = [
    (load_adult, "adult.zip"),
    (load_compas, "compas-scores-two-years.csv"),
    (load_give_me_some_credit, "cs-training.csv.zip"),
]

ADULT_ROW = (
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male,"
    " 2174, 0, 40, United-States, "
)
COMPAS_HEAD = (
    "sex,age,race,priors_count,days_b_screening_arrest,c_jail_in,c_jail_out,c_charge_degree,"
    "is_recid,score_text,two_year_recid\n"
)
CREDIT_HEAD = (
    ",SeriousDlqin2yrs,RevolvingUtilizationOfUnsecuredLines,age,"
    "NumberOfTime30-59DaysPastDueNotWorse,DebtRatio,MonthlyIncome,"
    "NumberOfOpenCreditLinesAndLoans,NumberOfTimes90DaysLate,NumberRealEstateLoansOrLines,"
    "NumberOfTime60-89DaysPastDueNotWorse,NumberOfDependents\n"
)


@pytest.fixture(autouse=True)
def nowhere(monkeypatch, tmp_path):
    """No data folder, an empty cache, and a network without servers."""
    cache = tmp_path / "cache"
    monkeypatch.delenv("DEAR_DATA_HOME", raising=False)
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(cache))
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "localhost")
    return cache


@pytest.fixture
def server(tmp_path):
    """Address of a web server that has one file, `there.csv`."""
    folder = tmp_path / "published"
    folder.mkdir()
    (folder / "there.csv").write_bytes(CONTENT)
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as web:
        thread = threading.Thread(target=web.serve_forever)
        thread.start()
        yield f"http://localhost:{web.server_address[1]}"
        web.shutdown()
        thread.join()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


def source(server: str, name: str = "there.csv", sha256: str = SHA256) -> Source:
    return Source((name,), page="the page", url=f"{server}/{name}", sha256=sha256)


def put(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder / name


def put_adult(folder: Path, data: str, test: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / "adult.zip", "w") as archive:
        archive.writestr("adult.data", data)
        archive.writestr("adult.test", "|1x3 Cross validator\n" + test)


@pytest.mark.parametrize(("load", "file"), FILES)
def test_a_missing_file_names_the_searched_folders_and_the_remedy(
    load, file, tmp_path, monkeypatch, nowhere
):
    monkeypatch.setenv("DEAR_DATA_HOME", str(tmp_path / "env"))
    with pytest.raises(DataError) as caught:
        load(data_home=tmp_path / "mine")
    message = str(caught.value)
    assert file in message
    assert f"{tmp_path / 'mine'} (data_home)" in message
    assert f"{tmp_path / 'env'} ($DEAR_DATA_HOME)" in message
    assert str(nowhere) in message
    assert "get the file from https://" in message
    assert "set DEAR_DATA_HOME" in message


@pytest.mark.parametrize("load", [load_adult, load_compas])
def test_a_failed_download_names_its_address_and_its_cause(load):
    with pytest.raises(DataError, match=r"Downloading https://\S+ failed: ProxyError") as caught:
        load()
    assert caught.value.__cause__ is not None


def test_a_file_behind_a_login_is_never_downloaded():
    with pytest.raises(DataError, match="requires a login"):
        load_give_me_some_credit()


def test_folders_are_tried_in_order(tmp_path, monkeypatch, nowhere):
    source_of_file = Source(("x.csv",), page="the page")
    cached = put(nowhere / "dear-plugin", "x.csv", "cache")
    assert locate(source_of_file) == cached
    monkeypatch.setenv("DEAR_DATA_HOME", str(tmp_path / "env"))
    assert locate(source_of_file) == cached
    env = put(tmp_path / "env", "x.csv", "env")
    assert locate(source_of_file) == env
    mine = put(tmp_path / "mine", "x.csv", "mine")
    assert locate(source_of_file, tmp_path / "mine") == mine
    assert locate(source_of_file, tmp_path / "empty") == env


def test_a_download_goes_to_the_cache_once(server, nowhere, tmp_path):
    path = locate(source(server))
    assert path == nowhere / "dear-plugin" / "there.csv"
    assert path.read_bytes() == CONTENT
    (tmp_path / "published" / "there.csv").unlink()
    assert locate(source(server)) == path


def test_a_download_with_another_checksum_is_rejected_and_deleted(server, nowhere):
    with pytest.raises(DataError, match="hash"):
        locate(source(server, sha256="0" * 64))
    assert not (nowhere / "dear-plugin" / "there.csv").exists()


@pytest.mark.parametrize("categories", ["binary", "full"])
def test_adult_keeps_missing_values(tmp_path, categories):
    unknown = ADULT_ROW.replace("State-gov", "?")
    put_adult(tmp_path, f"{ADULT_ROW}<=50K\n{unknown}>50K\n", f"{ADULT_ROW}>50K.\n")
    data = load_adult(categories, tmp_path, missing="keep")
    assert data.outcome.tolist() == [0, 1, 1]
    assert data.frame.isna().sum().sum() == data.frame["workclass"].isna().sum() == 1
    assert data.special == {"capital-gain": (99_999,)}


def test_credit_keeps_missing_values(tmp_path):
    usual = "0,0,0.5,40,0,0.1,2600,4,0,0,0,0\n1,0,0.6,41,1,0.2,2700,5,1,1,1,1\n" * 15
    unknown = "30,0,0.5,40,0,812,NA,4,0,0,0,NA\n"
    coded = "31,1,0.5,40,98,0.1,2600,4,98,0,98,0\n"
    put(tmp_path, "cs-training.csv", CREDIT_HEAD + usual + unknown + coded)
    features = load_give_me_some_credit(tmp_path, missing="keep").features
    assert features.loc[30, features.loc[30].isna()].index.tolist() == [
        "DebtRatio",
        "MonthlyIncome",
        "NumberOfDependents",
    ]
    assert features.loc[31, "NumberOfTimes90DaysLate"] == 98
    assert len(features) == 32
    assert len(load_give_me_some_credit(tmp_path).frame) == 30


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("1, 2, 3\n", r"adult\.data: expected the columns .*income; got: age"),
        (f"{ADULT_ROW}<=50K, more\n", "cannot be read"),
        (f"{ADULT_ROW}rich\n", r"expected <=50K, >50K in 'income'; got: 'rich'"),
        (f"{ADULT_ROW}<=50K\n".replace("39", "old"), "expected numbers in 'age'; got: 'old'"),
        ("", "cannot be read"),
    ],
)
def test_adult_in_another_layout_is_refused(tmp_path, data, message):
    put_adult(tmp_path, data, f"{ADULT_ROW}>50K.\n")
    with pytest.raises(DataError, match=message):
        load_adult(data_home=tmp_path)


def test_compas_in_its_published_layout_is_read(tmp_path):
    kept = "Male,30,Caucasian,2,-1,2013-08-13 06:03:42,2013-08-15 05:41:20,F,0,High,1\n"
    backwards = kept.replace("08-15", "08-12").replace("High", "Low").replace(",F,", ",M,")
    late, traffic = kept.replace(",-1,", ",31,"), kept.replace(",F,", ",O,")
    put(tmp_path, "compas-scores-two-years.csv", COMPAS_HEAD + kept + backwards + late + traffic)
    frame = load_compas(data_home=tmp_path).frame
    assert frame["not_high_risk"].tolist() == [0, 1]
    assert frame["length_of_stay"].tolist() == [1, 0]
    assert frame["c_charge_degree"].tolist() == ["Felony", "Misdemeanor"]
    assert frame["race"].tolist() == ["Other", "Other"]


def test_credit_may_be_zipped_or_not(tmp_path):
    rows = "1,1,0.76612,45,2,0.80298,9120,13,0,6,0,2\n2,0,0.9571,40,0,0.12,2600,4,0,0,0,NA\n"
    put(tmp_path / "plain", "cs-training.csv", CREDIT_HEAD + rows + rows.replace("45", "46"))
    (tmp_path / "zipped").mkdir()
    with zipfile.ZipFile(tmp_path / "zipped" / "cs-training.csv.zip", "w") as archive:
        archive.write(tmp_path / "plain" / "cs-training.csv", "cs-training.csv")
    plain = load_give_me_some_credit(tmp_path / "plain").frame
    assert plain.equals(load_give_me_some_credit(tmp_path / "zipped").frame)


@pytest.mark.parametrize(("load", "file"), FILES)
def test_a_damaged_file_is_named(load, file, tmp_path):
    (tmp_path / file).write_bytes(b"\x00\xff\xfe damaged")
    with pytest.raises(DataError, match=file):
        load(data_home=tmp_path)
