"""Let a process that ends a job forget replies that can no longer matter, so that fewer histories differ.

A driver that publishes files learns for each of them how it became visible: completed by this call, completed earlier
by another process, or the reply was lost. Once the driver continues, this no longer matters, and neither do the replies
about the marks, the report and the uploads that the driver swept. Without this abstraction, every combination of such
replies would be a separate history of the process up to its end, multiplied by the combinations of the other driver.
Every run asserts that what is forgotten does not matter (see `kernel.process_tree`), and tests compare the results with
full exploration.

Only worlds of `two_phase` use this, where it makes a difference (`Scene.forgetful`). It covers the processes of a job
and recovery, but no jobs that read what other jobs have announced.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Sequence

from holdfast.commit.layout import HOME, JOBS, LOG, SUCCESS
from holdfast.errors import OutcomeUnknownError, UnavailableError
from holdfast_checker.committers.output import DESTINATION
from holdfast_checker.kernel.calls import Call
from holdfast_checker.kernel.process import Past


class _Stage(enum.IntEnum):
    """How far a process that ends a job has come; its next call says in which stage it is."""

    OTHER = 0
    PUBLISH = 1
    MARK = 2
    REPORT = 3
    LOOK = 4
    SWEEP = 5
    EMPTY = 6
    DONE = 7


def _stage(call: Call) -> _Stage:
    if call.resource != DESTINATION:
        return _Stage.DONE if call.operation == "tell" else _Stage.OTHER
    operation, key = call.operation, _key(call)
    if operation in ("list_uploads_page", "abort_upload"):
        return _Stage.SWEEP
    if operation == "list_page":
        return _Stage.LOOK if key.endswith(JOBS) else _Stage.OTHER
    if operation == "delete_many":
        return _Stage.EMPTY if JOBS in key else _Stage.OTHER
    if key.endswith(f"/{SUCCESS}"):
        return _Stage.REPORT
    if LOG in key and operation in ("put", "get"):  # a check for a mark affects the next calls
        return _Stage.DONE if key.endswith(".done") else _Stage.MARK if key.endswith(".visible") else _Stage.OTHER
    publishes = operation in ("complete_upload", "rename") or (operation == "head" and HOME not in key)
    return _Stage.PUBLISH if publishes else _Stage.OTHER


def _key(call: Call) -> str:
    first = call.args[0]
    if isinstance(first, tuple):
        first = first[0]
    return first if isinstance(first, str) else getattr(first, "key", "")


def remembers(call: Call, past: Sequence[Past]) -> Hashable | None:
    """Return the part of the past that can still matter: see `World.remembers`."""
    now = _stage(call)
    if now <= _Stage.PUBLISH or (now is _Stage.MARK and call.operation != "put"):
        return None
    if now is _Stage.DONE and call.operation not in ("put", "tell"):
        return None
    if now in (_Stage.SWEEP, _Stage.EMPTY):
        return None
    return tuple(found for one in past if (found := _kept(one, now)) is not None)


def _kept(one: Past, now: _Stage) -> Hashable | None:
    """Return the part of an earlier call, and of its reply, that can still matter; None if no part can."""
    then = _stage(one.call)
    if not _is_over(then, now) or _ends_the_step(one, then):
        return one.mark
    return _key(one.call) if then is _Stage.DONE else None


def _ends_the_step(one: Past, then: _Stage) -> bool:
    """Check whether this call ended the work on a decision, after which recovery continued with other jobs."""
    error = one.reply.error
    retried = then in (_Stage.PUBLISH, _Stage.MARK)
    return isinstance(error, UnavailableError) or (isinstance(error, OutcomeUnknownError) and not retried)


def _is_over(then: _Stage, now: _Stage) -> bool:
    return _Stage.OTHER < then < now
