"""Where things are below a destination. Everything that is not output starts with ``_``: Hadoop readers skip it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator

from holdfast.commit.ids import AttemptId, JobId, file_owner, is_job_id
from holdfast.stores.base import ObjectInfo, ObjectStore, is_marker, iter_objects

__all__ = [
    "HOME",
    "JOBS",
    "LOG",
    "SUCCESS",
    "WRITES",
    "attempt_dir",
    "attempt_file",
    "committed_list",
    "folders",
    "intents",
    "is_hidden",
    "is_job_record",
    "is_record",
    "is_safe_path",
    "iter_job_folders",
    "iter_keys_below",
    "iter_visible",
    "job_dir",
    "job_of",
    "job_record",
    "log_entry",
    "log_mark",
    "manifest",
    "replaced_list",
    "started_dir",
    "write_record",
]

HOME = "_holdfast/"
LOG = HOME + "log/"
JOBS = HOME + "jobs/"
WRITES = HOME + "writes/"
SUCCESS = "_SUCCESS"


def log_entry(seq: int) -> str:
    """A decision: created once, never changed."""
    return f"{LOG}{seq:020d}.json"


def log_mark(seq: int, mark: str) -> str:
    """Progress of a decided job: ``visible`` or ``done``."""
    return f"{LOG}{seq:020d}.{mark}"


def write_record(digest: str) -> str:
    """That a write which its caller named is committed; the digest is that of the name."""
    return f"{WRITES}{digest}.json"


def job_dir(job: JobId) -> str:
    """Everything that a job keeps beside its output; gone when the job is over."""
    return f"{JOBS}{job}/"


def job_record(job: JobId) -> str:
    """Written before anything else of a job, deleted when nothing of it waits: while it is there, hands off."""
    return f"{job_dir(job)}job.json"


def job_of(key: str) -> JobId | None:
    """The job that a key tells of: by the file's own name, or by the folder of the job that it lies in."""
    owner = file_owner(key)
    if owner is not None:
        return owner.job
    before, found, rest = key.rpartition(JOBS)
    name = rest.partition("/")[0]
    return JobId(name) if found and is_job_id(name) and (not before or before.endswith("/")) else None


def attempt_dir(job: JobId, task: int, attempt: AttemptId) -> str:
    """Where an attempt on a rename store keeps its files until the decision."""
    return f"{job_dir(job)}attempts/{task:05d}-{attempt}/"


def attempt_file(job: JobId, task: int, attempt: AttemptId, path: str) -> str:
    """Where a rename store keeps an attempt's file for `path`.

    All of them lie side by side, for chosen names may be such that one is a directory of another in here. The ending
    keeps them out of globs like ``**/*.csv``.
    """
    return f"{attempt_dir(job, task, attempt)}{hashlib.blake2b(path.encode(), digest_size=16).hexdigest()}.pending"


def manifest(job: JobId, task: int, attempt: AttemptId) -> str:
    """What one attempt wrote. Named by attempt: a zombie can never replace the winner's (paper 000, VIII.C)."""
    return f"{job_dir(job)}attempts/{task:05d}-{attempt}.jsonl"


def intents(job: JobId, task: int, attempt: AttemptId, number: int) -> str:
    """An attempt's `number`-th record of uploads that it is about to start under names that do not hold the job."""
    return f"{job_dir(job)}attempts/{task:05d}-{attempt}.intents-{number}.jsonl"


def committed_list(job: JobId, token: str) -> str:
    """The manifests that a decision names."""
    return f"{job_dir(job)}committed-{token}.jsonl"


def replaced_list(job: JobId, token: str) -> str:
    """The files that a decision replaces."""
    return f"{job_dir(job)}replaced-{token}.jsonl.gz"


def folders(key: str) -> Iterator[str]:
    """Every folder from the store's root down to the one that holds `key`: each may be a destination."""
    yield ""
    for position, character in enumerate(key):
        if character == "/":
            yield key[: position + 1]


def started_dir(job: JobId) -> str:
    """Marks of runs that have begun, where Spark may stop a task halfway and call it a success."""
    return f"{job_dir(job)}started/"


