"""Run the three scenarios: start a driver, inject faults, list the bucket from outside meanwhile, then compare rows."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from holdfast.commit import CommitContext, open_context, read_snapshot, verify
from holdfast.demo.bucket import Listing, PlainBucket, difference
from holdfast.demo.processes import DriverProcess
from holdfast.demo.proxy import StallingProxy
from holdfast.demo.report import ScenarioReport
from holdfast.demo.task import DriverTask
from holdfast.errors import UnavailableError
from holdfast.runtime import Clock
from holdfast.stores.s3.options import S3Options
from holdfast.wording import counted

_LIST_EVERY_S = 0.1
_VISIBLE_AT_DEATH = 30  # uploads that may be completed before the driver dies; each scenario writes about 80 files
_STALL_TIMEOUT_S = 900.0  # Spark starts and writes first, which takes minutes on a busy machine


@dataclass(frozen=True, kw_only=True)
class World:
    """The environment that all scenarios share.

    Attributes:
        options: how to reach the S3 server.
        bucket: the bucket's name.
        plain: the bucket as other tools see it.
        source: the CSV file.
        flights: the rows of the CSV file.
        folder: directory for logs and Spark's files.
        environment: environment variables of child processes, with the server's credentials.
        tell: called with the current step, for the user.
    """

    options: S3Options
    bucket: str
    plain: PlainBucket
    source: Path
    flights: pa.Table
    folder: Path
    environment: Mapping[str, str]
    clock: Clock
    tell: Callable[[str], None]

    def url(self, name: str) -> str:
        """Return the destination of a scenario."""
        return f"s3://{self.bucket}/flights-{name}"

    def context(self, name: str) -> CommitContext:
        """Open the destination through Holdfast; the caller closes the context."""
        return open_context(self.url(name), store_options=[self.options])

    def driver(self, name: str, *, endpoint: str | None = None, faults: bool = False) -> DriverProcess:
        """Start the driver of a scenario."""
        folder = self.folder / name
        marks = folder / "marks"
        marks.mkdir(parents=True)
        task = DriverTask(
            source=str(self.source),
            url=self.url(name),
            endpoint=endpoint or str(self.options.endpoint_url),
            events=str(folder / "events.jsonl"),
            work=str(folder / "spark"),
            marks=str(marks) if faults else None,
        )
        return DriverProcess(task, folder, self.environment)


class _Watch:
    """An observer that lists a destination from outside, repeatedly, and counts the files that it sees."""

    def __init__(self, world: World, report: ScenarioReport) -> None:
        self._world = world
        self._report = report
        self._began_s = world.clock.elapsed_s()
        self.last = Listing(0, False)
        self.told: dict[str, object] = {}

    def once(self, driver: DriverProcess) -> None:
        """List the destination once, and read the driver's new events."""
        clock = self._world.clock
        self.last = self._world.plain.list_destination(f"flights-{self._report.name}")
        if not self.last.decided:
            self._report.looks_before += 1
            self._report.seen_before = max(self._report.seen_before, self.last.files)
        for event in driver.events():
            self.told.update(event)
            if event["event"] == "writing":
                self._began_s = clock.elapsed_s()
                self._world.tell(f"{self._report.name}: {self._report.title}: writing")
            else:
                self.stop()
        clock.sleep(_LIST_EVERY_S)

    def stop(self) -> None:
        """Record that the write is over."""
        self._report.write_s = round(self._world.clock.elapsed_s() - self._began_s, 2)


def _run_to_end(world: World, report: ScenarioReport, *, faults: bool) -> _Watch:
    world.tell(f"{report.name}: {report.title}: starting Spark")
    watch = _Watch(world, report)
    with world.driver(report.name, faults=faults) as driver:
        while driver.running:
            watch.once(driver)
        watch.once(driver)
        driver.require_success()
    return watch


# --- a, b -------------------------------------------------------------------------------------------------------------
def _plain(world: World) -> ScenarioReport:
    report = ScenarioReport(name="a", title="plain")
    _run_to_end(world, report, faults=False)
    return _compared(world, report)


def _failing_tasks(world: World) -> ScenarioReport:
    report = ScenarioReport(name="b", title="failing tasks")
    watch = _run_to_end(world, report, faults=True)
    marks = sorted(path.name for path in (world.folder / "b" / "marks").iterdir())
    failed = watch.told.get("failed_attempts")
    report.events.append(
        "one attempt ended by os._exit while writing and one raised an error after its upload "
        f"({', '.join(marks)}); Spark counted {failed} failed attempts and retried"
    )
    if marks != ["failed-task-1", "killed-task-0"] or failed != 2:
        report.problems.append(f"not the two injected faults: {marks}, Spark counted {failed}")
    return _compared(world, report)


