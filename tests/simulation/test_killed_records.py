"""Kill a process inside a put, which leaves a hidden file on a file system: recovery deletes Holdfast's own (C9)."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from holdfast.commit import recover, verify
from holdfast.commit.context import open_context
from tests.patience import PATIENCE_S
from tests.simulation.world import run_job

_DYING = """
import os, signal, sys
from holdfast.commit.context import open_context
from tests.simulation.world import run_job

link, replace = os.link, os.replace

def die_linking(source, target):
    if target.endswith(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    link(source, target)

def die_replacing(source, target):
    if target.endswith(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    replace(source, target)

os.link, os.replace = die_linking, die_replacing
run_job(open_context(sys.argv[1]), "killed")
"""


def hidden(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob(".holdfast-*"))


@pytest.mark.parametrize(
    ("record", "committed"),
    [(f"{2:020d}.json", False), (f"{2:020d}.visible", True), (f"{2:020d}.done", True), ("/_SUCCESS", True)],
)
def test_an_unfinished_record_is_deleted(tmp_path: Path, record: str, committed: bool) -> None:
    ctx = open_context(str(tmp_path))
    run_job(ctx, "old")
    died = subprocess.run([sys.executable, "-c", _DYING, str(tmp_path), record], timeout=PATIENCE_S, check=False)
    assert died.returncode == -9
    [left] = hidden(tmp_path)
    assert left.endswith(record.strip("/"))
    recover(ctx, older_than_s=3600)
    assert hidden(tmp_path) == [left], "its writer may be alive"
    os.utime(tmp_path / left, (time.time() - 7200,) * 2)
    recover(ctx)
    assert hidden(tmp_path) == []
    assert verify(ctx).verified and len(list(tmp_path.glob("day=*/*"))) == (8 if committed else 4)
    ctx.close()


def test_hidden_files_of_others_are_spared(tmp_path: Path) -> None:
    """C7: an unfinished file of another program, whose name is not a record of Holdfast."""
    ctx = open_context(str(tmp_path))
    run_job(ctx, "old")
    file = ctx.store.open_write(ctx.key("theirs"))  # type: ignore[attr-defined]  # the local store renames
    file.write(b"1")
    recover(ctx)
    file.close()
    assert (tmp_path / "theirs").read_bytes() == b"1"
    ctx.close()
