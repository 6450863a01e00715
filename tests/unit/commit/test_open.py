"""Contexts from urls: what staging wants on this machine, and what looking leaves."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from holdfast.commit import open_context
from holdfast.errors import AccessDeniedError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The machine's folder for temporary files."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    return temporary


def test_staged_files_are_for_their_user_alone(folder: Path, tmp_path: Path) -> None:
    """Paper 001, Security: nobody else can look into the directory or put anything there."""
    with contextlib.closing(open_context(str(tmp_path / "t"), staging=True)) as ctx:
        assert ctx.scratch is not None and ctx.shared is not None
        (own,) = folder.iterdir()
        assert own.stat().st_mode & 0o777 == 0o700
        assert ctx.scratch.url.startswith(f"file://{own}/") and ctx.shared.url.startswith(f"file://{own}/")


def test_a_directory_that_others_can_write_is_refused(folder: Path, tmp_path: Path) -> None:
    open_context(str(tmp_path / "t"), staging=True).close()
    (own,) = folder.iterdir()
    own.chmod(0o777)
    with pytest.raises(AccessDeniedError, match="not this user's alone"):
        open_context(str(tmp_path / "t"), staging=True)


def test_who_only_looks_leaves_no_directory(folder: Path, tmp_path: Path) -> None:
    with contextlib.closing(open_context(str(tmp_path / "t"), staging=True, leave_no_trace=True)) as ctx:
        assert ctx.scratch is not None and not ctx.scratch.store.list_page("").objects
    assert list(folder.iterdir()) == []
