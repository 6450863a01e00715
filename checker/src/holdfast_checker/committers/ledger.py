"""Record all decisions of a destination, including those that its log has trimmed.

Properties judge a state by the decisions that led to it. The log itself is trimmed, and a bug may overwrite it. So a
world also stores a `DecisionLedger`, a full copy that no process can change.
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
from holdfast_checker.kernel.calls import Call, Reply
from holdfast_checker.kernel.world import View
from holdfast_checker.simulated.memory import StoreSnapshot
from holdfast_checker.simulated.store import StoreResource

LOG_PREFIX = HOME + layout.LOG

_RECORD = re.compile(rf"{re.escape(LOG_PREFIX)}(\d{{20}})\.(json|visible|done)")


@dataclass(frozen=True, slots=True)
class LogDecision:
    """An entry of a destination's decision log, which commits or aborts one job.

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
class PlannedCommit:
    """A commit that a further job (not the tested one) is about to make; read only by properties.

    Attributes:
        who: the actor.
        attempt: the attempt at the job's only task.
    """

    who: str
    job: JobId
    attempt: AttemptId
    mode: SaveMode


@dataclass(frozen=True, slots=True)
class DecisionLedger:
    """All decisions ever written to a destination's decision log, and the marks that they are visible or done.

    Attributes:
        base: number of the newest decision when the history started; this decision and all earlier ones are done.
        decisions: the decisions after `base`, in the order in which they were made.
        visible, done: numbers of the decisions that were marked visible or done, in the order of the marks; a second
            mark of the same kind is ignored.
        planned: the commits of jobs that run as a single atomic call.
        wrong: describes a forbidden change of the log; empty if none was made.
    """

    base: int = 0
    decisions: tuple[LogDecision, ...] = ()
    visible: tuple[int, ...] = ()
    done: tuple[int, ...] = ()
    planned: tuple[PlannedCommit, ...] = ()
    wrong: str = ""

    def with_record(self, seq: int, kind: str, data: bytes, *, created: bool = False) -> DecisionLedger:
        """Return the ledger extended by a record written to the decision log: a decision, or its visible or done mark.

        Args:
            created: whether the put required that no record existed. If it did, and the number was used before, the log
                has trimmed the earlier entry: the new entry decides nothing, and must have no effect (docs/decisions,
                number 3).
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
        return replace(self, decisions=(*self.decisions, _parse_decision(seq, data)))


@lru_cache(maxsize=4096)
def _parse_decision(seq: int, data: bytes) -> LogDecision:
    try:
        entry = decode_entry(layout.log_entry_path(seq), seq, data)
    except CorruptDataError as error:
        return LogDecision(seq, f"unreadable: {error}", commits=False, batch=None, data=data)
    stream = entry.record.stream
    batch = None if stream is None else (stream.stream, stream.batch)
    return LogDecision(seq, entry.job, entry.kind is Kind.COMMIT, batch, data)


@dataclass(frozen=True, slots=True)
class StoreSnapshotWithLedger(StoreSnapshot):
    """The state of the destination's simulated store, with a ledger of all decisions ever written to its log."""

    ledger: DecisionLedger = DecisionLedger()


class StoreWithDecisionLedger(StoreResource):
    """A simulated store that also records, in a ledger, every decision that was ever written to the decision log.

    The call ``notes`` returns how many decisions are marked visible: a reader makes it when its read begins and ends.
    A job that runs as one atomic call (`AtomicProgram`) makes the call ``note`` to add a `PlannedCommit`.
    """

    def set_initial_contents(self, image: StoreSnapshot) -> None:
        base = max((seq for seq, kind, _ in _log_records_in_image(image) if kind == "json"), default=0)
        super().set_initial_contents(_attach_ledger(image, DecisionLedger(base=base)))

    def state_key(self, state: object) -> Hashable:
        return (super().state_key(state), cast("StoreSnapshotWithLedger", state).ledger)

    def execute_call(self, state: StoreSnapshot, call: Call, actor: str) -> tuple[Reply, StoreSnapshot]:
        ledger = cast("StoreSnapshotWithLedger", state).ledger
        if call.operation == "notes":
            return Reply(len(ledger.visible)), state
        if call.operation == "note":
            planned = (*ledger.planned, cast("PlannedCommit", call.args[0]))
            return Reply(), _attach_ledger(state, replace(ledger, planned=planned))
        reply, after = super().execute_call(state, call, actor)
        if after is state or call.operation == "run_atomically":
            return reply, after
        for key, mode in _keys_put_by_call(call):
            if (found := _RECORD.fullmatch(key)) is not None:
                created = isinstance(mode, Create)
                ledger = ledger.with_record(int(found[1]), found[2], after.objects[key].data, created=created)
        return reply, _attach_ledger(after, ledger)


def _attach_ledger(image: StoreSnapshot, ledger: DecisionLedger) -> StoreSnapshotWithLedger:
    return StoreSnapshotWithLedger(image.objects, image.uploads, image.renamed_directories, image.key, ledger)


def _keys_put_by_call(call: Call) -> Iterable[tuple[str, object]]:
    """Return the keys that a store call writes, with the mode of each; log decisions come before their marks."""
    if call.operation == "put":
        return [(str(call.args[0]), call.args[2] if len(call.args) > 2 else None)]
    changes = cast("tuple[Change, ...]", call.args[0]) if call.operation == "apply" else ()
    puts = [(change.key, change.mode) for change in changes if isinstance(change, Put)]
    return sorted(puts, key=lambda put: not put[0].endswith(".json"))


def _log_records_in_image(image: StoreSnapshot) -> Iterable[tuple[int, str, bytes]]:
    """Return the records of a decision log in a store's snapshot, decisions before marks."""
    found = ((_RECORD.fullmatch(key), one.data) for key, one in image.objects.items() if key.startswith(LOG_PREFIX))
    records = [(int(match[1]), match[2], data) for match, data in found if match is not None]
    return sorted(records, key=lambda record: (record[1] != "json", record[0]))


def ledger_of_store(view: View, name: str) -> DecisionLedger:
    """Return the ledger (record of all decisions) of the named store in a state of the world."""
    return cast("StoreSnapshotWithLedger", view.states[name]).ledger


def extend_ledger(before: DecisionLedger, image: StoreSnapshot) -> DecisionLedger:
    """Return the ledger `before`, extended by new decisions and new visible or done marks in store contents `image`."""
    for seq, kind, data in _log_records_in_image(image):
        while kind == "json" and seq > before.base + len(before.decisions) + 1:  # made and trimmed, so done
            missed = LogDecision(before.base + len(before.decisions) + 1, "", commits=False, batch=None, data=b"")
            before = replace(before, decisions=(*before.decisions, missed), done=(*before.done, missed.seq))
        before = before.with_record(seq, kind, data, created=True)
    kept = {seq for seq, kind, _ in _log_records_in_image(image) if kind == "json"}
    # Only finished decisions are trimmed; a commit is marked visible before it is finished.
    trimmed = [one for one in before.decisions if one.seq not in kept and one.seq not in before.done]
    shown = [one.seq for one in trimmed if one.commits and one.seq not in before.visible]
    return replace(before, visible=(*before.visible, *shown), done=(*before.done, *(one.seq for one in trimmed)))
