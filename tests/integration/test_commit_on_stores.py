"""Commit jobs on real stores: local disk, SeaweedFS and moto, with threads, odd names and killed drivers."""

from __future__ import annotations

import contextlib
import dataclasses
import getpass
import itertools
import json
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.commit import TWO_PHASE, CommitContext, SaveMode, open_context, read_snapshot, recover, verify
from holdfast.commit.layout import iter_visible
from holdfast.errors import (
    AccessDeniedError,
    DestinationExistsError,
    InvalidRequestError,
    NotFoundError,
    StorageFullError,
    UnavailableError,
)
from holdfast.namespace import Configuration, init_namespace
from holdfast.s3_server import SeaweedServer
from holdfast.stores.base import iter_objects, iter_uploads, multipart
from holdfast.stores.s3 import S3Options
from tests.patience import PATIENCE_S
from tests.servers.moto import MotoServer
from tests.simulation.world import TASKS, expected, run_job, run_task, run_tasks, start
from tests.variants import variants

BUCKET = "holdfast-commit"
KILLER = Path(__file__).with_name("kill_driver.py")
ODD_NAMES = ["out put", "50% of+all", "%20+%2B", "naïve-☃-😀", "a=b&c;d", "dataset1", "dataset10", "it's (1) ,@!"]


@dataclasses.dataclass
class Place:
    """A destination of a test."""

    root: str
    s3: S3Options | None

    def context(self, name: str) -> CommitContext:
        return open_context(f"{self.root}/{name}", store_options=[self.s3] if self.s3 else [], threads=8)

    def context_at_root(self) -> CommitContext:
        return open_context(self.root, store_options=[self.s3] if self.s3 else [])


@pytest.fixture(scope="module")
def weed(server: SeaweedServer) -> S3Options:
    server.create_bucket(BUCKET)
    return server.options


@pytest.fixture(scope="module")
def moto() -> Iterator[S3Options]:
    with MotoServer() as server:
        server.create_bucket(BUCKET)
        yield server.options


# The second server in `make check`: it answers in Python, and the conformance suite runs on it by default.
@pytest.fixture(params=variants(["local", "namespace", "weed", "moto"], "namespace", "weed"))
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    if request.param == "local":
        return Place(str(tmp_path), None)
    if request.param == "namespace":
        database = f"sqlite://{tmp_path}/ns.db"
        monkeypatch.setenv("HOLDFAST_NAMESPACE_NS", database)
        configuration = Configuration(name="ns", data=str(tmp_path / "data"), superuser=getpass.getuser())
        init_namespace(configuration, database, register=False)
        return Place(f"holdfast://ns/{request.node.name}", None)
    return Place(f"s3://{BUCKET}/{request.node.name}", request.getfixturevalue(request.param))


def contents(ctx: CommitContext) -> list[bytes]:
    return sorted(ctx.store.get(info.key) for _, info in iter_visible(ctx.store, ctx.prefix))


def pending(ctx: CommitContext) -> list[str]:
    return [upload.key for upload in iter_uploads(multipart(ctx.store), ctx.prefix)]


def close(ctx: CommitContext) -> None:
    ctx.store.close()


@pytest.mark.s3
def test_jobs_from_start_to_end(place: Place) -> None:
    """C1, C2, C5: append, overwrite, partitions and abort with unusual names (HADOOP-17112)."""
    for name in ODD_NAMES:
        ctx = place.context(name)
        run_job(ctx, name)
        run_job(ctx, "more")
        assert contents(ctx) == sorted(expected(name) + expected("more"))
        run_job(ctx, "new", SaveMode.OVERWRITE)
        with pytest.raises(DestinationExistsError):
            TWO_PHASE.setup_job(ctx, SaveMode.FAIL, {})
        job = start(ctx, SaveMode.OVERWRITE)
        run_tasks(ctx, job, "never")
        assert not TWO_PHASE.abort_job(ctx, job).committed
        assert contents(ctx) == expected("new") and pending(ctx) == []
        report = verify(ctx)
        assert report.verified, report.problems
        close(ctx)
    for name in ODD_NAMES:  # C7: a job in dataset10, say, did not touch dataset1
        ctx = place.context(name)
        assert contents(ctx) == expected("new")
        assert len(read_snapshot(ctx).files) == len(expected("new"))
        close(ctx)


