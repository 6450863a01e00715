"""Which statements of a package ran: what an exploration did not come to is not proved.

Functions are compiled again from their source with a mark before each statement, and run so while somebody watches. A
mark is one store into a byte array: exploring takes a few percent longer. (A trace function would be asked at every
call of everything, and doubles the time; `sys.monitoring` is not there before Python 3.12.)
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

__all__ = ["Coverage", "Covered", "functions_of", "live_functions", "modules_of", "parse_module", "recompiled"]

_MARKS = "__ran__"
_DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class Covered:
    """What ran of a function.

    Attributes:
        name: as the module knows it: ``Class.method``.
        lines: of its statements, nested functions' too; its docstring is none.
        missed: those of them that did not run.
    """

    module: str
    name: str
    lines: tuple[int, ...]
    missed: tuple[int, ...]


# --- functions of a package, in its source and live -------------------------------------------------------------------
def modules_of(package: str) -> list[ModuleType]:
    """The package and all modules below it, imported, by name."""
    top = importlib.import_module(package)
    below = pkgutil.walk_packages(getattr(top, "__path__", ()), f"{package}.")
    return [top, *(importlib.import_module(name) for name in sorted(found.name for found in below))]


def parse_module(module: ModuleType) -> ast.Module:
    """The syntax tree of a module's source."""
    assert module.__file__ is not None, "a module without a source has no statements"
    return ast.parse(Path(module.__file__).read_text(encoding="utf-8"))


def functions_of(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Functions of a module and methods of its classes, with their names; not those that are inside of functions."""

    def inside(body: Sequence[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
        for node in body:
            if isinstance(node, _DEFINES):
                yield f"{prefix}{node.name}", node
            elif isinstance(node, ast.ClassDef):
                yield from inside(node.body, f"{prefix}{node.name}.")

    return inside(tree.body, "")


def live_functions(module: ModuleType) -> dict[tuple[str, int], FunctionType]:
    """The function objects of a module and its classes, by name and first line: properties, too, and what is
    wrapped."""
    found: dict[tuple[str, int], FunctionType] = {}
    to_open: list[object] = [*vars(module).values()]
    seen: set[int] = set()
    while to_open:
        one = to_open.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, FunctionType):
            if one.__module__ == module.__name__ and one.__code__.co_filename == module.__file__:
                found[one.__code__.co_name, one.__code__.co_firstlineno] = one
            to_open.append(getattr(one, "__wrapped__", None))
        elif isinstance(one, type):
            if one.__module__ == module.__name__:
                to_open += vars(one).values()
        elif isinstance(one, property):
            to_open += [one.fget, one.fset]
        elif isinstance(one, cached_property):
            to_open.append(one.func)
        else:  # a static or a class method, a cache around a function
            to_open += [getattr(one, "__func__", None), getattr(one, "__wrapped__", None)]
    return found


def recompiled(module: ModuleType, tree: ast.Module) -> Iterator[tuple[FunctionType, CodeType]]:
    """The live functions of a module, each with the code that it has in a tree made from the module's source.

    Functions keep their first lines in the tree; those that are not in it are left out.
    """
    assert module.__file__ is not None
    whole = compile(tree, module.__file__, "exec", dont_inherit=True)
    codes = _codes(whole)
    for place, function in live_functions(module).items():
        code = codes.get(place)
        if code is not None:
            yield function, code


def _codes(code: CodeType) -> dict[tuple[str, int], CodeType]:
    """The code of functions and methods in a compiled module, by name and first line."""
    found: dict[tuple[str, int], CodeType] = {}
    for each in code.co_consts:
        if isinstance(each, CodeType):
            found[each.co_name, each.co_firstlineno] = each
            if not each.co_flags & CO_OPTIMIZED:  # the body of a class
                found |= _codes(each)
    return found


# --- marks ------------------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class _Marked:
    """A module with marks in its functions.

    Attributes:
        marks: by name of the function, those of its statements.
        lines: by mark, the line of the statement.
        codes: functions, each with the code that has marks.
        ran: by mark, whether it was passed.
    """

    module: ModuleType
    marks: dict[str, list[int]]
    lines: list[int]
    codes: list[tuple[FunctionType, CodeType]]
    ran: bytearray


class Coverage:
    """Watches which statements of the functions of a package run; bodies of modules and classes ran when imported.

    Args:
        package: all of whose modules are imported for it.
    """

    def __init__(self, package: str) -> None:
        self._modules = [_mark(module) for module in modules_of(package)]

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Note what runs meanwhile, in this process. Not to be nested; what ran before stays noted."""
        with ExitStack() as stack:
            for one in self._modules:
                vars(one.module)[_MARKS] = one.ran
                stack.callback(vars(one.module).pop, _MARKS)
                for function, code in one.codes:
                    stack.callback(setattr, function, "__code__", function.__code__)
                    function.__code__ = code
            yield

    def forget(self) -> None:
        """As if nothing had run yet."""
        for one in self._modules:
            one.ran[:] = bytes(len(one.ran))

    def functions(self) -> list[Covered]:
        """What ran of each function by now."""
        found: list[Covered] = []
        for one in self._modules:
            for owner, marks in one.marks.items():
                lines = tuple(one.lines[mark] for mark in marks)
                missed = tuple(one.lines[mark] for mark in marks if not one.ran[mark])
                found.append(Covered(module=one.module.__name__, name=owner, lines=lines, missed=missed))
        return found


def _mark(module: ModuleType) -> _Marked:
    tree = parse_module(module)
    found = _Marked(module, {}, [], [], bytearray())
    for name, function in functions_of(tree):
        _mark_body(function.body, name, found)
    found.ran = bytearray(len(found.lines))
    found.codes = list(recompiled(module, ast.fix_missing_locations(tree)))
    return found


def _mark_body(body: list[ast.stmt], owner: str, found: _Marked) -> None:
    """Put a mark before each statement, also in those that are inside of others."""
    marked: list[ast.stmt] = []
    for statement in body:
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not is_text:  # a docstring has to stay the first
            mark = ast.parse(f"{_MARKS}[{len(found.lines)}] = 1").body[0]
            for node in ast.walk(mark):
                ast.copy_location(node, statement)
            marked.append(mark)
            found.marks.setdefault(owner, []).append(len(found.lines))
            found.lines.append(statement.lineno)
        marked.append(statement)
        for inner in _bodies(statement):
            _mark_body(inner, owner, found)
    body[:] = marked


def _bodies(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The lists of statements inside of one."""
    for part in (statement, *getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        for name in ("body", "orelse", "finalbody"):
            inner = getattr(part, name, None)
            if isinstance(inner, list):
                yield inner
