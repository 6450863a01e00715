"""The decision log: numbered records, each created once. Creating entry `head + 1` is the moment of decision (C8)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from holdfast.commit import layout
from holdfast.commit.codec import decode_entry, encode_entry
from holdfast.commit.context import CommitContext, create_record
from holdfast.commit.ids import JobId
from holdfast.commit.records import LogEntry, LogState
from holdfast.errors import CorruptDataError, FencedError, NotFoundError
from holdfast.stores.base import batched_keys, iter_objects

__all__ = [
    "LogView",
    "Newest",
    "append_entry",
    "find_decision",
    "job_exists",
    "read_entries",
    "read_entry",
    "read_log",
    "read_newest",
    "record_exists",
    "trim_log",
    "write_mark",
]

_SEARCHES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LogView:
    """The log as one listing shows it.

    Attributes:
        oldest: first entry that is still kept (1 if the log is empty); all from `oldest` to `head` are there.
        head: newest entry, 0 if there is none.
        visible: entries whose files are all visible and whose replaced files count no more.
        done: entries of which nothing is left to do.
        stale: number and key of each record before `oldest`: what a trim that was cut off left, or what was decided in
            the trimmed past (see `append_entry`).
    """

    oldest: int
    head: int
    visible: frozenset[int]
    done: frozenset[int]
    stale: tuple[tuple[int, str], ...] = ()

    @property
    def unfinished(self) -> list[int]:
        return [seq for seq in range(self.oldest, self.head + 1) if seq not in self.done]


def read_log(ctx: CommitContext) -> LogView:
    """List the log.

    Guarantee: a gap is believed only if it is one. A listing is no snapshot, on a file system least of all: it may show
    an entry without an earlier one that was made meanwhile. So each number that the listing lacks is looked at by
    itself; entries are made in order, so one that is missing below another has been removed.

    Raises:
        CorruptDataError: something is in the log's folder that Holdfast did not put there.
    """
    prefix = ctx.key(layout.LOG)
    seqs: dict[str, set[int]] = {"json": set(), "visible": set(), "done": set()}
    names: list[tuple[int, str]] = []
    for info in iter_objects(ctx.store, prefix):
        number, _, kind = info.key[len(prefix) :].partition(".")
        if info.key.startswith(f"{prefix}."):
            continue  # .nfs0000…, .DS_Store: systems leave such, and no record of ours starts with a dot
        if kind not in seqs or len(number) != 20 or not (number.isascii() and number.isdigit()):
            raise CorruptDataError(
                "the decision log holds a file that is not a record: move it away, then run the command again",
                url=ctx.url,
                key=info.key,
            )
        seqs[kind].add(int(number))
        names.append((int(number), info.key))
    entries = seqs["json"]
    head = oldest = max(entries, default=0)
    while oldest > 1 and (oldest - 1 in entries or record_exists(ctx, oldest - 1, "json")):
        oldest -= 1
    oldest = max(oldest, 1)
    while oldest < head and oldest not in seqs["done"] and _is_out_of_order(ctx, oldest):
        oldest += 1
    return LogView(
        oldest=oldest,
        head=head,
        visible=frozenset(seqs["visible"]),
        done=frozenset(seqs["done"]),
        stale=tuple((seq, key) for seq, key in names if seq < oldest),
    )


def read_entry(ctx: CommitContext, seq: int) -> LogEntry:
    """One decision.

    Raises:
        CorruptDataError: its bytes are not a decision.
        NotFoundError: it was trimmed meanwhile.
    """
    path = layout.log_entry(seq)
    return decode_entry(path, seq, ctx.store.get(ctx.key(path)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Newest:
    """What the next decision carries on.

    Attributes:
        state: what holds after the newest decision.
        token: of the newest decision, empty if there is none.
    """

    state: LogState = field(default_factory=LogState)
    token: str = ""


def read_newest(ctx: CommitContext, view: LogView) -> Newest | None:
    """What the newest decision leaves; None if the log has moved on and was trimmed meanwhile."""
    if view.head == 0:
        return Newest()
    try:
        entry = read_entry(ctx, view.head)
    except NotFoundError:
        return None
    return Newest(state=entry.state, token=entry.token)


def read_entries(ctx: CommitContext, seqs: Iterable[int]) -> Iterator[LogEntry]:
    """Decisions by their numbers, in the order that is asked for."""
    return ctx.runner.map(lambda seq: read_entry(ctx, seq), seqs)


def find_decision(ctx: CommitContext, view: LogView, job: JobId, after: int) -> LogEntry | None:
    """The decision about `job` among the entries behind `after`, or None if nobody has decided yet.

    What the log retains is searched before anything is denied.

    Raises:
        FencedError: no retained entry is about the job, and the log does not reach back to `after`: it was trimmed or
            removed, so nobody can prove any more that the job was not aborted. Run the job again.
    """
    for _ in range(_SEARCHES):
        if view.head < after:
            raise FencedError("the decision log was removed while the job ran: run the job again", url=ctx.url)
        # The newest first: the oldest are those that may be trimmed meanwhile.
        entries = read_entries(ctx, range(view.head, max(after, view.oldest - 1), -1))
        try:
            found = _find(entries, job)
        except NotFoundError:
            view = read_log(ctx)
            continue
        if found is None and view.oldest > after + 1:
            break
        return found
    raise _left_behind(ctx, job)


def _find(entries: Iterable[LogEntry], job: JobId) -> LogEntry | None:
    """The job's entry among decisions from the newest backwards, unless the next one was not made after it."""
    following: LogEntry | None = None
    for entry in entries:
        if entry.job == job and (following is None or following.after == entry.token):
            return entry
        following = entry
    return None


