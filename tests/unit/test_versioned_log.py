"""Check a log of plain values: one winner per number, only real gaps, late writers ignored, trimming without loss."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import pytest

from holdfast.errors import (
    CorruptDataError,
    LogRemovedError,
    LogTrimmedError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    StorageFullError,
    UnavailableError,
)
from holdfast.runtime import SerialRunner
from holdfast.stores.base import Change, Complete, Create, ObjectPage, Part, Put, Require, iter_objects
from holdfast.stores.interceptors import InterceptedStore, StoreCall, StoreOperation
from holdfast.stores.memory import MemoryStore
from holdfast.versioned_log import LogView, RecordStore, VersionedLog, record_name
from holdfast_checker.simulated.memory import RestorableStore
from tests.interceptors import FOR_EVER, Fault, FaultMode, Faulty, SimulatedCrash, crash_at
from tests.simulation.world import SimulatedClock

T = TypeVar("T")


@dataclass(frozen=True)
class Note:
    """An entry that has nothing to do with jobs."""

    seq: int
    token: str
    after: str = ""
    text: str = ""


def _encode(note: Note) -> bytes:
    return json.dumps([note.token, note.after, note.text]).encode()


def _decode(path: str, seq: int, data: bytes) -> Note:
    try:
        return Note(seq, *json.loads(data))
    except ValueError as error:
        raise CorruptDataError("no note", path=path) from error


def log_in(store: object, *, conditional: bool = True) -> VersionedLog[Note]:
    records = RecordStore(
        store=store,  # type: ignore[arg-type]  # stores of these tests
        prefix="home/",
        url="memory://home",
        clock=SimulatedClock(),
        conditional=conditional,
    )
    return VersionedLog(records=records, runner=SerialRunner(), folder="log/", decode=_decode)


def append(log: VersionedLog[Note], note: Note, *changes: Change, view: LogView | None = None) -> Note:
    return log.append(note, _encode(note), lambda other: other.token == note.token, view or log.read(), changes)


def fill(log: VersionedLog[Note], count: int, *, done: bool = True) -> list[Note]:
    notes: list[Note] = []
    for seq in range(log.read().head + 1, log.read().head + count + 1):
        before = log.entry(seq - 1).token if seq > 1 and log.exists(seq - 1) else ""
        notes.append(append(log, Note(seq, f"t{seq}", before)))
        if done:
            log.mark(notes[-1], "visible")
            log.mark(notes[-1], "done")
    return notes


def test_an_empty_log() -> None:
    log = log_in(MemoryStore())
    assert log.read() == LogView(oldest=1, head=0, visible=frozenset(), done=frozenset())
    assert log.find_newest(log.read(), lambda note: True, 0) is None


@pytest.mark.parametrize("conditional", [True, False])
def test_entries_come_back_with_their_marks(conditional: bool) -> None:
    log = log_in(MemoryStore(), conditional=conditional)
    notes = fill(log, 3, done=False)
    log.mark(notes[0], "visible")
    log.mark(notes[0], "done")
    log.mark(notes[0], "done")
    view = log.read()
    assert (view.oldest, view.head, view.unfinished) == (1, 3, [2, 3])
    assert view.visible == view.done == {1} and view.stale == ()
    assert list(log.entries([3, 1])) == [notes[2], notes[0]]
    assert log.records.read(log.path(2)) == _encode(notes[1])
    assert log.path(2) == "log/" + record_name(2, "json") == "log/00000000000000000002.json"
    assert log.exists(2) and not log.exists(2, "done") and not log.exists(4)


def test_of_two_writers_one_wins_and_both_learn_which() -> None:
    log = log_in(MemoryStore())
    first = append(log, Note(1, "mine"))
    assert append(log, Note(1, "yours")) == first
    assert append(log, first) == first, "writing one's own entry again finds it"


@pytest.mark.parametrize("times", [1, 2])
def test_a_lost_reply_is_settled_by_content(times: int) -> None:
    fault = Faulty(Fault(FaultMode.LOST_REPLY, StoreOperation.PUT, times=times))
    log = log_in(InterceptedStore(MemoryStore(), fault))
    assert append(log, Note(1, "mine")) == Note(1, "mine")


@pytest.mark.parametrize(
    ("mode", "error"), [(FaultMode.LOST_REPLY, OutcomeUnknownError), (FaultMode.FAIL, UnavailableError)]
)
def test_a_store_that_never_answers(mode: FaultMode, error: type[Exception]) -> None:
    store = MemoryStore()
    faults = (
        Fault(mode, StoreOperation.PUT, times=FOR_EVER),
        Fault(FaultMode.FAIL, StoreOperation.GET, times=FOR_EVER),
    )
    log = log_in(InterceptedStore(store, Faulty(*faults)))
    with pytest.raises(error, match="run the same command again"):
        log.records.create("x", b"mine")


@pytest.mark.parametrize(
    ("lost_replies", "error", "sentence"),
    [(0, StorageFullError, "free some space, then repeat"), (1, OutcomeUnknownError, "reason='the disk is full")],
)
def test_a_full_disk_is_told_as_such(lost_replies: int, error: type[Exception], sentence: str) -> None:
    """To run the same command again would not help, unless it is unknown what an earlier attempt has done."""
    full = StorageFullError("the disk is full: free some space, then repeat")
    faults = [
        Fault(FaultMode.LOST_REPLY, StoreOperation.PUT, times=lost_replies),
        Fault(FaultMode.FAIL, StoreOperation.PUT, times=FOR_EVER, error=full),
        Fault(FaultMode.FAIL, StoreOperation.GET, times=FOR_EVER),
    ]
    log = log_in(InterceptedStore(MemoryStore(), Faulty(*faults[not lost_replies :])))
    with pytest.raises(error, match=sentence) as raised:
        log.records.create("x", b"mine")
    assert type(raised.value) is error


@pytest.mark.parametrize("conditional", [True, False])
def test_a_missing_bucket_is_reported_at_once(conditional: bool) -> None:
    """It is not the answer that S3 gives while another write of the key is in flight."""
    missing = Fault(FaultMode.FAIL, StoreOperation.PUT, times=FOR_EVER, error=NotFoundError("no such bucket"))
    faulty = Faulty(missing)
    log = log_in(InterceptedStore(MemoryStore(), faulty), conditional=conditional)
    with pytest.raises(NotFoundError, match="no such bucket"):
        log.records.create("x", b"mine")
    assert isinstance(log.records.clock, SimulatedClock)
    assert not log.records.clock.waits


def test_a_file_of_somebody_else_is_reported_and_hidden_ones_are_not() -> None:
    store = MemoryStore()
    log = log_in(store)
    fill(log, 1)
    store.put("home/log/.nfs0001", b"")
    assert log.read().head == 1
    store.put("home/log/notes.txt", b"")
    with pytest.raises(CorruptDataError, match="not a record"):
        log.read()


class Lagging(MemoryStore):
    """A store that lists without the entries in `unseen`."""

    unseen: tuple[str, ...] = ()

    def list_page(
        self, prefix: str, start_after: str = "", max_keys: int = 1000, token: str | None = None
    ) -> ObjectPage:
        page = super().list_page(prefix, start_after, max_keys, token)
        return replace(page, objects=tuple(info for info in page.objects if info.key not in self.unseen))


def test_a_gap_in_a_listing_is_checked_before_it_is_believed() -> None:
    store = Lagging()
    log = log_in(store)
    fill(log, 4)
    store.unseen = ("home/" + log.path(2),)
    assert (log.read().oldest, log.read().head) == (1, 4)
    store.delete("home/" + log.path(2))
    assert (log.read().oldest, log.read().head) == (3, 4)


def test_find_searches_what_is_retained_before_it_denies_anything() -> None:
    log = log_in(MemoryStore())
    fill(log, 6)
    assert log.find_newest(log.read(), lambda note: note.token == "t2", 1) == Note(2, "t2", "t1")
    assert log.find_newest(log.read(), lambda note: note.token == "t2", 2) is None
    log.delete_old_entries(log.read(), keep=3)
    view = log.read()
    assert (view.oldest, view.head) == (4, 6)
    assert log.find_newest(view, lambda note: note.token == "t5", 1) == Note(5, "t5", "t4"), "retained, so it is found"
    assert log.find_newest(view, lambda note: note.token == "t9", 3) is None
    with pytest.raises(LogTrimmedError):
        log.find_newest(view, lambda note: note.token == "t2", 1)
    with pytest.raises(LogRemovedError):
        log.find_newest(view, lambda note: True, 7)


def test_find_starts_over_when_entries_are_trimmed_under_it() -> None:
    log = log_in(MemoryStore())
    fill(log, 6)
    old = log.read()
    log.delete_old_entries(old, keep=2)
    assert log.find_newest(old, lambda note: note.token == "t6", 0) == Note(6, "t6", "t5")
    with pytest.raises(LogTrimmedError):
        log.find_newest(old, lambda note: note.token == "t1", 0)


def test_a_writer_from_the_trimmed_past_is_ignored() -> None:
    """It finds its number free again: every reader ignores what it creates there, and the next trim deletes it."""
    log = log_in(MemoryStore())
    fill(log, 2)
    late = Note(3, "late", "t2")
    fill(log, 6)
    log.delete_old_entries(log.read(), keep=2)
    with pytest.raises(LogTrimmedError):
        append(log, late)
    assert log.exists(3)
    view = log.read()
    assert (view.oldest, view.head) == (7, 8) and [seq for seq, _key in view.stale] == [3]
    log.delete_old_entries(log.read(), keep=2)
    assert not log.exists(3) and log.read().stale == ()


def test_an_entry_that_cannot_be_read_is_not_taken_for_trimmed() -> None:
    """It stays in the log's range, so that whoever reads the log learns of the damage."""
    store = MemoryStore()
    log = log_in(store)
    fill(log, 2, done=False)
    store.put(f"home/{log.path(1)}", b"damaged")
    assert (log.read().oldest, log.read().head) == (1, 2)
    with pytest.raises(CorruptDataError):
        log.entry(1)


