"""Check that the diagram at the top of errors.py is the real tree, and that every error class survives pickling."""

from __future__ import annotations

import importlib
import pickle
import re

from holdfast import errors
from holdfast.errors import HoldfastError
from tests.tidy.source_tree import modules


def _subclasses(cls: type[HoldfastError]) -> list[type[HoldfastError]]:
    """Yield the direct subclasses in the project's own modules; tests may define others."""
    return [sub for sub in cls.__subclasses__() if sub.__module__.split(".")[0] == "holdfast"]


def _tree(cls: type[HoldfastError]) -> list[type[HoldfastError]]:
    return [cls, *(below for sub in _subclasses(cls) for below in _tree(sub))]


def _draw(cls: type[HoldfastError], indent: str = "") -> list[str]:
    lines = []
    subclasses = _subclasses(cls)
    for sub in subclasses:
        last = sub is subclasses[-1]
        others = [base.__name__ for base in sub.__bases__ if base is not cls]
        name = f"{sub.__name__}({', '.join(others)})" if others else sub.__name__
        lines.append(f"{indent}{'└── ' if last else '├── '}{name}")
        lines += _draw(sub, indent + ("    " if last else "│   "))
    return lines


def _import_everything() -> None:
    for module in modules():
        importlib.import_module(module.name)


def test_the_picture_is_the_tree() -> None:
    _import_everything()
    picture = [line.removeprefix("    ") for line in (errors.__doc__ or "").splitlines() if "──" in line]
    drawn = [re.split(r"(?<=[\w)])\s{2,}", line, maxsplit=1) for line in picture]
    assert [line[0] for line in drawn] == _draw(HoldfastError)
    assert [line for line in drawn if len(line) < 2] == [], "each line says what the caller does next"


def test_errors_live_in_one_module() -> None:
    _import_everything()
    classes = _tree(HoldfastError)
    assert [cls for cls in classes if cls.__module__ != "holdfast.errors"] == []
    assert {cls.__name__ for cls in classes} == set(errors.__all__)


def test_every_error_survives_pickling() -> None:
    _import_everything()
    for cls in _tree(HoldfastError):
        error = cls("somebody moved first: start again", key="a/b")
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), copy.message, copy.variables) == (cls, error.message, error.variables)
