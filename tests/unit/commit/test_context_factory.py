"""Open contexts from urls: what staging creates on this machine, and what a search leaves."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from holdfast.commit import CommitSettings, open_context
from holdfast.errors import AccessDeniedError, InvalidRequestError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The machine's temporary directory."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    return temporary


def test_staged_files_are_for_their_user_alone(folder: Path, tmp_path: Path) -> None:
    """Paper 001, Security: no other user can read the directory or write to it."""
    with contextlib.closing(open_context(str(tmp_path / "t"), staging=True)) as ctx:
        assert ctx.staging is not None
        (own,) = folder.iterdir()
        assert own.stat().st_mode & 0o777 == 0o700
        assert ctx.staging.scratch.url.startswith(f"file://{own}/") and ctx.staging.shared.url.startswith(
            f"file://{own}/"
        )


def test_a_directory_that_others_can_write_is_refused(folder: Path, tmp_path: Path) -> None:
    open_context(str(tmp_path / "t"), staging=True).close()
    (own,) = folder.iterdir()
    own.chmod(0o777)
    with pytest.raises(AccessDeniedError, match="other users can access the directory"):
        open_context(str(tmp_path / "t"), staging=True)


def test_who_only_looks_leaves_no_directory(folder: Path, tmp_path: Path) -> None:
    with contextlib.closing(open_context(str(tmp_path / "t"), staging=True, leave_no_trace=True)) as ctx:
        assert ctx.staging is not None and not ctx.staging.scratch.store.list_page("").objects
    assert list(folder.iterdir()) == []


def test_directories_that_are_named_are_taken(folder: Path, tmp_path: Path) -> None:
    places = {name: tmp_path / name for name in ("scratch", "shared", "reports")}
    settings = CommitSettings(
        scratch_dir=f"file://{places['scratch']}", shared_dir=str(places["shared"]), report_dir=str(places["reports"])
    )
    with contextlib.closing(open_context(str(tmp_path / "t"), settings=settings, staging=True)) as ctx:
        assert ctx.staging is not None and ctx.reports is not None
        there = [ctx.staging.scratch.url, ctx.staging.shared.url, ctx.reports.url]
        assert there == [f"file://{path}" for path in places.values()]
    assert list(folder.iterdir()) == []
    with contextlib.closing(open_context(str(tmp_path / "t"), settings=settings)) as ctx:
        assert ctx.staging is None


def test_a_scratch_directory_with_a_colon_is_no_url(folder: Path, tmp_path: Path) -> None:
    settings = CommitSettings(scratch_dir=f"{tmp_path}/a:/b")
    with contextlib.closing(open_context(str(tmp_path / "t"), settings=settings, staging=True)) as ctx:
        assert ctx.staging is not None and ctx.staging.scratch.url == f"file://{tmp_path}/a:/b"


@pytest.mark.parametrize("url", ["s3://bucket/x", "memory://x"])
def test_a_task_stages_on_its_own_machine(folder: Path, tmp_path: Path, url: str) -> None:
    with pytest.raises(InvalidRequestError, match="its own machine"):
        open_context(str(tmp_path / "t"), settings=CommitSettings(scratch_dir=url), staging=True)
