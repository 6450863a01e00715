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
from holdfast.cli.fs.places import NamespacePlace, Place, Sink, StorePlace
from holdfast.cli.fs.plan import Copy, Plan, Source, Target
from holdfast.cli.output import Output, size
from holdfast.cli.screen import in_one_line, is_terminal
from holdfast.errors import HoldfastError, InvalidRequestError
from holdfast.namespace.errors import PathNotFoundError
from holdfast.runtime import Runner, SerialRunner, SystemIds, ThreadRunner
from holdfast.stores.registry import scheme_of
from holdfast.stores.url import locate
from holdfast.wording import counted

if TYPE_CHECKING:
    from rich.progress import Progress, Task, TaskID


# --- sources and target -----------------------------------------------------------------------------------------------
class Locations:
    """Finds the sources and the target of a copy."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._local = LocalPlace(SystemIds())

    def local_sources(self, paths: Sequence[str]) -> list[Source]:
        """Return what local paths name; ``-`` is standard input.

        Raises:
            PathNotFoundError: a path does not exist.
        """
        return [self._source(self._local, path) for path in dict.fromkeys(paths)]

    def namespace_sources(self, urls: Sequence[str], *, glob: bool) -> list[Source]:
        """Return what URLs, or patterns, name in namespaces; raises what `find_items` raises."""
        return [
            self._source(NamespacePlace(item.namespace, item.base), item.status.path)
            for item in find_items(self._run, urls, glob=glob)
        ]

    def any_sources(self, texts: Sequence[str], *, glob: bool) -> list[Source]:
        """Return what URLs of any kind, and local paths, name; with `glob`, those of namespaces are patterns."""
        found: list[Source] = []
        for text in dict.fromkeys(texts):
            if is_namespace_url(text):
                found += self.namespace_sources([text], glob=glob)
            elif (path := local_path(text)) is not None:
                found += self.local_sources([path])
            else:
                store = self._store(text)
                found.append(self._source(store, store.path))
        return found

    def _source(self, place: Place, path: str) -> Source:
        entry = place.find(path)
        if entry is None:
            raise PathNotFoundError("the source does not exist: check it", path=place.url(path))
        return Source(place, entry)

    def namespace_target(self, url: str, *, overwrite: bool) -> Target:
        """Return the target that a URL names in a namespace; raises what `find_path` raises."""
        found = find_path(self._run, url)
        return Target(NamespacePlace(found.namespace, found.base), found.path, found.in_directory, overwrite)

    def local_target(self, path: str, *, overwrite: bool) -> Target:
        """Return the target that a local path names."""
        return Target(self._local, path, path.endswith("/"), overwrite)

    def any_target(self, text: str, *, overwrite: bool) -> Target:
        """Return the target that a URL of any kind, or a local path, names."""
        if is_namespace_url(text):
            return self.namespace_target(text, overwrite=overwrite)
        path = local_path(text)
        if path is not None:
            return self.local_target(path, overwrite=overwrite)
        store = self._store(text)
        return Target(store, store.path, text.endswith("/"), overwrite)

    def _store(self, url: str) -> StorePlace:
        return StorePlace(self._run.store(url))


def local_path(text: str) -> str | None:
    """Return the path that a URL or an argument names on this machine; None if it names another store.

    Raises:
        InvalidRequestError: it is neither a path nor a URL.
    """
    if text == STDIN:
        raise InvalidRequestError("standard input and output belong to fs put and fs get: use one of them")
    scheme = scheme_of(text)
    if scheme not in ("", "file"):
        return None
    locate(text)  # refuses hosts, and urls that have lost a slash
    if scheme:
        return "/" + text[len("file://") :].partition("/")[2]
    return text[len("file:") :] if text.lower().startswith("file:") else text


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
