"""A sweep: a notebook, fixed parameters, and the values of the others; it denotes one run for each combination.

``experiments/<name>/config.toml`` describes one:

    question = "How do radius and sampling interval change what a driver hears?"
    notebook = "../../notebooks/2-services/fuel.ipynb"   # seen from the file
    seed = 1                                             # optional; the notebook's parameter `seed`
    repetitions = 3                                      # optional; seeds 1, 2, 3

    [parameters]
    cars = 50

    [sweep]
    radius_m = [250, 500, 1000]
    interval_s = [10, 60]

Repetitions are nothing but a sweep over the parameter ``seed``.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.errors import DataError, WorkbenchError, did_you_mean, raise_all
from workbench.experiments.parameters import Parameter, known, parameters_of, read_notebook, read_yaml

_KEYS = {"question": str, "notebook": str, "seed": int, "repetitions": int, "parameters": dict, "sweep": dict}
_LONGEST_NAME = 120


@dataclass(frozen=True)
class Run:
    """One run of a sweep: the parameters it is given, and the name of its folder."""

    given: dict[str, Any]

    @property
    def name(self) -> str:
        """The parameters, as a file name; a digest follows where the name alone could stand for others too.

        >>> Run({"radius_m": 500.0, "engine": "local"}).name, Run({}).name
        ('radius_m=500,engine=local', 'defaults')
        >>> Run({"fixes": "data/city"}).name
        'fixes=data-city-a686dfc9'
        """
        plain = ",".join(f"{name}={_short(value)}" for name, value in self.given.items())
        safe = re.sub(r"[^\w.,=+-]+", "-", plain, flags=re.ASCII)
        if safe == plain and len(safe) <= _LONGEST_NAME and not any(map(_misleading, self.given.values())):
            return safe or "defaults"
        return f"{safe[:_LONGEST_NAME]}-{digest(self.given)[:8]}"


def _misleading(value: Any) -> bool:
    """A text that reads like several parameters, or like a value that is no text."""
    return isinstance(value, str) and (value in ("", "null", "true", "false") or "," in value or "=" in value)


def _short(value: Any) -> str:
    if isinstance(value, bool | None):
        return json.dumps(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def digest(*parts: Any) -> str:
    """A checksum of plain values, the same whatever the order of their keys."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Sweep:
    """A notebook as it was read, and the values its parameters are given; every value has its parameter's type."""

    path: Path
    notebook: Any = field(repr=False)
    declared: dict[str, Parameter] = field(repr=False)
    fixed: dict[str, Any]
    swept: dict[str, list[Any]]
    question: str = ""

    def runs(self) -> list[Run]:
        """A run for each combination of swept values; the last parameter changes fastest."""
        combinations = itertools.product(*self.swept.values())
        return [Run(self.fixed | dict(zip(self.swept, values))) for values in combinations]

    def parameters(self, run: Run) -> dict[str, Any]:
        """Every parameter of the notebook as it is in this run, defaults included."""
        return {name: run.given.get(name, parameter.default) for name, parameter in self.declared.items()}


@dataclass(frozen=True)
class _Setting:
    """One parameter with the values it is given, as values or as the texts of a command line."""

    name: str
    values: list[Any]
    swept: bool = False
    texts: bool = False

    def checked(self, declared: Mapping[str, Parameter], notebook: str) -> list[Any]:
        parameter = known(self.name, declared, notebook)
        values = [parameter.read(value) if self.texts else parameter.fit(value) for value in self.values]
        if not values:
            raise WorkbenchError(f"parameter {self.name!r} is swept over no value; give at least one")
        if len({digest(value) for value in values}) < len(values):
            raise WorkbenchError(f"parameter {self.name!r} is swept over one value twice: {self.values}")
        return values


