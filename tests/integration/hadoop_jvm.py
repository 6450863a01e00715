"""Run Hadoop's own classes in a separate JVM that a test may kill: its clients, and the S3A committers.

The jars of the committers come from ``HOLDFAST_S3A_JARS`` (docs/how-to/read-with-s3a.md); the JVM is the one that
PySpark starts, without Spark.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from py4j import java_gateway, protocol
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

from holdfast.stores.s3 import S3Options
from tests.class_archive import java_options
from tests.patience import PATIENCE_S

__all__ = ["JARS", "HadoopJob", "HadoopJvm", "Jvm"]


def _jars(variable: str) -> list[str]:
    return sorted(map(str, Path(os.environ.get(variable, "/nowhere")).glob("*.jar")))


JARS = _jars("HOLDFAST_S3A_JARS")

_COMMITTERS = {
    "magic": "fs.s3a.commit.magic.MagicS3GuardCommitter",
    "directory": "fs.s3a.commit.staging.DirectoryStagingCommitter",
    "partitioned": "fs.s3a.commit.staging.PartitionedStagingCommitter",
    "file": "mapreduce.lib.output.FileOutputCommitter",
}


JOB_ID = "20261122101112_0007"
"""Of every job here, as Hadoop counts them; the UUID tells them apart."""


J = TypeVar("J", bound="Jvm")


class Jvm:
    """The JVM that PySpark starts, without Spark; the end of the block kills it.

    Args:
        jars: they go before Spark's own.
    """

    def __init__(self, jars: Sequence[str] = ()) -> None:
        conf = SparkConf(loadDefaults=False).setAll(
            [("spark.driver.extraJavaOptions", java_options()), ("spark.driver.memory", "512m")]
        )
        if jars:
            conf.set("spark.driver.extraClassPath", os.pathsep.join(jars))
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
        self._gateway = launch_gateway(conf, quiet)
        self.java = self._gateway.jvm
        self.hadoop = self.java.org.apache.hadoop
        self.fs = self.hadoop.fs
        # A session of Spark in this process lets py4j ask Spark's own JVM about the exceptions of every JVM.
        self._get_return_value = java_gateway.get_return_value
        java_gateway.get_return_value = protocol.get_return_value

    def kill(self) -> None:
        """SIGKILL."""
        self._gateway.proc.kill()
        self._gateway.proc.wait(PATIENCE_S)
        self._gateway.proc.stdin.close()

    def __enter__(self: J) -> J:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, traceback: TracebackType | None
    ) -> None:
        java_gateway.get_return_value = self._get_return_value
        self._gateway.close()
        self.kill()


class HadoopJvm(Jvm):
    """A JVM with hadoop-aws.

    Args:
        scratch: for what committers keep on their machine, and share.
        jars: of which release.
    """

    def __init__(self, s3: S3Options, scratch: Path, jars: Sequence[str] = JARS) -> None:
        super().__init__(jars)
        self._s3 = s3
        self.shared = scratch / "shared"
        self._scratch = scratch
        self.mapreduce = self.hadoop.mapreduce

    def staged_task(self, uuid: str, task: int) -> Path:
        """Return the directory in which a task of a staging job commits its pending set."""
        (home,) = self.shared.glob(f"*/{uuid}/staging-uploads/_temporary/0")
        return home / f"task_{JOB_ID}_m_{task:06d}"

    def configuration(self, settings: Mapping[str, str]) -> Any:
        """Return Hadoop's configuration for the server, with `settings` on top."""
        conf = self.hadoop.conf.Configuration()
        known = {
            "fs.s3a.endpoint": str(self._s3.endpoint_url),
            "fs.s3a.endpoint.region": "us-east-1",
            "fs.s3a.path.style.access": "true",
            "fs.s3a.access.key": str(self._s3.access_key),
            "fs.s3a.secret.key": str(self._s3.secret_key),
            "fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
            "fs.s3a.buffer.dir": str(self._scratch / "buffer"),
            "fs.s3a.committer.staging.tmp.path": f"file://{self.shared}",
            "fs.s3a.committer.threads": "2",
            "hadoop.tmp.dir": str(self._scratch / "tmp"),
            "fs.defaultFS": "file:///",
        }
        for name, value in {**known, **settings}.items():
            conf.set(name, value)
        return conf


class HadoopJob:
    """A job of one of Hadoop's committers.

    Args:
        url: ``s3a://…``, the destination.
        uuid: as Spark names a write.
        committer: ``magic``, ``directory``, ``partitioned`` or ``file``.
        settings: of Hadoop's configuration.
    """

    def __init__(
        self, jvm: HadoopJvm, url: str, uuid: str, committer: str = "magic", settings: Mapping[str, str] = {}
    ) -> None:
        self._jvm = jvm
        self._path = jvm.fs.Path(url)
        self._conf = jvm.configuration({"spark.sql.sources.writeJobUUID": uuid, **settings})
        self._committer = committer
        self._context = jvm.mapreduce.task.JobContextImpl(self._conf, self._job_id())
        self._driver = self._make(self._attempt(0, 0))

    def _job_id(self) -> Any:
        return self._jvm.mapreduce.JobID(JOB_ID[:14], int(JOB_ID[15:]))

    def _attempt(self, task: int, attempt: int) -> Any:
        ids = self._jvm.mapreduce
        task_id = ids.TaskID(self._job_id(), ids.TaskType.MAP, task)
        return ids.task.TaskAttemptContextImpl(self._conf, ids.TaskAttemptID(task_id, attempt))

    def _make(self, attempt: Any) -> Any:
        made = self._jvm.hadoop
        for name in _COMMITTERS[self._committer].split("."):
            made = getattr(made, name)
        return made(self._path, attempt)

    def set_up(self) -> None:
        self._driver.setupJob(self._context)

    def run_task(self, task: int, files: Mapping[str, bytes], *, attempt: int = 0, commit: bool = True) -> None:
        """Write files through Hadoop's filesystem into the committer's work path, and commit the task."""
        context = self._attempt(task, attempt)
        committer = self._make(context)
        committer.setupTask(context)
        for name, data in files.items():
            path = self._jvm.fs.Path(committer.getWorkPath(), name)
            out = path.getFileSystem(self._conf).create(path, False)
            out.write(data)
            out.close()
        if commit:
            assert committer.needsTaskCommit(context)
            committer.commitTask(context)

    def commit(self) -> None:
        self._driver.commitJob(self._context)

    def abort(self) -> None:
        self._driver.abortJob(self._context, self._jvm.mapreduce.JobStatus.State.KILLED)
