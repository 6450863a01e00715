"""Kill the driver of a job of units: run again with its name, in a new application, it goes on where it was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark.sql")

from holdfast.records.database import open_database
from holdfast.units.jobs import find_job, read_task_progress
from tests.integration.dying_units import counted, counted_words, lines_of_words
from tests.integration.spark_session import PYTHONPATH
from tests.integration.units_driver import JOB, LINES
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.spark, pytest.mark.slow]

NEVER = LINES


def drive(url: str, marks: Path, key: int) -> tuple[int, str]:
    """Run the driver in a group of processes of its own; return how it ended, and what it printed."""
    running = subprocess.Popen(
        [sys.executable, "-m", "tests.integration.units_driver", url, str(marks), str(key)],
        env={**os.environ, "PYTHONPATH": PYTHONPATH},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        printed, _ = running.communicate(timeout=PATIENCE_S)
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
    return running.returncode, printed


def test_a_job_survives_its_driver(tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/database.db"
    with open_database(url, create=True) as db:
        db.create_table("words")
        done = 0
        for key in (LINES // 4, LINES // 2):
            status, _ = drive(url, tmp_path, key)
            assert (status, (tmp_path / f"killed-{key}").exists()) == (-signal.SIGKILL, True)
            before, done = done, sum(one.done for one in read_task_progress(db.backend, find_job(db.backend, JOB)))
            assert before < done < LINES, "units that were done stay done, and each application has done more"
        assert drive(url, tmp_path, NEVER)[0] == 0
        assert counted_words(db) == counted(lines_of_words(LINES))
        assert drive(url, tmp_path, 0) == (0, f"units {LINES}\n"), "a finished job does not run again"
        assert not (tmp_path / "killed-0").exists()
        assert counted_words(db) == counted(lines_of_words(LINES))
