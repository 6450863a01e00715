"""Define the output files of simulated task attempts; the content of each names its job, task, attempt and number.

The attempts at a task write overlapping but different files, like retries of real tasks whose input arrives in a
different order. Every attempt writes file 0 into partition 0. Attempt ``a`` writes file ``n`` into partition ``n + a``,
except that attempt 1 writes all of its files into partition 0, so that its partitions are a subset of another
attempt's. So if file names do not contain the attempt, an attempt's file 0 replaces another attempt's file 0, and its
other files are added to that attempt's files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from holdfast.commit.layout import LOG, SUCCESS, is_hidden
from holdfast.stores.base import keys_of
from holdfast_checker.kernel.calls import Call
from holdfast_checker.kernel.world import View
from holdfast_checker.simulated.memory import StoreSnapshot

DESTINATION = "destination"
"""Name of the store that contains the destination."""

HOME = "out put/dataset1/"
"""Key prefix of the destination."""

_CONTENT = re.compile(rb"job (\w+) task (\d+) attempt (\d+) file (\d+)")


@dataclass(frozen=True, slots=True, order=True)
class FileOrigin:
    """The origin of an output file: job, task, attempt and number; `damaged` if no attempt wrote these bytes."""

    job: str
    task: int = 0
    attempt: int = 0
    number: int = 0
    damaged: bool = False

    def __str__(self) -> str:
        text = f"file {self.number} of task {self.task} attempt {self.attempt}"
        return text if self.job == "main" else f"{text} of the {self.job} job"


def file_bytes(job: str, task: int, attempt: int, number: int) -> bytes:
    """Return the bytes that a task attempt writes to its output file `number`; they name the file's origin."""
    return f"job {job} task {task} attempt {attempt} file {number}".encode()


def choose_partition_directory(attempt: int, number: int) -> str:
    """Return the partition directory into which a task attempt writes its output file `number`."""
    return f"day={number + attempt if number and attempt != 1 else 0}"


def make_chosen_file_name(task: int, number: int) -> str:
    """Return the file name in worlds in which jobs choose names themselves: the same for every attempt and job."""
    return f"chosen-{task}-{number}.txt"


def files_of_attempt(job: str, task: int, attempt: int, files: int) -> frozenset[FileOrigin]:
    """Return the origins of all output files that a task attempt writes."""
    return frozenset(FileOrigin(job, task, attempt, number) for number in range(files))


@lru_cache(maxsize=4096)
def parse_origin(data: bytes) -> FileOrigin:
    """Return which attempt has written an output file with this content; content of no attempt is `damaged`."""
    match = _CONTENT.fullmatch(data)
    if match is None:
        return FileOrigin(job=data.decode(errors="replace"), damaged=True)
    return FileOrigin(match[1].decode(), int(match[2]), int(match[3]), int(match[4]))


def visible_files(view: View, home: str = HOME) -> Mapping[str, FileOrigin]:
    """Return the files that a plain listing of the destination shows in a state of the world, by path."""
    image = view.states[DESTINATION]
    assert isinstance(image, StoreSnapshot)
    return visible_in_image(image, home)


def visible_in_image(image: StoreSnapshot, home: str = HOME) -> Mapping[str, FileOrigin]:
    """Return the files that a plain listing of the destination shows in a snapshot of its store, by path."""
    below = {key[len(home) :]: found for key, found in image.objects.items() if key.startswith(home)}
    return {path: parse_origin(found.data) for path, found in below.items() if not is_hidden(path)}


def strip_measured_values(key: str, data: bytes) -> bytes:
    """Remove from the bytes of a job's report what no protocol step reads: host name and number of store calls.

    Some of these values depend on what other actors did in the meantime, so states that are otherwise equal would
    differ. Other objects are returned unchanged.
    """
    if not key.endswith(f"/{SUCCESS}"):
        return data
    document = json.loads(data)
    document.update(metrics={}, iostatistics={}, hostname="")
    return json.dumps(document, indent=2, ensure_ascii=False).encode()


def files_of_job(found: Iterable[FileOrigin], job: str = "main") -> frozenset[FileOrigin]:
    """Select the files that one job wrote."""
    return frozenset(origin for origin in found if origin.job == job)


def is_call_observed(call: Call) -> bool:
    """Check whether properties can observe the effect of a call, such as a visible file or a reported outcome."""
    if call.resource == DESTINATION:
        return any(map(_is_key_observed, _keys_written_by_call(call)))
    return call.resource == "cluster" and call.operation in ("await_tasks", "tell", "post_job", "cancel", "take_over")


def _is_key_observed(key: str) -> bool:
    hidden = key.startswith(HOME) and is_hidden(key[len(HOME) :])
    return not hidden or key.startswith((f"{HOME}{SUCCESS}", f"{HOME}{LOG}"))


def _keys_written_by_call(call: Call) -> Iterable[str]:
    args = call.args
    if call.operation in ("put", "delete", "complete_upload", "finish_write"):
        return (str(args[0]),)
    if call.operation == "delete_many":
        return args[0]  # type: ignore[return-value]  # a tuple of keys
    if call.operation == "apply":
        return keys_of(args[0])  # type: ignore[arg-type]  # a tuple of changes
    if call.operation in ("rename", "rename_dir"):
        return (str(args[0]), str(args[1]))
    return (str(args[1]),) if call.operation == "copy" else ()