# --- c ----------------------------------------------------------------------------------------------------------------
def _killed_driver(world: World) -> ScenarioReport:
    report = ScenarioReport(name="c", title="killed driver")
    world.tell(f"c: {report.title}: starting Spark")
    watch = _Watch(world, report)
    with StallingProxy(str(world.options.endpoint_url), _VISIBLE_AT_DEATH) as proxy:
        with world.driver("c", endpoint=proxy.url) as driver:
            deadline_s = world.clock.elapsed_s() + _STALL_TIMEOUT_S
            while not (watch.last.decided and watch.last.files == _VISIBLE_AT_DEATH and proxy.stalled):
                if not driver.running:
                    driver.require_success()
                if not driver.running or world.clock.elapsed_s() > deadline_s:
                    report.problems.append("the job commit could not be stopped in the middle")
                    return _compared(world, report)
                watch.once(driver)
            killed = driver.kill()
            watch.stop()
    _inspect_before_recovery(world, report, killed)
    _recover(world, report)
    return _compared(world, report)


def _inspect_before_recovery(world: World, report: ScenarioReport, killed: Counter[str]) -> None:
    listing = world.plain.list_destination("flights-c")
    pending = world.plain.pending_uploads()
    with world.context("c") as ctx:
        through_holdfast = len(read_snapshot(ctx).files)
    names = ", ".join(f"{count} {name}" for name, count in killed.items())
    report.events.append(
        f"SIGKILL to {names} processes in the middle of the job commit: {listing.files} files visible, "
        f"{pending} uploads pending"
    )
    report.events.append(
        f"before recovery, a plain listing shows {listing.files} of {listing.files + pending} files, a reader through "
        f"Holdfast {through_holdfast}"
    )
    if through_holdfast != 0:
        report.problems.append(f"a Holdfast reader saw {through_holdfast} files of a partly visible job")
    if not (listing.decided and listing.files == _VISIBLE_AT_DEATH and pending):
        report.problems.append(f"the driver did not die during the job commit: {listing}, {pending} uploads pending")


def _recover(world: World, report: ScenarioReport) -> None:
    """Run ``holdfast recover``, as a user would."""
    world.tell("c: holdfast recover")
    began_s = world.clock.elapsed_s()
    command = [sys.executable, "-m", "holdfast.cli", "recover", world.url("c"), "--json"]
    command += ["--endpoint-url", str(world.options.endpoint_url)]
    run = subprocess.run(command, env=dict(world.environment), capture_output=True, text=True, check=False)
    report.recover_s = round(world.clock.elapsed_s() - began_s, 2)
    if run.returncode:
        raise UnavailableError("holdfast recover failed: see its output", output=run.stderr.strip())
    finished = json.loads(run.stdout)["rolled_forward"]
    report.events.append(f"holdfast recover rolled {counted(len(finished), 'job')} forward")
    if len(finished) != 1:
        report.problems.append(f"recovery should have rolled one job forward: {run.stdout.strip()}")


# --- comparison -------------------------------------------------------------------------------------------------------
def _compared(world: World, report: ScenarioReport) -> ScenarioReport:
    """Check the destination at the end, first with other tools and then with ``holdfast verify``."""
    world.tell(f"{report.name}: comparing every row with the source")
    found = world.plain.read_rows(f"flights-{report.name}")
    report.rows = found.num_rows
    report.difference = difference(world.flights, found)
    report.files = world.plain.list_destination(f"flights-{report.name}").files
    report.pending_uploads = world.plain.pending_uploads()
    with world.context(report.name) as ctx:
        checked = verify(ctx)
    if report.difference:
        report.problems.append(f"the rows differ from the source: {report.difference}")
    if report.seen_before:
        report.problems.append(f"{report.seen_before} files of the job were visible before its decision")
    if not report.looks_before:
        report.problems.append("no listing ended before the decision")
    if report.pending_uploads:
        report.problems.append(f"still pending: {counted(report.pending_uploads, 'upload')}")
    report.problems.extend(f"holdfast verify: {problem}" for problem in checked.problems)
    return report


SCENARIOS: Mapping[str, Callable[[World], ScenarioReport]] = {"a": _plain, "b": _failing_tasks, "c": _killed_driver}