@pytest.mark.s3
def test_odd_partition_values(place: Place) -> None:
    ctx = place.context("table")
    job = start(ctx)
    values = ["a b", "50%25", "x+y", "ü☃😀", "a%2Fb", "__HIVE_DEFAULT_PARTITION__", "2026-11-21 09%3A33", "'\"", "&<>"]
    with TWO_PHASE.setup_task(ctx, job, 0) as attempt:
        paths = [f"k {number}={value}/{attempt.file_name('.txt')}" for number, value in enumerate(values)]
        for path in paths:
            with contextlib.closing(attempt.open(path)) as sink:
                sink.write(path.encode())
        commit = attempt.commit()
    TWO_PHASE.commit_job(ctx, job, [commit], 1)
    assert {path: ctx.store.get(info.key) for path, info in iter_visible(ctx.store, ctx.prefix)} == {
        path: path.encode() for path in paths
    }
    run_job(ctx, "new", SaveMode.OVERWRITE)
    assert contents(ctx) == expected("new") and verify(ctx).verified
    close(ctx)


@pytest.mark.s3
def test_neighbours_while_a_job_runs(place: Place) -> None:
    """C7: jobs in ``d`` end while others run in ``d0``, ``d-x`` and ``d/sub``, whose uploads survive."""
    near = [place.context(name) for name in ("d0", "d-x", "dd")]
    jobs = [start(ctx) for ctx in near]
    messages = [run_tasks(ctx, job, "near") for ctx, job in zip(near, jobs, strict=True)]
    ctx = place.context("d")
    run_job(ctx, "one")
    TWO_PHASE.abort_job(ctx, start(ctx))
    recover(ctx)
    for other, job, reports in zip(near, jobs, messages, strict=True):
        assert TWO_PHASE.commit_job(other, job, reports, TASKS).finished
        assert contents(other) == expected("near")
        close(other)
    close(ctx)


@pytest.mark.s3
def test_directory_markers(moto: S3Options) -> None:
    """Marker keys of S3 consoles, s3fs and S3A are not data, at the destination and inside the log."""
    ctx = open_context(f"s3://{BUCKET}/marked/table", store_options=[moto], threads=8)
    for folder in (
        "",
        "day=0/",
        "day=9/",
        "_holdfast/",
        "_holdfast/log/",
        "_holdfast/jobs/",
        "_temporary/",
        "day=0_$folder$",
    ):
        ctx.store.put(ctx.key(folder), b"")
    run_job(ctx, "old", SaveMode.FAIL)
    job = start(ctx, SaveMode.OVERWRITE)
    for folder in (f"_holdfast/jobs/{job.job}/", f"_holdfast/jobs/{job.job}/attempts/"):
        ctx.store.put(ctx.key(folder), b"")
    assert TWO_PHASE.commit_job(ctx, job, run_tasks(ctx, job, "new"), TASKS).finished
    assert sorted(ctx.store.get(ctx.key(file.path)) for file in read_snapshot(ctx).files) == expected("new")
    assert verify(ctx).verified and recover(ctx).clean and pending(ctx) == []
    assert [info.key for info in iter_objects(ctx.store, ctx.key("_holdfast/jobs/"))] == []
    close(ctx)


@pytest.mark.s3
def test_names_around_our_own_folder(place: Place) -> None:
    """Servers sort ``a-b`` and ``a/`` differently: every key next to ``_holdfast/`` is listed exactly once."""
    ctx = place.context("table")
    run_job(ctx, "old")
    names = [
        "A",
        "Z=1/x",
        "_holdfast-x=1/y",
        "_holdfast x=1/y",
        "_holdfast~x=1/y",
        "_holdfastx=1/z",
        "_zz=1/x",
        "a",
        "é",
    ]
    for name in names:
        ctx.store.put(ctx.key(name), b"foreign")
    found = [path for path, _ in iter_visible(ctx.store, ctx.prefix) if not path.startswith("day=")]
    assert sorted(found) == sorted(names)
    run_job(ctx, "new", SaveMode.OVERWRITE)
    assert contents(ctx) == expected("new")
    close(ctx)


