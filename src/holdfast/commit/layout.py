"""Define the paths below a destination. All paths except output start with ``_``, so that Hadoop readers skip them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator

from holdfast.commit.ids import AttemptId, JobId, file_owner, is_job_id
from holdfast.stores.base import ObjectInfo, ObjectStore, is_marker, iter_objects
from holdfast.wording import is_unicode

HOME = "_holdfast/"
LOG = HOME + "log/"
JOBS = HOME + "jobs/"
WRITES = HOME + "writes/"
SUCCESS = "_SUCCESS"


def log_entry_path(seq: int) -> str:
    """Return the path of a decision, a file that is created once and never changed."""
    return f"{LOG}{seq:020d}.json"


def log_mark_path(seq: int, mark: str) -> str:
    """Return the path of the file that marks a decision as ``visible`` or ``done``."""
    return f"{LOG}{seq:020d}.{mark}"


def write_id_record_path(digest: str) -> str:
    """Return the path of the record which shows that a write is committed; `digest` is that of the write id."""
    return f"{WRITES}{digest}.json"


def job_dir(job: JobId) -> str:
    """Return the folder with all of a job's data except the output; the folder is deleted when the job has ended."""
    return f"{JOBS}{job}/"


def job_record_path(job: JobId) -> str:
    """Return the path of a job's record.

    The record is written before any other data of the job, and deleted when nothing of the job is pending. While the
    record exists, the job is active: do not clean up after it.
    """
    return f"{job_dir(job)}job.json"


def job_in_key(key: str) -> JobId | None:
    """Return the job that a key names, in its file name or in the name of its job folder; None if it names no job."""
    owner = file_owner(key)
    if owner is not None:
        return owner.job
    before, found, rest = key.rpartition(JOBS)
    name = rest.partition("/")[0]
    return JobId(name) if found and is_job_id(name) and (not before or before.endswith("/")) else None


def attempt_dir(job: JobId, task: int, attempt: AttemptId) -> str:
    """Return the folder that contains an attempt's files until the decision, on a rename store."""
    return f"{job_dir(job)}attempts/{task:05d}-{attempt}/"


def attempt_file_path(job: JobId, task: int, attempt: AttemptId, path: str) -> str:
    """Return the path where an attempt's file for the target `path` stays until the decision, on a rename store.

    All files of an attempt are in one folder, under hashed names: names that the caller chose could clash, if one file
    had the name of another file's directory. Globs like ``**/*.csv`` do not match the extension ``.pending``.
    """
    return f"{attempt_dir(job, task, attempt)}{hashlib.blake2b(path.encode(), digest_size=16).hexdigest()}.pending"


def manifest_path(job: JobId, task: int, attempt: AttemptId) -> str:
    """Return the path of an attempt's manifest.

    The path contains the attempt's id, so a zombie can never overwrite the manifest that counts (paper 000, VIII.C).
    """
    return f"{job_dir(job)}attempts/{task:05d}-{attempt}.jsonl"


def intents_path(job: JobId, task: int, attempt: AttemptId, number: int) -> str:
    """Return the path of an attempt's `number`-th intent record; see `holdfast.commit.intents`."""
    return f"{job_dir(job)}attempts/{task:05d}-{attempt}.intents-{number}.jsonl"


def committed_list_path(job: JobId, token: str) -> str:
    """Return the path of the list of committed manifests, to which a job's decision refers."""
    return f"{job_dir(job)}committed-{token}.jsonl"


def replaced_files_list_path(job: JobId, token: str) -> str:
    """Return the path of the list of replaced files, to which a job's decision refers."""
    return f"{job_dir(job)}replaced-{token}.jsonl.gz"


def iter_folders_above(key: str) -> Iterator[str]:
    """Iterate over the folders that contain `key`, starting at the store's root. Each of them may be a destination."""
    yield ""
    for position, character in enumerate(key):
        if character == "/":
            yield key[: position + 1]


