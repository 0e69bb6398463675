"""The runner: cells are measured once, tables are made of what is stored; the arguments."""

from argparse import Namespace
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dear_plugin.benchmark import runner
from dear_plugin.benchmark.__main__ import SPECS, main
from dear_plugin.benchmark.runner import Option, Spec, grid, run


@pytest.fixture
def calls():
    return []


@pytest.fixture
def spec(calls):
    def measure(folder, *, name, rows):
        calls.append(name)
        return pd.DataFrame({"value": np.arange(rows) / 3.0, "text": ["", *["b"] * (rows - 1)]})

    def tables(found):
        yield "means", [{"mean": found["value"].mean()}]
        yield "nothing", []

    names = Option(("a", "b"), ("a",), "names", ("a", "b"))
    axes = {"names": names, "rows": Option(3, 2, "rows")}
    return Spec("toy", "a toy", axes, cells_of, measure, tables, ("numpy",))


def cells_of(options):
    return grid(name=options.names, rows=[options.rows])


@pytest.fixture
def options(tmp_path):
    return Namespace(names=["a", "b"], rows=3, store=tmp_path, out=tmp_path / "out")


class TestStored:
    def test_a_cell_is_measured_once(self, spec, calls, options):
        first = list(run(spec, options))
        assert list(run(spec, options)) == first
        assert calls == ["a", "b"]

    def test_another_setting_is_another_cell(self, spec, calls, options):
        list(run(spec, options))
        list(run(spec, Namespace(**{**vars(options), "rows": 2})))
        assert calls == ["a", "b", "a", "b"]

    def test_other_sources_are_measured_again(self, spec, calls, options, monkeypatch):
        list(run(spec, options))
        monkeypatch.setattr(runner, "sources", lambda: "others")
        list(run(spec, options))
        assert calls == ["a", "b", "a", "b"]

    def test_an_interrupted_run_goes_on(self, spec, calls, options):
        def stopped(folder, *, name, rows):
            if name == "b":
                raise KeyboardInterrupt
            return spec.measure(folder, name=name, rows=rows)

        with pytest.raises(KeyboardInterrupt):
            list(run(replace(spec, measure=stopped), options))
        list(run(spec, options))
        assert calls == ["a", "b"]

    def test_a_change_of_a_table_is_no_other_source(self, tmp_path, monkeypatch):
        monkeypatch.setattr(runner, "PACKAGES", ("own",))
        monkeypatch.syspath_prepend(str(tmp_path))
        folder = tmp_path / "own"
        folder.mkdir()
        digests = []
        for name in ("__init__", "measure", "own_tables", "measure"):
            with (folder / f"{name}.py").open("a") as file:
                file.write("# more\n")
            digests.append(runner.sources.__wrapped__())
        assert digests[1] == digests[2]
        assert len(set(digests)) == 3


def test_tables_are_written_with_the_versions(spec, options):
    means, nothing = run(spec, options)
    assert "| 0.333 |" in means and f"numpy {np.__version__}" in means
    assert (options.out / "toy" / "means.md").read_text() == means.partition("\n\n")[2]
    assert nothing == "nothing: no rows\n"


class TestArguments:
    @pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
    def test_presets_are_choices_and_make_cells(self, spec):
        usual, quick = (
            Namespace(**{n: getattr(o, preset) for n, o in spec.options.items()})
            for preset in ("usual", "quick")
        )
        for name, option in spec.options.items():
            if option.choices:
                for value in (vars(usual)[name], vars(quick)[name]):
                    chosen = [value] if isinstance(value, str) else value
                    assert set(chosen) <= set(option.choices)
        cells = [dict(cell) for cell in spec.cells(usual)]
        assert len({str(cell) for cell in cells}) == len(cells)
        assert 0 < len(list(spec.cells(quick))) < len(cells)

    def test_the_tables_of_some_commands(self, monkeypatch, capsys, tmp_path):
        monkeypatch.setattr("dear_plugin.benchmark.__main__.run", lambda spec, _: [spec.name])
        monkeypatch.setattr(
            "dear_plugin.benchmark.__main__.log", lambda spec, _: {"command": spec.name}
        )
        assert main(["tables", "--only", "trees", "speed", "--out", str(tmp_path)]) == 0
        assert capsys.readouterr().out.startswith("speed\ntrees\nlog\n")
        assert "| speed |" in (tmp_path / "log.md").read_text()

    def test_an_error_is_a_line_and_a_status(self, tmp_path, capsys, monkeypatch):
        monkeypatch.setenv("DEAR_DATA_HOME", str(tmp_path))
        arguments = ["--data", "gmc", "--models", "RandomForest", "--store", str(tmp_path)]
        assert main(["trees", *arguments]) == 2
        assert "dear-plugin: " in capsys.readouterr().err
