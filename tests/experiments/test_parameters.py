"""The parameters cell: what it may hold, which type each parameter has, and which values are refused."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.errors import DataError, WorkbenchError
from workbench.experiments import read_parameters
from workbench.experiments.parameters import parse


def only(source: str) -> Any:
    (parameter,) = parse(source)
    return parameter


REFUSED = object()


@pytest.mark.parametrize(
    ("source", "text", "value"),
    [
        # the type is the annotation's, or else the default's
        ("a = 500",                           "250",      250),
        ("a = 500",                           "250.5",    REFUSED),
        ("a = 500",                           "true",     REFUSED),
        ("a = 0.5",                           "2",        2.0),
        ("a: float = 500",                    "250.5",    250.5),
        ("a: float = 500",                    "1e3",      1000.0),
        ("a: float = 500",                    "nan",      REFUSED),
        ("a: float = 500",                    "far",      REFUSED),
        ("a = True",                          "false",    False),
        ("a = True",                          "0",        False),
        ("a = True",                          "maybe",    REFUSED),
        ("a = 'local'",                       "spark",    "spark"),
        ("a = 'local'",                       "5",        "5"),
        ("a = 'local'",                       "",         ""),
        ("a: str | None = None",              "none",     None),
        ("a: str | None = None",              "x",        "x"),
        ("a: Optional[int] = None",           "7",        7),
        ("a: int | str = 1",                  "7",        7),
        ("a: int | str = 1",                  "x",        "x"),
        ("a: Literal['local', 'spark'] = 'local'", "spark", "spark"),
        ("a: Literal['local', 'spark'] = 'local'", "sparc", REFUSED),
        ("a: Literal[1, 2] = 1",              "2",        2),
        ("a: list[float] = [1, 2]",           "[3, 4.5]", [3.0, 4.5]),
        ("a: list[float] = [1, 2]",           "[3, x]",   REFUSED),
        ("a: list[float] = [1, 2]",           "3",        REFUSED),
        ("a = [1]",                           "[x, 2]",   ["x", 2]),
        ("a: dict[str, int] = {}",            "{x: 1}",   {"x": 1}),
        ("a: dict[str, int] = {}",            "{1: 1}",   REFUSED),
        ("a: 'float' = 1",                    "2",        2.0),
    ],
)  # fmt: skip
def test_a_text_of_the_command_line_has_the_parameters_type_or_is_refused(source: str, text: str, value: Any) -> None:
    parameter = only(source)
    if value is REFUSED:
        with pytest.raises(WorkbenchError, match="parameter 'a' is "):
            parameter.read(text)
    else:
        assert repr(parameter.read(text)) == repr(value)


@pytest.mark.parametrize(
    ("source", "value"),
    [("a = 1", 1.0), ("a = 1", True), ("a = 1.0", "1"), ("a = 1.0", float("inf")), ("a = 'x'", 1), ("a = True", 1)],
)
def test_a_value_of_another_type_is_refused(source: str, value: Any) -> None:
    with pytest.raises(WorkbenchError, match="parameter 'a' is "):
        only(source).fit(value)


def test_a_whole_number_is_a_float_where_a_float_is_meant() -> None:
    assert repr(only("a: float = 500").default) == "500.0"
    assert repr(only("a: float = 500").fit(7)) == "7.0"


@pytest.mark.parametrize(
    ("source", "description"),
    [
        ("a = 1", ""),
        ("a = 1  # metres", "metres"),
        ("# metres\n# around a station\na = 1", "metres around a station"),
        ("# about all of them\n\na = 1", ""),
        ("b = 0  # of b\na = 1", ""),
        ("a = [  # the first\n  1,  # the second\n]", "the first the second"),
        ("a = '# no comment'", ""),
    ],
)
def test_comments_describe_a_parameter(source: str, description: str) -> None:
    assert parse(source)[-1].description == description


def test_imports_and_texts_in_the_cell_are_no_parameters() -> None:
    assert [p.name for p in parse('"""What can be set."""\nfrom typing import Literal\na = 1')] == ["a"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("a = 1\nb = 2 * a", "'b' is computed"),
        ("a, b = 1, 2", "write each as"),
        ("a = 1\na = 2", "set twice"),
        ("a = None", "annotate it"),
        ("a = (1, 2)", "annotate it"),
        ("a: int = 'x'", "parameter 'a' is int"),
        ("a: np.ndarray = 1", "no type of a parameter"),
        ("a: int", "write each as"),
        ("print(1)", "write each as"),
        ("%matplotlib inline", "no magics"),
    ],
)
def test_a_cell_with_more_than_plain_values_is_refused(source: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        parse(source)


def test_all_faults_of_a_cell_come_at_once() -> None:
    with pytest.raises(DataError, match="2 faults"):
        parse("a = 1\nb = a\nc = None")


def test_a_notebook_has_exactly_one_cell_of_parameters(write) -> None:
    with pytest.raises(DataError, match="no cells tagged 'parameters'"):
        read_parameters(write(None, "1"))
    path = write("a = 1", name="one.ipynb")
    assert list(read_parameters(path)) == ["a"]
    path.write_text(path.read_text().replace('"metadata": {}', '"metadata": {"tags": ["parameters"]}', 1))
    with pytest.raises(DataError, match="2 cells tagged 'parameters'"):
        read_parameters(path)


def test_what_is_no_notebook_is_refused(tmp_path) -> None:
    with pytest.raises(DataError, match="there is no notebook"):
        read_parameters(tmp_path / "none.ipynb")
    (tmp_path / "text.ipynb").write_text("hello")
    with pytest.raises(DataError, match="not a notebook"):
        read_parameters(tmp_path / "text.ipynb")
