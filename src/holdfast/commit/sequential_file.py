"""Refuse to read from, or seek in, a file that is written from start to end, and say what to do instead."""

from __future__ import annotations

import io
from typing import Any, NoReturn


class SequentialFile(io.IOBase):
    """A file that can only be appended to, because its first bytes may already be uploaded."""

    def seek(self, *_args: Any) -> NoReturn:
        raise io.UnsupportedOperation(
            "this file is written from start to end and cannot seek: write to a local file or io.BytesIO, then copy it"
        )

    def read(self, *_args: Any) -> NoReturn:
        raise io.UnsupportedOperation("this file is only written: read it after the job has committed")

    def readinto(self, *_args: Any) -> NoReturn:
        self.read()
