"""Interrupt code at any of its lines, as the handler of a signal may: with Ctrl-C for example."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any

__all__ = ["InterruptError", "interrupted_at"]


class InterruptError(BaseException):
    """Like a `KeyboardInterrupt`, which would end the run of the tests."""


@functools.cache
def _with_lines(module: ModuleType) -> frozenset[int]:
    lines = inspect.getsource(module).splitlines()
    return frozenset(number for number, text in enumerate(lines, 1) if text.lstrip().startswith("with "))


def interrupted_at(line: int, work: Callable[[], object], *modules: ModuleType) -> bool:
    """Run something in this thread, with an interrupt at one of the lines that it runs in modules.

    Lines with ``with`` are left out: a tracer sees them once more at the end of their block, before a lock is released,
    and a real interrupt cannot come there.

    Args:
        line: a number from 1: of the lines in the order in which they run.

    Returns:
        Whether the interrupt came, so whether there are so many lines.
    """
    left_out = {module.__file__: _with_lines(module) for module in modules}
    seen = 0
    is_over = False

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal seen, is_over
        lines = left_out.get(frame.f_code.co_filename)
        if lines is None:
            return None
        if event == "line" and not is_over and frame.f_lineno not in lines:
            seen += 1
            if seen == line:
                is_over = True
                raise InterruptError
        return trace

    sys.settrace(trace)
    try:
        work()
    except InterruptError:
        pass
    finally:
        sys.settrace(None)
    return is_over