def load_sweep(
    source: str | Path,
    parameters: Mapping[str, Any] | None = None,
    sweep: Mapping[str, Sequence[Any]] | None = None,
    *,
    file: str | Path | None = None,
    texts: Sequence[str] = (),
    sweep_texts: Sequence[str] = (),
) -> Sweep:
    """A sweep from a notebook or a ``config.toml``, and what is given besides; what is given later wins.

    ``file`` is a YAML file of parameters; ``texts`` are ``name=value`` and ``sweep_texts`` ``name=v1,v2,...``, as on
    the command line (values with commas: ``name=[a, b]``). Unknown names and wrong types are refused, all at once.
    """
    config: dict[str, Any] = _config(Path(source)) if Path(source).suffix == ".toml" else {"notebook": source}
    path = Path(config["notebook"])
    notebook = read_notebook(path)
    declared = parameters_of(notebook, path.name)
    settings = [
        *_fixed(config.get("parameters", {})),
        *_swept(config.get("sweep", {})),
        *_repetitions(config, declared),
        *_fixed(_yaml(Path(file)) if file else {}),
        *_fixed(parameters or {}),
        *_swept(sweep or {}),
        *_texts(texts, sweep_texts),
    ]
    fixed: dict[str, Any] = {}
    swept: dict[str, list[Any]] = {}
    faults = []
    for setting in settings:
        fixed.pop(setting.name, None)
        swept.pop(setting.name, None)
        try:
            values = setting.checked(declared, path.name)
        except WorkbenchError as error:
            faults.append(str(error))
            continue
        if setting.swept:
            swept[setting.name] = values
        else:
            fixed[setting.name] = values[0]
    raise_all(faults, WorkbenchError)
    return Sweep(path, notebook, declared, fixed, swept, config.get("question", ""))


def _fixed(values: Mapping[str, Any]) -> list[_Setting]:
    return [_Setting(name, [value]) for name, value in values.items()]


def _swept(values: Mapping[str, Sequence[Any]]) -> list[_Setting]:
    return [_Setting(name, list(several), swept=True) for name, several in values.items()]


def _repetitions(config: Mapping[str, Any], declared: Mapping[str, Parameter]) -> list[_Setting]:
    count = config.get("repetitions", 1)
    if count == 1:
        return _fixed({"seed": config["seed"]} if "seed" in config else {})
    first = config.get("seed", declared["seed"].default if "seed" in declared else 1)
    return _swept({"seed": range(first, first + count)})


def _texts(singles: Sequence[str], lists: Sequence[str]) -> list[_Setting]:
    settings = []
    for option, text in [*(("-p", text) for text in singles), *(("--sweep", text) for text in lists)]:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise WorkbenchError(f"{option} {text!r} is not name=value")
        if option == "-p":
            settings.append(_Setting(name, [value], texts=True))
        elif value.startswith("["):
            settings.append(_Setting(name, _flow_list(value), swept=True))
        else:
            settings.append(_Setting(name, [part.strip() for part in value.split(",")], swept=True, texts=True))
    names = [setting.name for setting in settings]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    raise_all([f"parameter {name!r} is given twice; give it once" for name in twice], WorkbenchError)
    return settings


def _flow_list(text: str) -> list[Any]:
    try:
        return list(read_yaml(text))
    except (ValueError, TypeError) as error:
        raise WorkbenchError(f"--sweep ...={text!r} is no list: {error}") from None


def _yaml(path: Path) -> dict[str, Any]:
    try:
        values = read_yaml(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"parameters {str(path)!r} cannot be read: {error}") from None
    if not isinstance(values, dict):
        raise DataError(f"parameters {str(path)!r} must hold lines 'name: value'")
    return {str(name): value for name, value in values.items()}


def _config(path: Path) -> dict[str, Any]:
    """What a ``config.toml`` says, its notebook found; every fault of the file in one error."""
    try:
        config = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"experiment {str(path)!r} cannot be read: {error}") from None
    faults = [f"{key!r} is unknown; {did_you_mean(key, _KEYS)}" for key in config if key not in _KEYS]
    faults += [
        f"{key} is {config[key]!r}, expected {kind.__name__}"
        for key, kind in _KEYS.items()
        if key in config and type(config[key]) is not kind
    ]
    if "notebook" not in config:
        faults.append("notebook is missing; name the notebook to run, seen from this file")
    if type(count := config.get("repetitions", 1)) is int and count < 1:
        faults.append(f"repetitions is {count}, expected 1 or more")
    swept = config.get("sweep", {})
    for name, values in swept.items() if isinstance(swept, dict) else ():
        if not isinstance(values, list):
            faults.append(f"sweep.{name} is {values!r}, expected a list of values")
    raise_all([f"experiment {str(path)!r}: {fault}" for fault in faults], DataError)
    return config | {"notebook": path.parent / config["notebook"]}
