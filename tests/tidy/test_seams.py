"""Check that a protocol can be removed: without its folder and its lines of registration, all the rest works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "holdfast"

USE = """
import importlib, pkgutil, sys
import holdfast
from holdfast.commit import COMMITTERS, SaveMode, open_context, recover, verify
from holdfast.commit.upload_owners import find_pending_uploads

assert holdfast.__file__.startswith(sys.argv[1]), holdfast.__file__
for found in pkgutil.walk_packages(holdfast.__path__, "holdfast."):
    if not found.name.startswith(("holdfast.spark", "holdfast.demo")) and not found.name.endswith("__main__"):
        importlib.import_module(found.name)
for name, committer in COMMITTERS.items():
    with open_context(f"{sys.argv[1]}/out-{name}", staging=True) as ctx:
        job = committer.setup_job(ctx, SaveMode.APPEND)
        with committer.setup_task(ctx, job, 0) as attempt:
            sink = attempt.open(attempt.file_name(".txt"))
            sink.write(b"rows")
            sink.close()
            commits = [attempt.commit()]
        assert committer.commit_job(ctx, job, commits, 1).committed
        assert recover(ctx).jobs == [] and find_pending_uploads(ctx)[0] == []
        if committer.keeps_log:
            assert verify(ctx).verified
print(*COMMITTERS)
"""


def _without(tmp_path: Path, folder: str, name: str) -> str:
    """Copy the package, remove a folder and the registrations of `name`; import and use the rest."""
    copy = tmp_path / "holdfast"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.rmtree(copy / folder)
    registration = copy / "commit/registry.py"
    text = re.sub(rf"^from .* import {name}\n", "", registration.read_text(), flags=re.MULTILINE)
    registration.write_text(re.sub(rf'"?\b{name}\b"?,\s*', "", text))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "TMPDIR": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", USE, str(tmp_path)], env=environment, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.parametrize(
    ("folder", "name", "gone"),
    [
        ("commit/hadoop/magic", "MAGIC", "magic"),
        ("commit/hadoop/dead_jobs", "HADOOP_JOBS", ""),
    ],
    ids=["magic", "dead_jobs"],
)
def test_a_protocol_can_be_removed(folder: str, name: str, gone: str, tmp_path: Path) -> None:
    left = _without(tmp_path, folder, name).split()
    assert "two_phase" in left and gone not in left
