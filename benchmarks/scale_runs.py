"""Run one step of the commit layer over very many files in its own process.

python -m benchmarks.scale_runs STEP FILES       prints one line of JSON; Linux only
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.fresh_process import run_module
from benchmarks.generated_store import GeneratedFiles, GeneratedStore
from benchmarks.peak_memory import growth_mb, start_mb
from holdfast.commit import TWO_PHASE, CommitContext, CommitSettings, JobRecord, SaveMode, read_snapshot, recover
from holdfast.commit.ids import JobId
from holdfast.commit.layout import job_record_path
from holdfast.runtime import Environment, ThreadRunner
from holdfast.stores.base import iter_objects
from holdfast.stores.local.store import LocalStore

__all__ = ["STEPS", "Taken", "take_step"]

_THREADS = 32
_FILES_PER_TASK = 10
_PARTITIONS = 100
_OLD_JOB = JobId("20200101000000000-000000000000")


@dataclass(frozen=True, kw_only=True)
class Taken:
    """The cost of a step. Other load on the machine affects CPU seconds less than wall time."""

    files: int
    cpu_s: float
    wall_s: float
    peak_mb: float


Prepared = Callable[[], None]
"""A prepared step, which runs when it is called."""


def take_step(name: str, files: int) -> Taken:
    """Run a step in a fresh process."""
    return Taken(**run_module("benchmarks.scale_runs", name, files))


# --- in the process ---------------------------------------------------------------------------------------------------
def _context(store: GeneratedStore, **settings: Any) -> CommitContext:
    return CommitContext(
        store=store,
        prefix="",
        url="bench",
        settings=CommitSettings(**settings),
        environment=Environment(runner=ThreadRunner(_THREADS)),
    )


def _started(
    store: GeneratedStore, mode: SaveMode, tasks: int, files_per_task: int, partitions: int = 0
) -> tuple[JobRecord, GeneratedFiles]:
    """Start a job and generate the output of its tasks."""
    record = TWO_PHASE.setup_job(_context(store), mode, {})
    assert record is not None, mode
    output = GeneratedFiles(record.job, tasks, files_per_task, partitions)
    store.outputs.append(output)
    return record, output


def _job(store: GeneratedStore, mode: SaveMode, tasks: int, files_per_task: int, partitions: int = 0) -> Prepared:
    """Prepare a job whose tasks have committed; the step is its job commit."""
    record, output = _started(store, mode, tasks, files_per_task, partitions)
    messages = [output.message(task) for task in range(tasks)]

    def commit() -> None:
        outcome = TWO_PHASE.commit_job(_context(store), record, messages, tasks)
        assert outcome.finished, outcome.pending_reason
        assert output.visible() == output.files

    return commit


def _there(files: int, partitions: int = 0) -> tuple[GeneratedStore, GeneratedFiles]:
    """Return a destination that contains the output of an earlier job."""
    per_task = partitions or _FILES_PER_TASK
    old = GeneratedFiles(_OLD_JOB, files // per_task, per_task, partitions)
    old.states[:] = b"\1" * old.files
    old.manifests[:] = b"\2" * old.tasks
    return GeneratedStore(old), old


def _commit(files: int) -> Prepared:
    return _job(GeneratedStore(), SaveMode.APPEND, files // _FILES_PER_TASK, _FILES_PER_TASK)


def _overwrite(files: int) -> Prepared:
    store, old = _there(files)
    commit = _job(store, SaveMode.OVERWRITE, 10, 1)

    def step() -> None:
        commit()
        assert old.visible() == 0

    return step


def _overwrite_partitions(files: int) -> Prepared:
    store, old = _there(files, _PARTITIONS)
    commit = _job(store, SaveMode.OVERWRITE_PARTITIONS, 1, _PARTITIONS // 2, _PARTITIONS // 2)

    def step() -> None:
        commit()
        assert old.visible() == old.files // 2

    return step


def _snapshot(files: int) -> Prepared:
    store, old = _there(files)
    _job(store, SaveMode.APPEND, 1, 1)()

    def step() -> None:
        assert len(read_snapshot(_context(store)).files) == old.files + 1

    return step


def _recover(files: int) -> Prepared:
    """Recover a decided job whose driver died before it completed a file."""
    store = GeneratedStore()
    record, output = _started(store, SaveMode.APPEND, files // _FILES_PER_TASK, _FILES_PER_TASK)
    messages = [output.message(task) for task in range(output.tasks)]
    logging.disable()  # suppress the warning that the job needs recovery
    try:
        assert not TWO_PHASE.commit_job(
            _context(store, roll_forward_attempts=0), record, messages, output.tasks
        ).finished
    finally:
        logging.disable(logging.NOTSET)

    def step() -> None:
        report = recover(_context(store))
        assert [job.job for job in report.jobs] == [output.job] and output.visible() == output.files

    return step


def _recover_undecided(files: int) -> Prepared:
    """Recover a job whose driver died before it decided anything."""
    store = GeneratedStore()
    record, output = _started(store, SaveMode.APPEND, files // _FILES_PER_TASK, _FILES_PER_TASK)

    def step() -> None:
        recover(_context(store), older_than_s=0)
        assert output.visible() == 0 and output.states.count(0) == 0
        assert not [*iter_objects(store, job_record_path(record.job))]

    return step


def _local_listing(page_size: int) -> Callable[[int], Prepared]:
    """List a flat directory three times in parallel, in pages."""

    def prepare(files: int) -> Prepared:
        folder = tempfile.TemporaryDirectory(prefix="holdfast-scale-")
        for number in range(files):
            (Path(folder.name) / f"part-{number:07d}").touch()
        store = LocalStore(folder.name, durable=False)

        def step() -> None:
            walks = [iter_objects(store, "", page_size=page_size) for _ in range(3)]
            assert sum(len({info.key for info in found}) == 1 for found in zip(*walks, strict=True)) == files
            folder.cleanup()

        return step

    return prepare


STEPS: Mapping[str, Callable[[int], Prepared]] = {
    "commit": _commit,
    "overwrite": _overwrite,
    "overwrite-partitions": _overwrite_partitions,
    "snapshot": _snapshot,
    "recover": _recover,
    "recover-undecided": _recover_undecided,
    "local-listing": _local_listing(1000),
    "local-listing-small-pages": _local_listing(100),
}


def _main(name: str, files: int) -> None:
    step = STEPS[name](files)
    before_mb = start_mb()
    cpu_s, wall_s = time.process_time(), time.perf_counter()
    step()
    taken = Taken(
        files=files,
        cpu_s=time.process_time() - cpu_s,
        wall_s=time.perf_counter() - wall_s,
        peak_mb=growth_mb(before_mb),
    )
    print(json.dumps(asdict(taken)))


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]))
