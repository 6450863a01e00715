"""Random changes and random jobs: a transaction is all or nothing, and commits what the steps elsewhere would have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from holdfast.commit import TWO_PHASE, SaveMode, read_snapshot, recover
from holdfast.errors import HoldfastError
from holdfast.stores.base import (
    Change,
    Complete,
    Create,
    Delete,
    Overwrite,
    Put,
    PutMode,
    Require,
    RequireEmpty,
    Update,
    iter_objects,
    iter_uploads,
)
from holdfast_checker.simulated.memory import RestorableStore
from tests.simulation.world import HOME, World

# --- changes ----------------------------------------------------------------------------------------------------------
_KEYS = ("a", "b", "d/a", "d/b")
_DATA = (b"", b"1", b"22")


@dataclass(frozen=True)
class Wish:
    """A change to draw; what it refers to is looked up when it is applied.

    Attributes:
        kind: put, complete, delete, require or empty.
        mode: create, overwrite, update (of the object that is there), or update of another object.
        is_known: whether the etag or the upload exists.
    """

    kind: str
    key: str
    data: bytes
    mode: str
    is_known: bool


_WISHES = st.lists(
    st.builds(
        Wish,
        kind=st.sampled_from(("put", "complete", "delete", "require", "empty")),
        key=st.sampled_from(_KEYS),
        data=st.sampled_from(_DATA),
        mode=st.sampled_from(("create", "overwrite", "update")),
        is_known=st.booleans(),
    ),
    max_size=5,
    unique_by=lambda wish: (wish.key, wish.kind in ("require", "empty")),
)


def _change(store: RestorableStore, wish: Wish) -> Change:
    there = {info.key: info.etag for info in iter_objects(store, "")}
    etag = there.get(wish.key, "0" * 32) if wish.is_known else "1" * 32
    mode: PutMode = {"create": Create(), "overwrite": Overwrite(), "update": Update(etag)}[wish.mode]
    if wish.kind == "put":
        return Put(wish.key, wish.data, mode)
    if wish.kind == "delete":
        return Delete(wish.key, etag if wish.mode == "update" else "")
    if wish.kind == "require":
        return Require(wish.key)
    if wish.kind == "empty":
        return RequireEmpty("d/" if wish.key.startswith("d/") else "e/")
    upload_id = store.create_upload(wish.key)
    part = store.upload_part(wish.key, upload_id, 1, wish.data)
    return Complete(wish.key, upload_id if wish.is_known else "unknown", (part,), mode)


def _holds(there: Mapping[str, str], mode: PutMode, key: str) -> bool:
    if isinstance(mode, Create):
        return key not in there
    return not isinstance(mode, Update) or there.get(key) == mode.etag


def _is_refused(store: RestorableStore, changes: Sequence[Change]) -> bool:
    there = {info.key: info.etag for info in iter_objects(store, "")}
    pending = {upload.upload_id for upload in iter_uploads(store, "")}
    for change in changes:
        match change:
            case Put(key, _, mode):
                holds = _holds(there, mode, key)
            case Complete(key, upload_id, _, mode):
                holds = _holds(there, mode, key) and upload_id in pending
            case Require(key):
                holds = key in there
            case RequireEmpty(key):
                holds = not any(other.startswith(key) for other in there)
            case Delete():
                holds = True
        if not holds:
            return True
    return False


def _content(store: RestorableStore) -> dict[str, bytes]:
    return {info.key: store.get(info.key) for info in iter_objects(store, "")}


@given(st.lists(_WISHES, max_size=6))
def test_any_changes_are_made_all_or_not_at_all(calls: list[list[Wish]]) -> None:
    store = RestorableStore(transactions=True)
    for wishes in calls:
        changes = [_change(store, wish) for wish in wishes]
        content, before = _content(store), store.take_snapshot().key
        deleted = {
            change.key
            for change in changes
            if isinstance(change, Delete) and change.key in content and change.etag in ("", store.head(change.key).etag)
        }
        if _is_refused(store, changes):
            with pytest.raises(HoldfastError):
                store.apply(changes)
            assert store.take_snapshot().key == before
            continue
        store.apply(changes)
        written = {wish.key: wish.data for wish in wishes if wish.kind in ("put", "complete")}
        kept = {key: data for key, data in content.items() if key not in deleted}
        assert _content(store) == {**kept, **written}
        completed = {change.upload_id for change in changes if isinstance(change, Complete)}
        assert completed.isdisjoint(upload.upload_id for upload in iter_uploads(store, ""))


@given(_WISHES)
def test_the_order_of_changes_has_no_meaning(wishes: list[Wish]) -> None:
    contents = []
    for backwards in (False, True):
        store = RestorableStore(transactions=True)
        for key in _KEYS[1:3]:
            store.put(key, b"old")
        changes = [_change(store, wish) for wish in wishes]
        try:
            store.apply(changes[::-1] if backwards else changes)
        except HoldfastError:
            contents.append(None)
        else:
            contents.append(_content(store))
    assert contents[0] == contents[1]


# --- jobs -------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Job:
    """A job to run on each kind of store.

    Attributes:
        files: the directory and the chosen name of each file; without a name, it is generated.
        ends: commit, abort, or die before the commit.
        tool: a file that another tool writes before the job commits.
    """

    mode: SaveMode
    files: tuple[tuple[str, str], ...]
    ends: str
    tool: str


_JOBS = st.lists(
    st.builds(
        Job,
        mode=st.sampled_from(SaveMode),
        files=st.lists(
            st.tuples(st.sampled_from(("p=1", "p=2", "")), st.sampled_from(("", "", "x", "y"))), max_size=3, unique=True
        ).map(tuple),
        ends=st.sampled_from(("commit", "commit", "commit", "abort", "die")),
        tool=st.sampled_from(("", "", "p=1/x", "p=2/tool")),
    ),
    min_size=1,
    max_size=5,
)


def _run(world: World, number: int, job: Job) -> Any:
    ctx = world.context()
    try:
        record = TWO_PHASE.setup_job(ctx, job.mode, {})
    except HoldfastError as error:
        return type(error)
    if record is None:
        return None
    with TWO_PHASE.setup_task(ctx, record, 0) as attempt:
        for at, (directory, name) in enumerate(job.files):
            sink = attempt.open("/".join(filter(None, (directory, name or attempt.file_name(".txt")))))
            sink.write(f"job {number} file {at}".encode())
            sink.close()
        message = attempt.commit()
    if job.tool:
        world.store.put(HOME + job.tool, b"another tool's")
    if job.ends == "die":
        return None
    try:
        if job.ends == "abort":
            return TWO_PHASE.abort_job(ctx, record).committed
        return TWO_PHASE.commit_job(ctx, record, [message], 1).committed
    except HoldfastError as error:
        TWO_PHASE.abort_job(ctx, record)
        return type(error)


def _shown(world: World) -> Counter[tuple[str, bytes]]:
    """Return the files without generated names, which differ between the stores."""
    listing = world.listing().items()
    return Counter((path.rpartition("/")[0] if path.endswith(".txt") else path, content) for path, content in listing)


@given(_JOBS)
def test_a_transaction_commits_what_the_steps_of_other_stores_commit(jobs: list[Job]) -> None:
    worlds = [World("upload"), World("transaction")]
    for number, job in enumerate(jobs):
        note(f"{number}: {job}")
        ends = [_run(world, number, job) for world in worlds]
        assert ends[0] == ends[1]
        shown = [_shown(world) for world in worlds]
        assert shown[0] == shown[1]
        assert len(read_snapshot(worlds[1].context()).files) == shown[1].total()
    for world in worlds:
        before = _shown(world)
        assert recover(world.context()).clean
        assert _shown(world) == before
        assert world.pending() == [] and world.leftovers() == []
