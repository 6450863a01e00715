"""A file that is written from start to end says so to a library that seeks or reads."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.commit.text_file import SequentialFile


class Raw(SequentialFile, io.RawIOBase):
    """Like the files of the magic filesystem."""


class Buffered(SequentialFile, io.BufferedIOBase):
    """Like the files of a task."""


@pytest.mark.parametrize("file", [Raw(), Buffered()], ids=["raw", "buffered"])
@pytest.mark.parametrize(
    ("use", "sentence"),
    [
        (lambda file: file.seek(0), "cannot seek: write to a local file"),
        (lambda file: file.seek(0, io.SEEK_END), "cannot seek: write to a local file"),
        (lambda file: file.read(), "read it after the job has committed"),
        (lambda file: file.read(1), "read it after the job has committed"),
        (lambda file: file.readinto(bytearray(1)), "read it after the job has committed"),
        (lambda file: file.readline(), "read it after the job has committed"),
    ],
)
def test_a_library_that_needs_more_is_told_what_to_do(file: Any, use: Callable[[Any], object], sentence: str) -> None:
    with pytest.raises(io.UnsupportedOperation, match=sentence):
        use(file)
    assert not file.seekable() and not file.readable()