def append_entry(ctx: CommitContext, entry: LogEntry) -> LogEntry:
    """Create `entry` at its number: returns the entry that stands there now, the caller's own or the winner's.

    Guarantee: what is returned is part of the log's one order. A driver that was held up while more were decided than
    the log keeps finds the number free again, since the decision that had it is trimmed: its entry counts for nobody.
    Entries are trimmed one by one, and never the one before an unfinished one; so as long as the one that this entry
    was made after is there, the number had not been used.

    Raises:
        FencedError: the entry was made in the trimmed past, or counts and is trimmed again: the log cannot tell. If the
            job has its record, nobody has decided it, and the next trim takes the entry away; else the job is over.
    """
    path = layout.log_entry(entry.seq)
    data = encode_entry(entry)
    found = create_record(ctx, path, data)
    if found != data:
        return decode_entry(path, entry.seq, found)
    if entry.seq > 1 and _stands_behind_its_own(ctx, entry):
        return entry
    view = read_log(ctx)
    if view.head == entry.seq:
        return entry
    settled = find_decision(ctx, view, entry.job, entry.seq - 1)
    if settled is None:
        raise _left_behind(ctx, entry.job)
    return settled


def _stands_behind_its_own(ctx: CommitContext, entry: LogEntry) -> bool:
    """Whether the entry before is the one that this entry was made after, not another that came late as well."""
    try:
        return read_entry(ctx, entry.seq - 1).token == entry.after
    except NotFoundError:
        return False


def _left_behind(ctx: CommitContext, job: JobId) -> FencedError:
    return FencedError(
        "more jobs were decided on the destination than its log keeps: raise log_retention_entries and run the job "
        "again",
        url=ctx.url,
        job=job,
    )


def _is_out_of_order(ctx: CommitContext, seq: int) -> bool:
    """Whether the next decision was made after another one of this number, which is trimmed."""
    try:
        return read_entry(ctx, seq + 1).after != read_entry(ctx, seq).token
    except (NotFoundError, CorruptDataError):
        return False  # who reads it finds out


def job_exists(ctx: CommitContext, job: JobId) -> bool:
    """Whether the job has its record still: it is not finished, whatever the log says."""
    return _exists(ctx, layout.job_record(job))


def write_mark(ctx: CommitContext, seq: int, mark: str, data: bytes = b"{}\n") -> None:
    """Note that a decision is ``visible`` or ``done``. Again is no error."""
    create_record(ctx, layout.log_mark(seq, mark), data)


def trim_log(ctx: CommitContext, view: LogView) -> None:
    """Drop finished decisions behind the newest `log_retention_entries`.

    Never one of those, nor an unfinished one, nor the one before it: readers go by the state that it carries while the
    unfinished one is not visible.

    Crash: a gap, or marks without an entry; `read_log` starts behind the gap and the next trim takes the rest.
    """
    retained = view.head - max(ctx.settings.log_retention_entries, 1) + 1
    unfinished = view.unfinished
    limit = min(retained, unfinished[0] - 1 if unfinished else view.head)
    stale = [key for seq, key in view.stale if seq < retained]
    marks = [ctx.key(layout.log_mark(seq, mark)) for seq in range(view.oldest, limit) for mark in ("visible", "done")]
    for batch in batched_keys(stale):
        ctx.store.delete_many(batch)
    # Entries go before their marks: an entry without its mark would look unfinished. And one by one, the oldest first:
    # while one is there, none behind it is gone (see `append_entry`). As a rule it is one.
    for seq in range(view.oldest, limit):
        ctx.store.delete(ctx.key(layout.log_entry(seq)))
    for batch in batched_keys(marks):
        ctx.store.delete_many(batch)


def record_exists(ctx: CommitContext, seq: int, mark: str) -> bool:
    """Whether a record of a decision is there now: ``json`` for the decision itself, ``visible`` or ``done``."""
    return _exists(ctx, layout.log_mark(seq, mark))


def _exists(ctx: CommitContext, path: str) -> bool:
    try:
        ctx.store.head(ctx.key(path))
    except NotFoundError:
        return False
    return True
