"""Carry out a planned copy: files in parallel, each complete or not at all, even if the user interrupts."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holdfast.cli.command import Run
from holdfast.cli.fs.interrupts import Stop, Stopped, stop_threads_first
from holdfast.cli.fs.items import Problems, find_items, find_path, is_namespace_url
from holdfast.cli.fs.local_place import STDIN, LocalPlace
from holdfast.cli.fs.places import Entry, NamespacePlace, Place, Sink, StorePlace
from holdfast.cli.fs.plan import Copy, Plan, Side, Source, Target
from holdfast.cli.output import Output, size
from holdfast.cli.screen import in_one_line, is_terminal
from holdfast.errors import HoldfastError, InvalidRequestError
from holdfast.namespace.errors import PathNotFoundError
from holdfast.runtime import Runner, SerialRunner, SystemIds, ThreadRunner
from holdfast.stores.registry import scheme_of
from holdfast.stores.url import locate
from holdfast.wording import counted

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


# --- sources and target -----------------------------------------------------------------------------------------------
def find_sources(run: Run, words: Sequence[str], side: Side, *, glob: bool = False) -> list[Source]:
    """Return what URLs or local paths name; with `glob`, URLs of namespaces are patterns.

    Raises:
        PathNotFoundError: a source does not exist.
        InvalidRequestError: a word is neither a path nor a URL.
    """
    found: list[tuple[Place, str]] = []
    for word in dict.fromkeys(words):
        if _is_in_namespace(word, side):
            items = find_items(run, [word], glob=glob)
            found += [(NamespacePlace(item.namespace, item.base), item.status.path) for item in items]
        else:
            found.append(_outside(run, word, side))
    return [Source(place, _entry(place, path)) for place, path in found]


def find_target(run: Run, word: str, side: Side, *, overwrite: bool) -> Target:
    """Return what a URL or a local path names, which need not exist.

    Raises:
        InvalidRequestError: it is neither a path nor a URL.
    """
    if _is_in_namespace(word, side):
        named = find_path(run, word)
        return Target(NamespacePlace(named.namespace, named.base), named.path, named.in_directory, overwrite)
    place, path = _outside(run, word, side)
    return Target(place, path, word.endswith("/"), overwrite)


def _is_in_namespace(word: str, side: Side) -> bool:
    return side == "namespaces" or (side == "anything" and is_namespace_url(word))


def _entry(place: Place, path: str) -> Entry:
    entry = place.find(path)
    if entry is None:
        raise PathNotFoundError("the source does not exist: check it", path=place.url(path))
    return entry


def _outside(run: Run, word: str, side: Side) -> tuple[Place, str]:
    """Return the place outside of all namespaces that a word names, and the path there."""
    local = LocalPlace(SystemIds())
    if side == "this machine":
        return local, word
    if word == STDIN:
        raise InvalidRequestError("standard input and output belong to fs put and fs get: use one of them")
    scheme = scheme_of(word)
    if scheme not in ("", "file"):
        store = StorePlace(run.store(word))
        return store, store.path
    locate(word)  # refuses hosts, and urls that have lost a slash
    if scheme:
        return local, "/" + word[len("file://") :].partition("/")[2]
    return local, word[len("file:") :] if word.lower().startswith("file:") else word


# --- the copy ---------------------------------------------------------------------------------------------------------
_READERS = 4
"""How many pieces of a single file are read at the same time; of several files, one of each."""


def transfer(plan: Plan, target: Target, problems: Problems, out: Output, *, preserve: bool, threads: int) -> None:
    """Copy the files of a plan, and end the command with the number of copies.

    Guarantee: every file at the target is complete. Files that were not copied when the command ends, for whatever
    reason, are not there.

    Args:
        preserve: whether copies get the permissions and times of their sources.
        threads: how many files are copied at the same time.
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
    runner: Runner = SerialRunner() if is_alone else ThreadRunner(threads=threads)
    stopping = contextlib.nullcontext(Stop()) if is_alone else stop_threads_first()
    with stopping as stop, transfer_bar(len(copies), plan.size_bytes) as bar:
        copying = _Copying(target, preserve, bar, stop, readers=1 if len(copies) > 1 else _READERS)
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


# --- its progress -----------------------------------------------------------------------------------------------------
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
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    drawn = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True, highlight=False),
        transient=True,
    )
    with drawn:
        bar._drawn = drawn, drawn.add_task(_description(0, total), total=size_bytes)
        yield bar


def _description(files: int, total: int) -> str:
    return "copying" if total == 1 else f"copying {files:,}/{total:,} files"
