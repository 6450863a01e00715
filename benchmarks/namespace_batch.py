"""Measure one transaction of very many new files in a namespace: peak memory and time, in fresh processes.

The figure is what `apply` adds to the list of changes, which the caller holds anyway. The database is a process of its
own, except for SQLite, whose page cache (up to 64 MiB) is part of the figure.

    python -m benchmarks.namespace_batch FILES DATABASE CHANGES    prints one line of JSON; Linux only
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Iterator, Sequence

from benchmarks.fresh_process import run_module
from benchmarks.measure import Result, Say
from benchmarks.namespace_runs.databases import DATABASES, opened
from benchmarks.peak_memory import growth_mb, start_mb
from holdfast.namespace.keys import data_key, new_inode_id, upload_key
from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.namespace.other_records import Upload
from holdfast.stores.base import Change, Complete, Create, Part, Put
from holdfast.transactions.base import Commit, Committed

__all__ = ["measure_batch"]

_CHANGES = ("puts", "uploads")
"""Small files in the changes themselves; and uploads of one part, as a job commit completes them."""

_AT_ONCE = 5000
_PER_DIRECTORY = 1000


def measure_batch(say: Say, *, files: int = 100_000, databases: Sequence[str] = tuple(DATABASES)) -> Result:
    """Measure the memory that a transaction adds to its list of changes."""
    details: dict[str, object] = {}
    worst_mb = 0.0
    for database, changes in itertools.product(databases, _CHANGES):
        found = run_module("benchmarks.namespace_batch", files, database, changes)
        name = f"{database}, {changes}"
        say(
            f"  {name}: {found['growth_mb']:.0f} MB above {found['start_mb']:.0f} MB, {found['apply_s']:.1f} s, "
            f"{found['cpu_s']:.1f} s of CPU time"
        )
        details[f"{name}, MB above start"] = round(found["growth_mb"], 1)
        details[f"{name}, s"] = round(found["apply_s"], 1)
        worst_mb = max(worst_mb, found["growth_mb"])
    return Result(
        benchmark="batch-memory",
        title=f"peak memory of one transaction of {files} files in a namespace",
        figure=worst_mb,
        figure_name="MB above start",
        target=200,
        settings={"files": files, "databases": list(databases)},
        details=details,
    )


# --- in the process ---------------------------------------------------------------------------------------------------
def _keys(files: int) -> Iterator[str]:
    for number in range(files):
        name = f"part-{number:06d}-20260101000000000-{number:012x}.parquet"
        yield f"tables/sales/day={number // _PER_DIRECTORY:04d}/{name}"


def _puts(store: NamespaceStore, files: int) -> list[Change]:
    return [Put(key, b"x", Create()) for key in _keys(files)]


def _uploads(store: NamespaceStore, files: int) -> list[Change]:
    """Write the records of pending uploads as `create_upload` and `upload_part` do, many at once."""
    namespace, now_ms = store.namespace, store.namespace.operations.now_ms()
    changes: list[Change] = []
    inserts: dict[bytes, bytes] = {}
    for number, key in enumerate(_keys(files), 1):
        token, file_id = namespace.environment.ids.token(), new_inode_id(namespace.environment)
        part, stored = namespace.blobs.new_small_blob(file_id, b"x")
        inserts[upload_key(token)] = Upload(f"/{key}", file_id, now_ms, {}, {1: part}).encode()
        inserts[data_key(part.blob)] = stored[part.blob]
        changes.append(Complete(key, token, (Part(1, part.blob, 1),)))
        if number % _AT_ONCE == 0 or number == files:
            assert isinstance(namespace.database.commit(Commit(inserts=inserts)), Committed)
            inserts = {}
    return changes


def _measured(files: int, database: str, kind: str) -> dict[str, float]:
    with opened(database) as server:
        url = server.new_namespace()
        with server.open(url) as namespace:
            store = NamespaceStore(namespace, close_namespace=False)
            store.put("tables/sales/_holdfast/job.json", b"{}")
            changes = (_puts if kind == "puts" else _uploads)(store, files)
            before_mb = start_mb()
            started_s, started_cpu_s = time.perf_counter(), time.process_time()
            store.apply(changes)
            apply_s, cpu_s = time.perf_counter() - started_s, time.process_time() - started_cpu_s
            grown_mb = growth_mb(before_mb)
            found = sum(entry.size == 1 for entry in namespace.walk("/tables") if not entry.is_directory)
            assert found == files, (found, files)
            return {"start_mb": before_mb, "growth_mb": grown_mb, "apply_s": apply_s, "cpu_s": cpu_s}


if __name__ == "__main__":
    print(json.dumps(_measured(int(sys.argv[1]), sys.argv[2], sys.argv[3])))
