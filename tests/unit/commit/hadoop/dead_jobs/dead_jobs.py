"""Build jobs of Hadoop's committers as a dead driver leaves them, from records that Hadoop wrote."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.commit import CommitContext
from holdfast.commit.hadoop.dead_jobs.recovery import find_hadoop_jobs
from holdfast.commit.layout import iter_visible
from holdfast.runtime import Environment, SerialRunner
from holdfast.stores.base import MultipartStore, Part, iter_objects, iter_uploads, multipart
from holdfast.stores.memory import MemoryStore
from tests.clocks import CountingIds, SimulatedClock

RECORDED = Path(__file__).parents[1] / "recorded"
UUID = "3b1f9c0e-5a77-4c3d-9c55-0d5c8f7e1a2b"
_TASK = "20261122101112_0007_m_{:06d}"


def name(task: int, number: int = 0, uuid: str = UUID) -> str:
    """Return a file's path as Spark names it."""
    return f"day={number}/part-{task:05d}-{uuid}-c{number:03d}.txt"


@dataclass
class Destination:
    """A destination in a bucket in memory, and the directory that machines share."""

    home: str = "out put/dataset1/"
    bucket: str = "bucket"
    clock: SimulatedClock = field(default_factory=SimulatedClock)
    ids: CountingIds = field(default_factory=CountingIds)
    store: MultipartStore = None  # created below, with the same clock

    def __post_init__(self) -> None:
        self.store = self.store or MemoryStore(clock=self.clock, ids=self.ids)

    def context(self, home: str = "", store: MultipartStore | None = None) -> CommitContext:
        return CommitContext(
            store=store or self.store,
            prefix=home or self.home,
            url=f"memory://bucket/{home or self.home}",
            environment=Environment(clock=self.clock, ids=self.ids, runner=SerialRunner()),
        )

    def visible(self) -> dict[str, bytes]:
        return {path: self.store.get(info.key) for path, info in iter_visible(self.store, self.home)}

    def debris(self) -> list[str]:
        """Return uploads and records in the bucket."""
        hidden = (info.key for info in iter_objects(self.store, "", markers=True))
        return [
            *(one.key for one in iter_uploads(self.store, "")),
            *(key for key in hidden if "__magic" in key or "_temporary" in key),
        ]


@dataclass
class HadoopTasks:
    """Write what tasks of a Hadoop S3A committer job leave.

    Args:
        release: whose records.
        layout: ``magic`` or ``old magic`` (until 3.3).
    """

    at: Destination
    uuid: str = UUID
    release: str = "3.5.0"
    layout: str = "magic"
    uploads: dict[str, tuple[str, list[Part]]] = field(default_factory=dict)

    @property
    def directory(self) -> str:
        return {
            "magic": f"{self.at.home}__magic_job-{self.uuid}/job-{self.uuid}/00",
            "old magic": f"{self.at.home}__magic/job-{self.uuid}/00",
        }[self.layout]

    def commit_task(self, task: int, files: Mapping[str, bytes]) -> None:
        """Add a task that has committed: its pending set."""
        found = self._template("task_20261122101112_0007_m_000000.pendingset")
        one = found["commits"][0]
        found["commits"] = [self._upload(one, path, data) for path, data in files.items()]
        found["jobId"] = self.uuid
        self.at.store.put(f"{self.directory}/task_{_TASK.format(task)}.pendingset", json.dumps(found).encode())

    def write(self, task: int, files: Mapping[str, bytes]) -> None:
        """Add an attempt that has written and not committed."""
        one = self._template("late.csv.pending")
        attempt = f"attempt_{_TASK.format(task)}_0"
        for path, data in files.items():
            record = json.dumps(self._upload(one, path, data)).encode()
            base = f"{self.directory}/tasks/{attempt}/__base/{path}"
            self.at.store.put(base, b"")
            self.at.store.put(f"{base}.pending", record)

    def complete(self, path: str) -> None:
        """Complete one file, as Hadoop's job commit does."""
        upload_id, parts = self.uploads[path]
        self.at.store.complete_upload(self.at.home + path, upload_id, parts)

    def _template(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((RECORDED / self.release / name).read_bytes())
        return found

    def _upload(self, template: dict[str, Any], path: str, data: bytes) -> dict[str, Any]:
        store = multipart(self.at.store)
        key = self.at.home + path
        upload_id = store.create_upload(key)
        half = len(data) // 2 if len(data) >= 10 << 20 else len(data)
        parts = [store.upload_part(key, upload_id, 1, data[:half])]
        if data[half:]:
            parts.append(store.upload_part(key, upload_id, 2, data[half:]))
        self.uploads[path] = upload_id, parts
        texts = [part.etag for part in parts]
        as_text = self.release == "3.4.1"
        return copy.deepcopy(template) | {
            "bucket": self.at.bucket,
            "destinationKey": key,
            "uploadId": upload_id,
            "uri": "s3a://bucket/any",
            "jobId": self.uuid if template["jobId"] else "",
            "length": len(data),
            "etags": texts if as_text else [{"etag": e, "checksumAlgorithm": None, "checksum": None} for e in texts],
            "partCount": len(parts),
        }


def only(ctx: CommitContext, abort: bool = False, *, insist: bool = False) -> Any:
    """Return the only Hadoop job."""
    (found,) = find_hadoop_jobs(ctx, abort, insist=insist)
    return found.leftover
