"""Let Ctrl-C and SIGTERM end a command also if they come where Python ignores exceptions.

Python runs the handler of a signal between any two steps of the main thread, also in finalizers and in callbacks of
weak references, such as those that end an import. What it raises there is only printed, and the command would go on.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from typing import Any

from holdfast.cli.failures import TERMINATED

_SOON_S = 0.01


def repeat_lost_signals() -> None:
    """From now on, send this process a signal again, a moment later, if Python has ignored what its handler raised."""
    report: Callable[[Any], object] = sys.unraisablehook

    def hook(ignored: Any) -> None:
        number = _signal_of(ignored.exc_value)
        if number is None:
            report(ignored)
            return
        signal.signal(signal.SIGALRM, lambda _number, _frame: signal.raise_signal(number))
        signal.setitimer(signal.ITIMER_REAL, _SOON_S)

    sys.unraisablehook = hook


def _signal_of(error: BaseException | None) -> signal.Signals | None:
    """Return the signal whose handler has raised an error, which it does in the main thread only."""
    if isinstance(error, KeyboardInterrupt):
        return signal.SIGINT
    return signal.SIGTERM if isinstance(error, SystemExit) and error.code == TERMINATED else None
