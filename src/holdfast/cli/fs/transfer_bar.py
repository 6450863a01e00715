"""Show the progress of a copy: files and bytes, with the speed and the time that is left."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holdfast.cli.output import size
from holdfast.cli.screen import is_terminal

if TYPE_CHECKING:
    from rich.progress import Progress, Task, TaskID


@dataclass
class TransferBar:
    """Counts what was copied. Threads may share a bar.

    Attributes:
        total: number of files to copy.
        files: how many were copied.
        size_bytes: the bytes that were copied, with those of unfinished files.
    """

    total: int
    files: int = 0
    size_bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _drawn: tuple[Progress, TaskID] | None = None

    def advance(self, size_bytes: int) -> None:
        """Note that so many bytes were copied; a negative number, that they have to be copied again."""
        with self._lock:
            self.size_bytes += size_bytes
        if self._drawn is not None:
            bar, task = self._drawn
            bar.update(task, advance=size_bytes)

    def end_file(self) -> None:
        """Note that a file is complete."""
        with self._lock:
            self.files += 1
        if self._drawn is not None:
            bar, task = self._drawn
            bar.update(task, description=_description(self.files, self.total))


@contextlib.contextmanager
def transfer_bar(total: int, size_bytes: int | None) -> Iterator[TransferBar]:
    """Yield a bar, which is drawn if stderr is a terminal.

    Args:
        total: number of files to copy.
        size_bytes: the bytes to copy; None if that is unknown.
    """
    bar = TransferBar(total)
    if sys.stderr is None or not is_terminal(sys.stderr):
        yield bar
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Amount(ProgressColumn):
        """Shows the bytes that were copied, and the speed."""

        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            total = "" if task.total is None else f" of {size(int(task.total))}"
            return Text(f"{size(int(task.completed))}{total}" + ("" if speed is None else f", {size(int(speed))}/s"))

    drawn = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        Amount(),
        TimeRemainingColumn(),
        console=Console(stderr=True, highlight=False),
        transient=True,
    )
    with drawn:
        bar._drawn = drawn, drawn.add_task(_description(0, total), total=size_bytes)
        yield bar


def _description(files: int, total: int) -> str:
    return "copying" if total == 1 else f"copying {files:,}/{total:,} files"
