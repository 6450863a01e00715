"""Measure one transaction of very many new files in a namespace: peak memory and time, in a fresh process.

    python -m benchmarks.namespace_batch [FILES [DATABASE...]]                prints a table; Linux only
    python -m benchmarks.namespace_batch --one FILES DATABASE CHANGES         prints one line of JSON

The figure is what `apply` adds to the list of changes, which the caller holds anyway. The database is a process of its
own, except for SQLite, whose page cache (up to 64 MiB) is part of the figure.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence

from benchmarks.command_line import positive
from benchmarks.fresh_process import run_module
from benchmarks.namespace_runs.databases import DATABASES, opened
from benchmarks.peak_memory import growth_mb, start_mb
from holdfast.namespace.inode import Extent
from holdfast.namespace.keys import data_key, upload_key
from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.namespace.object_store.uploads import Upload
from holdfast.stores.base import Change, Complete, Create, Part, Put
from holdfast.transactions.base import Commit, Committed

__all__ = ["CHANGES", "measure"]

CHANGES = ("puts", "uploads")
"""Small files in the changes themselves; and uploads of one part, as a job commit completes them."""

_AT_ONCE = 5000
_PER_DIRECTORY = 1000


def measure(files: int, database: str, changes: str) -> dict[str, float]:
    """Apply one list of changes in a fresh process; return what it took."""
    found: dict[str, float] = run_module("benchmarks.namespace_batch", "--one", files, database, changes)
    return found


# --- in the process ---------------------------------------------------------------------------------------------------
def _keys(files: int) -> Iterator[str]:
    for number in range(files):
        name = f"part-{number:06d}-20260101000000000-{number:012x}.parquet"
        yield f"tables/sales/day={number // _PER_DIRECTORY:04d}/{name}"


def _puts(store: NamespaceStore, files: int) -> list[Change]:
    return [Put(key, b"x", Create()) for key in _keys(files)]


def _uploads(store: NamespaceStore, files: int) -> list[Change]:
    """Write the records of pending uploads as `create_upload` and `upload_part` do, many at once."""
    namespace, now_ms = store.namespace, store.namespace.now_ms()
    changes: list[Change] = []
    inserts: dict[bytes, bytes] = {}
    for number, key in enumerate(_keys(files), 1):
        token, file_id = namespace.new_token(), namespace.new_id()
        part = Extent(namespace.blobs.new_name(file_id), 1, inline=True)
        inserts[upload_key(token)] = Upload(f"/{key}", file_id, now_ms, {}, {1: part}).encode()
        inserts[data_key(part.blob)] = b"x"
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


def _main(arguments: Sequence[str]) -> None:
    if arguments[:1] == ["--one"]:
        print(json.dumps(_measured(positive(arguments[1]), arguments[2], arguments[3])))
        return
    files = positive(arguments[0]) if arguments else 100_000
    for database in arguments[1:] or DATABASES:
        for changes in CHANGES:
            found = measure(files, database, changes)
            print(
                f"{database}, {files} {changes}: {found['growth_mb']:.0f} MB above {found['start_mb']:.0f} MB, "
                f"{found['apply_s']:.1f} s, {found['cpu_s']:.1f} s of this process's CPU",
                flush=True,
            )


if __name__ == "__main__":
    _main(sys.argv[1:])
