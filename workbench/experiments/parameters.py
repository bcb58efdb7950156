"""The parameters of a notebook: names, types, defaults and what they mean.

They stand in the one cell tagged ``parameters``, each on its own line, as ``name: type = value  # what it means``. The
type is the annotation's, or else the default's; the description is the comment on the line, or else the lines of
comment right above. The cell is parsed, never executed, so it holds plain values only: what is computed from a
parameter would keep the default's value when the parameter is set, and belongs into a later cell.

Types are ``bool``, ``int``, ``float``, ``str``, ``list``, ``dict``, ``list[...]``, ``dict[str, ...]``,
``Literal[...]``, ``None`` and unions of them. A whole number is a ``float`` too; a truth value is no number.
"""

from __future__ import annotations

import ast
import io
import math
import tokenize
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.errors import DataError, WorkbenchError, did_you_mean, raise_all

TAG = "parameters"
_PLAIN: dict[str, Any] = {kind.__name__: kind for kind in (bool, int, float, str, list, dict)} | {"None": type(None)}
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True)
class Type:
    """A type that a parameter can have; ``args`` are the members of a union, list or dict, or a Literal's values."""

    name: str
    args: tuple[Any, ...] = ()

    def __str__(self) -> str:
        if self.name == "|":
            return " | ".join(map(str, self.args))
        if self.name == "Literal":
            return f"one of {', '.join(map(repr, self.args))}"
        inner = ", ".join(["str"] * (self.name == "dict") + [str(arg) for arg in self.args])
        return f"{self.name}[{inner}]" if self.args else self.name

    def fit(self, value: Any) -> Any:
        """The value as this type has it; ValueError where it is of another.

        >>> Type("float").fit(5), Type("list", (Type("int"),)).fit([1, 2])
        (5.0, [1, 2])
        >>> Type("int").fit(True)
        Traceback (most recent call last):
        ValueError
        """
        if self.name == "|":
            return _first(self.args, lambda kind: kind.fit(value), exact=lambda kind: type(value).__name__ == kind.name)
        if self.name == "Literal":
            return _first(self.args, lambda choice: _same(choice, value))
        if self.name == "float" and type(value) is int:
            value = float(value)
        if type(value) is not _PLAIN[self.name] or (self.name == "float" and not math.isfinite(value)):
            raise ValueError
        if self.name == "list" and self.args:
            return [self.args[0].fit(item) for item in value]
        if self.name == "dict" and self.args:
            return {_same(str(key), key): self.args[0].fit(item) for key, item in value.items()}
        return value

    def read(self, text: str) -> Any:
        """The value that a text on the command line stands for; ValueError where it stands for none.

        >>> Type("float").read("2.5"), Type("bool").read("true"), Type("list").read("[1, a]")
        (2.5, True, [1, 'a'])
        """
        if self.name == "|":
            return _first(self.args, lambda kind: kind.read(text), exact=lambda kind: kind.name == "None")
        if self.name == "Literal":
            return _first(self.args, lambda choice: _same(choice, _literal_like(choice, text)))
        if self.name == "str":
            return text
        if self.name == "bool":
            return self.fit(_TRUTH.get(text.lower()))
        if self.name == "None":
            return self.fit(None if text.lower() in ("none", "null") else text)
        if self.name in ("int", "float"):
            return self.fit(_PLAIN[self.name](text))
        return self.fit(read_yaml(text))


def _first(options: Iterable[Any], attempt: Any, exact: Any = None) -> Any:
    """What the first option makes of it that makes anything; an exact one is asked before the others."""
    for option in sorted(options, key=lambda option: not exact(option)) if exact else options:
        try:
            return attempt(option)
        except ValueError:
            continue
    raise ValueError


def _same(expected: Any, value: Any) -> Any:
    if type(value) is not type(expected) or value != expected:
        raise ValueError
    return value


def _literal_like(choice: Any, text: str) -> Any:
    return Type(type(choice).__name__).read(text) if type(choice).__name__ in _PLAIN else text


def read_yaml(text: str) -> Any:
    """What a YAML text stands for; ValueError where it is none."""
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


@dataclass(frozen=True)
class Parameter:
    """One parameter of a notebook."""

    name: str
    type: Type
    default: Any
    description: str = ""

    def fit(self, value: Any) -> Any:
        """The value as the notebook gets it; a `WorkbenchError` where it is of the wrong type."""
        try:
            return self.type.fit(value)
        except ValueError:
            raise self._refusal(value) from None

    def read(self, text: str) -> Any:
        """The value that a text on the command line stands for.

        >>> Parameter("radius_m", Type("int"), 500).read("5oo")
        Traceback (most recent call last):
        workbench.errors.WorkbenchError: parameter 'radius_m' is int (default 500), and '5oo' is not
        """
        try:
            return self.type.read(text)
        except ValueError:
            raise self._refusal(text) from None

    def _refusal(self, value: Any) -> WorkbenchError:
        expected = f"parameter {self.name!r} is {self.type} (default {self.default!r})"
        return WorkbenchError(f"{expected}, and {value!r} is not")

    def __str__(self) -> str:
        return f"{self.name}: {self.type} = {self.default!r}" + (f"  # {self.description}" * bool(self.description))


def read_notebook(path: Path) -> Any:
    """A notebook as nbformat has it, in version 4."""
    import nbformat

    if not path.is_file():
        raise DataError(f"there is no notebook {str(path)!r}")
    try:
        return nbformat.read(path, as_version=4)
    except Exception as error:  # noqa: BLE001 nbformat raises whatever its parts raise
        raise DataError(f"{str(path)!r} is not a notebook that can be read: {error}") from None


