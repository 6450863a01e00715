"""Find the functions of packages, in their sources and live, and record which of them run.

A trace function that traces no lines is called for every call of a function; tests take about twice as long.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType

_DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef)

Place = tuple[str, str]
"""A module, and the qualified name of a function in it: ``Class.method``."""


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


# --- what runs --------------------------------------------------------------------------------------------------------
class Coverage:
    """A recorder of the functions that run; what a nested function does counts as done by the outer one.

    Args:
        packages: names of the packages; they are imported with all their modules.

    Attributes:
        ran: the functions that ran while it was watching.
    """

    def __init__(self, *packages: str) -> None:
        self.ran: set[Place] = set()
        self._places = {
            code: (module.__name__, function.__qualname__)
            for module in modules_of(*packages)
            for function in live_functions(module).values()
            for code in _with_nested(function.__code__)
        }

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Record what runs in this process within the context."""
        threading.settrace(self._note)
        sys.settrace(self._note)
        try:
            yield
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]  # as the documentation says

    def _note(self, frame: FrameType, event: str, arg: object) -> None:
        place = self._places.get(frame.f_code)
        if place is not None:
            self.ran.add(place)


def _with_nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _with_nested(each)
