"""Measure the peak memory of a job commit of very many files, each shape in a fresh process.

The store is in the same process. The pending uploads that it drops when they become objects are kept alive here, so
that the commit cannot reuse their memory unnoticed. The figure covers the commit and the store's new objects: it is an
upper bound.

    python -m benchmarks.commit_memory TASKS FILES_PER_TASK THREADS STORE    prints one line of JSON; Linux only
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Sequence

from benchmarks.fresh_process import run_module
from benchmarks.job_files import JobShape, check_files, prepare_job
from benchmarks.measure import Result, Say
from benchmarks.peak_memory import growth_mb, start_mb
from holdfast.commit import CommitContext
from holdfast.runtime import Environment, SerialRunner, ThreadRunner
from holdfast.stores.memory import MemoryStore

__all__ = ["measure_memory"]

_SHAPES = (
    JobShape(tasks=1_000, files_per_task=100, file_bytes=1),
    JobShape(tasks=100_000, files_per_task=1, file_bytes=1),
)


_STORES = ("uploads", "transactions")
"""A store like S3, and one that publishes all files of a job in one transaction."""


def measure_memory(threads: int, say: Say, shapes: Sequence[JobShape] = _SHAPES) -> Result:
    """Measure the memory that the job commit adds to the tasks' messages, which Spark holds anyway."""
    details: dict[str, object] = {}
    worst_mb = 0.0
    for shape, store in itertools.product(shapes, _STORES):
        found = run_module("benchmarks.commit_memory", shape.tasks, shape.files_per_task, threads, store)
        name = f"{shape.tasks} tasks x {shape.files_per_task} files, {store}"
        say(f"  {name}: {found['growth_mb']:.0f} MB above {found['start_mb']:.0f} MB, {found['commit_s']:.1f} s")
        details[f"{name}, MB above start"] = round(found["growth_mb"], 1)
        details[f"{name}, s"] = round(found["commit_s"], 1)
        worst_mb = max(worst_mb, found["growth_mb"])
    return Result(
        benchmark="commit-memory",
        title=f"peak memory of a job commit of {max(shape.files for shape in shapes)} files",
        figure=worst_mb,
        figure_name="MB above start",
        target=200,
        settings={"threads": threads, "shapes": [[shape.tasks, shape.files_per_task] for shape in shapes]},
        details=details,
    )


# --- in the process ---------------------------------------------------------------------------------------------------
def _measured(shape: JobShape, threads: int, kind: str) -> dict[str, float]:
    store = MemoryStore(transactions=kind == "transactions")
    ctx = CommitContext(store=store, prefix="t/", url="bench/t", environment=Environment(runner=SerialRunner()))
    job = prepare_job(ctx, shape, bytes(shape.file_bytes))
    kept = list(store._uploads.values())
    before_mb = start_mb()
    started_s = time.perf_counter()
    job.commit(ctx.with_environment(runner=ThreadRunner(threads)))
    commit_s = time.perf_counter() - started_s
    grown_mb = growth_mb(before_mb)
    assert len(kept) == shape.files
    check_files(store, "t/", shape)
    return {"start_mb": before_mb, "growth_mb": grown_mb, "commit_s": commit_s}


if __name__ == "__main__":
    tasks, files_per_task, thread_count = (int(argument) for argument in sys.argv[1:4])
    measured = _measured(JobShape(tasks=tasks, files_per_task=files_per_task, file_bytes=1), thread_count, sys.argv[4])
    print(json.dumps(measured))