@pytest.mark.s3
def test_two_jobs_at_once_and_a_zombie(place: Place) -> None:
    """C6, C7: overlapping jobs, and a task attempt that finishes after the decision."""
    ctx, other = place.context("table"), place.context("table")
    one, two = start(ctx), start(other, SaveMode.OVERWRITE)
    ones, twos = run_tasks(ctx, one, "one"), run_tasks(other, two, "two")
    with TWO_PHASE.setup_task(ctx, one, 0) as zombie:
        sink = zombie.open(zombie.file_name(".txt"))
        sink.write(b"zombie")
        TWO_PHASE.commit_job(ctx, one, ones, TASKS)
        sink.close()
        with contextlib.suppress(NotFoundError):  # its upload was aborted meanwhile
            zombie.commit()
    assert contents(ctx) == expected("one")
    TWO_PHASE.commit_job(other, two, twos, TASKS)
    assert contents(ctx) == expected("two")
    recover(ctx)
    assert pending(ctx) == [] and verify(ctx).verified
    assert list(iter_objects(ctx.store, ctx.key("_holdfast/jobs/"))) == []
    close(ctx)
    close(other)


def kill(place: Place, ctx: CommitContext, mode: SaveMode, nth: int, operation: str) -> bool:
    """Kill a driver process in its job commit; return False if the commit ended before the nth call."""
    job = start(ctx, mode)
    messages = run_tasks(ctx, job, "new")
    s3 = "null" if place.s3 is None else json.dumps(dataclasses.asdict(place.s3))
    done = subprocess.run(
        [sys.executable, str(KILLER), ctx.url, s3, str(nth), operation],
        input=pickle.dumps((job, messages)),
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
    return done.returncode != 0


def check_after_kill(ctx: CommitContext) -> bool:
    """Check C9 after SIGKILL: all or nothing for readers, no data left by recovery. Return whether it committed."""
    paths = {file.path for file in read_snapshot(ctx).files}
    through_holdfast = sorted(ctx.store.get(ctx.key(path)) for path in paths)
    assert through_holdfast in (expected("old"), expected("new"))
    recover(ctx)
    after = contents(ctx)
    assert after in (expected("old"), expected("new"))
    assert pending(ctx) == [] and verify(ctx).verified
    assert list(iter_objects(ctx.store, ctx.key("_holdfast/jobs/"))) == []
    return after == expected("new")


@pytest.mark.slow
def test_driver_killed_at_every_call_on_local_disk(tmp_path: Path) -> None:
    """C9 at every point: a real process dies of SIGKILL before each of its store calls, and another recovers."""
    place = Place(str(tmp_path), None)
    outcomes = []
    for nth in itertools.count(1):
        ctx = place.context(f"out put {nth}")
        run_job(ctx, "old")
        killed = kill(place, ctx, SaveMode.OVERWRITE, nth, "any")
        outcomes.append(check_after_kill(ctx))
        if not killed:
            break
    assert outcomes == sorted(outcomes), "undecided up to the commit point, committed from then on"
    assert set(outcomes) == {True, False} and len(outcomes) > 20


def test_killed_attempt_leaves_no_file_on_local_disk(tmp_path: Path) -> None:
    """Listings hide the file that a dying attempt was writing; the end of the job deletes it."""
    ctx = open_context(str(tmp_path / "table"))
    job = start(ctx)
    dead = TWO_PHASE.setup_task(ctx, job, 0)
    for number in range(2):  # never closed: the process is gone
        dead.open(f"day={number}/{dead.file_name('.txt')}").write(b"half")
    TWO_PHASE.commit_job(ctx, job, run_tasks(ctx, job, "new"), TASKS)
    left = [path for path in (tmp_path / "table").rglob("*") if path.is_file()]
    assert sorted(path.name.partition("-")[0] for path in left if "_holdfast" not in path.parts) == [
        "_SUCCESS",
        *["part"] * 4,
    ]
    assert not (tmp_path / "table/_holdfast/jobs").exists()
    dead.abort()  # only to close what a real death would have closed
    assert contents(ctx) == expected("new")
    assert not (tmp_path / "table/_holdfast/jobs").exists()


@pytest.mark.s3
@pytest.mark.parametrize(
    ("nth", "operation", "committed"),
    variants(
        [
            (1, "put", False),
            (2, "put", False),  # the list of what is replaced
            (3, "put", False),  # the decision itself
            (1, "complete_upload", True),
            (3, "complete_upload", True),
            (4, "put", True),  # the mark that it is visible
            (1, "delete_many", True),
            (1, "list_uploads_page", True),
        ],
        (3, "put", False),
        (3, "complete_upload", True),
    ),
)
def test_driver_killed_on_seaweedfs(weed: S3Options, nth: int, operation: str, committed: bool) -> None:
    place = Place(f"s3://{BUCKET}/killed {nth} {operation}", weed)
    ctx = place.context("table")
    run_job(ctx, "old")
    assert kill(place, ctx, SaveMode.OVERWRITE, nth, operation)
    assert check_after_kill(ctx) is committed
    close(ctx)


# --- bad input: one sentence, nothing written -------------------------------------------------------------------------
def test_missing_bucket(weed: S3Options) -> None:
    ctx = open_context("s3://no-such-bucket/table", store_options=[weed])
    with pytest.raises(NotFoundError, match="bucket"):
        start(ctx)
    close(ctx)


def test_wrong_credentials(weed: S3Options) -> None:
    wrong = dataclasses.replace(weed, secret_key="not-the-secret-canary")
    ctx = open_context(f"s3://{BUCKET}/table", store_options=[wrong])
    with pytest.raises(AccessDeniedError) as caught:
        start(ctx)
    shown = f"{caught.value} {caught.value!r} {caught.value.__cause__} {wrong!r} {ctx!r}"
    assert "not-the-secret-canary" not in shown
    close(ctx)


@pytest.mark.slow
def test_unreachable_endpoint() -> None:
    nowhere = S3Options(endpoint_url="http://127.0.0.1:1", access_key="a", secret_key="b", region="us-east-1")
    ctx = open_context("s3://bucket/table", store_options=[nowhere])
    with pytest.raises(UnavailableError):
        start(ctx)
    close(ctx)


def test_destination_is_a_file(place: Place) -> None:
    root = place.context_at_root()
    root.store.put(root.key("table"), b"a file")
    ctx = place.context("table")
    with pytest.raises(InvalidRequestError, match="file"):
        start(ctx)
    below = place.context("table/below")
    if place.s3 is None:
        with pytest.raises(InvalidRequestError, match="file"):
            start(below)
    assert root.store.get(root.key("table")) == b"a file"
    for each in (root, ctx, below):
        close(each)


def test_full_disk(tmp_path: Path) -> None:
    """Fault 30: a task on a full disk fails with one sentence, leaves nothing behind, and succeeds later."""
    mounted = tmp_path / "small"
    mounted.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(mounted)], capture_output=True, check=False
    )
    if mount.returncode:
        pytest.skip(f"only root can mount a small disk: {mount.stderr.decode().strip()}")
    try:
        ctx = open_context(str(mounted / "table"))
        job = start(ctx)

        def fill() -> None:
            with TWO_PHASE.setup_task(ctx, job, 0) as attempt:
                sink = attempt.open(attempt.file_name(".txt"))
                for _ in range(64):
                    sink.write(bytes(65536))
                attempt.commit()

        with pytest.raises(StorageFullError, match="space"):
            fill()
        commits = [run_task(ctx, job, task, "new") for task in range(TASKS)]
        TWO_PHASE.commit_job(ctx, job, commits, TASKS)
        assert contents(ctx) == expected("new") and verify(ctx).verified
    finally:
        subprocess.run(["umount", str(mounted)], check=True)
