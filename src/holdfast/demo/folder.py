"""Make the folder in which a demo works."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def demo_folder(keep: bool) -> Iterator[Path]:
    """Make a temporary directory, and remove it after the block unless it is kept."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-demo-"))
    try:
        yield folder
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
