"""Refuse a destination inside another destination, in both directions, before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import pytest

from holdfast.commit import (
    COMMITTERS,
    TWO_PHASE,
    CommitContext,
    CommitSettings,
    SaveMode,
    read_snapshot,
    recover,
    verify,
)
from holdfast.commit.layout import iter_visible, job_record_path
from holdfast.commit.nested_destinations import refuse_read_inside_destination
from holdfast.commit.two_phase.streams import plan_batch
from holdfast.errors import AccessDeniedError, ConflictError, CorruptDataError, InvalidRequestError
from holdfast.stores.base import iter_objects
from holdfast.stores.interceptors import InterceptedStore, StoreCall, StoreOperation
from tests.interceptors import Fault, FaultMode, Recorder, SimulatedCrash
from tests.simulation.world import (
    HOME,
    PUBLICATIONS,
    TASKS,
    World,
    allow_nesting,
    expected,
    interleavings,
    run_job,
    run_tasks,
    start,
)
from tests.unit.commit.attempts import recovered_jobs
from tests.unit.commit.committer_jobs import Bucket

T = TypeVar("T")

OUTER = "out put/"
INNER = f"{HOME}day=1/"


def keys(world: World) -> list[str]:
    return [info.key for info in iter_objects(world.store, "")]


def nested(monkeypatch: pytest.MonkeyPatch, publication: str = "upload") -> World:
    """Return a world where `HOME` lies inside `OUTER`, as in data from before this was refused."""
    world = World(publication)
    with monkeypatch.context() as patched:
        allow_nesting(patched)
        run_job(world.context(home=OUTER), "outer")
        run_job(world.context(), "inner")
    return world


# --- above and below --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", list(SaveMode))
@pytest.mark.parametrize("publication", PUBLICATIONS)
@pytest.mark.parametrize("home", [INNER, f"{HOME}deep/er/", f"{HOME}x/"])
def test_inside_another_destination(publication: str, mode: SaveMode, home: str) -> None:
    """The usual mistake is to write to the directory of a partition."""
    world = World(publication)
    run_job(world.context(), "outer")
    before = keys(world)
    with pytest.raises(
        InvalidRequestError,
        match=r"lies inside another one.*overwrite-partitions.*outer='memory://world/out put/dataset1'$",
    ):
        TWO_PHASE.setup_job(world.context(home=home), mode, {})
    assert keys(world) == before


@pytest.mark.parametrize("mode", [SaveMode.APPEND, SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS])
@pytest.mark.parametrize("home", [OUTER, ""])
def test_around_another_destination(home: str, mode: SaveMode) -> None:
    world = World("upload")
    run_job(world.context(), "inner")
    before = keys(world)
    with pytest.raises(
        InvalidRequestError, match=r"another destination lies inside this one.*inner='memory://world/out put/dataset1'$"
    ):
        TWO_PHASE.setup_job(world.context(home=home), mode, {})
    assert keys(world) == before


def test_streams_are_refused_likewise() -> None:
    world = World("upload")
    run_job(world.context(), "outer")
    for home in (INNER, OUTER):
        with pytest.raises(InvalidRequestError, match="inside"):
            plan_batch(world.context(home=home), SaveMode.APPEND, {})


@pytest.mark.parametrize("committer", sorted(COMMITTERS))
def test_every_committer_refuses(committer: str) -> None:
    bucket = Bucket(committer)
    owner = Bucket("two_phase")
    owner.store = bucket.store
    owner.run_job(owner.context(), "there")
    before = [info.key for info in iter_objects(bucket.store, "")]
    for home in ("out put/dataset1/day=1/", "out put/", ""):
        for mode in bucket.value.modes - {SaveMode.FAIL, SaveMode.IGNORE}:
            with pytest.raises(InvalidRequestError, match="inside"):
                bucket.value.setup_job(bucket.context(home), mode, {})
    assert [info.key for info in iter_objects(bucket.store, "")] == before


@pytest.mark.parametrize("committer", sorted(set(COMMITTERS) - {"two_phase"}))
def test_an_overwrite_of_a_classic_committer_checks_every_time(committer: str) -> None:
    """It deletes everything that it finds, and no log shows what existed before."""
    bucket = Bucket(committer)
    bucket.run_job(bucket.context("out put/"), "outer")
    owner = Bucket("two_phase")
    owner.store = bucket.store
    owner.run_job(owner.context(), "inner")
    assert bucket.value.setup_job(bucket.context("out put/"), SaveMode.APPEND, {}) is not None
    for mode in bucket.value.modes & {SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS}:
        with pytest.raises(InvalidRequestError, match="inside"):
            bucket.value.setup_job(bucket.context("out put/"), mode, {})
    assert sorted(owner.visible().values()) == owner.expected("inner")


def test_neighbors_and_skipped_folders_are_no_nesting() -> None:
    """Readers of a folder do not see its subfolders ``_archive/`` and ``.old/``."""
    world = World("upload")
    for home in (
        HOME,
        "out put/dataset10/",
        "out put/dataset/",
        "out put/dataset1-old/",
        f"{HOME}_archive/t/",
        f"{HOME}.old/",
    ):
        run_job(world.context(home=home), home)
    world.store.put("out put/dataset2/_old/_holdfast/log/00000000000000000001.json", b"not even a record")
    run_job(world.context(home="out put/dataset2/"), "new")
    for home in (HOME, "out put/dataset10/", f"{HOME}_archive/t/"):
        assert sorted(file.path for file in read_snapshot(world.context(home=home)).files) == sorted(
            world.listing(home)
        )
        run_job(world.context(home=home), "again", SaveMode.OVERWRITE)
    assert world.contents(f"{HOME}.old/") == expected(f"{HOME}.old/")


def test_our_own_folders_do_not_look_like_destinations() -> None:
    world = World("upload")
    job = start(world.context())
    world.store.put(f"{HOME}_holdfast/jobs/{job.job}/x/_holdfast/log/00000000000000000001.json", b"{}")
    TWO_PHASE.commit_job(world.context(), job, run_tasks(world.context(), job, "new"), TASKS)
    assert world.contents() == expected("new")


def test_a_folder_whose_name_ends_like_ours_is_no_log() -> None:
    world = World("upload")
    inner: list[str] = []
    for folder in ("of", "day=1/"):
        world.store.put(f"{HOME}{folder}_holdfast/log/_1.visible", b"{}")
    assert list(iter_visible(world.store, HOME, inner.append)) == []
    assert inner == [f"{HOME}day=1/"]


def test_the_root_of_a_bucket() -> None:
    world = World("upload")
    run_job(world.context(home=""), "root")
    run_job(world.context(home=""), "again", SaveMode.OVERWRITE)
    with pytest.raises(InvalidRequestError, match=r"outer='memory://world'$|outer='memory://world/'$"):
        start(world.context())


def test_directory_markers_make_no_destination() -> None:
    world = World("upload")
    for folder in ("", OUTER, HOME, INNER):
        for key in (folder, f"{folder}_holdfast/", f"{folder}_holdfast/log/", f"{folder}_holdfast/jobs/"):
            if key:
                world.store.put(key, b"")
    run_job(world.context(), "new")
    assert world.contents() == expected("new")


def test_a_log_above_that_cannot_be_read_stops() -> None:
    world = World("upload")
    world.store.put("out put/_holdfast/log/notes.txt", b"x")
    with pytest.raises(CorruptDataError, match=r"not a record.*url='memory://world/out put'"):
        start(world.context())


# --- what is no destination yet ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("home", [OUTER, INNER])
def test_aborted_jobs_make_no_destination(home: str) -> None:
    """Of two first jobs at one moment both may be refused, and aborted; then one of them runs alone."""
    world = World("upload")
    for _ in range(3):
        TWO_PHASE.abort_job(world.context(home=home), start(world.context(home=home)))
    run_job(world.context(), "new")
    with pytest.raises(InvalidRequestError, match="inside"):
        start(world.context(home=home))
    run_job(world.context(), "more")


def test_a_log_of_which_only_aborts_are_left_is_that_of_a_destination() -> None:
    world = World("upload")
    ctx = world.context(home=OUTER)
    few = replace(ctx, settings=CommitSettings(part_size_bytes=4, log_retention_entries=2))
    run_job(few, "outer")
    for _ in range(4):
        TWO_PHASE.abort_job(few, start(few))
    with pytest.raises(InvalidRequestError, match="inside another one"):
        start(world.context())


# --- two first jobs at one moment -------------------------------------------------------------------------------------
@pytest.mark.parametrize("publication", PUBLICATIONS)
@pytest.mark.parametrize("last", [OUTER, HOME])
def test_two_first_jobs_that_started_at_once(publication: str, last: str) -> None:
    """Neither finds the other when it starts."""
    world = World(publication)
    jobs = {home: start(world.context(home=home)) for home in (OUTER, HOME)}
    messages = {home: run_tasks(world.context(home=home), job, "new") for home, job in jobs.items()}
    for home in sorted(jobs, key=lambda home: home == last):
        ctx = world.context(home=home)
        with pytest.raises(ConflictError, match="only one of the two can exist"):
            TWO_PHASE.commit_job(ctx, jobs[home], messages[home], TASKS)
        TWO_PHASE.abort_job(ctx, jobs[home])
        break
    ctx = world.context(home=last)
    assert TWO_PHASE.commit_job(ctx, jobs[last], messages[last], TASKS).committed
    assert world.contents(OUTER) == expected("new") and world.pending() == []


@pytest.mark.parametrize("publication", PUBLICATIONS)
@pytest.mark.parametrize(("home", "other"), [(OUTER, HOME), (HOME, OUTER)])
def test_at_no_moment_do_both_commit(publication: str, home: str, other: str) -> None:
    """While one job starts, runs and commits, the other one does all that between two of its store calls."""
    committed: list[str] = []

    def attempt(ctx: CommitContext) -> None:
        job = None
        try:
            job = start(ctx)
            TWO_PHASE.commit_job(ctx, job, run_tasks(ctx, job, "new"), TASKS)
        except (ConflictError, InvalidRequestError):
            if job is not None:
                TWO_PHASE.abort_job(ctx, job)
        else:
            committed.append(ctx.prefix)

    def prepare(world: World) -> tuple[Callable[[CommitContext], object], Callable[[], object]]:
        committed.clear()
        return lambda ctx: attempt(replace(ctx, prefix=home)), lambda: attempt(world.context(home=other))

    ended = set()
    for world in interleavings(publication, prepare):
        ended.add(tuple(committed))
        assert len(committed) <= 1
        assert world.contents(OUTER) == (expected("new") if committed else [])
        assert world.pending() == [] and world.leftovers(OUTER) == [] and world.leftovers() == []
    assert {(home,), (other,)} <= ended, "whoever is early enough wins"


def test_a_dead_first_job_is_recovered_first() -> None:
    world = World("upload")
    dead = start(world.context(home=OUTER))
    job = start(world.context())
    messages = run_tasks(world.context(), job, "new")
    with pytest.raises(ConflictError, match=r"holdfast recover.*other='memory://world/out put'"):
        TWO_PHASE.commit_job(world.context(), job, messages, TASKS)
    assert recover(world.context(home=OUTER)).clean
    assert OUTER + job_record_path(dead.job) not in keys(world)
    assert TWO_PHASE.commit_job(world.context(), job, messages, TASKS).committed


# --- rights and cost --------------------------------------------------------------------------------------------------
def test_folders_above_that_may_not_be_listed() -> None:
    """The credentials cover only the destination: folders above are not checked, and the job continues."""
    world = World("upload")
    run_job(world.context(home=OUTER), "outer")

    def forbid(call: StoreCall, proceed: Callable[[], T]) -> T:
        if not call.key.startswith(HOME.rstrip("/")):
            raise AccessDeniedError("out of bounds", key=call.key)
        return proceed()

    ctx = world.context(store=InterceptedStore(world.store, forbid))
    run_job(ctx, "new")
    assert world.contents() == expected("new")
    refuse_read_inside_destination(ctx)


def test_what_it_costs() -> None:
    """One listing per folder above at every start, for the first job one more each and one of everything below."""
    world, recorded = World("upload"), Recorder()
    ctx = world.context(store=InterceptedStore(world.store, recorded))

    def listings(wanted: tuple[str, ...]) -> list[str]:
        return [call.key for call in recorded.calls if call.operation is StoreOperation.LIST and call.key in wanted]

    above = ("_holdfast/log/", "out put/_holdfast/log/", "_holdfast/jobs/", "out put/_holdfast/jobs/", HOME)
    job = start(ctx)
    assert listings(above) == ["_holdfast/log/", "out put/_holdfast/log/", HOME]
    messages = run_tasks(ctx, job, "new")
    recorded.clear()
    TWO_PHASE.commit_job(ctx, job, messages, TASKS)
    decided = listings(above)
    assert sorted(decided) == sorted([*above, HOME]), "the own folder is listed to its beginning and from its end"
    recorded.clear()
    run_job(ctx, "more")
    assert listings(above) == ["_holdfast/log/", "out put/_holdfast/log/"]


# --- data from before -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_readers_of_the_outer_one_say_what_to_do(monkeypatch: pytest.MonkeyPatch, publication: str) -> None:
    world = nested(monkeypatch, publication)
    for look in (read_snapshot, verify):
        with pytest.raises(
            InvalidRequestError,
            match=r"recover on it, then move it out.*_holdfast.*inner='memory://world/out put/dataset1'",
        ):
            look(world.context(home=OUTER))
    assert verify(world.context()).verified, "the inner one can be read"
    for info in list(iter_objects(world.store, f"{HOME}_holdfast/")):
        world.store.delete(info.key)
    assert len(read_snapshot(world.context(home=OUTER)).files) == 2 * len(expected("outer"))


@pytest.mark.parametrize("mode", [SaveMode.APPEND, SaveMode.OVERWRITE])
def test_a_folder_of_records_is_deleted_after_a_recovery(mode: SaveMode) -> None:
    """A job that is committed and not finished would lose its files, or get those back that it has replaced."""
    decided = 0
    for bucket, job, _commits in recovered_jobs("two_phase", mode, old="old"):
        ctx = bucket.context()
        committed = {file.path for file in read_snapshot(ctx).files}
        for info in list(iter_objects(ctx.store, ctx.prefix)):
            if "/_holdfast/" in info.key:
                ctx.store.delete(info.key)
        assert {key.removeprefix(ctx.prefix) for key in bucket.visible()} == committed
        decided += any(job.job in path for path in committed)
    assert decided > 3


@pytest.mark.parametrize("mode", [SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS])
@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_an_overwrite_of_the_outer_one_keeps_the_inner_ones_rows(
    monkeypatch: pytest.MonkeyPatch, publication: str, mode: SaveMode
) -> None:
    world = nested(monkeypatch, publication)
    before = world.listing(OUTER)
    ctx = world.context(home=OUTER)
    job = start(ctx, mode)
    with pytest.raises(InvalidRequestError, match="another destination lies inside"):
        TWO_PHASE.commit_job(ctx, job, run_tasks(ctx, job, "new"), TASKS)
    TWO_PHASE.abort_job(ctx, job)
    assert world.listing(OUTER) == before and world.pending() == []
    with pytest.raises(InvalidRequestError, match="lies inside another one"):
        start(world.context())
    assert recover(ctx).clean and recover(world.context()).clean
    assert world.listing(OUTER) == before


def test_a_folder_of_a_destination_is_not_read_by_itself() -> None:
    """Its files lack the partition column, and columns that were added to the table later."""
    world = World("upload")
    run_job(world.context(home=OUTER), "outer")
    with pytest.raises(InvalidRequestError, match="read the destination, with filters") as refused:
        refuse_read_inside_destination(world.context(home=f"{OUTER}k=1/"))
    assert str(refused.value.variables["destination"]).rstrip("/").endswith(OUTER.rstrip("/"))
    refuse_read_inside_destination(world.context(home=OUTER))
    refuse_read_inside_destination(world.context(home="beside/"))
    refuse_read_inside_destination(world.context(home=f"{OUTER}_archive/old/"))


# --- data of other committers, and first jobs in the middle -----------------------------------------------------------
@pytest.mark.parametrize("mode", list(SaveMode))
def test_a_committer_without_a_log_checks_below_before_it_replaces_data(mode: SaveMode) -> None:
    """Its destination has no log, so another one may have been created inside it since its first job."""
    bucket = Bucket("staging-directory")
    bucket.run_job(bucket.context(OUTER), "outer")
    inner = Bucket("two_phase")
    inner.store = bucket.store
    inner.run_job(inner.context(INNER), "inner")
    before = bucket.visible(OUTER)
    if mode in (SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS):
        staging = COMMITTERS["staging-partitioned" if mode is SaveMode.OVERWRITE_PARTITIONS else bucket.committer]
        with pytest.raises(InvalidRequestError, match="another destination lies inside this one"):
            staging.setup_job(bucket.context(OUTER), mode, {})
    elif mode is SaveMode.APPEND:
        assert bucket.start(bucket.context(OUTER), mode)
    assert bucket.visible(OUTER) == before


def test_inside_a_destination_whose_first_commit_is_not_visible_yet() -> None:
    """Its driver died directly after the decision: the log has one entry and no marks."""
    world = World("upload")
    job = start(world.context())
    messages = run_tasks(world.context(), job, "outer")
    dying = world.context(Fault(FaultMode.CRASH_BEFORE, StoreOperation.COMPLETE_UPLOAD))
    with pytest.raises(SimulatedCrash):
        TWO_PHASE.commit_job(dying, job, messages, TASKS)
    with pytest.raises(InvalidRequestError, match="lies inside another one"):
        start(world.context(home=INNER))