def test_an_entry_that_others_have_put_more_behind_is_in_order() -> None:
    log = log_in(MemoryStore())
    fill(log, 2)
    found = append(log, Note(3, "t3", "t2"))
    fill(log, 2)
    assert log.find_newest(log.read(), lambda note: note == found, 2) == found


def test_trim_keeps_what_is_unfinished_and_the_entry_before_it() -> None:
    log = log_in(MemoryStore())
    fill(log, 4)
    fill(log, 1, done=False)
    fill(log, 4)
    log.delete_old_entries(log.read(), keep=1)
    view = log.read()
    assert (view.oldest, view.head, view.unfinished) == (4, 9, [5])
    log.mark(log.entry(5), "done")
    log.delete_old_entries(log.read(), keep=1)
    assert (log.read().oldest, log.read().head) == (9, 9), "the newest entry is never deleted"


def test_a_trim_that_dies_at_any_call_is_finished_by_the_next() -> None:
    nth = 0
    while True:
        nth += 1
        store = MemoryStore()
        log = log_in(store)
        fill(log, 5)
        faulty = Faulty(crash_at(nth, after=True))
        dying = log_in(InterceptedStore(store, faulty))
        with contextlib.suppress(SimulatedCrash):
            dying.delete_old_entries(dying.read(), keep=2)
        assert log.read().head == 5 and log.read().oldest <= 4
        assert log.find_newest(log.read(), lambda note: note.token == "t5", 3) == Note(5, "t5", "t4")
        log.delete_old_entries(log.read(), keep=2)
        assert (log.read().oldest, log.read().stale) == (4, ())
        assert [info.key.rpartition("/")[2] for info in iter_objects(store, "home/log/")] == [
            record_name(seq, kind) for seq in (4, 5) for kind in ("done", "json", "visible")
        ]
        if not faulty.fired:
            break
    assert nth > 4


