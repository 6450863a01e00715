"""Test committers that rename, in a destination in which a partition is a link to another directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.commit import COMMITTERS, SaveMode, open_context
from holdfast.commit.layout import iter_visible


@pytest.mark.parametrize("filled", [False, True])
@pytest.mark.parametrize("committer", ["two_phase", "manifest", "file-v1", "file-v2"])
def test_a_job_writes_through_the_link(tmp_path: Path, committer: str, filled: bool) -> None:
    for day, inside in enumerate(("day=0", "day=1/hour=1" if filled else "day=1")):
        (tmp_path / f"elsewhere{day}").mkdir()
        if filled:
            (tmp_path / f"elsewhere{day}/old").write_bytes(b"old")
        (tmp_path / "t" / inside).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "t" / inside).symlink_to(tmp_path / f"elsewhere{day}")
    value = COMMITTERS[committer]
    ctx = open_context(str(tmp_path / "t"))
    job = value.setup_job(ctx, SaveMode.APPEND, {})
    assert job is not None
    with value.setup_task(ctx, job, 0) as attempt:
        for day in range(2):
            sink = attempt.open(f"day={day}/hour=1/{attempt.file_name('.txt')}")
            sink.write(b"new")
            sink.close()
        commit = attempt.commit()
    assert value.commit_job(ctx, job, [commit], 1).finished
    found = sorted(ctx.store.get(info.key) for _path, info in iter_visible(ctx.store, ctx.prefix))
    assert found == [b"new"] * 2 + [b"old"] * 2 * filled
    assert len([path for path in tmp_path.glob("elsewhere*/**/*.txt") if path.is_file()]) == 2
    assert (tmp_path / "t/day=0").is_symlink() and (tmp_path / "t/day=1" / ("hour=1" if filled else "")).is_symlink()
    ctx.close()
