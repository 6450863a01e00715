"""Run the suites, a JVM each: one that hangs or dies takes no other with it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.hadoop_contract.toolchain import find_java

__all__ = ["CaseResult", "java_command", "run_suite", "stop"]

_LIMIT_S = 900
_GRACE_S = 10


@dataclass(frozen=True)
class CaseResult:
    """What a case has come to.

    Attributes:
        outcome: passed, failed or skipped.
        message: of the exception, if there was one.
    """

    case: str
    outcome: str
    message: str = ""


def java_command(*arguments: str) -> list[str]:
    """Return the command that starts a JVM of the suites."""
    options = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "--add-opens=java.base/java.lang=ALL-UNNAMED")
    return [find_java(), *options, *arguments]


def run_suite(suite: str, url: str, class_path: str, folder: Path) -> list[CaseResult]:
    """Run a suite against the server at a URL; return what each of its cases has come to.

    Args:
        folder: for its log, and for what it writes on this machine.
    """
    home = folder / suite
    home.mkdir(parents=True)
    events = home / "events.jsonl"
    events.touch()
    properties = (f"-Dholdfast.contract.fs={url}", f"-Dtest.build.data={home}/data", f"-Dhadoop.tmp.dir={home}/tmp")
    command = java_command(*properties, "-cp", class_path, "holdfast.contract.Runner", suite, str(events))
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=home, start_new_session=True
        )
        try:
            end = f"the JVM ended with {process.wait(_LIMIT_S)} before the case did"
        except subprocess.TimeoutExpired:
            end = f"the suite's {_LIMIT_S} s were over"
        finally:
            stop(process)
    return _read_results([json.loads(line) for line in events.read_text(encoding="utf-8").splitlines()], end)


def _read_results(events: Sequence[dict[str, str]], end: str) -> list[CaseResult]:
    results: dict[str, CaseResult] = {}
    broken = None
    for event in events:
        if event["event"] == "done":
            result = CaseResult(event["case"], event["outcome"], event["message"])
            if event["case"] == "(suite)":
                broken = result
        else:
            word = "unfinished" if event["event"] == "started" else "not begun"
            result = CaseResult(event["case"], "failed", f"{word}: {end}")
        results[event["id"]] = result
    if broken is not None:  # @BeforeAll failed, so no case began
        return [CaseResult(one.case, broken.outcome, broken.message) for one in results.values()]
    return list(results.values()) or [CaseResult("(suite)", "failed", f"no case was found: {end}; see the log")]


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process that leads a group, and what it has started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(_GRACE_S)
            return
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue
