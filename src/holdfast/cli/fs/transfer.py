"""Carry out a planned copy: files in parallel, each complete or not at all, even if the user interrupts."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.cli.fs.command import CopyOptions
from holdfast.cli.fs.interrupts import Stop, Stopped, stop_threads_first
from holdfast.cli.fs.places.base import Sink
from holdfast.cli.fs.plan import Copy, Plan, Target
from holdfast.cli.fs.problems import Problems
from holdfast.cli.fs.transfer_bar import TransferBar, transfer_bar
from holdfast.cli.output import Output, size
from holdfast.cli.screen import in_one_line
from holdfast.errors import HoldfastError
from holdfast.runtime import Runner, SerialRunner, ThreadRunner
from holdfast.wording import counted

_READERS = 4
"""How many pieces of a single file are read at the same time; of several files, one of each."""


def transfer(plan: Plan, target: Target, how: CopyOptions, problems: Problems, out: Output) -> None:
    """Copy the files of a plan, and end the command with the number of copies.

    Guarantee: every file at the target is complete. Files that were not copied when the command ends, for whatever
    reason, are not there.
    """
    made = 0
    missing: list[str] = []
    for directory in plan.directories:
        if _is_below(directory, missing):
            continue
        try:
            target.place.make_directory(directory)
            made += 1
        except HoldfastError as reason:
            problems.add(target.place.url(directory), reason)
            missing.append(directory)
    copies = [copy for path, copy in plan.copies.items() if not _is_below(path, missing)]
    if len(copies) < len(plan.copies):
        left_out = counted(len(plan.copies) - len(copies), "file")
        out.note(f"left out: {left_out} of directories that could not be made")
    # In this thread, an interrupt ends even the wait for a pipe, which other threads would go on with.
    is_alone = len(copies) == 1 or plan.size_bytes is None
    runner: Runner = SerialRunner() if is_alone else ThreadRunner(threads=how.threads)
    stopping = contextlib.nullcontext(Stop()) if is_alone else stop_threads_first()
    with stopping as stop, transfer_bar(len(copies), plan.size_bytes) as bar:
        copying = _Copying(target, how.preserve, bar, stop, readers=1 if len(copies) > 1 else _READERS)
        try:
            for copy, error in runner.map(copying.attempt, copies):
                if error is not None:
                    _note(copy, error, problems, stop)
            stop.check()  # asked after the last piece
        except BaseException as error:
            if len(copies) > 1 and isinstance(error, Stopped | KeyboardInterrupt | SystemExit | HoldfastError):
                out.note(f"copied {bar.files:,} of {counted(len(copies), 'file')}; none of the others is there in part")
            raise
    _report(plan, target, problems, out, bar, made)


def _is_below(path: str, directories: Sequence[str]) -> bool:
    return any(path.startswith(f"{one.rstrip('/')}/") for one in directories)


def _note(copy: Copy, error: HoldfastError, problems: Problems, stop: Stop) -> None:
    """Report a problem; if it ends the copy, let the files in hand be given up."""
    try:
        problems.add(copy.source.url, error)
    except HoldfastError:
        stop.asked = True
        raise


def _report(plan: Plan, target: Target, problems: Problems, out: Output, bar: TransferBar, made: int) -> None:
    out.document(
        {
            "target": target.url,
            "files": bar.files,
            "directories": made,
            "bytes": bar.size_bytes,
            "failed": problems.documents,
        }
    )
    directories = f" and {counted(made, 'directory', 'directories')}" if made else ""
    amount = size(bar.size_bytes)
    out.say(f"copied {counted(bar.files, 'file')}{directories}, {amount}, to {in_one_line(target.url)}")
    if plan.empty:
        left_out = counted(plan.empty, "empty directory", "empty directories")
        out.note(f"left out: {left_out}, which the store of the target cannot have")
    problems.end(bar.files + made)


@dataclass(frozen=True)
class _Copying:
    """Copies single files; may be used by several threads.

    Attributes:
        stop: asks threads to give up the files in hand.
        readers: how many pieces of a file are read at the same time.
    """

    target: Target
    preserve: bool
    bar: TransferBar
    stop: Stop
    readers: int

    def attempt(self, copy: Copy) -> tuple[Copy, HoldfastError | None]:
        """Copy a file; return it with the error if it could not be copied."""
        try:
            self._copy(copy)
        except HoldfastError as error:
            return copy, error
        return copy, None

    def _copy(self, copy: Copy) -> None:
        self.stop.check()
        place, entry = copy.source.place, copy.source.entry
        sink = self.target.place.create(copy.target, entry, overwrite=self.target.overwrite, preserve=self.preserve)
        copied = 0
        try:
            for piece in place.read(entry, self.readers):
                self.stop.check()
                sink.write(piece)
                copied += len(piece)
                self.bar.advance(len(piece))
            sink.close()
        except BaseException:
            self.bar.advance(-copied)
            _discard(sink)
            raise
        self.bar.end_file()


def _discard(sink: Sink) -> None:
    """Give a file up; the error that led to this matters more than one that follows."""
    with contextlib.suppress(HoldfastError):
        sink.discard()
