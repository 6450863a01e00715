"""Let a search end early, and keep its warnings out of the report."""

from __future__ import annotations

import contextlib
import logging
import signal
from collections.abc import Callable, Iterator
from types import FrameType


@contextlib.contextmanager
def first_interrupt() -> Iterator[Callable[[], bool]]:
    """Record the first Ctrl-C without stopping, so that results can be shown; let the second one end the command."""
    asked = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked = True
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def quiet(debug: bool) -> Iterator[None]:
    """Silence the warnings of the code under test, into which thousands of faults are injected; not with `debug`."""
    logger = logging.getLogger("holdfast")
    before = logger.level
    if not debug:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)
