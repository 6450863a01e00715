"""Record all decisions of a destination, including those that its log has trimmed.

Properties judge a state by the decisions that led to it. The log itself is trimmed, and a bug may overwrite it. So a
world also stores a `Ledger`, a full copy that no process can change, as its notes about the store: facts that the store
forgets (`Notes` in `holdfast_checker.simulated.store`).
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast

from holdfast.commit import layout
from holdfast.commit.ids import AttemptId, JobId
from holdfast.commit.records import Kind, SaveMode
from holdfast.commit.two_phase.records import decode_entry
from holdfast.errors import CorruptDataError
from holdfast.stores.base import Change, Create, Put
from holdfast_checker.committers.output import HOME
from holdfast_checker.kernel.calls import Call
from holdfast_checker.kernel.world import View
from holdfast_checker.simulated.memory import MemoryImage
from holdfast_checker.simulated.store import NotedImage

LOG_PREFIX = HOME + layout.LOG

_RECORD = re.compile(rf"{re.escape(LOG_PREFIX)}(\d{{20}})\.(json|visible|done)")


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision in the log.

    Attributes:
        batch: (stream, number) of the job, if it belongs to a stream.
        data: the bytes of the log entry.
    """

    seq: int
    job: str
    commits: bool
    batch: tuple[str, int] | None
    data: bytes


@dataclass(frozen=True, slots=True)
class Offer:
    """The announcement of a job other than the driver's that it is about to commit.

    Attributes:
        who: the actor.
        attempt: the attempt at the job's only task.
    """

    who: str
    job: JobId
    attempt: AttemptId
    mode: SaveMode


@dataclass(frozen=True, slots=True)
class Ledger:
    """All that was ever written to a log.

    Attributes:
        base: number of the newest decision when the history started; this decision and all earlier ones are done.
        decisions: the decisions after `base`, in the order in which they were made.
        visible, done: numbers of the decisions that were marked visible or done, in the order of the marks; a second
            mark of the same kind is ignored.
        offers: the offers of jobs that run as a single call.
        wrong: a forbidden change of the log; empty if there was none.
    """

    base: int = 0
    decisions: tuple[Decision, ...] = ()
    visible: tuple[int, ...] = ()
    done: tuple[int, ...] = ()
    offers: tuple[Offer, ...] = ()
    wrong: str = ""

    def with_record(self, seq: int, kind: str, data: bytes, *, created: bool = False) -> Ledger:
        """Return the ledger after a process has put a record into the log.

        Args:
            created: whether the put required that no record existed. If it did, and the number was used before, the log
                has trimmed the earlier entry: the new entry decides nothing, and must have no effect (docs/decisions,
                number 31).
        """
        if kind != "json":
            known = self.visible if kind == "visible" else self.done
            if seq in known or seq <= self.base:
                return self
            return replace(self, visible=(*known, seq)) if kind == "visible" else replace(self, done=(*known, seq))
        before = next((one for one in self.decisions if one.seq == seq), None)
        if created and (seq <= self.base or before is not None):
            return self
        if seq <= self.base or (before is not None and before.data != data):
            return replace(self, wrong=f"decision {seq} is overwritten with different content")
        if before is not None:
            return self
        newest = self.base + len(self.decisions)
        if seq != newest + 1:
            return replace(self, wrong=f"decision {seq} is made when the newest is {newest}")
        return replace(self, decisions=(*self.decisions, _decided(seq, data)))


@lru_cache(maxsize=4096)
def _decided(seq: int, data: bytes) -> Decision:
    try:
        entry = decode_entry(layout.log_entry(seq), seq, data)
    except CorruptDataError as error:
        return Decision(seq, f"unreadable: {error}", commits=False, batch=None, data=data)
    stream = entry.record.stream
    batch = None if stream is None else (stream.stream, stream.batch)
    return Decision(seq, entry.job, entry.kind is Kind.COMMIT, batch, data)


class LogNotes:
    """Notes that consist of a `Ledger` for the destination's store."""

    def first(self, image: MemoryImage) -> Hashable:
        return Ledger(base=max((seq for seq, kind, _ in _records(image) if kind == "json"), default=0))

    def after(self, notes: Hashable, call: Call, image: MemoryImage) -> Hashable:
        ledger = cast("Ledger", notes)
        for key, mode in _puts(call):
            if (found := _RECORD.fullmatch(key)) is not None:
                created = isinstance(mode, Create)
                ledger = ledger.with_record(int(found[1]), found[2], image.objects[key].data, created=created)
        return ledger

    def told(self, notes: Hashable, what: Hashable) -> Hashable:
        ledger = cast("Ledger", notes)
        return replace(ledger, offers=(*ledger.offers, cast("Offer", what)))

    def shown(self, notes: Hashable) -> Hashable:
        """Return how many decisions have been marked visible."""
        return len(cast("Ledger", notes).visible)


def _puts(call: Call) -> Iterable[tuple[str, object]]:
    """List the keys that a call puts, with the mode of each, decisions before their marks."""
    if call.operation == "put":
        return [(str(call.args[0]), call.args[2] if len(call.args) > 2 else None)]
    changes = cast("tuple[Change, ...]", call.args[0]) if call.operation == "apply" else ()
    puts = [(change.key, change.mode) for change in changes if isinstance(change, Put)]
    return sorted(puts, key=lambda put: not put[0].endswith(".json"))


def _records(image: MemoryImage) -> Iterable[tuple[int, str, bytes]]:
    """List the records of the log, decisions first."""
    found = ((_RECORD.fullmatch(key), one.data) for key, one in image.objects.items() if key.startswith(LOG_PREFIX))
    records = [(int(match[1]), match[2], data) for match, data in found if match is not None]
    return sorted(records, key=lambda record: (record[1] != "json", record[0]))


def ledger_in(view: View, name: str) -> Ledger:
    """Return the ledger in the notes about the store with this name."""
    return cast("Ledger", cast("NotedImage", view.states[name]).notes)


def read_ledger(before: Ledger, image: MemoryImage) -> Ledger:
    """Return the ledger after an unobserved process has changed the store from `before` to `image`."""
    for seq, kind, data in _records(image):
        while kind == "json" and seq > before.base + len(before.decisions) + 1:  # made and trimmed, so done
            missed = Decision(before.base + len(before.decisions) + 1, "", commits=False, batch=None, data=b"")
            before = replace(before, decisions=(*before.decisions, missed), done=(*before.done, missed.seq))
        before = before.with_record(seq, kind, data, created=True)
    kept = {seq for seq, kind, _ in _records(image) if kind == "json"}
    # Only finished decisions are trimmed; a commit is marked visible before it is finished.
    trimmed = [one for one in before.decisions if one.seq not in kept and one.seq not in before.done]
    shown = [one.seq for one in trimmed if one.commits and one.seq not in before.visible]
    return replace(before, visible=(*before.visible, *shown), done=(*before.done, *(one.seq for one in trimmed)))
