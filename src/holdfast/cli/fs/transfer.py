"""Carry out a planned copy: files in parallel, each complete or not at all, even if the user interrupts."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holdfast.cli.command import CommandRun
from holdfast.cli.fs.interrupts import StopFlag, StopRequested, stop_threads_first
from holdfast.cli.fs.items import PathErrors, find_items, is_namespace_url, parse_namespace_path
from holdfast.cli.fs.local_place import STDIN, LocalPlace
from holdfast.cli.fs.places import FileOrDirectory, NamespacePlace, StorePlace
from holdfast.cli.fs.plan import CopyPlan, CopySource, CopyTarget, Place, Side
from holdfast.cli.output import Output, size_text
from holdfast.cli.screen import escape_to_one_line
from holdfast.errors import HoldfastError, InvalidRequestError
from holdfast.namespace.errors import PathNotFoundError
from holdfast.runtime import Runner, SerialRunner, SystemIds, ThreadRunner
from holdfast.stores.registry import locate_url, scheme_of
from holdfast.wording import format_count

if TYPE_CHECKING:
    from holdfast.commit import Progress


# --- sources and target -----------------------------------------------------------------------------------------------
def find_copy_sources(run: CommandRun, words: Sequence[str], side: Side, *, glob: bool = False) -> list[CopySource]:
    """Return the existing files and directories that URLs or local paths name, as sources of a copy.

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
            found.append(_find_place_outside_namespaces(run, word, side))
    return [CopySource(place, _find_source_entry(place, path)) for place, path in found]


def parse_copy_target(run: CommandRun, word: str, side: Side, *, overwrite: bool) -> CopyTarget:
    """Parse a URL or a local path into the target of a copy; the target need not exist.

    Raises:
        InvalidRequestError: it is neither a path nor a URL.
    """
    if _is_in_namespace(word, side):
        named = parse_namespace_path(run, word)
        return CopyTarget(NamespacePlace(named.namespace, named.base), named.path, named.in_directory, overwrite)
    place, path = _find_place_outside_namespaces(run, word, side)
    return CopyTarget(place, path, word.endswith("/"), overwrite)


def _is_in_namespace(word: str, side: Side) -> bool:
    return side == "namespaces" or (side == "anything" and is_namespace_url(word))


def _find_source_entry(place: Place, path: str) -> FileOrDirectory:
    entry = place.find(path)
    if entry is None:
        raise PathNotFoundError("the source does not exist: check it", path=place.location(path))
    return entry


def _find_place_outside_namespaces(run: CommandRun, word: str, side: Side) -> tuple[Place, str]:
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
    locate_url(word)  # refuses hosts, and urls that have lost a slash
    if scheme:
        return local, "/" + word[len("file://") :].partition("/")[2]
    return local, word[len("file:") :] if word.lower().startswith("file:") else word


# --- the copy ---------------------------------------------------------------------------------------------------------
_READERS = 4
"""How many pieces of a single file are read at the same time; of several files, one of each."""


def transfer_files(plan: CopyPlan, target: CopyTarget, problems: PathErrors, out: Output, *, threads: int) -> None:
    """Copy the files of a plan in parallel, report the result, and end the command.

    Guarantee: no file at the target is ever incomplete, even if the command is interrupted.

    Args:
        threads: how many files are copied at the same time.
    """
    _make_directories(plan, target, problems, out)
    copies = list(plan.copies.items())
    # In this thread, an interrupt ends even the wait for a pipe, which other threads would go on with.
    is_alone = len(copies) == 1 or plan.size_bytes is None
    runner: Runner = SerialRunner() if is_alone else ThreadRunner(threads=threads)
    stopping = contextlib.nullcontext(StopFlag()) if is_alone else stop_threads_first()
    with stopping as stop, out.progress(in_bytes=True) as progress:
        readers = 1 if len(copies) > 1 else _READERS
        copying = _FileCopier(target, stop, readers, plan.size_bytes or 0, progress)
        try:
            for source, error in runner.map(copying.try_to_copy, copies):
                if error is None:
                    continue
                try:
                    problems.add(source.location, error)
                except HoldfastError:
                    stop.asked = True  # it ends the copy: let the files in hand be given up
                    raise
            stop.check()  # asked after the last piece
        except BaseException as error:
            if len(copies) > 1 and isinstance(error, StopRequested | KeyboardInterrupt | SystemExit | HoldfastError):
                out.note(
                    f"copied {copying.files:,} of {format_count(len(copies), 'file')}; no other file is there in part"
                )
            raise
    _report_transfer(plan, target, problems, out, copying)


