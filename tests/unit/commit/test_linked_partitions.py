"""A partition that is a link to another directory is refused before anything is decided."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.commit import COMMITTERS, SaveMode, open_context
from holdfast.errors import InvalidRequestError


@pytest.mark.parametrize("committer", ["two_phase", "manifest", "file-v1", "file-v2"])
def test_a_job_into_a_linked_partition_is_refused(tmp_path: Path, committer: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "t").mkdir()
    (tmp_path / "t/day=1").symlink_to(tmp_path / "elsewhere")
    value = COMMITTERS[committer]
    ctx = open_context(str(tmp_path / "t"))

    def write() -> None:
        job = value.setup_job(ctx, SaveMode.APPEND, {})
        assert job is not None
        with value.setup_task(ctx, job, 0) as attempt:
            sink = attempt.open(f"day=1/{attempt.file_name('.txt')}")
            sink.write(b"new")
            sink.close()
            commit = attempt.commit()
        value.commit_job(ctx, job, [commit], 1)

    with pytest.raises(InvalidRequestError, match="is a symbolic link"):
        write()
    assert list((tmp_path / "elsewhere").iterdir()) == []
    ctx.close()
