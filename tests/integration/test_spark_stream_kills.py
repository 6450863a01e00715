"""Kill the application of a streaming query with SIGKILL repeatedly: every row is visible exactly once.

Kills fall inside tasks and inside commits, at a drawn store call before or after its effect, and from outside at any
moment, while workers of the dead application go on for up to a second. Each restart is only the same command again.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyarrow.fs as pafs
import pytest

pytest.importorskip("pyspark.sql")

from holdfast.commit import CommitContext, Kind, open_context, read_history, verify
from holdfast.commit.layout import JOBS
from holdfast.commit.two_phase.decision_log import read_log
from holdfast.s3_server import SeaweedServer
from holdfast.stores.base import iter_objects
from tests.integration.spark_session import PYTHONPATH
from tests.patience import PATIENCE_S, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.s3]

DRIVER = Path(__file__).with_name("stream_driver.py")
ROWS = 20
SEED = 20_261_106  # with this seed the query survives all ten kills


@pytest.fixture(scope="module", autouse=True)
def bucket(server: SeaweedServer) -> None:
    server.create_bucket("streams")


def draw_deaths(kills: int, seed: int) -> Iterator[dict[str, Any]]:
    """Draw the moments of death: store calls in tasks and commits, or a time after a decision from outside."""
    chance = random.Random(seed)
    for number in range(kills):
        phase = ("commit", "write", "outside")[number % 3]
        if phase == "outside":
            yield {"phase": phase, "decisions": chance.randint(1, 2), "delay_s": chance.uniform(0.0, 0.25)}
        else:
            calls = 40 if phase == "commit" else 30  # three or four batches' worth
            yield {"phase": phase, "nth": chance.randint(1, calls), "after": chance.random() < 0.5}


class Application:
    """The command with the settings of the test."""

    def __init__(self, home: Path, server: SeaweedServer, name: str) -> None:
        self.url = f"s3://streams/{name}"
        self.counter = home / "calls"
        self.context: CommitContext = open_context(self.url, store_options=[server.options])
        access = {
            "endpoint": server.endpoint_url,
            "region": "us-east-1",
            "accessKey": server.options.access_key,
            "secretKey": server.options.secret_key,
        }
        self.settings = {
            "url": self.url,
            "input": str(home / "input"),
            "access": access,
            "options": {**access, "checkpointLocation": str(home / "checkpoint"), "streamId": "flights"},
        }

    def run(self, death: dict[str, Any] | None) -> tuple[int, str]:
        """Run until the query ends or dies; returns exit code and output."""
        inside = None
        if death is not None and death["phase"] != "outside":
            self.counter.unlink(missing_ok=True)
            inside = {**death, "counter": str(self.counter)}
        process = subprocess.Popen(
            [sys.executable, str(DRIVER), json.dumps({**self.settings, "death": inside})],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": PYTHONPATH},
        )
        try:
            if death is not None and death["phase"] == "outside":
                self._kill_from_outside(process, death)
            stdout, _ = process.communicate(timeout=PATIENCE_S)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return process.returncode, stdout

    def _kill_from_outside(self, process: subprocess.Popen[str], death: dict[str, Any]) -> None:
        wanted = read_log(self.context).head + death["decisions"]
        wait_until(
            lambda: read_log(self.context).head >= wanted,
            "the query decides nothing",
            over=lambda: process.poll() is not None,
        )
        threading.Event().wait(death["delay_s"])
        os.killpg(process.pid, signal.SIGKILL)


def independent_read(server: SeaweedServer, url: str) -> list[int]:
    """Return all ids in all files, read by an independent reader."""
    files = pafs.S3FileSystem(
        access_key=server.options.access_key,
        secret_key=server.options.secret_key,
        endpoint_override=server.endpoint_url.removeprefix("http://"),
        scheme="http",
        region="us-east-1",
    )
    table = ds.dataset(url.removeprefix("s3://"), filesystem=files, format="parquet").to_table()
    found: list[int] = sorted(table["id"].to_pylist())
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("kills", "batches"), [(2, 6), (10, 30)], ids=["two", "ten"])
def test_killed_again_and_again(
    server: SeaweedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], kills: int, batches: int
) -> None:
    """C1, C2, C8, C9: no row is lost or duplicated, no data is left behind, and nobody ran recovery."""
    inputs = tmp_path / "input"
    inputs.mkdir()
    for batch in range(batches):
        lines = [{"id": batch * ROWS + row, "name": f"row {row}"} for row in range(ROWS)]
        (inputs / f"{batch:03d}.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    application = Application(tmp_path, server, f"killed-{kills}")
    killed = []
    for death in draw_deaths(kills, SEED):
        code, _ = application.run(death)
        assert code == -signal.SIGKILL, f"the query ended before its death: {death}"
        killed.append({**death, "decisions after": read_log(application.context).head})
    code, output = application.run(None)
    with capsys.disabled():
        print(*killed, sep="\n")
    assert code == 0
    everything = [*range(batches * ROWS)]
    assert json.loads(output) == everything, "holdfast.read"
    assert independent_read(server, application.url) == everything
    report = verify(application.context)
    assert (report.problems, report.notes, report.pending_uploads) == ([], [], 0)
    ctx = application.context
    assert [info.key for info in iter_objects(ctx.store, ctx.key(JOBS))] == [], "no job has left anything"
    entries = [decision.entry for decision in read_history(ctx).decisions]
    committed = [entry.record.stream and entry.record.stream.batch for entry in entries if entry.kind is Kind.COMMIT]
    # A kill between two of Spark's own logs (the file source's, then the query's) puts two files into the next batch.
    assert batches - kills <= len(committed) <= batches
    assert committed == [*range(len(committed))], "each batch was decided once, in order"
    ctx.close()
