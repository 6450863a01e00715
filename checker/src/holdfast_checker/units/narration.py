"""Put the calls and states of unit worlds into words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from holdfast.errors import CorruptDataError
from holdfast.records.cells import Content
from holdfast.records.keys import cell_of
from holdfast.records.row_keys import decode_row
from holdfast.transactions.base import Commit, Committed, Conflict, Outcome, Record, ScanPage
from holdfast.units.claims import decode_claim
from holdfast.units.progress import TaskProgress
from holdfast.units.work_list import Item
from holdfast_checker.kernel.calls import Fault
from holdfast_checker.kernel.world import View
from holdfast_checker.narrative.narrator import Act, Event, Narrator, Thing, Weight
from holdfast_checker.transactions.database import DATABASE
from holdfast_checker.transactions.server_narration import SERVER_CALLS, server_fault
from holdfast_checker.units.contents import image_of, state_of
from holdfast_checker.units.database import DONE, UNNEEDED, End
from holdfast_checker.units.scripts import SAW, TIMES

_KINDS = {
    b"Sp": "the progress",
    b"Sn": "the count of a worker",
    b"Sj": "the job",
    b"St": "a table",
    b"Sd": "a dropped table or work list",
    b"Sl": "the work list",
    b"Sb": "a heartbeat",
}

_PLACE = 11
"""Where the place of an item begins in its key: see `holdfast.units.work_list`."""


def _name(key: bytes) -> str:
    """Say what the record of a key is."""
    kind = key[:2]
    if kind == b"Sc":
        row, column = cell_of(key)
        return f"unit {row!s}" if column in (TIMES, SAW) else str(row)
    if kind == b"Sw":
        return "a claim" if _is_claim(key) else f"item {Item(key[_PLACE:], b'').key!s}"
    return _KINDS.get(kind, "a record")


def _is_claim(key: bytes) -> bool:
    return key[_PLACE - 1 : _PLACE] == b"t"


def _names(keys: Sequence[bytes]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(_name, keys)))


def _value(key: bytes, value: bytes, number: int = 0) -> str:
    """Say what a record holds."""
    if key.startswith(b"Sp"):
        return _progress(TaskProgress.of(value))
    if key.startswith(b"Sc"):
        return repr(Content(value, number).value())
    if key.startswith(b"Sw") and _is_claim(key):
        return ", ".join(str(one.key) for one in decode_claim(key, Record(1, value)).items.values())
    return str(number) if number else ""


def _progress(progress: TaskProgress) -> str:
    words = [f"up to {_row(progress.last)}" if progress.last else "at the start"]
    if progress.deferred:
        words.append(f"without {' and '.join(map(_row, progress.deferred))}")
    return ", ".join([*words, *(["finished"] if progress.is_finished else [])])


def _row(encoded: bytes) -> str:
    return str(decode_row(encoded)[0])


# --- reads ------------------------------------------------------------------------------------------------------------
def _get_many(event: Event) -> Act:
    keys = cast("tuple[bytes, ...]", event.call.args[0])
    tail = ""
    if isinstance(event.reply, tuple):
        found = dict(cast("tuple[tuple[bytes, Record], ...]", event.reply))
        tail = f" ({', '.join(_record(key, found.get(key)) for key in keys)})"
    return Act(verb="reads", things=_names(keys), tail=tail)


def _record(key: bytes, record: Record | None) -> str:
    return "absent" if record is None else _value(key, record.value, record.number) or "there"


def _scan(event: Event) -> Act:
    tail = ""
    if isinstance(event.reply, ScanPage):
        found = [_name(key) for key, _record in event.reply.records]
        tail = f" ({', '.join(found) or 'nothing'})"
    start = cast("bytes", event.call.args[0])
    what = {b"Sw": "the work list", b"Sb": "heartbeats"}.get(start[:2], "rows")
    return Act(verb="scans", things=(what,), tail=tail)


def _lock(event: Event) -> Act:
    key, exclusive = cast("tuple[bytes, bool]", event.call.args)
    return Act(verb="locks", things=_names((key,)), tail="" if exclusive else " against changes")


def _until_free(event: Event) -> Act:
    locks = cast("tuple[tuple[bytes, bool], ...]", event.call.args[0])
    return Act(verb="waits for locks on", things=_names([key for key, _exclusive in locks]), weight=Weight.SMALL)


# --- commits ----------------------------------------------------------------------------------------------------------
def _commit(event: Event) -> Act:
    commits = cast("tuple[Commit, ...]", event.call.args[0])
    tail = ""
    if isinstance(event.reply, tuple):
        tail = f", which {' and '.join(map(_outcome, cast('tuple[Outcome, ...]', event.reply)))}"
    return Act(verb="commits", things=tuple(map(_writes, commits)), tail=tail, weight=_weight(event))


def _writes(commit: Commit) -> str:
    units = [_name(key) for key in sorted(commit.puts) if key.startswith(b"Sc") and cell_of(key)[1] == SAW]
    cells = {key: value for key, value in commit.puts.items() if not _is_of_unit(key)}
    parts = [
        *units,
        *(
            f"{_name(key)}={_value(key, value)}".rstrip("=")
            for key, value in sorted({**cells, **commit.inserts}.items())
        ),
        *(f"delete {_name(key)}" for key in sorted(commit.deletes)),
        *(f"add {delta} to {_name(key)}" for key, delta in sorted(commit.adds.items()) if not _is_of_unit(key)),
    ]
    return f"({', '.join(parts) or 'reads only'})"


def _is_of_unit(key: bytes) -> bool:
    return key.startswith(b"Sc") and cell_of(key)[1] in (TIMES, SAW)


def _outcome(outcome: Outcome) -> str:
    if isinstance(outcome, Conflict):
        return f"conflicts on {', '.join(_names(outcome.keys))}"
    assert isinstance(outcome, Committed), "no commit of a unit is in a series"
    return "takes effect"


def _weight(event: Event) -> Weight:
    if event.alternative is None:
        return Weight.WORK
    return Weight.TURN if image_of(event.before).records != image_of(event.after).records else Weight.WORK


def _release(event: Event) -> Act:
    return Act(verb="releases its locks", weight=Weight.SMALL)


# --- the rest ---------------------------------------------------------------------------------------------------------
def _report(event: Event) -> Act:
    how = str(event.call.args[1])
    words = {DONE: "success", UNNEEDED: "that it is not needed"}.get(how, how)
    return Act(verb="reports", things=(words,), weight=Weight.TURN)


def _await(event: Event) -> Act:
    return Act(verb="is started, because of the end of", things=(str(event.call.args[0]),), weight=Weight.SMALL)


def _idle(event: Event) -> Act:
    passed = event.reply is True
    return Act(verb="waits for the time of a lease" if passed else "waits until the list changes", weight=Weight.WORK)


_CALLS: Mapping[str, Callable[[Event], Act]] = {
    "get_many": _get_many,
    "scan": _scan,
    "lock": _lock,
    "until_free": _until_free,
    "commit_group": _commit,
    "apply": _commit,
    "release": _release,
    "report": _report,
    "await": _await,
    "idle": _idle,
    **{operation: words for (_resource, operation), words in SERVER_CALLS.items()},
}


def _act(event: Event) -> Act:
    assert event.call.resource == DATABASE, "there is no other resource"
    return _CALLS[event.call.operation](event)


def _fault(event: Event) -> str:
    if event.fault is Fault.CLOCK:
        return ", although somebody is only slow"
    return server_fault(event)


# --- states -----------------------------------------------------------------------------------------------------------
def _holds(view: View) -> Mapping[str, str]:
    """Describe the state: cells, units that took effect, progress, the work list, and how attempts have ended."""
    state, image = state_of(view), image_of(view)
    try:
        cells = ", ".join(f"{row}={value!r}" for row, value in state.cells)
    except CorruptDataError:
        cells = "cannot be read"
    done = ", ".join(f"{unit} ({times} times)" if times > 1 else unit for unit, (times, _saw) in state.effects.items())
    progress = "; ".join(
        f"{job}: {_progress(one)}" for job, tasks in state.progress.items() for one in tasks if one.last
    )
    found = {"cells": cells or "none", "units that took effect": done or "none", "progress": progress or "none"}
    if state.waiting or state.claimed:
        found["waiting"] = ", ".join(state.waiting) or "nothing"
        found["claimed"] = ", ".join(state.claimed) or "nothing"
    if image.late:
        found["on their way"] = f"{len(image.late)} commits"
    if image.ends:
        found["ends"] = "; ".join(map(_end, image.ends))
    return found


def _end(end: End) -> str:
    return f"{end.who}: {end.how}"


def _things(view: View) -> Sequence[Thing]:
    """List records, late commits, locks and ends."""
    image = image_of(view)
    records = image.records.as_dict().items()
    found = [
        Thing("records", f"{_name(key)} {number}", _record(key, record))
        for number, (key, record) in enumerate(records)
        if not key.startswith((b"St", b"Sj", b"Sl"))
    ]
    found += [Thing("on their way", str(base), ", ".join(map(_writes, commits))) for base, commits in image.late]
    found += [
        Thing("locks", f"{_name(lock.key)}, {lock.holder}", "exclusive" if lock.exclusive else "shared")
        for lock in image.locks
    ]
    found += [Thing("ends", end.who, end.how) for end in image.ends]
    return sorted(found)


def narrator() -> Narrator:
    """Return the narrator for worlds of computation units."""
    return Narrator(act=_act, fault=_fault, holds=_holds, things=_things)