# --- on a store with transactions -------------------------------------------------------------------------------------
def keys(store: MemoryStore) -> list[str]:
    return [info.key for info in iter_objects(store, "")]


def test_changes_are_made_together_with_the_entry_or_not_at_all() -> None:
    store = MemoryStore(transactions=True)
    log = log_in(store)
    assert append(log, Note(1, "a"), Put("data/a", b"1"), Put("home/log/" + record_name(1, "done"), b"")) == Note(
        1, "a"
    )
    assert append(log, Note(1, "b"), Put("data/b", b"1")) == Note(1, "a"), "another writer was first"
    for refused in (Put("data/a", b"2", Create()), Require("data/missing")):
        with pytest.raises(PreconditionError) as caught:
            append(log, Note(2, "c", "a"), Put("data/c", b"1"), refused)
        assert caught.value.variables["key"] == refused.key
    with pytest.raises(NotFoundError, match="upload"):
        append(log, Note(2, "c", "a"), Complete("data/c", "no such upload", (Part(1, "", 1),)))
    assert log.read().head == 1 and log.read().done == {1}
    assert [key for key in keys(store) if key.startswith("data/")] == ["data/a"]


def test_a_store_that_makes_one_change_at_a_time_takes_no_others() -> None:
    with pytest.raises(AssertionError, match="one change at a time"):
        append(log_in(MemoryStore()), Note(1, "a"), Put("data/a", b"1"))


