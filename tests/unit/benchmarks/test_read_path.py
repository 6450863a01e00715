"""Test that the read benchmark runs at a small size and writes the documented fields. No time is asserted."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks import read_path
from benchmarks.read_tables import READS
from tests.patience import PATIENCE_S


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="CPU seconds of other processes are read from /proc")
def test_cpu_seconds_count_processes_that_have_ended() -> None:
    """In a process of its own: of the other children of this one, some lose their parents at any time."""
    work = """
import os, subprocess, sys
from benchmarks.cpu_time import CpuMeter
meter = CpuMeter()
before = meter.seconds()
subprocess.run([sys.executable, "-c", "import os\\nwhile sum(os.times()[:2]) < 0.2: pass"], check=True)
print(meter.seconds() - before, CpuMeter(root=2**22 + 1).seconds())
"""
    done = subprocess.run([sys.executable, "-c", work], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    used_s, of_nobody_s = map(float, done.stdout.split())
    assert round(used_s, 2) >= 0.2  # a sum of hundredths
    assert of_nobody_s == 0, "no process has this id"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="CPU seconds of other processes are read from /proc")
def test_cpu_seconds_count_children_that_their_parent_ignores() -> None:
    """As the daemon of PySpark's workers does; then the kernel adds the child's time to nobody's."""
    work = """
import os, signal, time
from benchmarks.cpu_time import CpuMeter
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
with CpuMeter() as meter:
    before = meter.seconds()
    child = os.fork()
    if child == 0:
        while sum(os.times()[:2]) < 0.3:
            pass
        time.sleep(0.5)  # until it has been looked at
        os._exit(0)
    try:
        os.waitpid(child, 0)
    except ChildProcessError:
        pass
    print(meter.seconds() - before)
"""
    done = subprocess.run([sys.executable, "-c", work], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert float(done.stdout) >= 0.25


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(("start", "names"), [("warm", READS), ("cold", ("read-one",))], ids=["every", "cold"])
def test_the_command_reads_tables_with_both_readers(tmp_path: Path, start: str, names: Sequence[str]) -> None:
    """Runs in its own process, as from the command line, because it opens and stops a Spark session."""
    every, results = tmp_path / "every.json", tmp_path / "results"
    sizes = ["--rows", "200", "--partitions", "3", "--files", "4", "--rounds", "1", "--warm-ups", "0", "--start", start]
    where = ["--folder", str(tmp_path), "--results", str(results), "--json", str(every)]
    only = [word for name in names for word in ("--only", name)]
    command = [sys.executable, read_path.__file__, *sizes, *where, *only]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    found = json.loads(every.read_text())
    assert [one["benchmark"] for one in found] == [f"{name}-python-{start}" for name in only[1::2]]
    for one in found:
        assert one["seconds"].keys() == {"holdfast", "spark"}
        assert one["settings"]["rows"] == 200
        assert {"holdfast, median wall s", "spark, median wall s"} <= set(one["details"])
        assert (results / f"{one['benchmark']}.json").exists()
    assert {path.name for path in tmp_path.iterdir()} == {"every.json", "results"}, "tables are removed"


def test_an_unknown_benchmark_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        read_path.main(["--only", "writing"])
    assert "read-partitions" in capsys.readouterr().err
