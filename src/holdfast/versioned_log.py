"""Store numbered records, each created only once, in an object store: a log whose order is the same for all writers.

The log does not interpret its entries. A *mark* is a record that shows how far the work of an entry has progressed:
``visible`` or ``done``. An entry is unfinished until it is marked ``done``.

A writer wins by creating entry ``head + 1``: of several writers, exactly one succeeds. Each entry names the token of
the entry before it. This is how readers recognize and ignore an entry that a late writer created under the number of an
entry that has already been trimmed.

Example::

    log = VersionedLog(records=records, runner=runner, folder="_log/", decode=decode)
    view = log.read()
    winner = log.append(entry, encode(entry), is_same, view)  # entry.seq == view.head + 1
    log.mark(winner, "visible")
    log.mark(winner, "done")
    log.trim(log.read(), keep=300)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from holdfast.errors import (
    CorruptDataError,
    HoldfastError,
    LogRemovedError,
    LogTrimmedError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    StorageFullError,
    UnavailableError,
    UnsupportedError,
)
from holdfast.runtime import Clock, Runner
from holdfast.stores.base import (
    Change,
    Create,
    Delete,
    ObjectStore,
    Overwrite,
    Put,
    Require,
    RequireEmpty,
    as_transactional,
    batched_keys,
    iter_objects,
)

# --- records ----------------------------------------------------------------------------------------------------------
_ATTEMPTS = 6

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordStore:
    """A directory of small records in a store.

    Attributes:
        prefix: key prefix of the directory: empty, or ending in ``/``.
        url: the directory as a person writes it, without credentials; for error messages.
        conditional: False for a store without conditional writes, where two writers may both believe that they created
            a record.
    """

    store: ObjectStore
    prefix: str
    url: str
    clock: Clock
    conditional: bool = True

    def key(self, path: str) -> str:
        """Return the store's key for a path relative to the directory."""
        return self.prefix + path

    def read(self, path: str) -> bytes:
        """Return the bytes of a record.

        Raises:
            NotFoundError: there is no such record.
        """
        return self.store.get(self.key(path))

    def exists(self, path: str) -> bool:
        """Check whether a record exists."""
        try:
            self.store.head(self.key(path))
        except NotFoundError:
            return False
        return True

    def create(self, path: str, data: bytes) -> bytes:
        """Create a record unless it exists, and return the bytes that it has now.

        Guarantee: returns `data` if this call created the record, even if the reply was lost; returns the other
        writer's bytes if another writer created it. After a lost reply, this method writes again under the same
        condition and compares contents, so `data` must differ from what any other writer would write: include a random
        token.

        Raises:
            OutcomeUnknownError: the store did not answer. Read the record before doing anything else.
            UnavailableError: nothing was written. Retry later; if it is a StorageFullError, free space first.
            NotFoundError: the store itself, such as a bucket, does not exist.
            UnsupportedError: the store refuses conditional writes.
        """

        def create_once() -> bytes:
            if self._put_new(path, data):
                return data
            try:
                return self.read(path)
            except NotFoundError as error:  # S3 answers 409 while another write of the key is in flight: ask again
                raise UnavailableError("another write of the record is in flight: repeat", record=path) from error

        return self._repeat_until_answered(path, create_once)

    def create_with_changes(self, path: str, data: bytes, changes: Sequence[Change]) -> bytes:
        """Create a record and make other changes, in one step, unless the record exists; return the bytes it has now.

        Requires: the store makes transactions.

        Guarantee: as for `create`; the changes are made if and only if this call creates the record.

        Raises also:
            PreconditionError, NotFoundError: the store refused one of `changes`, and the record does not exist. Nothing
                happened.
        """
        store = as_transactional(self.store)
        whole = [Put(self.key(path), data, Create()), *changes]

        def create_once() -> bytes:
            try:
                store.apply(whole)
            except (PreconditionError, NotFoundError) as refused:
                # Another writer was first, or an earlier attempt of this call took effect and its reply was lost.
                try:
                    return self.read(path)
                except NotFoundError:
                    raise refused from None
            return data

        return self._repeat_until_answered(path, create_once)

    def put_with_conditions(self, path: str, data: bytes, conditions: Sequence[Change]) -> None:
        """Create or replace a record, in one step with `conditions`, which change nothing. Idempotent.

        Requires: the store makes transactions.

        Raises:
            PreconditionError, NotFoundError: the store refused one of `conditions`.
            OutcomeUnknownError, UnavailableError: see `create`.
        """
        store = as_transactional(self.store)
        self._repeat_until_answered(path, lambda: store.apply([Put(self.key(path), data), *conditions]))

    def _repeat_until_answered(self, path: str, attempt: Callable[[], T]) -> T:
        """Return the result of the first attempt that the store answers; each attempt finds out about those before."""
        last: HoldfastError | None = None
        unknown = False
        for number in range(_ATTEMPTS):
            if number:
                self.clock.sleep(min(0.1 * 2**number, 5.0))
            try:
                return attempt()
            except (OutcomeUnknownError, UnavailableError) as error:
                last = error
                unknown = unknown or isinstance(error, OutcomeUnknownError)
        if isinstance(last, StorageFullError) and not unknown:
            raise last
        kind = OutcomeUnknownError if unknown else UnavailableError
        raise kind(
            "a record could not be written: run the same command again",
            url=self.url,
            record=path,
            reason=str(last),
        ) from last

    def _put_new(self, path: str, data: bytes) -> bool:
        """Write the record if it does not exist; return False if it does."""
        key = self.key(path)
        if self.conditional:
            try:
                self.store.put(key, data, Create())
            except PreconditionError:
                return False
            except UnsupportedError as error:
                raise UnsupportedError(
                    "the store refuses conditional writes, by which one of two writers would learn of the other: use "
                    "another store, or accept that with allow_unfenced",
                    url=self.url,
                ) from error
            return True
        if self.exists(path):  # check, then write: the best that a store without conditional writes allows
            return False
        self.store.put(key, data, Overwrite())
        return False