@pytest.mark.parametrize("seq", [1, 3])
def test_a_writer_from_the_trimmed_past_changes_nothing(seq: int) -> None:
    """Readers ignore a late entry, but they would not ignore what is published with it."""
    store = RestorableStore(transactions=True)
    log = log_in(store)
    fill(log, seq - 1)
    late, view = Note(seq, "late", "" if seq == 1 else f"t{seq - 1}"), log.read()
    fill(log, 6)
    log.delete_old_entries(log.read(), keep=2)
    before = store.take_snapshot().key
    with pytest.raises(LogTrimmedError):
        append(log, late, Put("data/late", b"1"), view=view)
    assert store.take_snapshot().key == before
    assert log.read().stale == ()


def test_a_writer_whose_log_was_removed_changes_nothing() -> None:
    store = MemoryStore(transactions=True)
    log = log_in(store)
    fill(log, 3)
    view = log.read()
    for key in keys(store):
        store.delete(key)
    with pytest.raises(LogRemovedError):
        append(log, Note(4, "late", "t3"), Put("data/late", b"1"), view=view)
    assert keys(store) == []


@pytest.mark.parametrize("times", [1, 2, 5])
@pytest.mark.parametrize("mode", [FaultMode.LOST_REPLY, FaultMode.FAIL])
def test_a_transaction_without_answer_is_settled_by_content(mode: FaultMode, times: int) -> None:
    store = MemoryStore(transactions=True)
    log = log_in(InterceptedStore(store, Faulty(Fault(mode, StoreOperation.APPLY, times=times))))
    upload_id = store.create_upload("data/a")
    part = store.upload_part("data/a", upload_id, 1, b"1")
    assert append(log, Note(1, "mine"), Complete("data/a", upload_id, (part,))) == Note(1, "mine")
    assert store.get("data/a") == b"1"


@pytest.mark.parametrize(
    ("mode", "error"), [(FaultMode.LOST_REPLY, OutcomeUnknownError), (FaultMode.FAIL, UnavailableError)]
)
def test_a_transaction_that_is_never_answered(mode: FaultMode, error: type[Exception]) -> None:
    faults = (
        Fault(mode, StoreOperation.APPLY, times=FOR_EVER),
        Fault(FaultMode.FAIL, StoreOperation.GET, times=FOR_EVER),
    )
    log = log_in(InterceptedStore(MemoryStore(transactions=True), Faulty(*faults)))
    with pytest.raises(error, match="run the same command again"):
        append(log, Note(1, "mine"), Put("data/a", b"1"))


