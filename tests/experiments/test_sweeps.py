"""Sweeps: which runs they denote, how runs are called, what wins, and what is refused before anything runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import DataError, WorkbenchError
from workbench.experiments import Run, load_sweep

PARAMETERS = "radius_m: float = 500\nengine: str = 'local'\nseed = 1\nparts: list[int] = [1]"


def names(sweep) -> list[str]:
    return [run.name for run in sweep.runs()]


def test_a_sweep_denotes_every_combination(write) -> None:
    sweep = load_sweep(write(PARAMETERS), texts=["engine=spark"], sweep_texts=["radius_m=250,500", "seed=1,2"])
    assert names(sweep) == [
        "engine=spark,radius_m=250,seed=1",
        "engine=spark,radius_m=250,seed=2",
        "engine=spark,radius_m=500,seed=1",
        "engine=spark,radius_m=500,seed=2",
    ]
    assert sweep.parameters(sweep.runs()[0]) == {"radius_m": 250.0, "engine": "spark", "seed": 1, "parts": [1]}


def test_without_parameters_there_is_one_run_with_the_defaults(write) -> None:
    sweep = load_sweep(write(PARAMETERS))
    assert names(sweep) == ["defaults"]
    assert sweep.runs()[0].given == {}


def test_values_with_commas_are_swept_as_a_list(write) -> None:
    sweep = load_sweep(write(PARAMETERS), sweep_texts=["parts=[[1, 2], [3]]", 'engine=["a,b", c]'])
    assert sweep.swept == {"parts": [[1, 2], [3]], "engine": ["a,b", "c"]}


def test_the_command_line_wins_over_the_file_and_the_file_over_the_notebook(write, tmp_path) -> None:
    (tmp_path / "p.yaml").write_text("radius_m: 250\nengine: spark\n")
    sweep = load_sweep(write(PARAMETERS), file=tmp_path / "p.yaml", texts=["engine=reference"])
    assert sweep.parameters(sweep.runs()[0])["radius_m"] == 250.0
    assert sweep.parameters(sweep.runs()[0])["engine"] == "reference"


@pytest.mark.parametrize(
    ("texts", "sweep_texts", "message"),
    [
        (["radus_m=1"], [], "no parameter 'radus_m'; did you mean 'radius_m'"),
        ([], ["sed=1,2"], "no parameter 'sed'; did you mean 'seed'"),
        (["radius_m=far"], [], "'radius_m' is float"),
        ([], ["seed=1,2.5"], "'seed' is int"),
        (["seed"], [], "is not name=value"),
        (["seed=1", "seed=2"], [], "'seed' is given twice"),
        (["seed=1"], ["seed=1,2"], "'seed' is given twice"),
        ([], ["radius_m=1,1.0"], "one value twice"),
        ([], ["seed=[]"], "no value"),
        ([], ["seed=[1"], "is no list"),
        (["radus_m=1", "seed=x"], [], "2 faults"),
    ],
)
def test_wrong_parameters_are_refused(write, texts, sweep_texts, message) -> None:
    with pytest.raises(WorkbenchError, match=message):
        load_sweep(write(PARAMETERS), texts=texts, sweep_texts=sweep_texts)


@pytest.mark.parametrize(
    ("text", "message"),
    [("radus_m: 1", "did you mean 'radius_m'"), ("seed: '1'", "'seed' is int"), ("- 1", "name: value"), ("{", "read")],
)
def test_a_wrong_file_of_parameters_is_refused(write, tmp_path, text, message) -> None:
    (tmp_path / "p.yaml").write_text(text)
    with pytest.raises(WorkbenchError, match=message):
        load_sweep(write(PARAMETERS), file=tmp_path / "p.yaml")


def test_an_experiment_names_its_notebook_from_its_own_folder(write, tmp_path, monkeypatch) -> None:
    write(PARAMETERS, name="notebooks/fuel.ipynb")
    config = tmp_path / "experiments" / "fuel" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(
        'question = "Which radius?"\nnotebook = "../../notebooks/fuel.ipynb"\nseed = 5\nrepetitions = 2\n'
        '[parameters]\nengine = "spark"\n[sweep]\nradius_m = [250, 500]\n'
    )
    monkeypatch.chdir(config.parent)
    sweep = load_sweep(config)
    assert sweep.question == "Which radius?"
    assert sweep.fixed == {"engine": "spark"}
    assert sweep.swept == {"radius_m": [250.0, 500.0], "seed": [5, 6]}
    assert load_sweep(config, texts=["seed=9"]).swept == {"radius_m": [250.0, 500.0]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('notebok = "tiny.ipynb"', "did you mean 'notebook'"),
        ("seed = 1", "notebook is missing"),
        ('notebook = "none.ipynb"', "there is no notebook"),
        ('notebook = "tiny.ipynb"\nrepetitions = 0', "1 or more"),
        ('notebook = "tiny.ipynb"\nseed = "x"', "expected int"),
        ('notebook = "tiny.ipynb"\n[sweep]\nradius_m = 1', "expected a list"),
        ('notebook = "tiny.ipynb"\n[sweep]\nradus_m = [1]', "did you mean 'radius_m'"),
        ("notebook =", "cannot be read"),
    ],
)
def test_a_wrong_experiment_is_refused(write, tmp_path, text, message) -> None:
    write(PARAMETERS)
    (tmp_path / "config.toml").write_text(text)
    with pytest.raises(DataError if "radius_m'" not in message else WorkbenchError, match=message):
        load_sweep(tmp_path / "config.toml")


def test_repetitions_need_a_seed(write, tmp_path) -> None:
    write("a = 1")
    (tmp_path / "config.toml").write_text('notebook = "tiny.ipynb"\nrepetitions = 3')
    with pytest.raises(WorkbenchError, match="no parameter 'seed'"):
        load_sweep(tmp_path / "config.toml")


texts = st.text() | st.sampled_from(["null", "a,b=1", "1", ""]) | st.none()
lists = st.lists(st.text())
kinds = {"a": texts, "b": st.integers(), "c": st.floats(allow_nan=False, allow_infinity=False), "d": lists}
runs = st.fixed_dictionaries({}, optional=kinds).map(Run)


@given(runs, runs)
def test_runs_have_one_name_only_where_they_are_one_and_every_name_is_a_folder(one: Run, other: Run) -> None:
    for run in (one, other):
        assert "/" not in run.name and "\0" not in run.name and not run.name.startswith(".")
        assert 0 < len(run.name.encode()) < 256
    assert (one.name == other.name) == (one.given == other.given)