# --- the log ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class LogView:
    """The state of a log at one moment.

    Attributes:
        oldest: number of the first retained entry, 1 for an empty log. All entries from `oldest` to `head` exist.
        head: number of the newest entry, 0 for an empty log.
        visible: numbers of the entries whose effect is visible.
        done: numbers of the entries that have no work left.
        stale: number and key of each record before `oldest`: leftovers of an interrupted trim, or entries that a late
            writer created under trimmed numbers (see `VersionedLog.append`).
        etag: the newest entry's etag on a store with transactions, which may lose the entry and later hold another
            under its number. Empty on other stores, which lose no entry, and whose etags may change.
    """

    oldest: int
    head: int
    visible: frozenset[int]
    done: frozenset[int]
    stale: tuple[tuple[int, str], ...] = ()
    etag: str = ""

    @property
    def unfinished(self) -> list[int]:
        """Return the numbers of the entries that are not done, oldest first."""
        return [seq for seq in range(self.oldest, self.head + 1) if seq not in self.done]


def record_name(seq: int, kind: str) -> str:
    """Return the file name of an entry (`kind` ``json``) or of one of its marks (``visible``, ``done``)."""
    return f"{seq:020d}.{kind}"


_SEARCHES = 20
_MARKS = ("visible", "done")


class Entry(Protocol):
    """The attributes that every entry of a log must have."""

    @property
    def seq(self) -> int:
        """Return the number of the entry, counted from 1."""
        ...

    @property
    def token(self) -> str:
        """Return the entry's token: a random string that no other entry has."""
        ...

    @property
    def after(self) -> str:
        """Return the token of the previous entry; empty for the first entry."""
        ...


