"""`dear-plugin letters`: from files to letters, tables and records."""

import json
import re
import shutil

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from dear_plugin import DEAR, Schema
from dear_plugin.__main__ import main
from dear_plugin.tell import run as command
from dear_plugin.tell.letter import guess, unlabelled

PEOPLE = 12


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Training rows with missing values and case numbers, a model of some columns, people."""
    folder = tmp_path_factory.mktemp("files")
    rng, n = np.random.default_rng(0), 1_200
    income = (rng.gamma(8, 400, n) / 10).round() * 10
    frame = pd.DataFrame(
        {
            "case": [f"A/{at:05d}" for at in range(n)],
            "income": income,
            "loan": (income * rng.uniform(2, 9, n) / 100).round() * 100,
            "years": np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 30, n)),
            "town": rng.choice(["Ulm", "Bonn"], n),
        }
    )
    odds = frame["income"] / 400 - frame["loan"] / 2_500 + frame["years"].fillna(5) / 10
    frame["approved"] = (odds + rng.normal(0, 0.3, n) > odds.median()).astype(int)
    names = ["income", "loan", "years"]
    model = HistGradientBoostingClassifier(max_iter=30).fit(frame[names], frame["approved"])
    refused = frame[model.predict(frame[names]) == 0].head(PEOPLE)
    frame.to_csv(folder / "train.csv", index=False)
    refused.drop(columns="approved").to_csv(folder / "people.csv", index=False)
    joblib.dump(model, folder / "model.joblib")
    main(["schema", str(folder / "train.csv"), "--target", "approved"])
    return folder


def run(files, out, *more, people="people.csv", schema="train.toml"):
    command = ["letters", files / people, "--model", files / "model.joblib", "--trust"]
    command += ["--train", files / "train.csv", "--schema", files / schema]
    options = ["--out", out, "--index", "case", "--act-on", "income,loan", "--unlabelled", *more]
    return main(list(map(str, [*command, *options])))


@pytest.fixture(scope="module")
def done(files, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "letters"
    assert run(files, out) == 0
    return out


def content(out):
    """The bytes of what a run leaves, but for the PDF, which has a date."""
    return {
        path.relative_to(out).as_posix(): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() and path.suffix != ".pdf"
    }


class TestWhatIsWritten:
    def test_every_person_has_a_letter_a_record_and_a_line(self, files, done):
        people = pd.read_csv(files / "people.csv")
        names = people["case"].str.replace("/", "_").tolist()
        assert sorted(path.stem for path in (done / "letters").iterdir()) == names
        assert sorted(path.stem for path in (done / "records").iterdir()) == names
        actions = pd.read_csv(done / "actions.csv")
        assert actions["case"].tolist() == people["case"].tolist()

    def test_they_are_the_answers_of_the_engine(self, files, done):
        train = pd.read_csv(files / "train.csv")
        model = joblib.load(files / "model.joblib")
        schema = Schema.from_toml(files / "train.toml", train)
        names = list(model.feature_names_in_)
        dear = DEAR(
            lambda rows: model.predict_proba(rows[names]), schema, act_on=["income", "loan"]
        )
        people = pd.read_csv(files / "people.csv")
        answers = dear.fit(train).generate(people)
        told = pd.read_csv(done / "actions.csv")
        assert told["acted_on"].fillna("").tolist() == answers.actions["acted_on"].tolist()
        assert told["credible"].tolist() == answers.actions["credible"].tolist()

    def test_the_tables_and_the_record_say_which_answer_the_letter_tells(self, done):
        """They had the answer of `generate` alone, and letters that of a later rank, or none."""
        actions = pd.read_csv(done / "actions.csv", dtype={"letter_ranks": str})
        changes = pd.read_csv(done / "changes.csv")
        for line in actions.itertuples():
            name = line.case.replace("/", "_")
            record = json.loads((done / "records" / f"{name}.json").read_text(encoding="utf8"))
            ranks = [] if pd.isna(line.letter_ranks) else line.letter_ranks.split("; ")
            assert bool(ranks) == (line.letter == "with what to do")
            assert {str(each["rank"]) for each in record["letter"]["changes"]} == {*ranks}
            known = changes[changes["case"] == line.case]["rank"].astype(str)
            assert {*ranks} <= {*known}

    def test_rows_without_a_column_are_told_by_the_name_of_their_file(
        self, files, tmp_path, capsys
    ):
        people = pd.read_csv(files / "people.csv").drop(columns="loan")
        people.to_csv(files / "short.csv", index=False)
        assert run(files, tmp_path / "out", people="short.csv") != 0
        assert re.search(r"short\.csv: missing columns: 'loan'", capsys.readouterr().err)

    def test_a_letter_names_its_case(self, done):
        letter = next((done / "letters").iterdir()).read_text(encoding="utf8")
        assert letter.startswith("Case A/")

    def test_the_page_has_all_letters(self, done):
        page = (done / "letters.html").read_text(encoding="utf8")
        assert page.count("<article") == PEOPLE

    def test_the_changes_are_those_of_the_cases(self, files, done):
        changes = pd.read_csv(done / "changes.csv")
        assert {"direct"} <= {*changes["kind"]} <= {"direct", "indirect", "forced"}
        first = json.loads(next((done / "records").iterdir()).read_text(encoding="utf8"))
        assert first["hashes"]

    def test_the_last_line_says_how_many_got_a_way(self, files, tmp_path, capsys):
        run(files, tmp_path / "out")
        words = capsys.readouterr().out
        assert f"{PEOPLE} letters: " in words
        assert "with what to do" in words

    def test_cases_and_levels_are_in_the_tables_as_they_are_written(self, files, tmp_path):
        """ "007" became 7, and a level that is called "None" an empty cell."""
        people = pd.read_csv(files / "people.csv").head(3).assign(file=["007", "NA", "2.50"])
        people.to_csv(files / "cases.csv", index=False)
        assert run(files, tmp_path / "out", "--index", "file", people="cases.csv") == 0
        cases = people["file"].tolist()
        lines = (tmp_path / "out" / "actions.csv").read_text(encoding="utf8").splitlines()
        assert [line.partition(",")[0] for line in lines[1:]] == cases
        letters = (tmp_path / "out" / "letters").iterdir()
        assert sorted(path.stem for path in letters) == sorted(cases)

    def test_the_last_line_counts_what_is_accepted_already(self, files, tmp_path, capsys):
        train = pd.read_csv(files / "train.csv")
        names = ["income", "loan", "years"]
        known = joblib.load(files / "model.joblib").predict(train[names])
        accepted = train[known == 1].head(2).drop(columns="approved")
        accepted.to_csv(files / "accepted.csv", index=False)
        assert run(files, tmp_path / "out", people="accepted.csv") == 0
        told = capsys.readouterr().out
        assert "2 letters: 2 accepted already" in told
        assert "2: accepted as it is: no change is needed" in told

    def test_up_to_three_ways_in_a_letter(self, files, tmp_path):
        assert run(files, tmp_path / "out", "--ways", "3") == 0
        text = (tmp_path / "out" / "letters.html").read_text(encoding="utf8")
        assert "\n2. " in text

    def test_letters_in_german(self, files, tmp_path):
        assert run(files, tmp_path / "out", "--language", "de") == 0
        text = (tmp_path / "out" / "letters.html").read_text(encoding="utf8")
        assert '<html lang="de">' in text
        assert "Entscheidung" in text

    def test_nothing_is_written_where_a_column_cannot_be_read(self, files, tmp_path, capsys):
        people = pd.read_csv(files / "people.csv").astype({"income": object})
        people.loc[1, "income"] = "-"
        people.to_csv(files / "marked.csv", index=False)
        assert run(files, tmp_path / "out", people="marked.csv") == 2
        told = capsys.readouterr().err
        assert "marked.csv: column 'income' must hold numbers" in told
        assert f"no number in 1 rows, first ['{people['case'][1]}']" in told
        assert not (tmp_path / "out").exists()


def test_a_log_file_says_how_many_are_done(files, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "ROWS_AT_ONCE", 5)
    monkeypatch.setattr(command, "EVERY", 0.0)
    assert run(files, tmp_path / "out") == 0
    told = capsys.readouterr().err
    assert f"5 of {PEOPLE} letters, about 0 min left\n" in told
    assert f"{PEOPLE} of {PEOPLE} letters" not in told


class TestAgain:
    def test_an_interrupted_run_continues(self, files, done, tmp_path, monkeypatch, capsys):
        monkeypatch.setattr(command, "ROWS_AT_ONCE", 5)
        out, written = tmp_path / "out", command._write

        def _interrupted(answers, words, out, start, **how):
            if start == 5:
                raise KeyboardInterrupt
            written(answers, words, out, start, **how)

        monkeypatch.setattr(command, "_write", _interrupted)
        assert run(files, out) == 130
        assert "interrupted; run the same command to continue" in capsys.readouterr().err
        starts = []
        monkeypatch.setattr(
            command,
            "_write",
            lambda *given, **how: starts.append(given[-1]) or written(*given, **how),
        )
        assert run(files, out) == 0
        assert starts == [5, 10]
        assert f"out: continues after 5 of {PEOPLE} letters" in capsys.readouterr().out
        whole = {k: v for k, v in content(out).items() if not k.startswith("parts")}
        assert whole == {k: v for k, v in content(done).items() if not k.startswith("parts")}

    def test_a_folder_of_another_run_is_left_alone(self, files, done, capsys):
        before = content(done)
        assert run(files, done, "--language", "de") == 2
        assert "letters of another run, with another language" in capsys.readouterr().err
        assert content(done) == before

    def test_letters_that_were_moved_away_are_written_again(self, files, done, tmp_path):
        """The same run took them for written, and ended in a traceback."""
        out = tmp_path / "out"
        shutil.copytree(done, out)
        next((out / "letters").iterdir()).unlink()
        assert run(files, out) == 0
        assert content(out) == content(done)


class TestLabels:
    """A letter said "change employment_holes from 0 to 1": no label was given, none asked for."""

    def ask(self, files, out, schema, *more):
        command = ["letters", files / "people.csv", "--model", files / "model.joblib", "--trust"]
        command += ["--train", files / "train.csv", "--schema", schema, "--index", "case"]
        return main(list(map(str, [*command, "--out", out, *more])))

    def test_without_them_it_stops_with_the_lines_to_fill(self, files, tmp_path, capsys):
        assert self.ask(files, tmp_path / "out", files / "train.toml") == 2
        error = capsys.readouterr().err
        assert "these have no label" in error and "--unlabelled" in error
        for name in ("income", "loan", "years", "town"):
            assert f'[features."{name}"]\nlabel = "the {name}"\n' in error
        assert "case" not in error.partition("\n\n")[2]
        assert not (tmp_path / "out").exists()

    def test_its_guesses_can_be_accepted(self, files, tmp_path, capsys):
        text = (files / "train.toml").read_text(encoding="utf8")
        self.ask(files, tmp_path / "out", files / "train.toml")
        lines = capsys.readouterr().err.partition("\n\n")[2].strip().split("\n")
        for head, label in zip(lines[::2], lines[1::2], strict=True):
            name = head.removeprefix("[features.").strip('"]')
            bare, quoted = f"[features.{name}]\n", f"{head}\n"
            assert (bare in text) != (quoted in text)
            own = bare if bare in text else quoted
            text = text.replace(own, f"{own}{label}\n")
        (tmp_path / "own.toml").write_text(text, encoding="utf8")
        assert self.ask(files, tmp_path / "out", tmp_path / "own.toml") == 0
        letters = [path.read_text() for path in (tmp_path / "out" / "letters").iterdir()]
        assert any("the income from" in letter or "the loan from" in letter for letter in letters)

    @pytest.mark.parametrize(
        ("name", "values", "words"),
        [
            ("special_skills", [0, 1], "special skills"),
            ("hasGuarantor", ["no", "yes"], "has guarantor"),
            ("loan_amount", [10.0, 20.5, 31.0], "the loan amount"),
            ("homeownership", ["own", "rent"], "the homeownership"),
        ],
    )
    def test_a_guess_is_the_name_in_words(self, name, values, words):
        frame = pd.DataFrame({name: values * 20, "other": range(20 * len(values))})
        schema = Schema.infer(frame, immutable=["other"])
        assert [*map(guess, unlabelled(schema))] == [(name, words)]


class TestUntil:
    @pytest.mark.parametrize("stated", [False, True])
    def test_letters_without_a_way_say_until_when_to_ask_again(self, files, tmp_path, stated):
        schema, told = tmp_path / "own.toml", '\n[letters]\nuntil = "31 March"\n'
        text = (files / "train.toml").read_text(encoding="utf8")
        schema.write_text(text + told * stated, encoding="utf8")
        more = [] if stated else ["--until", "31 March"]
        assert run(files, tmp_path / "out", "--act-on", "years", *more, schema=schema) == 0
        letters = [path.read_text() for path in (tmp_path / "out" / "letters").iterdir()]
        none = [text for text in letters if "no way that we can recommend" in text]
        assert none
        assert all("\nYou can ask us again until 31 March.\n" in text for text in none)
        assert "".join(letters).count("31 March") == len(none)
        assert "31 March" not in (tmp_path / "out" / "actions.csv").read_text()


class TestSettings:
    def test_training_rows_without_a_schema_are_an_error(self, files, tmp_path, capsys):
        """The column of decisions was taken for a feature, and missed in the rows."""
        command = ["letters", files / "people.csv", "--model", files / "model.joblib", "--trust"]
        command += ["--train", files / "train.csv", "--out", tmp_path / "out"]
        assert main(list(map(str, command))) == 2
        assert "expected --train with training rows and --schema" in capsys.readouterr().err

    def test_the_schema_file_may_have_the_options(self, files, done, tmp_path):
        text = (files / "train.toml").read_text(encoding="utf8")
        table = '\n[letters]\nact_on = ["income", "loan"]\nindex = "case"\n'
        (files / "own.toml").write_text(text + table, encoding="utf8")
        command = ["letters", files / "people.csv", "--model", files / "model.joblib", "--trust"]
        command += ["--train", files / "train.csv", "--schema", files / "own.toml", "--unlabelled"]
        assert main(list(map(str, [*command, "--out", tmp_path / "out"]))) == 0
        assert content(tmp_path / "out")["actions.csv"] == content(done)["actions.csv"]

    def test_a_feature_in_the_place_of_a_list_and_a_number_for_a_text(
        self, files, tmp_path, capsys
    ):
        """The text was read letter by letter: "unknown features: 'i'"."""
        text = (files / "train.toml").read_text(encoding="utf8")
        for act_on, status in ('"income"', 2), ('["income"]', 0):
            own = f"{text}\n[letters]\nact_on = {act_on}\nwant = 1\nuntil = 2027-01-31\n"
            (files / "own.toml").write_text(own, encoding="utf8")
            assert run(files, tmp_path / "out", "--act-on", "", schema="own.toml") == status
        told = "own.toml: act_on must be a list of features, got 'income'"
        assert told in capsys.readouterr().err

    def test_a_saved_dear_needs_no_training_rows(self, files, done, tmp_path):
        train = pd.read_csv(files / "train.csv")
        model = joblib.load(files / "model.joblib")
        schema = Schema.from_toml(files / "train.toml", train)
        names = list(model.feature_names_in_)
        score = lambda rows: model.predict_proba(rows[names])  # noqa: E731
        dear = DEAR(score, schema, act_on=["income", "loan"]).fit(train)
        dear.save(tmp_path / "saved")
        command = ["letters", files / "people.csv", "--model", files / "model.joblib", "--trust"]
        command += ["--saved", tmp_path / "saved", "--index", "case", "--out", tmp_path / "out"]
        command += ["--unlabelled"]
        assert main(list(map(str, command))) == 0
        assert content(tmp_path / "out")["actions.csv"] == content(done)["actions.csv"]
        DEAR(score, schema, act_on=["income"]).fit(train).save(tmp_path / "saved")
        assert main(list(map(str, command))) == 2  # its answers would be mixed with the others

    def test_new_case_numbers_are_no_fault_beside_one_that_is(self, files, tmp_path, capsys):
        """Of a row with a fault, the file of training rows was quoted for its case, too."""
        people = pd.read_csv(files / "people.csv").head(2).assign(case=["B/1", "B/2"])
        people.loc[1, "loan"] = np.nan
        people.to_csv(files / "new.csv", index=False)
        assert run(files, tmp_path / "out", people="new.csv") == 1
        people.astype({"income": object}).assign(income="-").to_csv(files / "new.csv", index=False)
        assert run(files, tmp_path / "odd", people="new.csv") == 2
        told = capsys.readouterr()
        assert "'loan' has a missing value" in told.out
        assert "'income' must hold numbers" in told.err
        assert "A/0" not in told.out + told.err

    def test_a_row_that_cannot_be_read_is_told_by_the_status(self, files, tmp_path, capsys):
        people = pd.read_csv(files / "people.csv").head(3)
        people.loc[1, "loan"] = np.nan
        people.to_csv(files / "odd.csv", index=False)
        assert run(files, tmp_path / "out", people="odd.csv") == 1
        assert "1: column 'loan' has a missing value" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--index", "cases"], "did you mean 'case'"),
        (["--index", "town"], "another case in each row"),
        (["--index", "file"], "cases whose names of files differ, got ['0/1', '0_1']"),
        (["--act-on", "incme"], "did you mean 'income'"),
        (["--want", "yes"], "unknown classes: 'yes'"),
        (["--language", "fr"], "template must be"),
        (["--schema", "absent.toml"], "absent.toml: expected a TOML file"),
        (["--train", "absent.csv"], "--train absent.csv"),
    ],
)
def test_what_does_not_fit_is_an_error_before_anything_is_written(
    files, tmp_path, capsys, more, message
):
    people = pd.read_csv(files / "people.csv")
    names = ["0/1", "0_1", *map(str, range(2, PEOPLE))]
    people.assign(file=names).to_csv(files / "filed.csv", index=False)
    assert run(files, tmp_path / "out", *more, people="filed.csv") == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