def _make_directories(plan: CopyPlan, target: CopyTarget, problems: PathErrors, out: Output) -> None:
    """Make the directories of a plan; those that cannot be made, and all below them, are taken out of the plan."""
    missing: list[str] = []

    def is_left_out(path: str) -> bool:
        return any(path.startswith(f"{one.rstrip('/')}/") for one in missing)

    for directory in list(plan.directories):
        if not is_left_out(directory):
            try:
                target.place.make_directory(directory)
                continue
            except HoldfastError as error:
                problems.add(target.place.location(directory), error)
                missing.append(directory)
        del plan.directories[directory]
    files = [path for path in plan.copies if is_left_out(path)]
    for path in files:
        del plan.copies[path]
    if files:
        out.note(f"left out: {format_count(len(files), 'file')} of directories that could not be made")


def _report_transfer(plan: CopyPlan, target: CopyTarget, problems: PathErrors, out: Output, done: _FileCopier) -> None:
    made = len(plan.directories)
    out.document(
        {
            "target": target.location,
            "files": done.files,
            "directories": made,
            "bytes": done.size_bytes,
            "failed": problems.documents,
        }
    )
    directories = f" and {format_count(made, 'directory', 'directories')}" if made else ""
    amount = size_text(done.size_bytes)
    out.say(
        f"copied {format_count(done.files, 'file')}{directories}, {amount}, to {escape_to_one_line(target.location)}"
    )
    if plan.empty:
        left_out = format_count(plan.empty, "empty directory", "empty directories")
        out.note(f"left out: {left_out}, which the store of the target cannot have")
    problems.end(done.files + made)


@dataclass
class _FileCopier:
    """Copies single files; may be used by several threads.

    Attributes:
        stop: asks threads to give up the files in hand.
        readers: how many pieces of a file are read at the same time.
        progress: called with the bytes that were copied, and with all that are to be copied, 0 if that is unknown.
        files: how many were copied.
        size_bytes: the bytes that were copied, with those of unfinished files.
    """

    target: CopyTarget
    stop: StopFlag
    readers: int
    total_bytes: int
    progress: Progress
    files: int = 0
    size_bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def try_to_copy(self, copy: tuple[str, CopySource]) -> tuple[CopySource, HoldfastError | None]:
        """Copy a file, given the path of its copy; return it with the error if it could not be copied."""
        try:
            self._copy(*copy)
        except HoldfastError as error:
            return copy[1], error
        return copy[1], None

    def _copy(self, path: str, source: CopySource) -> None:
        self.stop.check()
        place, entry = source.place, source.entry
        sink = self.target.place.create(path, overwrite=self.target.overwrite)
        copied = 0
        try:
            for piece in place.read(entry, self.readers):
                self.stop.check()
                sink.write(piece)
                copied += len(piece)
                self._advance(len(piece))
            sink.close()
        except BaseException:
            self._advance(-copied)
            with contextlib.suppress(HoldfastError):  # the first error says more
                sink.discard()
            raise
        with self._lock:
            self.files += 1

    def _advance(self, size_bytes: int) -> None:
        with self._lock:
            self.size_bytes += size_bytes
            self.progress("copying", self.size_bytes, self.total_bytes)
