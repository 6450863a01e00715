"""Draw how far a job of computation units is, on the driver's terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from holdfast.runtime import Periodic
from holdfast.transactions.base import Backend
from holdfast.units.job_state import JobState
from holdfast.units.progress_view import following
from holdfast.wording import counted

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


@contextmanager
def job_progress(backend: Backend, job: str, *, periodic: Periodic | None = None) -> Iterator[None]:
    """Draw a progress bar while the block runs, if stderr is a terminal; see `following` for what it guarantees."""
    if not _is_terminal():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True, highlight=False),
        transient=True,
        auto_refresh=False,  # the thread that looks at the job draws too
        redirect_stdout=False,
        redirect_stderr=False,
    )
    with bar:
        drawn = bar.add_task(job, total=None)
        with following(backend, job, lambda state: _draw(bar, drawn, state), periodic=periodic):
            yield


def _draw(bar: Progress, drawn: TaskID, state: JobState) -> None:
    done = state.done
    parts = [
        f"{state.job.name}: {counted(done, 'unit')}",
        f"{state.finished:,} of {counted(state.job.shards, 'task')}",
    ]
    if done:
        parts.append(f"{state.statistics.conflict_share:.1%} conflicts")
    bar.update(drawn, completed=done, total=state.units(), description=", ".join(parts), refresh=True)


def _is_terminal() -> bool:
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except ValueError:  # stderr was closed
        return False
