"""Which functions ran, and that every function that ships is found."""

from __future__ import annotations

import ast
import threading

from holdfast.commit import layout
from tests.mutation.coverage import Coverage, functions_of, live_functions, modules_of, parse_module, recompiled


def test_what_ran_is_noted_also_in_other_threads() -> None:
    coverage = Coverage("holdfast.commit")
    assert coverage.ran == set()
    layout.is_holdfast_record("_a")
    with coverage.watching():
        layout.write_id_record_path("a")
        thread = threading.Thread(target=layout.log_entry_path, args=(1,))
        thread.start()
        thread.join()
    layout.is_holdfast_record("_a")
    assert coverage.ran == {
        ("holdfast.commit.layout", "write_id_record_path"),
        ("holdfast.commit.layout", "log_entry_path"),
    }


def test_every_function_that_ships_is_found() -> None:
    """Each is found with the code that its source compiles to: mistakes can be planted in it."""
    for module in modules_of("holdfast.commit"):
        tree = parse_module(module)
        wanted = {(one.name, _first_line(one)) for _name, one in functions_of(tree)}
        assert set(live_functions(module)) == wanted
        found = list(recompiled(module, tree))
        assert len(found) == len(wanted)
        assert [live.__qualname__ for live, code in found if code != live.__code__] == []


def _first_line(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return min([function.lineno, *(one.lineno for one in function.decorator_list)])
