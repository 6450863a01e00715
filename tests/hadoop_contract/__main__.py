"""Run the suites from the command line: see the package."""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.hadoop_contract.expectations import BASELINE, SUITES, baseline, expectations
from tests.hadoop_contract.suites import CaseResult, java_command, run_suite, stop
from tests.hadoop_contract.toolchain import build_class_path, missing_tool
from tests.patience import wait_until


def main(arguments: Sequence[str]) -> int:
    """Run suites; return 1 if a case has not come to what is expected."""
    parser = argparse.ArgumentParser(prog="python -m tests.hadoop_contract", description=__doc__)
    parser.add_argument("url", nargs="?", help="webhdfs://host:port: a server that loses all that it holds")
    parser.add_argument("suites", nargs="*", help="some of: " + " ".join(SUITES))
    parser.add_argument("--reference", action="store_true", help="run against stock HDFS, and keep the outcomes")
    given = parser.parse_args(arguments)
    if missing_tool() or (given.url is None and not given.reference) or not set(given.suites) <= set(SUITES):
        parser.error(missing_tool() or "give the URL of a server, or --reference, and names of suites: see --help")
    folder = Path(tempfile.mkdtemp(prefix="hadoop-contract-"))
    class_path = build_class_path(folder, with_reference=given.reference)
    print(f"logs: {folder}", flush=True)
    if given.reference:
        with _stock_hdfs(class_path, folder) as url:
            _keep({suite: run_suite(suite, url, class_path, folder) for suite in SUITES})
        return 0
    results = ((suite, run_suite(suite, given.url, class_path, folder)) for suite in given.suites or SUITES)
    return max(_report(suite, found) for suite, found in results)


def _report(suite: str, results: Sequence[CaseResult]) -> int:
    expected, stock = expectations(suite), baseline()[suite]
    passed = sum(one.outcome == "passed" for one in results)
    print(f"{suite}: {passed} of {len(results)} passed", flush=True)
    others = [one for one in results if one.case not in expected or one.outcome != expected[one.case].outcome]
    for one in others:
        print(f"  {one.case}: {one.outcome}; stock HDFS: {stock.get(one.case)}\n    {one.message[:300]}", flush=True)
    return int(bool(others))


@contextmanager
def _stock_hdfs(class_path: str, folder: Path) -> Iterator[str]:
    """Start stock HDFS on a free port; return its URL."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = folder / "hdfs.log"
    command = ("-cp", class_path, "holdfast.contract.Reference", str(folder / "hdfs"), str(port))
    with log.open("wb") as output:
        process = subprocess.Popen(
            java_command(f"-Dtest.build.data={folder}", *command),
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
            cwd=folder,
            start_new_session=True,
        )
        try:
            wait_until(
                lambda: b"ready" in log.read_bytes().split(),
                f"stock HDFS did not start: see {log}",
                over=lambda: process.poll() is not None,
            )
            yield f"webhdfs://localhost:{port}"
        finally:
            stop(process)


def _keep(results: dict[str, list[CaseResult]]) -> None:
    """Write the baseline; what came out otherwise before is unstable for good."""
    before = baseline()
    kept = {
        suite: {
            one.case: one.outcome if before.get(suite, {}).get(one.case, one.outcome) == one.outcome else "unstable"
            for one in sorted(found, key=lambda one: one.case)
        }
        for suite, found in results.items()
    }
    BASELINE.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    os.environ.setdefault("HADOOP_USER_NAME", os.environ.get("USER", "root"))
    sys.exit(main(sys.argv[1:]))