def test_a_missing_bucket_is_no_conflict() -> None:
    missing = Fault(FaultMode.FAIL, times=FOR_EVER, error=NotFoundError("no such bucket"))
    log = log_in(InterceptedStore(MemoryStore(transactions=True), Faulty(missing)))
    with pytest.raises(NotFoundError, match="no such bucket"):
        append(log, Note(1, "mine"), Put("data/a", b"1"))


def test_an_entry_of_the_same_work_is_found_after_the_log_was_trimmed() -> None:
    """The writer's own transaction took effect, its reply was lost, and meanwhile others filled and trimmed the log."""
    store = MemoryStore(transactions=True)
    log = log_in(store)
    fill(log, 2)
    mine = Note(3, "mine", "t2")

    def lose_reply(call: StoreCall, proceed: Callable[[], T]) -> T:
        result = proceed()
        if call.operation is StoreOperation.APPLY and log.read().head == 3:
            log.mark(mine, "done")
            append(log, Note(4, "t4", "mine"))
            log.mark(log.entry(4), "done")
            append(log, Note(5, "again", "t4"))
            log.delete_old_entries(log.read(), keep=1)
            raise OutcomeUnknownError("no answer")
        return result

    slow = log_in(InterceptedStore(store, lose_reply))
    is_same = {"mine", "again"}.__contains__
    found = slow.append(mine, _encode(mine), lambda other: is_same(other.token), log.read(), [Put("data/mine", b"1")])
    assert found == Note(5, "again", "t4")
    assert store.get("data/mine") == b"1"


@pytest.mark.parametrize("others", [1, 2])
def test_an_entry_that_was_decided_against_another_history_is_refused(others: int) -> None:
    """The store has lost the entry before it, and another driver, which did not see it, has written others since."""
    store = MemoryStore(transactions=True)
    log = log_in(store)
    fill(log, 2)
    view = log.read()
    store.delete(log.records.key(log.path(2)))
    for seq in range(2, 2 + others):
        append(log, Note(seq, f"other{seq}", "t1" if seq == 2 else "other2"))
    with pytest.raises(LogRemovedError, match="the log was removed: start over"):
        append(log, Note(3, "mine", "t2"), Put("data/mine", b"1"), view=view)
    assert [note.token for note in log.entries(range(1, log.read().head + 1))] == ["t1", "other2", "other3"][
        : 1 + others
    ]
    assert not list(iter_objects(store, "data/"))


def test_a_log_whose_newest_entry_is_lost_keeps_the_one_before_it() -> None:
    store = MemoryStore(transactions=True)
    log = log_in(store)
    fill(log, 3)
    view = log.read()
    store.delete_many([log.records.key(log.path(3, kind)) for kind in ("json", "visible", "done")])
    log.delete_old_entries(view, keep=1)
    assert (log.read().oldest, log.read().head, log.read().done) == (1, 2, {1, 2})
    log.delete_old_entries(log.read(), keep=1)
    assert (log.read().oldest, log.read().head, log.read().done) == (2, 2, {2})


@pytest.mark.parametrize("other", [False, True])
@pytest.mark.parametrize("count", [1, 3])
def test_an_entry_that_is_lost_gets_no_mark_nor_does_another_one_with_its_number(count: int, other: bool) -> None:
    store = MemoryStore(transactions=True)
    log = log_in(store)
    fill(log, count - 1)
    before = log.read().head and log.entry(count - 1).token
    lost = append(log, Note(count, "lost", before or ""))
    store.delete(log.records.key(log.path(count)))
    if other:
        append(log, Note(count, "other", before or ""))
    with pytest.raises(LogRemovedError):
        log.mark(lost, "done")
    assert count not in log.read().done
    fill(log, 1)
    assert log.read().head == count + other


def test_a_mark_of_an_entry_that_was_trimmed_is_not_written() -> None:
    store = MemoryStore(transactions=True)
    log = log_in(store)
    notes = fill(log, 3)
    log.delete_old_entries(log.read(), keep=1)
    before = keys(store)
    log.mark(notes[0], "done")
    assert keys(store) == before
