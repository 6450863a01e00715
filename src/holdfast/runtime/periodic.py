"""Do something again and again in the background, as long as a block runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

_JOIN_S = 30.0


class Periodic(Protocol):
    """Repeats calls."""

    def repeat(self, work: Callable[[], object], interval_s: float) -> AbstractContextManager[None]:
        """Call `work` every so many seconds while the block runs. It may not raise, and runs in another thread."""
        ...


class ThreadPeriodic:
    """Repeats calls in a thread, which ends with the block."""

    @contextmanager
    def repeat(self, work: Callable[[], object], interval_s: float) -> Iterator[None]:
        """Call `work` every so many seconds while the block runs. It may not raise, and runs in another thread."""
        is_over = threading.Event()

        def run() -> None:
            while not is_over.wait(interval_s):
                work()

        thread = threading.Thread(target=run, name="holdfast-periodic", daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join(_JOIN_S)


class NeverPeriodic:
    """Repeats nothing: for simulated worlds."""

    @contextmanager
    def repeat(self, work: Callable[[], object], interval_s: float) -> Iterator[None]:
        """Run the block."""
        yield