def read_parameters(path: str | Path) -> dict[str, Parameter]:
    """The parameters of the notebook at ``path``, by name, in the order of their cell."""
    return parameters_of(read_notebook(Path(path)), str(path))


def parameters_of(notebook: Any, name: str) -> dict[str, Parameter]:
    """The parameters that the one tagged cell of a notebook declares."""
    cells = [cell for cell in notebook.cells if TAG in cell.metadata.get("tags", [])]
    if len(cells) != 1:
        raise DataError(f"notebook {name!r} has {len(cells) or 'no'} cells tagged {TAG!r}; give exactly one that tag")
    return {parameter.name: parameter for parameter in parse(cells[0].source, name)}


def parse(source: str, where: str = "notebook") -> list[Parameter]:
    """The parameters that the source of a cell declares; every fault of the cell in one error.

    >>> for parameter in parse("radius_m: float = 500  # metres around a station\\nseed = 1"):
    ...     print(parameter)
    radius_m: float = 500.0  # metres around a station
    seed: int = 1
    """
    try:
        statements = ast.parse(source).body
    except SyntaxError as error:
        fault = f"line {error.lineno} of the {TAG} cell of {where!r} is no Python: {error.msg}"
        raise DataError(f"{fault}; it may hold no magics") from None
    comments, faults, found = _comments(source), [], {}
    for statement in statements:
        if _says_nothing(statement):
            continue
        try:
            parameter = _parameter(statement, comments)
            if parameter.name in found:
                raise ValueError(f"{parameter.name!r} is set twice")
            found[parameter.name] = parameter
        except (ValueError, WorkbenchError) as error:
            faults.append(f"line {statement.lineno} of the {TAG} cell of {where!r}: {error}")
    raise_all(faults, DataError)
    return list(found.values())


def _says_nothing(statement: ast.stmt) -> bool:
    """Imports (annotations may need them) and texts in the place of a docstring."""
    text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return text or isinstance(statement, ast.Import | ast.ImportFrom)


def _parameter(statement: ast.stmt, comments: Mapping[int, tuple[str, bool]]) -> Parameter:
    kind: Type | None = None
    match statement:
        case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=ast.expr() as value):
            kind = _annotated(annotation)
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            pass
        case _:
            form = "name: type = value  # meaning"
            raise ValueError(f"{ast.unparse(statement)!r} is no parameter; write each as {form!r}")
    try:
        default = ast.literal_eval(value)
    except ValueError:
        raise ValueError(f"{name!r} is computed ({ast.unparse(value)}); compute it in a later cell") from None
    if kind is None:
        kind = _inferred(name, default)
    description = _description(statement, comments)
    return Parameter(name, kind, Parameter(name, kind, default).fit(default), description)


def _inferred(name: str, default: Any) -> Type:
    kind = type(default).__name__
    if default is None or kind not in _PLAIN:
        raise ValueError(f"{name!r} is {default!r}, which does not say its type; annotate it, as '{name}: str | None'")
    return Type(kind)


def _annotated(node: ast.expr) -> Type:
    match node:
        case ast.Constant(value=None):
            return Type("None")
        case ast.Constant(value=str() as text):
            return _annotated(ast.parse(text, mode="eval").body)
        case ast.Name(id=name) if name in _PLAIN:
            return Type(name)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            members = [part for side in (left, right) for part in _members(_annotated(side))]
            return Type("|", tuple(members))
        case ast.Subscript(value=ast.Name(id="Literal") | ast.Attribute(attr="Literal"), slice=inner):
            choices = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            return Type("Literal", tuple(ast.literal_eval(choice) for choice in choices))
        case ast.Subscript(value=ast.Name(id="Optional") | ast.Attribute(attr="Optional"), slice=inner):
            return Type("|", (*_members(_annotated(inner)), Type("None")))
        case ast.Subscript(value=ast.Name(id="list"), slice=inner):
            return Type("list", (_annotated(inner),))
        case ast.Subscript(value=ast.Name(id="dict"), slice=ast.Tuple(elts=[ast.Name(id="str"), inner])):
            return Type("dict", (_annotated(inner),))
    raise ValueError(
        f"{ast.unparse(node)!r} is no type of a parameter; there are bool, int, float, str, list[...], dict[str, ...], "
        "Literal[...] and '... | None'"
    )


def _members(kind: Type) -> tuple[Type, ...]:
    return kind.args if kind.name == "|" else (kind,)


def _comments(source: str) -> dict[int, tuple[str, bool]]:
    """The comment on each line, and whether it has the line for itself."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {
        token.start[0]: (token.string.lstrip("#").strip(), not token.line[: token.start[1]].strip())
        for token in tokens
        if token.type == tokenize.COMMENT
    }


def _description(statement: ast.stmt, comments: Mapping[int, tuple[str, bool]]) -> str:
    lines = range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
    beside = [comments[line][0] for line in lines if line in comments]
    if beside:
        return " ".join(beside)
    first = statement.lineno
    while comments.get(first - 1, ("", False))[1]:
        first -= 1
    return " ".join(comments[line][0] for line in range(first, statement.lineno))


def known(name: str, parameters: Mapping[str, Parameter], notebook: str) -> Parameter:
    """The parameter of that name.

    >>> known("radus_m", {"radius_m": Parameter("radius_m", Type("int"), 500)}, "fuel.ipynb")
    Traceback (most recent call last):
    workbench.errors.WorkbenchError: notebook 'fuel.ipynb' has no parameter 'radus_m'; did you mean 'radius_m'?
    """
    if name not in parameters:
        raise WorkbenchError(f"notebook {notebook!r} has no parameter {name!r}; {did_you_mean(name, parameters)}")
    return parameters[name]
