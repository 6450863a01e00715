"""Write destinations for the tests of commands, through the commit core alone, without Spark."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet
from click.testing import CliRunner, Result

from holdfast.cli.app import cli
from holdfast.commit import TWO_PHASE, CommitContext, JobRecord, SaveMode, TaskCommit, open_context
from holdfast.stores.provider import StoreOptions

__all__ = ["FLIGHTS", "commit_table", "on_screen", "run", "start_table"]

FLIGHTS: Mapping[int, Sequence[Mapping[str, object]]] = {
    1: [{"carrier": "UA", "delay": 2}, {"carrier": "[B6]", "delay": None}],
    12: [{"carrier": "DL", "delay": 7}],
}
"""Rows by month."""


def run(*arguments: str, answer: str | None = None) -> Result:
    """Run the command line in this process."""
    return CliRunner().invoke(cli, list(arguments), input=answer)


class _Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_screen(*arguments: str, columns: int = 80) -> str:
    """Run the command line and return what a terminal of this width shows, without colors."""
    screen = _Screen()
    before = {name: os.environ.get(name) for name in ("COLUMNS", "LINES", "TERM")}
    os.environ.update({"COLUMNS": str(columns), "LINES": "25", "TERM": "xterm"})
    try:
        with contextlib.redirect_stdout(screen), contextlib.suppress(SystemExit):
            cli.main(list(arguments))
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
    return re.sub(r"\x1b\[[\d;]*m", "", screen.getvalue())


def start_table(
    ctx: CommitContext, mode: SaveMode = SaveMode.APPEND, tasks: int = 1
) -> tuple[JobRecord, list[TaskCommit | None]]:
    """Start a job and commit its tasks, but do not decide it."""
    job = TWO_PHASE.setup_job(ctx, mode, {"format": "parquet"})
    assert job is not None
    commits: list[TaskCommit | None] = []
    for task in range(tasks):
        with TWO_PHASE.setup_task(ctx, job, task) as attempt:
            for month, rows in FLIGHTS.items():
                path = f"month={month}/{attempt.file_name('.parquet')}"
                data = io.BytesIO()
                pyarrow.parquet.write_table(pa.Table.from_pylist(list(rows)), data)
                attempt.open(path).write(data.getvalue())
                attempt.record_rows(path, len(rows))
            commits.append(attempt.commit())
    return job, commits


def commit_table(url: str, mode: SaveMode = SaveMode.APPEND, store_options: Sequence[StoreOptions] = ()) -> JobRecord:
    """Commit three flights in two partitions."""
    ctx = open_context(url, store_options=store_options)
    job, commits = start_table(ctx, mode)
    assert TWO_PHASE.commit_job(ctx, job, commits, len(commits)).committed
    ctx.store.close()
    return job
