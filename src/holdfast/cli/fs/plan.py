"""Plan a copy completely before anything is written: which files go where, and whether they may."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from holdfast.cli.fs.items import THREADS, PathErrors
from holdfast.cli.fs.local_place import LocalPlace
from holdfast.cli.fs.places import FileOrDirectory, NamespacePlace, StorePlace
from holdfast.errors import DestinationExistsError, HoldfastError, InvalidRequestError
from holdfast.namespace.errors import ParentNotDirectoryError, PathNotFoundError
from holdfast.runtime import ThreadRunner
from holdfast.wording import format_count

Place: TypeAlias = NamespacePlace | StorePlace | LocalPlace
"""Somewhere files can be copied from and to. Threads may share a place."""

Side: TypeAlias = Literal["namespaces", "this machine", "anything"]
"""What the words of one side of a copy may name."""


@dataclass(frozen=True, slots=True)
class CopySource:
    """An existing file or directory to copy."""

    place: Place
    entry: FileOrDirectory

    @property
    def location(self) -> str:
        """The URL or local path of the source, for messages."""
        return self.place.location(self.entry.path)


@dataclass(frozen=True, slots=True)
class CopyTarget:
    """The place and path to which sources are copied; the path need not exist.

    Attributes:
        in_directory: whether the user wrote a slash at the end.
        overwrite: whether files may be replaced.
    """

    place: Place
    path: str
    in_directory: bool
    overwrite: bool

    @property
    def location(self) -> str:
        """The URL or local path of the target, for messages."""
        return self.place.location(self.path)


@dataclass(slots=True)
class CopyPlan:
    """All directories that a copy makes, and all files that it copies.

    Attributes:
        directories: those to make at the target, each after the one that it is in.
        copies: the files to copy, by the path of their copy.
        existing: paths of files that would be replaced.
        empty: number of directories that the target cannot have, because nothing is in them.
    """

    directories: dict[str, None] = field(default_factory=dict)
    copies: dict[str, CopySource] = field(default_factory=dict)
    existing: list[str] = field(default_factory=list)
    empty: int = 0

    @property
    def size_bytes(self) -> int | None:
        """The total size of all files in bytes; None if the size of one is unknown."""
        sizes = [one.entry.size for one in self.copies.values()]
        return None if None in sizes else sum(size or 0 for size in sizes)


def make_copy_plan(sources: Sequence[CopySource], target: CopyTarget, problems: PathErrors) -> CopyPlan:
    """Plan the copy of sources to a target: into it if it is a directory, else under its name. Nothing is written.

    Files that cannot be read or that cannot have their path at the target are reported as problems and left out.

    Raises:
        DestinationExistsError: files exist already, and may not be replaced.
        InvalidRequestError: the sources do not fit the target; the message says why.
    """
    tops = _assign_copy_paths(sources, target)
    plan = CopyPlan()
    if target.in_directory and target.place.has_directories and target.place.find(target.path) is None:
        plan.directories[target.path] = None
    there = list(ThreadRunner(THREADS).map(target.place.find, (top for _, top in tops)))
    for (source, top), found in zip(tops, there, strict=True):
        _refuse_file_directory_clash(source, found, target, top)
        if source.entry.is_directory:
            _add_tree(plan, source, target, top, found, problems)
        else:
            _add_copy(plan, source, target, top, is_there=found is not None)
    if plan.existing and not target.overwrite:
        number = format_count(len(plan.existing), "file exists", "files exist")
        raise DestinationExistsError(
            f"{number} already, and nothing was copied: replace with --overwrite, or choose another target",
            first=target.place.location(plan.existing[0]),
        )
    return plan


def _assign_copy_paths(sources: Sequence[CopySource], target: CopyTarget) -> list[tuple[CopySource, str]]:
    """Return each source with the path of its copy.

    Raises:
        InvalidRequestError: the sources do not fit the target; the message says why.
    """
    is_into = _is_target_directory(sources, target)
    tops: list[tuple[CopySource, str]] = []
    named: dict[str, str] = {}
    for source in sources:
        name = source.place.name(source.entry.path)
        if is_into and not name and not source.entry.is_directory:
            raise InvalidRequestError("the copy needs a name: add one to the target", target=target.location)
        top = target.place.join(target.path, name) if is_into and name else target.path
        _refuse_copy_to_itself(source, target, top)
        if name and named.setdefault(top, source.location) != source.location:
            raise InvalidRequestError(
                "two sources have the same name: copy them to different directories",
                first=named[top],
                second=source.location,
            )
        tops.append((source, top))
    return tops


def _is_target_directory(sources: Sequence[CopySource], target: CopyTarget) -> bool:
    """Check whether the target is a directory that the sources go into, or a slash says that it becomes one.

    Raises:
        InvalidRequestError: it must be one, or its parent must be one, and is not.
    """
    found = target.place.find(target.path)
    if found is not None and found.is_directory:
        return True
    if found is None and target.in_directory:
        _require_parent(target)
        return True
    if found is not None and not found.is_directory and found.size is None:
        raise InvalidRequestError(
            "the target is neither a file nor a directory: choose another", target=target.location
        )
    if len(sources) > 1:
        what = "is a file" if found is not None else "does not exist"
        raise InvalidRequestError(
            f"several sources need a directory to go into, and the target {what}: make one", target=target.location
        )
    if found is not None and target.in_directory:
        raise InvalidRequestError("the target ends in a slash, and is a file: remove the slash", target=target.location)
    if found is None:
        _require_parent(target)
    return False


def _require_parent(target: CopyTarget) -> None:
    if target.place.has_directories:
        parent = target.place.find(target.place.parent(target.path))
        if parent is None:
            raise PathNotFoundError("the directory of the target does not exist: make it", target=target.location)
        if not parent.is_directory:
            raise ParentNotDirectoryError(
                "a file stands where the directory of the target would be: choose another target",
                target=target.location,
            )


def _refuse_copy_to_itself(source: CopySource, target: CopyTarget, top: str) -> None:
    """Refuse to copy a file onto itself, or a directory into itself."""
    one, other = source.location.rstrip("/"), target.place.location(top).rstrip("/")
    if one == other:
        raise InvalidRequestError("source and target are the same: choose another target", target=other)
    if source.entry.is_directory and other.startswith(f"{one}/"):
        raise InvalidRequestError(
            "a directory cannot be copied into itself: choose another target", source=one, target=other
        )


def _refuse_file_directory_clash(
    source: CopySource, found: FileOrDirectory | None, target: CopyTarget, top: str
) -> None:
    """Refuse to replace a directory by a file, or a file by a directory."""
    if found is not None and found.is_directory != source.entry.is_directory:
        kinds = ("file", "directory") if found.is_directory else ("directory", "file")
        raise InvalidRequestError(
            f"the source is a {kinds[0]}, and a {kinds[1]} has its name at the target: choose another target",
            source=source.location,
            target=target.place.location(top),
        )


def _add_copy(plan: CopyPlan, source: CopySource, target: CopyTarget, path: str, *, is_there: bool) -> None:
    other = plan.copies.setdefault(path, source)
    if other is not source:
        raise InvalidRequestError("another source has this path", first=other.location, second=source.location)
    if is_there:
        plan.existing.append(path)


def _add_tree(
    plan: CopyPlan,
    source: CopySource,
    target: CopyTarget,
    top: str,
    found: FileOrDirectory | None,
    problems: PathErrors,
) -> None:
    """Add everything below a directory. What is at the target already stays, but for files that are replaced."""
    place = target.place
    there: Mapping[str, bool] = (
        {}
        if found is None or not found.is_directory
        else {one.relative: one.is_directory for one in place.walk_below(top, problems.add)}
    )
    made = set[str]() if found is None else {""}
    seen: set[str] = set()

    def add_directory(relative: str) -> None:
        """Add a directory to the plan, and its parents, unless they exist."""
        if relative in made:
            return
        if relative:
            add_directory(relative.rpartition("/")[0])
        made.add(relative)
        if place.has_directories and not there.get(relative):
            plan.directories[place.join(top, relative) if relative else top] = None

    if place.has_directories:
        add_directory("")
    for entry in source.place.walk_below(source.entry.path, problems.add):
        one = CopySource(source.place, entry)
        try:
            path = place.join(top, entry.relative)
            is_there = entry.relative in there
            _refuse_file_directory_clash(
                one, FileOrDirectory(path, there[entry.relative]) if is_there else None, target, path
            )
            if not entry.is_directory:
                add_directory(entry.relative.rpartition("/")[0])
                _add_copy(plan, one, target, path, is_there=is_there)
            elif place.has_directories:
                add_directory(entry.relative)
            else:
                seen.add(entry.relative)
        except HoldfastError as error:
            problems.add(one.location, error)
    plan.empty += len(seen - made)
