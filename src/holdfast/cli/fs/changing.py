"""Run the commands that change files and directories where they are: ``mkdir``, ``touch``, ``chmod``, ``chown``, …."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import click

from holdfast.cli.arguments import parse_time_ms
from holdfast.cli.command import CommandRun, Glob, Recursive, ResourceKind, Urls, argument, command, option
from holdfast.cli.screen import escape_to_one_line
from holdfast.errors import HoldfastError, InvalidRequestError
from holdfast.wording import format_count

if TYPE_CHECKING:
    from holdfast.cli.fs.items import NamespaceItem, NamespacePath
    from holdfast.namespace import FileStatus


# --- mkdir and touch --------------------------------------------------------------------------------------------------
@command(ResourceKind.NAMESPACES)
def mkdir(
    run: CommandRun,
    urls: Urls,
    parents: Annotated[bool, option("-p --parents", "Make missing parents; accept directories that exist.")],
    mode: Annotated[str, option("-m --mode", "Mode, as for chmod.", metavar="MODE", default="755")],
) -> None:
    """Make directories.

    Examples:
      holdfast fs mkdir holdfast://prod/data
      holdfast fs mkdir -p -m 770 holdfast://prod/a/b/c holdfast://prod/d
    """
    from holdfast.cli.fs.items import PathErrors, parse_namespace_path

    bits = parse_permission_mode(mode)(0o755, True)
    paths = [parse_namespace_path(run, url) for url in urls]
    problems = PathErrors(run.out)
    created = []
    existing = 0
    for one in paths:
        with problems.collect_errors(one.url):
            if one.namespace.mkdirs(one.path, mode=bits, parents=parents):
                created.append(one.url)
                run.out.say(f"created {escape_to_one_line(one.url)}")
            else:
                existing += 1
    run.out.document({"created": created, "failed": problems.documents})
    problems.end(len(created) + existing)


@command(ResourceKind.NAMESPACES)
def touch(
    run: CommandRun,
    urls: Urls,
    glob: Glob,
    no_create: Annotated[bool, option("-c --no-create", "Create nothing.")],
    at_ms: Annotated[int | None, option("-t --time", "Set this time.  [default: now]", type=parse_time_ms)],
) -> None:
    """Set the times of files and directories, or create empty files.

    Examples:
      holdfast fs touch holdfast://prod/data/_READY
      holdfast fs touch -t 2013-01-31T12:00 --glob 'holdfast://prod/in/*'

    A file that does not exist is created empty, unless you give -c. A time without a zone is UTC.
    """
    from holdfast.cli.fs.items import PathErrors, find_items, parse_namespace_path
    from holdfast.namespace.errors import PathExistsError, PathNotFoundError
    from holdfast.runtime import SystemClock

    items: list[NamespaceItem] = []
    missing: list[NamespacePath] = []
    for url in urls:
        try:
            items += find_items(run, [url], glob=glob)
        except PathNotFoundError:
            if url.endswith("/") or glob:
                raise
            missing += [] if no_create else [parse_namespace_path(run, url)]
    now_ms = int(SystemClock().now_s() * 1000) if at_ms is None else at_ms
    problems = PathErrors(run.out)
    created: list[str] = []
    touched: list[str] = []
    for one in missing:
        with problems.collect_errors(one.url):
            with contextlib.suppress(PathExistsError):  # another program has just created it
                with one.namespace.create(one.path, parents=False):
                    pass
                run.out.say(f"created {escape_to_one_line(one.url)}")
            created.append(one.url)
            if at_ms is not None:
                one.namespace.set_times(one.path, now_ms, now_ms)
    for item in items:
        with problems.collect_errors(item.url):
            item.namespace.set_times(item.status.path, now_ms, now_ms)
            touched.append(item.url)
    run.out.document({"touched": touched, "created": created, "failed": problems.documents})
    problems.end(len(touched) + len(created))


# --- chmod and chown --------------------------------------------------------------------------------------------------
_OWNER_LISTS = 0o500


@command(ResourceKind.NAMESPACES, takes_hyphens=True)
def chmod(run: CommandRun, mode: Annotated[str, argument()], urls: Urls, glob: Glob, recursive: Recursive) -> None:
    """Change permissions to MODE, or by MODE.

    Examples:
      holdfast fs chmod 640 holdfast://prod/data/one.csv
      holdfast fs chmod -R u+rwX,go-w holdfast://prod/data
      holdfast fs chmod +t holdfast://prod/tmp

    X gives the right to execute to directories, and to files that some user may execute already.
    """
    change = parse_permission_mode(mode)

    def change_permissions(item: NamespaceItem) -> None:
        item.namespace.set_permission(item.status.path, change(item.status.mode, item.status.is_directory))

    def closes_directory(status: FileStatus) -> bool:
        return change(status.mode, True) & _OWNER_LISTS != _OWNER_LISTS

    _change_all_items(run, urls, glob, change_permissions, recursive=recursive, is_late=closes_directory)


@command(ResourceKind.NAMESPACES)
def chown(
    run: CommandRun, owner: Annotated[str, argument("OWNER[:GROUP]")], urls: Urls, glob: Glob, recursive: Recursive
) -> None:
    """Give files and directories to another owner or group.

    Examples:
      holdfast fs chown ann holdfast://prod/user/ann
      holdfast fs chown -R ann:staff holdfast://prod/user/ann
      holdfast fs chown :staff holdfast://prod/data

    Only the superuser may change the owner; an owner may change the group to any group that the owner is in.
    """
    user, colon, group = owner.partition(":")
    if not (user or group) or (colon and not group):
        raise click.UsageError("write OWNER, OWNER:GROUP or :GROUP")

    def change_owner(item: NamespaceItem) -> None:
        item.namespace.set_owner(item.status.path, user or None, group or None)

    _change_all_items(run, urls, glob, change_owner, recursive=recursive)


# --- modes ------------------------------------------------------------------------------------------------------------
ModeChange = Callable[[int, bool], int]
"""Returns the new mode for an old one; the second argument says whether it is a directory's."""

