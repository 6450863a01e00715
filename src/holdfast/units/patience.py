"""Wait for a database that is not available."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from holdfast.errors import StorageFullError, UnavailableError
from holdfast.runtime import Environment
from holdfast.units.statistics import Statistics

T = TypeVar("T")

_FIRST_WAIT_S = 0.05
_LONGEST_WAIT_S = 2.0


def patiently(call: Callable[[], T], patience_s: float, environment: Environment, statistics: Statistics) -> T:
    """Return what a call returns, and repeat it while the database is not available, so that nothing happened.

    Args:
        patience_s: for how long.

    Raises:
        UnavailableError: the database did not come back.
        StorageFullError: waiting does not help.
    """
    clock = environment.clock
    began_s = clock.elapsed_s()
    wait_s = _FIRST_WAIT_S
    while True:
        try:
            return call()
        except StorageFullError:
            raise
        except UnavailableError:
            if clock.elapsed_s() - began_s >= patience_s:
                raise
        statistics.unavailable += 1
        clock.sleep(wait_s * (0.5 + environment.chance.fraction() / 2))
        wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
