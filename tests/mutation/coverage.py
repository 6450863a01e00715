"""Record which statements of a package ran: an exploration checks only what it executes.

Functions are recompiled from their source with a mark before each statement, and run in this form while a `Coverage`
watches. A mark sets one byte in an array, which makes exploring a few percent slower. (With a trace function, which
Python calls for every call, exploring takes twice as long; `sys.monitoring` does not exist before Python 3.12.)
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

_MARKS = "__ran__"
_DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class Covered:
    """The statements of a function that ran, and those that did not.

    Attributes:
        name: qualified name in the module: ``Class.method``.
        lines: line numbers of the function's statements, including those of nested functions, without the docstring.
        missed: the lines of the statements that did not run.
    """

    module: str
    name: str
    lines: tuple[int, ...]
    missed: tuple[int, ...]


# --- functions of a package, in its source and live -------------------------------------------------------------------
def modules_of(*packages: str) -> list[ModuleType]:
    """Import packages with all modules below them; return the modules, sorted by name within each package."""
    found: list[ModuleType] = []
    for package in packages:
        top = importlib.import_module(package)
        below = pkgutil.walk_packages(getattr(top, "__path__", ()), f"{package}.")
        found += [top, *(importlib.import_module(name) for name in sorted(one.name for one in below))]
    return found


def parse_module(module: ModuleType) -> ast.Module:
    """Return the syntax tree of a module's source."""
    assert module.__file__ is not None, "a module without a source has no statements"
    return ast.parse(Path(module.__file__).read_text(encoding="utf-8"))


def functions_of(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Iterate over the functions of a module and the methods of its classes, without nested functions."""

    def inside(body: Sequence[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
        for node in body:
            if isinstance(node, _DEFINES):
                yield f"{prefix}{node.name}", node
            elif isinstance(node, ast.ClassDef):
                yield from inside(node.body, f"{prefix}{node.name}.")

    return inside(tree.body, "")


def live_functions(module: ModuleType) -> dict[tuple[str, int], FunctionType]:
    """Return the function objects of a module and its classes, including properties, by name and first line."""
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
        else:  # a static method, a class method, or a cached function
            to_open += [getattr(one, "__func__", None), getattr(one, "__wrapped__", None)]
    return found


def recompiled(module: ModuleType, tree: ast.Module) -> Iterator[tuple[FunctionType, CodeType]]:
    """Compile a syntax tree of a module's source; yield each live function with the code that the tree gives it.

    Functions are matched by name and first line; functions without a match are left out.
    """
    assert module.__file__ is not None
    whole = compile(tree, module.__file__, "exec", dont_inherit=True)
    codes = _codes(whole)
    for place, function in live_functions(module).items():
        code = codes.get(place)
        if code is not None:
            yield function, code


def _codes(code: CodeType) -> dict[tuple[str, int], CodeType]:
    """Return the code objects of functions and methods in a compiled module, by name and first line."""
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
    """A module whose functions were instrumented with marks.

    Attributes:
        marks: the marks of each function, by its name.
        lines: the line of each mark's statement.
        codes: the functions, each with its code that contains marks.
        ran: one byte for each mark, set when it was passed.
    """

    module: ModuleType
    marks: dict[str, list[int]]
    lines: list[int]
    codes: list[tuple[FunctionType, CodeType]]
    ran: bytearray


class Coverage:
    """A recorder of the statements that run in the functions of packages; modules and class bodies ran at import.

    Args:
        packages: names of the packages; they are imported with all their modules.
    """

    def __init__(self, *packages: str) -> None:
        self._modules = [_mark(module) for module in modules_of(*packages)]

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Record what runs in this process within the context, in addition to earlier records. Cannot be nested."""
        with ExitStack() as stack:
            for one in self._modules:
                vars(one.module)[_MARKS] = one.ran
                stack.callback(vars(one.module).pop, _MARKS)
                for function, code in one.codes:
                    stack.callback(setattr, function, "__code__", function.__code__)
                    function.__code__ = code
            yield

    def forget(self) -> None:
        """Clear the record."""
        for one in self._modules:
            one.ran[:] = bytes(len(one.ran))

    def functions(self) -> list[Covered]:
        """Return, for each function, which statements have run so far."""
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
    """Insert a mark before each statement, including nested ones."""
    marked: list[ast.stmt] = []
    for statement in body:
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not is_text:  # a docstring must stay first
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
    """Iterate over the lists of statements inside a statement."""
    for part in (statement, *getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        for name in ("body", "orelse", "finalbody"):
            inner = getattr(part, name, None)
            if isinstance(inner, list):
                yield inner