_OCTAL = re.compile(r"[0-7]{1,4}")
_CLAUSE = re.compile(r"([ugoa]*)((?:[-+=](?:[ugo]|[rwxXt]*))+)")
_ACTION = re.compile(r"([-+=])([ugo]|[rwxXt]*)")
_SHIFT = {"u": 6, "g": 3, "o": 0}
_BITS = {"r": 4, "w": 2, "x": 1}
_STICKY = 0o1000


def parse_permission_mode(text: str) -> ModeChange:
    """Parse a mode for chmod, octal or symbolic, into a function that changes the mode bits of a file or directory.

    A symbolic change without u, g or o is for all three.

    Raises:
        InvalidRequestError: it is not a mode.
    """
    if _OCTAL.fullmatch(text) and int(text, 8) <= 0o1777:
        return lambda mode, is_directory: int(text, 8)
    clauses = [_CLAUSE.fullmatch(clause) for clause in text.split(",")]
    if not all(clauses):
        raise InvalidRequestError("this is not a mode: write an octal number up to 1777, or u+rwX,go-w", mode=text)
    actions = [
        _ModeChange(found[1].replace("a", "ugo") or "ugo", operator, letters)
        for found in clauses
        if found is not None
        for operator, letters in _ACTION.findall(found[2])
    ]

    def change_mode(mode: int, is_directory: bool) -> int:
        for action in actions:
            mode = action.apply(mode, is_directory)
        return mode

    return change_mode


@dataclass(frozen=True, slots=True)
class _ModeChange:
    """One change.

    Attributes:
        who: for whom: letters of ``ugo``.
        letters: permissions, or one of ``ugo`` whose permissions are copied.
    """

    who: str
    operator: str
    letters: str

    def apply(self, mode: int, is_directory: bool) -> int:
        bits = self._permission_bits(mode, is_directory)
        chosen = sum(bits << _SHIFT[one] for one in set(self.who))
        affected = sum(7 << _SHIFT[one] for one in set(self.who))
        if "o" in self.who:  # as in GNU's chmod
            affected |= _STICKY
            chosen |= _STICKY if "t" in self.letters else 0
        if self.operator == "+":
            return mode | chosen
        return mode & ~chosen if self.operator == "-" else mode & ~affected | chosen

    def _permission_bits(self, mode: int, is_directory: bool) -> int:
        if self.letters and self.letters in _SHIFT:
            return mode >> _SHIFT[self.letters] & 7
        bits = sum(_BITS[one] for one in set(self.letters) & _BITS.keys())
        return bits | 1 if "X" in self.letters and (is_directory or mode & 0o111) else bits


# --- changing a tree --------------------------------------------------------------------------------------------------
def _change_all_items(
    run: CommandRun,
    urls: Sequence[str],
    glob: bool,
    change: Callable[[NamespaceItem], None],
    *,
    recursive: bool = False,
    is_late: Callable[[FileStatus], bool] = lambda status: False,
) -> None:
    """Change what URLs name, and end the command with the number of changes.

    Args:
        recursive: whether to change everything below directories too: each directory before its entries, and files
            together.
        is_late: returns whether a directory changes only after everything below it, because the change locks it.
    """
    from holdfast.cli.fs.items import THREADS, PathErrors, find_items, walk_tree
    from holdfast.runtime import ThreadRunner

    problems = PathErrors(run.out)
    done = 0
    late: list[NamespaceItem] = []

    def try_to_change(item: NamespaceItem) -> tuple[NamespaceItem, HoldfastError | None]:
        try:
            change(item)
        except HoldfastError as error:
            return item, error
        return item, None

    def note_result(item: NamespaceItem, error: HoldfastError | None) -> None:
        nonlocal done
        if error is not None:
            problems.add(item.url, error)
            return
        done += 1
        if done % 100 == 0:
            show(f"changed {format_count(done, 'path')}")

    def iter_items_to_change_in_parallel() -> Iterator[NamespaceItem]:
        """Yield items to change in parallel; change directories before their entries, except late ones."""
        for top in find_items(run, urls, glob=glob):
            if not recursive:
                yield top
                continue
            below = walk_tree(top.namespace, top.status.path, failed=problems.make_collector(top.base))
            for item in itertools.chain([top], (top.at(status) for _, status in below)):
                if not item.status.is_directory:
                    yield item
                elif is_late(item.status):
                    late.append(item)
                else:
                    note_result(*try_to_change(item))

    with run.out.show_spinner("changing") as show:
        for item, error in ThreadRunner(threads=THREADS).map(try_to_change, iter_items_to_change_in_parallel()):
            note_result(item, error)
        for item in reversed(late):
            note_result(*try_to_change(item))
    run.out.document({"changed": done, "failed": problems.documents})
    run.out.say(f"changed {format_count(done, 'path')}")
    problems.end(done)