def is_holdfast_record(path: str) -> bool:
    """Check whether a file is ``_SUCCESS``, a log record, the record of a write id, or a job's ``job.json``.

    Args:
        path: relative to the destination.
    """
    return path == SUCCESS or path.startswith((LOG, WRITES)) or is_job_record(path)


def is_job_record(key: str) -> bool:
    """Check whether `key` is the key of a job's record, at any destination."""
    job = job_in_key(key)
    return job is not None and key.endswith(job_record_path(job))


def is_hidden(path: str) -> bool:
    """Check whether Hadoop and Spark readers skip `path`.

    Readers skip a path if one of its segments starts with ``.``, starts with ``_`` without being a partition, or ends
    in ``._COPYING_``, which marks a file that Hadoop's shell is still copying.
    """
    return any(
        segment.startswith(".") or (segment.startswith("_") and "=" not in segment) or segment.endswith("._COPYING_")
        for segment in path.split("/")
    )


def is_safe_path(path: str) -> bool:
    """Check whether `path` is below the destination, not hidden from readers, and a text that records can hold."""
    if "\0" in path or not is_unicode(path):
        return False
    return all(segment not in ("", ".", "..") for segment in path.split("/")) and not is_hidden(path)


def iter_visible(
    store: ObjectStore, prefix: str, on_inner: Callable[[str], None] | None = None
) -> Iterator[tuple[str, ObjectInfo]]:
    """Iterate over the objects that a plain reader sees, as (relative path, info), without listing Holdfast's folder.

    A key that ends in ``/`` is left out: a plain reader treats it as a directory, even if the object has content.

    Args:
        prefix: key prefix of the destination, empty or ending in ``/``.
        on_inner: called with the folder of each destination inside this one whose log, in the listing, contains a
            visible decision; folders that a plain reader skips are left out.
    """
    for info in _iter_data_objects(store, prefix):
        path = info.key[len(prefix) :]
        if not is_hidden(path):
            if path and not path.endswith("/"):
                yield path, info
        elif on_inner is not None and path.endswith(".visible"):
            folder, found, _record = path.partition(LOG)
            if found and folder.endswith("/") and not is_hidden(folder.rstrip("/")):
                on_inner(prefix + folder)


def iter_job_folders(store: ObjectStore, prefix: str) -> Iterator[tuple[JobId, Iterable[ObjectInfo]]]:
    """Iterate over the destination's job folders, in the order of their job ids, and the objects in each folder.

    A folder with more than one page of objects is listed completely only when the caller iterates over its objects. If
    the caller does not, the cost is at most one request per thousand objects or per folder, however large the folders
    are.

    Args:
        prefix: key prefix of the destination, empty or ending in ``/``.
    """
    jobs = prefix + JOBS
    start_after, token = "", None
    while True:
        page = store.list_page(jobs, start_after, token=token)
        if not page.objects and page.next_token:
            token = page.next_token  # a server may return an empty page although more objects follow
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
        # Continuing after a name inside the folder is correct in both listing orders; "~" sorts after all names that
        # Holdfast uses.
        following = f"{jobs}{last}/~" if last else ""
        if following <= start_after:
            return
        start_after = following


def iter_data_keys(store: ObjectStore, prefix: str) -> Iterator[str]:
    """Iterate over the keys below the destination, including hidden ones, without listing Holdfast's folder."""
    return (info.key for info in _iter_data_objects(store, prefix))


def _iter_data_objects(store: ObjectStore, prefix: str) -> Iterator[ObjectInfo]:
    ours = prefix + HOME
    for info in iter_objects(store, prefix):
        if info.key.startswith(ours):
            break
        yield info
    else:
        return
    # Holdfast's folder may be large: continue after it. It contains "jobs", "log" and "writes", and "~" sorts after
    # these names. Continuing after a name inside the folder is correct in both listing orders (see
    # ObjectStore.list_page).
    yield from iter_objects(store, prefix, start_after=f"{ours}~")