def is_record(path: str) -> bool:
    """Whether `path`, relative to the destination, is a record of ours about which no job's record says anything."""
    return path == SUCCESS or path.startswith((LOG, WRITES)) or is_job_record(path)


def is_job_record(key: str) -> bool:
    """Whether a key is that of a job's record, in whichever destination."""
    job = job_of(key)
    return job is not None and key.endswith(job_record(job))


def is_hidden(path: str) -> bool:
    """Whether Hadoop and Spark readers skip `path`: a segment starts with ``.``, or with ``_`` and is no partition.

    Or it ends as those do that Hadoop's shell is still copying.
    """
    return any(
        segment.startswith(".") or (segment.startswith("_") and "=" not in segment) or segment.endswith("._COPYING_")
        for segment in path.split("/")
    )


def is_safe_path(path: str) -> bool:
    """Whether `path` stays below the destination and out of our own folders."""
    segments = path.split("/")
    return all(segment not in ("", ".", "..") for segment in segments) and "\0" not in path and not is_hidden(path)


def iter_visible(
    store: ObjectStore, prefix: str, on_inner: Callable[[str], None] | None = None
) -> Iterator[tuple[str, ObjectInfo]]:
    """Every object that a plain reader of the destination sees, as (relative path, info), without listing our own.

    A key that ends in ``/`` is a directory's to a plain reader, also where it holds bytes.

    Args:
        prefix: key prefix of the destination, empty or ending in ``/``.
        on_inner: told the folder of a destination inside this one, when the listing comes to a visible decision in its
            log, unless a plain reader skips the folder.
    """
    for info in _iter_below(store, prefix):
        path = info.key[len(prefix) :]
        if not is_hidden(path):
            if path and not path.endswith("/"):
                yield path, info
        elif on_inner is not None and path.endswith(".visible"):
            folder, found, _record = path.partition(LOG)
            if found and folder.endswith("/") and not is_hidden(folder.rstrip("/")):
                on_inner(prefix + folder)


def iter_job_folders(store: ObjectStore, prefix: str) -> Iterator[tuple[JobId, Iterable[ObjectInfo]]]:
    """The folder of each job below the destination, with what is in it, in order of jobs.

    A folder that is longer than a page is gone through only by who asks for its objects, and only then: the rest of the
    work is one request a thousand objects or a folder, however much the jobs have in theirs.

    Args:
        prefix: key prefix of the destination, empty or ending in ``/``.
    """
    jobs = prefix + JOBS
    start_after, token = "", None
    while True:
        page = store.list_page(jobs, start_after, token=token)
        if not page.objects and page.next_token:
            token = page.next_token  # a server may give an empty page and have more
            continue
        token = None
        found: dict[str, list[ObjectInfo]] = {}
        for info in page.objects:
            name, _, rest = info.key[len(jobs) :].partition("/")
            if rest and info.key.startswith(jobs) and is_job_id(name) and not is_marker(info):
                found.setdefault(name, []).append(info)
        last = page.objects[-1].key[len(jobs) :].partition("/")[0] if page.objects and page.next_token else ""
        for name, objects in found.items():
            yield JobId(name), iter_objects(store, f"{jobs}{name}/") if name == last else objects
        # A name inside the folder is right under either order of listings; "~" comes after all of ours.
        behind = f"{jobs}{last}/~" if last else ""
        if behind <= start_after:
            return
        start_after = behind


def iter_keys_below(store: ObjectStore, prefix: str) -> Iterator[str]:
    """Every key below the destination, hidden ones too, without listing our own."""
    return (info.key for info in _iter_below(store, prefix))


def _iter_below(store: ObjectStore, prefix: str) -> Iterator[ObjectInfo]:
    ours = prefix + HOME
    for info in iter_objects(store, prefix):
        if info.key.startswith(ours):
            break
        yield info
    else:
        return
    # Our own folder may be large: go on behind it. Its names are "jobs", "log" and "writes", and "~" comes after all; a
    # name inside the folder is right under either order of listings (see ObjectStore.list_page).
    yield from iter_objects(store, prefix, start_after=f"{ours}~")
