"""Test text files over files that can be discarded, and over others."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from holdfast.commit.text_file import Discardable, TextFile


class Draft(io.BytesIO):
    """A file that can be discarded."""

    discarded = False

    def discard(self) -> None:
        self.discarded = True
        super().close()


class Stream(io.BytesIO):
    """A file that cannot seek, like the files of a task; it still shows its bytes after `close`."""

    data = b""

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        if not self.closed:
            self.data = self.getvalue()
        super().close()


def use(file: io.BytesIO, error: Exception | None) -> None:
    with TextFile(file, encoding="utf-8", newline="") as text:
        text.write("ä")
        text.flush()
        if error is not None:
            raise error


def test_a_file_is_discarded_by_an_error_alone() -> None:
    whole, broken = Draft(), Draft()
    assert isinstance(whole, Discardable)
    use(whole, None)
    assert whole.closed and not whole.discarded
    with pytest.raises(RuntimeError, match="stop"):
        use(broken, RuntimeError("stop"))
    assert broken.closed and broken.discarded


def test_an_error_over_a_file_that_cannot_be_discarded_is_raised_as_it_is() -> None:
    file = io.BytesIO()
    with pytest.raises(RuntimeError, match="stop"):
        use(file, RuntimeError("stop"))
    assert file.closed


@pytest.mark.parametrize("encoding", ["utf-16", "UTF32", "utf-8-sig", "utf-16-le", "latin-1"])
def test_the_bytes_are_those_of_a_local_file(tmp_path: Path, encoding: str) -> None:
    """Defect: `io.TextIOWrapper` leaves out the byte order mark if a file cannot seek, and readers refuse the file."""
    text = "añb\ncd\n"
    (tmp_path / "local").write_text(text, encoding=encoding)
    file = Stream()
    with TextFile(file, encoding=encoding) as written:
        written.write(text[:2])
        written.write(text[2:])
    assert file.data == (tmp_path / "local").read_bytes()


def test_text_that_is_appended_gets_no_second_mark() -> None:
    file = Stream()
    file.write("one".encode("utf-16"))
    with TextFile(file, encoding="utf-16") as written:
        written.write("two")
    assert file.data.decode("utf-16") == "onetwo"


def test_a_byte_order_mark_is_written_only_at_the_start() -> None:
    first = Stream()
    with TextFile(first, encoding="utf-8-sig") as text:
        text.write("ab")
    assert first.data == b"\xef\xbb\xbfab"
    later = Stream(first.data)
    later.seek(0, io.SEEK_END)
    with TextFile(later, encoding="utf-8-sig") as text:
        text.write("cd")
    assert later.data == b"\xef\xbb\xbfabcd"