E = TypeVar("E", bound=Entry)


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionedLog(Generic[E]):
    """A log of numbered entries in a folder of a `RecordStore`, for several writers.

    Attributes:
        runner: reads several entries in parallel.
        folder: path of the log relative to the record store; ends in ``/``.
        decode: called with an entry's path, number and bytes. Returns the entry, or raises `CorruptDataError`.
    """

    records: RecordStore
    runner: Runner
    folder: str
    decode: Callable[[str, int, bytes], E]

    def path(self, seq: int, kind: str = "json") -> str:
        """Return the path of an entry, or of one of its marks, relative to the record store."""
        return self.folder + record_name(seq, kind)

    # --- read ---------------------------------------------------------------------------------------------------------
    def read(self) -> LogView:
        """List the log's folder, and return which entries and marks exist.

        Guarantee: an entry counts as removed only if it really has been removed. A listing is not a snapshot, least of
        all on a file system: it may show an entry but not an earlier one, if both were created during the listing. So
        the log looks up each missing number separately. Entries are created in order, so if one does not exist but a
        later one does, the missing one has been removed.

        Raises:
            CorruptDataError: the folder contains a file that is not a record.
        """
        prefix = self.records.key(self.folder)
        seqs: dict[str, set[int]] = {"json": set(), "visible": set(), "done": set()}
        names: list[tuple[int, str]] = []
        etags = {0: ""}
        for info in iter_objects(self.records.store, prefix):
            number, _, kind = info.key[len(prefix) :].partition(".")
            if info.key.startswith(f"{prefix}."):
                continue  # .nfs0000…, .DS_Store: operating systems create these; no record starts with a dot
            if kind not in seqs or len(number) != 20 or not (number.isascii() and number.isdigit()):
                raise self._not_a_record_error(info.key)
            seqs[kind].add(int(number))
            names.append((int(number), info.key))
            if kind == "json":
                etags[int(number)] = info.etag
        oldest, head = self._find_bounds(seqs["json"], seqs["done"])
        return LogView(
            oldest=oldest,
            head=head,
            visible=frozenset(seqs["visible"]),
            done=frozenset(seqs["done"]),
            stale=tuple((seq, key) for seq, key in names if seq < oldest),
            etag=etags[head] if self.records.store.capabilities.transactions else "",
        )

    def _not_a_record_error(self, key: str) -> CorruptDataError:
        return CorruptDataError(
            "the log contains a file that is not a record: move it away, then run the command again",
            url=self.records.url,
            key=key,
        )

    def _find_bounds(self, entries: set[int], done: set[int]) -> tuple[int, int]:
        head = oldest = max(entries, default=0)
        while oldest > 1 and (oldest - 1 in entries or self.exists(oldest - 1)):
            oldest -= 1
        oldest = max(oldest, 1)
        while oldest < head and oldest not in done and self._is_entry_out_of_order(oldest):
            oldest += 1
        return oldest, head

    def _is_entry_out_of_order(self, seq: int) -> bool:
        """Check whether the next entry names a different predecessor, which had this number and was trimmed."""
        try:
            return self.entry(seq + 1).after != self.entry(seq).token
        except (NotFoundError, CorruptDataError):
            return False  # reading the entry reports the error

    def entry(self, seq: int) -> E:
        """Return the entry with the number `seq`.

        Raises:
            NotFoundError: the entry has been trimmed, or does not exist yet.
            CorruptDataError: the stored bytes are not a valid entry.
        """
        path = self.path(seq)
        return self.decode(path, seq, self.records.read(path))

    def entries(self, seqs: Iterable[int]) -> Iterator[E]:
        """Iterate over the entries with these numbers, in the given order."""
        return self.runner.map(self.entry, seqs)

    def exists(self, seq: int, kind: str = "json") -> bool:
        """Check whether an entry, or one of its marks, exists now."""
        return self.records.exists(self.path(seq, kind))

    # --- search -------------------------------------------------------------------------------------------------------
    def find_newest(self, view: LogView, matches: Callable[[E], bool], after: int) -> E | None:
        """Return the newest matching entry with a number above `after`, or None if there is none.

        Guarantee: None is returned only after every retained entry above `after` has been searched.

        Raises:
            LogRemovedError: the log ends before entry `after`, so entries were removed.
            LogTrimmedError: no retained entry matches, and the log does not reach back to `after`: a matching entry may
                have been trimmed.
        """
        for _ in range(_SEARCHES):
            if view.head < after:
                raise self._missing_log_error()
            # Newest first, because the oldest entries may be trimmed during the search.
            entries = self.entries(range(view.head, max(after, view.oldest - 1), -1))
            try:
                found = _find_newest_linked_entry(entries, matches)
            except NotFoundError:
                view = self.read()
                continue
            if found is None and view.oldest > after + 1:
                break
            return found
        raise LogTrimmedError("the log no longer reaches back far enough: start over", url=self.records.url)

    # --- append -------------------------------------------------------------------------------------------------------
    def append(
        self, entry: E, data: bytes, is_same: Callable[[E], bool], view: LogView, changes: Sequence[Change] = ()
    ) -> E:
        """Append `entry` to the log, and return the log's entry: this one or, if another writer was first, another.

        Guarantee: the returned entry is part of the log's one order. Suppose that a writer pauses while others append
        more entries than the log retains. The entry that took the writer's number may then have been trimmed, so the
        writer can still create its own; all readers ignore that late entry. Entries are trimmed one by one, oldest
        first, and the entry before an unfinished one is never trimmed. So while the predecessor of `entry` exists, no
        other entry has ever had the number of `entry`. On a store with transactions, the entry is created only if its
        predecessor is the one in `view`, so no entry is ever created late, and all appends have to use this method. A
        store in a database may lose its newest entries, so that others get their numbers: nothing is appended then.

        Args:
            data: `entry` as bytes that `decode` understands. They contain the token, so no other entry has the same
                bytes.
            is_same: returns whether the entry that it receives belongs to the same unit of work (for Holdfast: the same
                job) as `entry`.
            view: the log for which `entry` was decided, so its number is ``view.head + 1``.
            changes: made in the step that creates the entry, or not at all; only on a store with transactions.

        Returns:
            `entry`; or the entry that another writer has created under its number; or, if the log has moved on, an
            entry of the same unit of work (see `is_same`), whose number may be later.

        Raises:
            PreconditionError, NotFoundError: the store refused one of `changes`. Nothing happened.
            CorruptDataError: on a store with transactions, the folder of an empty log contains another file.
            LogRemovedError, LogTrimmedError: either `entry` was created too late and is ignored, or it is valid and has
                already been trimmed; the log cannot tell which. `LogRemovedError` also means that the store has lost
                the entries at the end of `view`; then nothing happened.
        """
        if self.records.store.capabilities.transactions:
            return self._append_with_changes(entry, data, is_same, view, changes)
        assert not changes, "the store makes one change at a time"
        path = self.path(entry.seq)
        found = self.records.create(path, data)
        if found != data:
            return self.decode(path, entry.seq, found)
        if entry.seq > 1 and self._follows_its_predecessor(entry):
            return entry
        view = self.read()
        if view.head == entry.seq:
            return entry
        settled = self.find_newest(view, is_same, entry.seq - 1)
        if settled is None:
            raise LogTrimmedError("the log no longer reaches back far enough: start over", url=self.records.url)
        return settled

    def _append_with_changes(
        self, entry: E, data: bytes, is_same: Callable[[E], bool], view: LogView, changes: Sequence[Change]
    ) -> E:
        """Create `entry` and make other changes in one step, provided that the entry before it is that of `view`."""
        before: Change = Require(self.records.key(self.path(view.head)), view.etag)
        if view.head == 0:
            before = RequireEmpty(self.records.key(self.folder))
        path = self.path(entry.seq)
        try:
            found = self.records.create_with_changes(path, data, [before, *changes])
        except (PreconditionError, NotFoundError) as error:
            now = self.read()
            if now.head == 0 == view.head and error.variables.get("key") == before.key:
                raise self._not_a_record_error(before.key) from error
            if (now.head, now.etag) == (view.head, view.etag):
                raise  # the log is as the writer knows it, so the store refused one of the other changes
            settled = self.find_newest(now, is_same, view.head)
            if settled is not None:
                return settled
            if now.head == view.head:
                raise self._missing_log_error() from error
            found = self.records.read(path)
        winner = entry if found == data else self.decode(path, entry.seq, found)
        if winner.after != entry.after and not is_same(winner):
            raise self._missing_log_error()
        return winner

    def _missing_log_error(self) -> LogRemovedError:
        return LogRemovedError("the log was removed: start over", url=self.records.url)

    def _follows_its_predecessor(self, entry: E) -> bool:
        """Check whether the previous entry is the one that `entry` names as its predecessor."""
        try:
            return self.entry(entry.seq - 1).token == entry.after
        except NotFoundError:
            return False

    def mark(self, entry: E, mark: str, data: bytes = b"{}\n") -> None:
        """Mark an entry as ``visible`` or ``done``. Idempotent.

        Guarantee: on a store with transactions, the mark is created only if `entry` itself exists under its number. So
        if the store has lost the entry, neither a missing entry nor its replacement is marked.

        Raises:
            LogRemovedError: the store makes transactions, and has lost the entry. Nothing happened.
        """
        path = self.path(entry.seq, mark)
        if not self.records.store.capabilities.transactions:
            self.records.create(path, data)
            return
        try:
            self.records.put_with_conditions(
                path, data, [Require(self.records.key(self.path(entry.seq)), self._read_entry_etag(entry))]
            )
        except (PreconditionError, NotFoundError) as error:
            if self.read().oldest <= entry.seq:  # else another process has marked it, and trimmed the log
                raise self._missing_log_error() from error

    def _read_entry_etag(self, entry: E) -> str:
        """Return the etag of an entry; raises `NotFoundError` or `PreconditionError` if it is not there."""
        key, path = self.records.key(self.path(entry.seq)), self.path(entry.seq)
        etag = self.records.store.head(key).etag
        if self.decode(path, entry.seq, self.records.store.get(key, etag=etag)).token != entry.token:
            raise PreconditionError("another entry has the number", key=key)
        return etag

    # --- trim ---------------------------------------------------------------------------------------------------------
    def delete_old_entries(self, view: LogView, *, keep: int) -> None:
        """Delete finished entries that are older than the newest `keep`.

        An unfinished entry and the entry before it are never deleted: until the unfinished entry is visible, readers
        use the state that the entry before it contains. A store with transactions deletes only if the newest entry of
        `view` exists: it may have lost that, and then others are the newest.

        Crash: leaves a gap, or marks without an entry. `read` starts after the gap, and the next trim deletes the rest.
        """
        store = self.records.store
        retained = view.head - max(keep, 1) + 1
        unfinished = view.unfinished
        limit = min(retained, unfinished[0] - 1 if unfinished else view.head)
        stale = [key for seq, key in view.stale if seq < retained]
        marks = [self.records.key(self.path(seq, mark)) for seq in range(view.oldest, limit) for mark in _MARKS]
        entries = [self.records.key(self.path(seq)) for seq in range(view.oldest, limit)]
        if store.capabilities.transactions:
            if stale or entries:
                newest = Require(self.records.key(self.path(view.head)))
                with suppress(PreconditionError):
                    as_transactional(store).apply([newest, *map(Delete, dict.fromkeys([*stale, *entries, *marks]))])
            return
        for batch in batched_keys(stale):
            store.delete_many(batch)
        # Entries are deleted before their marks, because an entry without its mark would look unfinished. They are
        # deleted one by one, oldest first, so while an entry exists, no later entry has been trimmed (see `append`).
        # Usually there is only one entry to delete.
        for key in entries:
            store.delete(key)
        for batch in batched_keys(marks):
            store.delete_many(batch)


def _find_newest_linked_entry(entries: Iterable[E], matches: Callable[[E], bool]) -> E | None:
    """Return the newest matching entry; ignore entries that the next entry does not name as its predecessor.

    Args:
        entries: the entries, newest first.
    """
    following: E | None = None
    for entry in entries:
        if matches(entry) and (following is None or following.after == entry.token):
            return entry
        following = entry
    return None
