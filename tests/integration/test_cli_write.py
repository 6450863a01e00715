"""Run `holdfast write` as a child process with real Spark: a plain write, rejected requests and Ctrl-C."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.spark_session import visible
from tests.patience import PATIENCE_S, wait_until
from tests.unit.cli.destinations import run

pytestmark = [pytest.mark.spark, pytest.mark.acceptance]

_SLOW_WRITE = ["in.csv", "out", "--option", "maxRecordsPerFile=500", "--master", "local[2]"]
_WRITING = {"two_phase": "out/_holdfast/jobs/*/attempts/*/*.pending", "magic": "out/__magic*/**/*"}
"""What is there once a task writes."""
_COMMAND = [sys.executable, "-m", "holdfast.cli", "write"]


def write(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*_COMMAND, *arguments, "--master", "local[2]"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start the command in a process group of its own, as a terminal does."""
    return subprocess.Popen(
        [*_COMMAND, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_a_csv_file_becomes_a_table(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id,name,month\n1,a b,1\n2,é,2\n3,,2\n", encoding="utf-8")
    written = write(tmp_path, "in.csv", "out", "--partition-by", "month", "--json")
    assert (written.returncode, written.stderr) == (0, "")
    result = json.loads(written.stdout)
    assert (result["rows"], result["files"], result["finished"]) == (3, 2, True)
    rows = json.loads(run("read", str(tmp_path / "out"), "--json").stdout)["rows"]
    assert rows == [
        {"id": 1, "name": "a b", "month": 1},
        {"id": 2, "name": "é", "month": 2},
        {"id": 3, "name": None, "month": 2},
    ]
    assert run("verify", str(tmp_path / "out")).exit_code == 0


@pytest.mark.slow
def test_an_input_in_another_dialect_and_without_a_header(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text('1;"say ""hi"""\n2;b\n', encoding="utf-8")
    dialect = ["--input-option", "header=false", "--input-option", "delimiter=;", "--input-option", 'escape="']
    written = write(tmp_path, "in.csv", "out", *dialect, "--input-schema", "id long, name string", "--json")
    assert (written.returncode, written.stderr) == (0, "")
    rows = json.loads(run("read", str(tmp_path / "out"), "--json").stdout)["rows"]
    assert rows == [{"id": 1, "name": 'say "hi"'}, {"id": 2, "name": "b"}]


@pytest.mark.slow
def test_an_input_whose_header_names_other_columns(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("name,id\n1,2\n", encoding="utf-8")
    written = write(tmp_path, "in.csv", "out", "--input-schema", "id string, name string")
    assert written.returncode == 1
    assert "CSV header does not conform to the schema" in written.stderr
    assert visible(tmp_path / "out") == []
    history = json.loads(run("history", str(tmp_path / "out"), "--json").stdout)
    assert [one["kind"] for one in history["decisions"]] == ["abort"]


@pytest.mark.slow
def test_a_mode_that_refuses(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id\n1\n", encoding="utf-8")
    assert write(tmp_path, "in.csv", "out").returncode == 0
    again = write(tmp_path, "in.csv", "out", "--mode", "fail")
    assert again.returncode == 1
    assert again.stderr.startswith("error: the destination already contains data")
    assert again.stderr.count("\n") == 1
    assert run("verify", str(tmp_path / "out")).exit_code == 0


def test_an_input_that_is_not_there(tmp_path: Path) -> None:
    written = write(tmp_path, "nothing.csv", "out")
    assert (written.returncode, written.stdout) == (2, "")
    assert written.stderr == "error: the input does not exist: check its path input='nothing.csv'\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("chosen", ["bare", "none"])
def test_workers_with_another_python_are_told_of_in_one_sentence(tmp_path: Path, chosen: str) -> None:
    """The interpreter has none of our packages: it is the base of the virtual environment."""
    (tmp_path / "in.csv").write_text("id\n1\n")
    bare = tmp_path / "bare"
    base = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    bare.write_text(f'#!/bin/sh\nunset PYTHONPATH\nexec {base} -I "$@"\n')
    bare.chmod(0o755)
    found = {
        "none": (str(tmp_path / "no-python3"), "do not find the configured Python"),
        "bare": (str(bare), "run a Python without"),
    }
    python, sentence = found[chosen]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", python)
        patch.delenv("PYSPARK_DRIVER_PYTHON", raising=False)  # set by scripts/run: Spark's data sources take it first
        written = write(tmp_path, "in.csv", "out")
    assert (written.returncode, written.stdout) == (2, "")
    assert written.stderr.startswith("error: Spark's workers ")
    assert (sentence in written.stderr, written.stderr.count("\n")) == (True, 1)
    assert "PYSPARK_PYTHON" in written.stderr
    assert visible(tmp_path / "out") == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "committer",
    ["two_phase", *(pytest.param(name, marks=pytest.mark.slow) for name in ("magic", "manifest", "file-v1"))],
)
def test_ctrl_c_in_mid_write_leaves_nothing_visible(tmp_path: Path, committer: str) -> None:
    """Spark is stopped, the job aborted, exit code 130."""
    with (tmp_path / "in.csv").open("w", encoding="utf-8") as file:
        file.write("id,text\n")
        file.writelines(f"{number},{'x' * 20}\n" for number in range(500_000))
    process = start(tmp_path, *_SLOW_WRITE, "--committer", committer)
    written = _WRITING.get(committer, "out/**/part-*")
    wait_until(lambda: any(tmp_path.glob(written)), "no task has written", over=lambda: process.poll() is not None)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, stdout) == (130, ""), stderr
    assert "the job is aborted" in stderr
    assert "none of its output is visible" in stderr
    assert "Traceback" not in stderr
    assert visible(tmp_path / "out") == []
    recovered = json.loads(run("recover", str(tmp_path / "out"), "--older-than", "0s", "--json").stdout)
    assert recovered.get("jobs", []) == []  # absent if nothing is left at the url
    if committer == "two_phase":
        history = json.loads(run("history", str(tmp_path / "out"), "--json").stdout)
        assert [(one["kind"], one["state"]) for one in history["decisions"]] == [("abort", "done")]
        assert history["undecided"] == []


def _jvms(group: int) -> list[Path]:
    """List the Java processes of a process group."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            state, _parent, its_group = (process / "stat").read_text().rpartition(")")[2].split()[:3]
            program = (process / "cmdline").read_bytes().split(b"\0")[0]
            if int(its_group) == group and state != "Z" and program.endswith(b"java"):
                found.append(process)
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes through /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_spark_starts_leaves_no_jvm(tmp_path: Path, number: signal.Signals) -> None:
    """Defect: nothing knew the JVM yet, so it stayed, and kept the output open."""
    (tmp_path / "in.csv").write_text("id,text\n1,x\n")
    process = start(tmp_path, "in.csv", "out")
    wait_until(lambda: _jvms(process.pid), "Spark starts no JVM", over=lambda: process.poll() is not None)
    os.killpg(process.pid, number)
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, stdout) == (128 + number, ""), stderr
    assert "none of its output is visible" in stderr
    assert _jvms(process.pid) == [] and visible(tmp_path / "out") == []


@pytest.mark.slow
def test_an_input_that_spark_would_turn_into_nulls_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text('id,text\n1,"say ""hi"""\nabc,x\n')
    written = write(tmp_path, "in.csv", "out", "--input-schema", "id long, text string")
    assert written.returncode == 1 and "abc" in written.stderr and visible(tmp_path / "out") == []


@pytest.mark.slow
def test_such_rows_can_be_dropped(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text('id,text\n1,"say ""hi"""\nabc,x\n')
    dropping = ("--input-option", "mode=DROPMALFORMED")
    assert write(tmp_path, "in.csv", "out", "--input-schema", "id long, text string", *dropping).returncode == 0
    rows = json.loads(run("read", str(tmp_path / "out"), "--json").stdout)["rows"]
    assert rows == [{"id": 1, "text": 'say "hi"'}]
