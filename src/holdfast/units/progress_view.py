"""Follow a job from the process that started it, beside its tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from holdfast.runtime import Periodic, ThreadPeriodic
from holdfast.transactions.base import Backend
from holdfast.units.job_state import JobState, poll


@dataclass(slots=True)
class Follower:
    """Who follows a job.

    Attributes:
        failure: why the last look showed nothing; None if it did.
    """

    failure: Exception | None = None


@contextmanager
def following(
    backend: Backend,
    job: str,
    show: Callable[[JobState], object],
    *,
    every_s: float = 1.0,
    periodic: Periodic | None = None,
) -> Iterator[Follower]:
    """Show how far a job is, every so many seconds, in another thread, while the block runs.

    Guarantee: the block neither fails nor waits because of it. A look that fails is left out, whether the database or
    `show` is to blame. At the end, a look that is under way is waited for, but for half a minute at most.

    Args:
        show: called in the other thread.
    """
    found = Follower()

    def look() -> None:
        try:
            show(poll(backend, job))
        except Exception as error:  # noqa: BLE001 # whatever happens here, the job must not end because of it
            found.failure = error
        else:
            found.failure = None

    with (periodic or ThreadPeriodic()).repeat(look, every_s):
        yield found
