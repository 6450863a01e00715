"""Put the calls and states of transaction worlds into words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from holdfast.transactions.base import AlreadyDone, Commit, Conflict, Record, ScanPage
from holdfast.transactions.base import Outcome as CommitOutcome
from holdfast_checker.histories.history import HISTORY, Outcome, operations_in
from holdfast_checker.histories.undone import of_clients
from holdfast_checker.kernel.world import View
from holdfast_checker.narrative.narrator import Act, Event, Narrator, Thing, Weight
from holdfast_checker.transactions.database import DATABASE, Image
from holdfast_checker.transactions.properties import contents_of
from holdfast_checker.transactions.row_locks import Rows
from holdfast_checker.transactions.scripts import FAILED, Step, to_text
from holdfast_checker.transactions.server_narration import SERVER_CALLS, server_fault
from holdfast_checker.transactions.wording import tell_content, tell_saw, tell_steps


# --- calls of the history ---------------------------------------------------------------------------------------------
def _invoke(event: Event) -> Act:
    return Act(verb="begins", things=(_whose(event),), weight=Weight.SMALL)


def _note(event: Event) -> Act:
    steps = cast("tuple[Step, ...]", event.call.args[1])
    did = tell_steps([step for step in steps if step != FAILED])
    failed = ", and fails" if FAILED in steps else ""
    return Act(verb="plans to" if did else "plans nothing", things=tuple(did), tail=failed, weight=Weight.SMALL)


def _end(event: Event) -> Act:
    outcome, answer = cast("tuple[Outcome, tuple[object, ...] | None]", event.call.args[1:])
    if outcome is Outcome.FAILED or answer is None:
        return Act(verb="starts over or gives up", weight=Weight.SMALL)
    if answer[0] == "done":
        return Act(verb="is told that it took effect before", weight=Weight.WORK)
    saw = ", then ".join(tell_saw(cast("tuple[object, ...]", answer[1])))
    return Act(verb="ends", tail=f", having seen: {saw}" if saw else "", weight=Weight.WORK)


def _whose(event: Event) -> str:
    who = str(event.call.args[0])
    return "an attempt" if who == event.actor else f"an attempt ({who})"


# --- calls of the database --------------------------------------------------------------------------------------------
def _names(keys: Sequence[bytes]) -> tuple[str, ...]:
    return tuple(key.decode() for key in keys)


def _record(record: Record | None) -> str:
    return "absent" if record is None else tell_content((to_text(record.value), record.number))


def _get_many(event: Event) -> Act:
    keys = cast("tuple[bytes, ...]", event.call.args[0])
    tail = ""
    if isinstance(event.reply, tuple):
        found = dict(cast("tuple[tuple[bytes, Record], ...]", event.reply))
        tail = f" ({', '.join(f'{key.decode()} is {_record(found.get(key))}' for key in keys)})"
    return Act(verb="reads", things=_names(keys), tail=tail)


def _scan(event: Event) -> Act:
    start, end = _names(cast("tuple[bytes, bytes]", event.call.args[:2]))
    tail = ""
    if isinstance(event.reply, ScanPage):
        found = ", ".join(key.decode() for key, _record in event.reply.records)
        tail = f" ({found or 'no records'})"
    return Act(verb="scans", things=(f"{start} to {end}",), tail=tail)


def _commit_group(event: Event) -> Act:
    commits = cast("tuple[Commit, ...]", event.call.args[0])
    tail = ""
    if isinstance(event.reply, tuple):
        tail = f", which {' and '.join(map(_outcome, cast('tuple[CommitOutcome, ...]', event.reply)))}"
    return Act(verb="commits", things=tuple(map(_writes, commits)), tail=tail, weight=_weight(event))


def _writes(commit: Commit) -> str:
    parts = [
        *(f"put {key.decode()}={to_text(value)!r}" for key, value in sorted(commit.puts.items())),
        *(f"insert {key.decode()}={to_text(value)!r}" for key, value in sorted(commit.inserts.items())),
        *(f"delete {key.decode()}" for key in sorted(commit.deletes)),
        *(f"add {delta} to {key.decode()}" for key, delta in sorted(commit.adds.items())),
        *(f"{one.count} records from {one.start.decode()} to {one.end.decode()}" for one in commit.ranges),
    ]
    if commit.progress is not None:
        parts.append(f"progress to {commit.progress.number}")
    return f"({', '.join(parts) or 'reads only'})"


def _outcome(outcome: CommitOutcome) -> str:
    if isinstance(outcome, Conflict):
        return f"conflicts on {', '.join(_names(outcome.keys))}"
    return "took effect before" if isinstance(outcome, AlreadyDone) else "takes effect"


def _lock(event: Event) -> Act:
    key, exclusive = cast("tuple[bytes, bool]", event.call.args)
    tail = "" if isinstance(event.reply, Exception) or event.alternative is None else f" ({_reply(event)})"
    return Act(verb="locks" if exclusive else "locks, shared,", things=_names((key,)), tail=tail)


def _reply(event: Event) -> str:
    return _record(cast("Record | None", event.reply))


def _create(event: Event) -> Act:
    key = cast("bytes", event.call.args[0])
    exists = isinstance(event.reply, Record)
    return Act(verb="cannot create" if exists else "creates a row for", things=_names((key,)))


def _count(event: Event) -> Act:
    start, end = _names(cast("tuple[bytes, bytes]", event.call.args[:2]))
    tail = f" ({event.reply})" if isinstance(event.reply, int) else ""
    return Act(verb="counts the records from", things=(f"{start} to {end}",), tail=tail)


def _commit(event: Event) -> Act:
    changes = cast("tuple[tuple[bytes, Record | None], ...]", event.call.args[1])
    things = tuple(f"{key.decode()} ({_record(record)})" for key, record in changes)
    return Act(verb="writes and commits", things=things, weight=_weight(event))


def _rollback(event: Event) -> Act:
    return Act(verb="rolls back", weight=Weight.WORK)


def _weight(event: Event) -> Weight:
    if event.alternative is None:
        return Weight.WORK
    return Weight.TURN if contents_of(event.before) != contents_of(event.after) else Weight.WORK


_CALLS: Mapping[tuple[str, str], Callable[[Event], Act]] = {
    **SERVER_CALLS,
    (HISTORY, "invoke"): _invoke,
    (HISTORY, "note"): _note,
    (HISTORY, "end"): _end,
    (DATABASE, "get_many"): _get_many,
    (DATABASE, "scan"): _scan,
    (DATABASE, "commit_group"): _commit_group,
    (DATABASE, "lock"): _lock,
    (DATABASE, "create"): _create,
    (DATABASE, "count"): _count,
    (DATABASE, "commit"): _commit,
    (DATABASE, "rollback"): _rollback,
}


def _act(event: Event) -> Act:
    return _CALLS[event.call.resource, event.call.operation](event)


# --- states -----------------------------------------------------------------------------------------------------------
def _holds(view: View) -> Mapping[str, str]:
    """Describe the state: the records, the locks or the late commits, and how attempts have ended."""
    records = ", ".join(f"{name}={tell_content(content)}" for name, content in contents_of(view))
    state = cast("Image | Rows", view.states[DATABASE])
    if isinstance(state, Rows):
        locks = sorted(state.locks, key=lambda lock: (lock.holder, lock.key))
        pending = "; ".join(f"{lock.holder}: {lock.key.decode()}" for lock in locks)
        return {"records": records or "none", "locks": pending or "none"}
    return {"records": records or "none", "on their way": f"{len(state.late)} commits" if state.late else "nothing"}


def _things(view: View) -> Sequence[Thing]:
    """List records, locks, late commits and attempts."""
    found = [Thing("records", name, tell_content(content)) for name, content in contents_of(view)]
    state = cast("Image | Rows", view.states[DATABASE])
    if isinstance(state, Rows):
        for lock in state.locks:
            kind = "creates it" if lock.creates else "exclusive" if lock.exclusive else "shared"
            found.append(Thing("locks", f"{lock.key.decode()}, {lock.holder}", kind))
    else:
        for base, commits in state.late:
            found.append(Thing("on their way", str(base), ", ".join(map(_writes, commits))))
    for number, one in enumerate(of_clients(operations_in(view)), start=1):
        steps = cast("tuple[Step, ...]", one.notes[-1]) if one.notes else ()
        text = f"{', '.join(tell_steps(steps)) or 'nothing yet'}: {one.outcome.value}"
        found.append(Thing("attempts", f"{number} {one.who}", text))
    return sorted(found)


def narrator() -> Narrator:
    """Return the narrator for worlds of transactions."""
    return Narrator(act=_act, fault=server_fault, holds=_holds, things=_things)
