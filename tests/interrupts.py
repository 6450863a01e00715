"""Interrupt code at any of its lines, as the handler of a signal may: with Ctrl-C for example."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any

__all__ = ["InterruptError", "disturbed_at", "interrupted_at"]


class InterruptError(BaseException):
    """Like a `KeyboardInterrupt`, which would end the run of the tests."""


_kept: list[InterruptError] = []


@functools.cache
def _safe_lines(module: ModuleType) -> frozenset[int]:
    lines = inspect.getsource(module).splitlines()
    return frozenset(number for number, text in enumerate(lines, 1) if text.lstrip().startswith(("with ", "try:")))


def interrupted_at(line: int, work: Callable[[], object], *modules: ModuleType) -> bool:
    """Run something in this thread, with an interrupt at one of the lines that it runs in modules: see `disturbed_at`.

    The error is kept until the next interrupt, with all frames of its traceback, as an interactive Python keeps it. So
    nothing is freed because the frames are gone.
    """
    is_over = False

    def interrupt() -> None:
        nonlocal is_over
        is_over = True
        raise InterruptError

    _kept.clear()
    try:
        disturbed_at(line, interrupt, work, *modules)
    except InterruptError as error:
        _kept.append(error)
    return is_over


def disturbed_at(line: int, disturb: Callable[[], object], work: Callable[[], object], *modules: ModuleType) -> bool:
    """Run something in this thread, and call a function before one of the lines that it runs in modules.

    Lines with ``with`` and ``try`` are left out, where a real interrupt cannot come: a tracer sees the former once more
    at the end of their block, before a lock is released; and errors at the latter pass by the blocks around them.

    Args:
        line: a number from 1: of the lines in the order in which they run.

    Returns:
        Whether the function was called, so whether there are so many lines.
    """
    left_out = {module.__file__: _safe_lines(module) for module in modules}
    seen = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal seen
        lines = left_out.get(frame.f_code.co_filename)
        if lines is None:
            return None
        if event == "line" and frame.f_lineno not in lines:
            seen += 1
            if seen == line:
                disturb()
        return trace

    before = sys.gettrace()  # of a run of mutants, which records what a test executes
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return seen >= line
