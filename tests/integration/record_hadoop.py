"""Record what Hadoop's S3A committers write, for the default tests.

``python -m tests.integration.record_hadoop 3.5.0`` needs ``HOLDFAST_S3A_JARS`` (docs/how-to/read-with-s3a.md). A magic
job of three tasks runs, of which one has not committed, and a staging job of one task; their records go to
``tests/unit/commit/hadoop/recorded/<release>``, byte for byte, but for the names of the machine and of its user.
"""

from __future__ import annotations

import getpass
import socket
import sys
import tempfile
from pathlib import Path

from holdfast.commit import CommitContext, open_context
from holdfast.s3_server import SeaweedServer
from holdfast.stores.base import iter_objects
from tests.integration.hadoop_jvm import HadoopJob, HadoopJvm

MAGIC_JOB = "3b1f9c0e-5a77-4c3d-9c55-0d5c8f7e1a2b"
STAGING_JOB = "7f4e2d10-88a1-4e0b-a6a2-c1d2e3f40516"
FILES = {"year=2026/a b.csv": b"hello", "large.bin": bytes(6 << 20), "empty.csv": b""}


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, SeaweedServer() as server:
        server.create_bucket("bucket")
        ctx = open_context("s3://bucket/out put", store_options=[server.options])
        with HadoopJvm(server.options, Path(scratch)) as jvm:
            _record_magic(jvm, ctx, folder)
            _record_staging(jvm, folder, Path(scratch))
        ctx.close()


def _record_magic(jvm: HadoopJvm, ctx: CommitContext, folder: Path) -> None:
    parts = {"fs.s3a.multipart.size": "5M"}
    job = HadoopJob(jvm, "s3a://bucket/out put", MAGIC_JOB, settings=parts)
    job.set_up()
    job.run_task(0, FILES)
    job.run_task(1, {"late.csv": b"world"}, commit=False)
    job.run_task(2, {})
    keys = [info.key for info in iter_objects(ctx.store, ctx.prefix)]
    (folder / "listing.txt").write_text("".join(f"{key}\n" for key in keys), encoding="utf-8")
    for key in keys:
        if key.endswith((".pending", ".pendingset")):
            (folder / key.rpartition("/")[2]).write_bytes(_anonymous(ctx.store.get(key)))
    job.commit()
    (folder / "_SUCCESS").write_bytes(_anonymous(ctx.store.get(ctx.key("_SUCCESS"))))


def _record_staging(jvm: HadoopJvm, folder: Path, scratch: Path) -> None:
    job = HadoopJob(jvm, "s3a://bucket/staged", STAGING_JOB, "directory")
    job.set_up()
    job.run_task(0, {"year=2026/x.csv": b"abc"})
    shared = scratch / "shared"
    found = sorted(path for path in shared.rglob("*") if path.is_file() and not path.name.startswith("."))
    names = "".join(f"{path.relative_to(shared)}\n" for path in found)
    (folder / "staging-listing.txt").write_bytes(_anonymous(names.encode()))
    (record,) = found
    (folder / f"staging-{record.name}").write_bytes(_anonymous(record.read_bytes()))
    job.abort()


def _anonymous(data: bytes) -> bytes:
    names = {f'"hostname":"{socket.gethostname()}"': '"hostname":"worker-1"', f"{getpass.getuser()}/": "user/"}
    for name, other in names.items():
        data = data.replace(name.encode(), other.encode())
    return data


if __name__ == "__main__":
    main(Path(__file__).parents[1] / "unit" / "commit" / "hadoop" / "recorded" / sys.argv[1])
