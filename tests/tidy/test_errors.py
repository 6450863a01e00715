"""Check that the diagrams at the top of errors.py are the real tree, and that every error class survives pickling."""

from __future__ import annotations

import importlib
import pickle
import re

import pytest

from holdfast.errors import HoldfastError
from tests.tidy.source_tree import ROOT, modules

_HOMES = ("holdfast.errors", "holdfast.namespace.errors")


def _subclasses(cls: type[HoldfastError]) -> list[type[HoldfastError]]:
    """Yield the direct subclasses in the project's own modules; tests may define others."""
    return [sub for sub in cls.__subclasses__() if sub.__module__.split(".")[0] == "holdfast"]


def _tree(cls: type[HoldfastError]) -> list[type[HoldfastError]]:
    return [cls, *(below for sub in _subclasses(cls) for below in _tree(sub))]


def _draw(cls: type[HoldfastError], home: str, indent: str = "") -> list[str]:
    """Draw the classes of one module, with the classes of other modules that are above them."""
    lines = []
    subclasses = [sub for sub in _subclasses(cls) if any(one.__module__ == home for one in _tree(sub))]
    for sub in subclasses:
        last = sub is subclasses[-1]
        others = [base.__name__ for base in sub.__bases__ if base is not cls and sub.__module__ == home]
        name = f"{sub.__name__}({', '.join(others)})" if others else sub.__name__
        lines.append(f"{indent}{'└── ' if last else '├── '}{name}")
        lines += _draw(sub, home, indent + ("    " if last else "│   "))
    return lines


def _import_everything() -> None:
    for module in modules():
        importlib.import_module(module.name)


@pytest.mark.parametrize("home", _HOMES)
def test_the_picture_is_the_tree(home: str) -> None:
    _import_everything()
    text = importlib.import_module(home).__doc__ or ""
    picture = [line.removeprefix("    ") for line in text.splitlines() if "──" in line]
    drawn = [re.split(r"(?<=[\w)])\s{2,}", line, maxsplit=1) for line in picture]
    assert [line[0] for line in drawn] == _draw(HoldfastError, home)
    own = {cls.__name__ for cls in _tree(HoldfastError) if cls.__module__ == home}
    silent = [line for line in drawn if len(line) < 2 and re.sub(r"\W|\(.*", "", line[0]) in own]
    assert silent == [], "each line says what the caller does next"


def test_the_page_of_errors_has_every_class() -> None:
    _import_everything()
    page = (ROOT / "docs" / "reference" / "errors.md").read_text()
    own = [cls for cls in _tree(HoldfastError)[1:] if cls.__module__ == "holdfast.errors"]
    assert [cls.__name__ for cls in own if f"| `{cls.__name__}`" not in page] == []
    of_namespaces = [cls for cls in _tree(HoldfastError) if cls.__module__ == "holdfast.namespace.errors"]
    for cls in of_namespaces:
        home = next(one for one in cls.__mro__ if one.__module__ == "holdfast.errors")
        assert re.search(rf"^\| `{home.__name__}` \|.*`{cls.__name__}`", page, re.MULTILINE), cls


def test_errors_live_in_two_modules() -> None:
    """HDFS's errors are a part of the namespace's interface; all others are everybody's."""
    _import_everything()
    classes = _tree(HoldfastError)
    assert {cls.__module__ for cls in classes} == set(_HOMES)
    for home in _HOMES:
        own = {cls.__name__ for cls in classes if cls.__module__ == home}
        assert own <= set(vars(importlib.import_module(home)))


def test_every_error_survives_pickling() -> None:
    _import_everything()
    for cls in _tree(HoldfastError):
        error = cls("somebody moved first: start again", key="a/b")
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), copy.message, copy.variables) == (cls, error.message, error.variables)
