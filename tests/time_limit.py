"""End a test session that takes too long: show where it is, kill all its processes, and fail.

Every wait of a test has a bound, but several in a row may take hours, and a call into C has none. The stacks of all
threads name the place: in the session, in each worker of pytest-xdist and in the forks of both. A process that a test
has stopped and not continued is named, too.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import threading

import pytest

from tests.session_processes import session_processes

__all__ = ["SETTING", "over", "show_stacks_on_request", "start"]

SETTING = "session_timeout"
"""The name of the setting: seconds, 0 for no limit."""

over = threading.Event()
"""Ends the session like the limit."""

_SHOW = signal.SIGUSR1
_WRITING_S = 0.5  # for one process to write its stacks, before the next begins: they all write to one file
_LAST_WRITING_S = 5.0  # nothing but the output depends on it


def show_stacks_on_request() -> None:
    """Let this process write the stacks of its threads when it gets a signal.

    The signal is handled even if a call into C keeps Python's lock. Call this before pytest captures the output.
    """
    faulthandler.register(_SHOW, os.dup(2), all_threads=True)


def start(config: pytest.Config) -> None:
    """Start to count: the process of the session does this, before the tests begin."""
    limit_s = float(config.getini(SETTING))
    errors = os.dup(2)

    def wait() -> None:
        over.wait(limit_s or None)
        _end(errors, f"the tests take longer than {limit_s:,.0f} s ({SETTING} in pyproject.toml)")

    threading.Thread(target=wait, daemon=True).start()


def _end(errors: int, reason: str) -> None:
    processes = session_processes()
    frozen = [f"stopped by a signal: {one}" for one in processes if one.state == "T"]
    os.write(errors, "\n".join(["", reason, *frozen, "stacks of all threads, innermost calls first:", ""]).encode())
    faulthandler.dump_traceback(errors, all_threads=True)
    for one in processes:
        if one.catches(_SHOW):
            with contextlib.suppress(ProcessLookupError):
                os.kill(one.pid, _SHOW)
            threading.Event().wait(_WRITING_S)
    threading.Event().wait(_LAST_WRITING_S)
    for one in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(one.pid, signal.SIGKILL)
    os._exit(int(pytest.ExitCode.INTERRUPTED))
