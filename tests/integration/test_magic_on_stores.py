"""Test ``magic`` on a disk, SeaweedFS and moto."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.commit import COMMITTERS, CommitContext, JobRecord, SaveMode, TaskCommit, open_context
from holdfast.commit.hadoop.magic.files import magic_work_path, pendingset_path
from holdfast.commit.hadoop.pending import MARKER_LENGTH, decode_pendingset
from holdfast.commit.layout import iter_visible
from holdfast.commit.leftovers import RecoveryAction
from holdfast.commit.success_file import read_success_file
from holdfast.s3_server import SeaweedServer
from holdfast.stores.base import iter_objects, iter_uploads, multipart
from holdfast.stores.interceptors import InterceptedStore, StoreOperation
from holdfast.stores.s3 import S3Options
from tests.integration.lossy_proxy import LossyProxy
from tests.interceptors import Fault, FaultMode, Faulty, SimulatedCrash
from tests.servers.moto import MotoServer
from tests.variants import variants

pytestmark = pytest.mark.s3

BUCKET = "holdfast-magic"
MAGIC = COMMITTERS["magic"]
LARGE = bytes(range(256)) * 50_000  # three parts of 5 MiB
NAMES = ["plain", "with space/50% of+all", "naïve-☃-😀", "a=b/c&d;e's (1) ,@!"]


@dataclasses.dataclass
class Place:
    """A destination of a test."""

    url: str
    s3: S3Options | None

    def context(self, *faults: Fault) -> CommitContext:
        ctx = open_context(self.url, store_options=[self.s3] if self.s3 else [], threads=8).with_settings(
            part_size_bytes=5 << 20
        )
        return dataclasses.replace(ctx, store=InterceptedStore(ctx.store, Faulty(*faults))) if faults else ctx


@pytest.fixture(scope="module")
def weed(server: SeaweedServer) -> S3Options:
    server.create_bucket(BUCKET)
    return server.options


@pytest.fixture(scope="module")
def moto() -> Iterator[S3Options]:
    with MotoServer() as server:
        server.create_bucket(BUCKET)
        yield server.options


@pytest.fixture(params=variants(["local", "weed", "moto"], "weed"))
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "local":
        return Place(f"{tmp_path}/out put", None)
    return Place(f"s3://{BUCKET}/{request.node.name}/out put", request.getfixturevalue(request.param))


def start(ctx: CommitContext) -> JobRecord:
    job = MAGIC.setup_job(ctx, SaveMode.APPEND)
    assert job is not None
    return job


def run_task(ctx: CommitContext, job: JobRecord, task: int, files: dict[str, bytes]) -> TaskCommit:
    with MAGIC.setup_task(ctx, job, task) as attempt:
        for path, content in files.items():
            sink = attempt.open(path)
            sink.write(content)
            sink.close()
        return attempt.commit()


def files_of(task: int) -> dict[str, bytes]:
    return {f"{name}-{task}": f"{name}/{task}".encode() for name in NAMES}


def visible(ctx: CommitContext) -> dict[str, bytes]:
    return {path: ctx.store.get(info.key) for path, info in iter_visible(ctx.store, ctx.prefix)}


def debris(ctx: CommitContext) -> list[str]:
    hidden = [info.key for info in iter_objects(ctx.store, ctx.prefix) if "__magic" in info.key]
    return hidden + [upload.key for upload in iter_uploads(multipart(ctx.store), ctx.prefix)]


def test_life_of_a_job(place: Place) -> None:
    """Scenarios 1, 2, 33 and 37, HADOOP-17112: odd names, an empty file and one of several parts."""
    ctx = place.context()
    job = start(ctx)
    attempt = MAGIC.setup_task(ctx, job, 2)
    with attempt:
        for path, content in (("large", LARGE), ("empty", b"")):
            sink = attempt.open(path)
            sink.write(content)
            sink.close()
        commits = [run_task(ctx, job, task, files_of(task)) for task in range(2)]
        assert visible(ctx) == {}
        commits.append(attempt.commit())
    assert visible(ctx) == {} and len(list(iter_uploads(multipart(ctx.store), ctx.prefix))) == 10
    outcome = MAGIC.commit_job(ctx, job, commits, 3)
    assert outcome.committed and outcome.finished
    assert visible(ctx) == {**files_of(0), **files_of(1), "large": LARGE, "empty": b""}
    assert debris(ctx) == []
    report = read_success_file(ctx)
    assert report is not None and len(report["filenames"]) == 10
    ctx.close()


def test_the_marker(place: Place) -> None:
    """Scenario 37, HADOOP-17414: where the store keeps metadata, the length comes back from the marker alone."""
    ctx = place.context()
    job = start(ctx)
    attempt = MAGIC.setup_task(ctx, job, 0)
    marker = ctx.key(f"{magic_work_path(attempt.owner)}/a")
    with attempt:
        sink = attempt.open("a")
        sink.write(b"12345")
        sink.close()
        attempt._scope.background.drain()
        info = ctx.store.head(marker)
        commits = [attempt.commit()]
    length = {MARKER_LENGTH: "5"} if ctx.store.capabilities.metadata else {}
    assert info.size_bytes == 0 and {name: info.metadata.get(name) for name in length} == length
    MAGIC.commit_job(ctx, job, commits, 1)
    assert MARKER_LENGTH not in ctx.store.head(ctx.key("a")).metadata and visible(ctx) == {"a": b"12345"}
    ctx.close()


@pytest.mark.slow
def test_two_attempts_and_an_abort(place: Place) -> None:
    """Scenarios 7 and 18 to 20, HADOOP-17258."""
    ctx = place.context()
    job = start(ctx)
    first = run_task(ctx, job, 0, {f"part-00000-{job.job}-c000.txt": b"first"})
    run_task(ctx, job, 0, {f"part-00000-{job.job}-c000.txt": b"second"})
    MAGIC.commit_job(ctx, job, [first], 1)
    assert list(visible(ctx).values()) == [b"second"] and debris(ctx) == []
    job = start(ctx)
    run_task(ctx, job, 0, files_of(0))
    for _ in range(2):
        assert MAGIC.abort_job(ctx, job).finished
    assert list(visible(ctx).values()) == [b"second"] and debris(ctx) == []
    ctx.close()


@pytest.mark.parametrize("completed", variants([0, 3, 8], 3))
def test_a_driver_that_dies(place: Place, completed: int) -> None:
    """Paper 001, "Job Driver failure during Job Commit": before it begins, in the middle and at the end."""
    ctx = place.context()
    job = start(ctx)
    commits = [run_task(ctx, job, task, files_of(task)) for task in range(2)]
    fault = Fault(FaultMode.CRASH_BEFORE, StoreOperation.COMPLETE_UPLOAD, nth=completed + 1)
    last = Fault(FaultMode.CRASH_BEFORE, StoreOperation.PUT)
    dying = place.context(last if completed == 8 else fault)
    with pytest.raises(SimulatedCrash):
        MAGIC.commit_job(dying, job, commits, 2)
    assert MAGIC.leaves_records
    (left,) = MAGIC.find_leftovers(ctx)
    found = len(visible(ctx))  # calls that were under way are finished
    expected = RecoveryAction.BACK if not found else RecoveryAction.CLEAN if found == 8 else RecoveryAction.FORWARD
    assert left.action is expected and left.files == found
    left.recover()
    assert visible(ctx) == ({} if expected is RecoveryAction.BACK else {**files_of(0), **files_of(1)})
    assert debris(ctx) == []
    dying.close()
    ctx.close()


@pytest.fixture
def lossy(server: SeaweedServer, weed: S3Options) -> Iterator[LossyProxy]:
    with LossyProxy(server.endpoint_url.removeprefix("http://")) as running:
        yield running


@pytest.mark.slow
def test_a_job_whose_answers_are_lost_twice_each(lossy: LossyProxy, weed: S3Options) -> None:
    """Scenario 69: two lost replies to each part, put and completion do no harm."""
    seen: collections.Counter[str] = collections.Counter()

    def loses(method: str, path: str) -> bool:
        kind = "part" if "partNumber" in path else "complete" if "uploadId" in path else "record"
        wanted = method == "PUT" or (method == "POST" and kind == "complete")
        seen[kind] += wanted
        return wanted and seen[kind] <= 2

    place = Place(f"s3://{BUCKET}/lossy/out put", dataclasses.replace(weed, endpoint_url=lossy.url))
    ctx = place.context()
    job = start(ctx)
    lossy.loses = loses
    commits = [run_task(ctx, job, task, files_of(task)) for task in range(2)]
    assert MAGIC.commit_job(ctx, job, commits, 2).finished
    assert visible(ctx) == {**files_of(0), **files_of(1)} and debris(ctx) == []
    assert len(lossy.dropped) == 6 and all(status == 200 for _method, _path, status in lossy.dropped)
    ctx.close()


@pytest.mark.parametrize("name", variants(["weed", "moto"]))
def test_a_completed_upload_has_the_etag_that_its_parts_tell(name: str, request: pytest.FixtureRequest) -> None:
    """The etag identifies files of Hadoop's jobs, whose names do not contain the job."""
    place = Place(f"s3://{BUCKET}/etags", request.getfixturevalue(name))
    ctx = place.context()
    job = start(ctx)
    commit = run_task(ctx, job, 0, {"large": LARGE, "empty": b"", "one": b"1"})
    data = commit.manifest_data() or ctx.store.get(ctx.key(pendingset_path(job.job, 0)))
    found = decode_pendingset("set", data, bucket=BUCKET, prefix=ctx.prefix, job_id=job.job)
    MAGIC.commit_job(ctx, job, [commit], 1)
    etags = {info.key: info.etag.strip('"') for _path, info in iter_visible(ctx.store, ctx.prefix)}
    assert etags == {one.key: one.completed_etag for one in found.commits}
    ctx.close()
