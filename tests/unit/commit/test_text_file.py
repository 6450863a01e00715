"""Test text files over files that can be discarded, and over others."""

from __future__ import annotations

import io

import pytest

from holdfast.commit.text_file import Discardable, TextFile


class Draft(io.BytesIO):
    """A file that can be discarded."""

    discarded = False

    def discard(self) -> None:
        self.discarded = True
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
