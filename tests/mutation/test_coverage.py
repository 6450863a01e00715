"""Which statements ran: of all kinds of functions, and of the shipped ones."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.mutation.coverage import (
    Coverage,
    functions_of,
    live_functions,
    modules_of,
    parse_module,
    recompiled,
)

_SOURCE = '''
"""A module."""
from __future__ import annotations
from contextlib import contextmanager
from functools import cache, cached_property


def branch(value):
    """Not a statement."""
    if value:
        return 1
    else:
        value = 2
    return value


def fail(value):
    try:
        value.missing
        value = 0
    except AttributeError:
        value = 1
    finally:
        value = 2
    return value


@contextmanager
def held():
    yield
    return


class Thing:
    kind = "class bodies are not counted"

    @property
    def seen(self):
        return True

    @cached_property
    def kept(self):
        return True

    @staticmethod
    def alone():
        def inner():
            return 5
        return inner

    @classmethod
    @cache
    def made(cls):
        return super().__thisclass__
'''


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    package = tmp_path / "toy_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "toy.py").write_text(_SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("toy_package.toy")
    for name in ("toy_package", "toy_package.toy"):
        sys.modules.pop(name, None)


def _missed(coverage: Coverage) -> dict[str, list[str]]:
    lines = _SOURCE.splitlines()
    return {one.name: [lines[number - 1].strip() for number in one.missed] for one in coverage.functions()}


def test_what_ran_is_told_statement_by_statement(toy: ModuleType) -> None:
    coverage = Coverage("toy_package")
    assert _missed(coverage)["branch"] == ["if value:", "return 1", "value = 2", "return value"]
    before = toy.branch.__code__
    with coverage.watching():
        assert toy.branch(0) == 2
        assert toy.fail(None) == 2
        with toy.held():
            pass
        thing = toy.Thing()
        assert thing.seen and thing.kept and thing.made() is toy.Thing
        thing.alone()
    assert toy.branch.__code__ is before
    toy.branch(1)
    assert _missed(coverage) == {
        "branch": ["return 1"],  # it ran before the coverage was watching
        "fail": ["value = 0"],
        "held": [],
        "Thing.seen": [],
        "Thing.kept": [],
        "Thing.alone": ["return 5"],
        "Thing.made": [],
    }
    coverage.forget()
    assert all(one.missed == one.lines for one in coverage.functions())


def test_functions_are_given_back_when_something_breaks(toy: ModuleType) -> None:
    before = toy.branch.__code__
    with pytest.raises(KeyboardInterrupt), Coverage("toy_package").watching():
        raise KeyboardInterrupt
    assert toy.branch.__code__ is before
    assert "__ran__" not in vars(toy)


def test_every_function_that_ships_is_found() -> None:
    """Each is found with the code that its source compiles to: it can be watched, and mistakes can be planted in it."""
    for module in modules_of("holdfast.commit"):
        tree = parse_module(module)
        wanted = {(one.name, _first_line(one)) for _name, one in functions_of(tree)}
        assert set(live_functions(module)) == wanted
        found = list(recompiled(module, tree))
        assert len(found) == len(wanted)
        assert [live.__qualname__ for live, code in found if code != live.__code__] == []


def _first_line(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return min([function.lineno, *(one.lineno for one in function.decorator_list)])
