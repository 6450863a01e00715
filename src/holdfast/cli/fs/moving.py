"""Run ``holdfast fs mv`` and ``rm``: give files and directories other paths, or remove them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from holdfast.cli.command import CommandRun, Glob, ResourceKind, Urls, command, option
from holdfast.cli.fs.copying import Sources, Target
from holdfast.cli.screen import escape_to_one_line
from holdfast.errors import InvalidRequestError

if TYPE_CHECKING:
    from holdfast.cli.fs.items import NamespaceItem, NamespacePath


@command(ResourceKind.NAMESPACES)
def mv(
    run: CommandRun,
    sources: Sources,
    target: Target,
    glob: Glob,
    overwrite: Annotated[bool, option("-f --overwrite", "Replace a file, or an empty directory, in the same step.")],
) -> None:
    """Rename or move files and directories, in one step each.

    Examples:
      holdfast fs mv holdfast://prod/data holdfast://prod/archive
      holdfast fs mv --glob 'holdfast://prod/in/*.csv' holdfast://prod/done/

    If TARGET is a directory, SOURCE moves into it; several sources need a directory. Each move is one step,
    however large the directory: every reader sees the old path or the new one.
    """
    from holdfast.cli.fs.items import PathErrors, find_items, parse_namespace_path

    items = find_items(run, sources, glob=glob)
    goal = parse_namespace_path(run, target)
    problems = PathErrors(run.out)
    moved = []
    for item, path in _plan_moves(items, goal):
        with problems.collect_errors(item.url):
            new = goal.base + item.namespace.rename(item.status.path, path, overwrite=overwrite, into=path == goal.path)
            moved.append({"from": item.url, "to": new})
            run.out.say(f"moved {escape_to_one_line(item.url)} to {escape_to_one_line(new)}")
    run.out.document({"moved": moved, "failed": problems.documents})
    problems.end(len(moved))


def _plan_moves(items: list[NamespaceItem], target: NamespacePath) -> list[tuple[NamespaceItem, str]]:
    """Return each source with its new path; a single one moves into that path if it is a directory.

    Raises:
        InvalidRequestError: the sources cannot all move to the target.
    """
    for item in items:
        if item.base != target.base:
            raise InvalidRequestError(
                "a move does not lead from one namespace to another: copy with fs cp, then remove with fs rm",
                source=item.url,
                target=target.url,
            )
    directory = target.path.rstrip("/")
    by_path: dict[str, NamespaceItem] = {}
    for item in items:
        path = f"{directory}/{item.status.name}"
        if by_path.setdefault(path, item) is not item:
            raise InvalidRequestError(
                "two sources have the same name: move them one by one", first=by_path[path].url, second=item.url
            )
    if len(items) > 1 or (target.in_directory and not items[0].status.is_directory):
        return [(item, path) for path, item in by_path.items()]
    return [(items[0], target.path)]


# --- rm ---------------------------------------------------------------------------------------------------------------
@command(ResourceKind.NAMESPACES)
def rm(
    run: CommandRun,
    urls: Urls,
    glob: Glob,
    recursive: Annotated[bool, option("-r -R --recursive", "Remove directories with everything below them.")],
    force: Annotated[bool, option("-f --force", "Ignore what does not exist.")],
    trash: Annotated[bool, option("--trash", "Move to the trash instead.")],
) -> None:
    """Remove files and directories.

    Examples:
      holdfast fs rm holdfast://prod/data/one.csv
      holdfast fs rm -r holdfast://prod/data
      holdfast fs rm -r --trash --glob 'holdfast://prod/logs/2013-*'

    Nothing is removed if one of the paths does not exist (see -f), or is a directory and -r is missing. A directory is
    gone in one step, however large. Its space in the store comes back with holdfast namespace gc. --trash moves
    everything to /user/NAME/.Trash/Current instead, under its present path, or to a directory beside Current that is
    named after the time, if the path is taken there.
    """
    from holdfast.cli.fs.items import PathErrors, find_items
    from holdfast.namespace.errors import PathIsDirectoryError, PathNotFoundError

    found: dict[str, NamespaceItem] = {}
    for url in urls:
        try:
            found.update((item.url, item) for item in find_items(run, [url], glob=glob))
        except PathNotFoundError:
            if not force:
                raise
    for item in found.values():
        if item.status.is_directory and not recursive:
            raise PathIsDirectoryError("the path is a directory: remove it with -r", path=item.status.path)
        if item.status.path == "/" and not trash:
            # HDFS, and so the namespace, would silently do nothing.
            raise InvalidRequestError("the root cannot be deleted: delete its entries", url=item.url)
        if trash:
            _check_trashable(item)
    problems = PathErrors(run.out)
    removed = []
    for item in found.values():
        with problems.collect_errors(item.url):
            if trash:
                place = _move_to_trash(item)
                run.out.say(f"moved {escape_to_one_line(item.url)} to {escape_to_one_line(place)}")
                removed.append({"url": item.url, "trash": place})
            else:
                item.namespace.delete(item.status.path, recursive=recursive)
                run.out.say(f"removed {escape_to_one_line(item.url)}")
                removed.append({"url": item.url})
    run.out.document({"removed": removed, "failed": problems.documents})
    problems.end(len(removed))


# --- the trash --------------------------------------------------------------------------------------------------------
_MODE = 0o700
"""The mode of a home and of all that is in a trash, as in HDFS. All homes are below one directory, which is open."""


def _check_trashable(item: NamespaceItem) -> None:
    """Refuse what cannot go to the trash.

    Raises:
        InvalidRequestError: it is in the trash already, or contains the trash, or is the root.
    """
    from holdfast.namespace.paths import NsPath

    path, root = NsPath.parse(item.status.path), NsPath.parse(item.namespace.trash_root())
    if path.is_below(root):
        raise InvalidRequestError("this is in the trash already: remove it without --trash", path=str(path))
    if root.is_below(path):
        raise InvalidRequestError("this contains the trash: remove what is in it instead", path=str(path))


def _move_to_trash(item: NamespaceItem) -> str:
    """Move a file or a directory to the trash, in one step; return its URL there.

    If its path in ``Current`` is taken, it goes to a directory that is named after the time, as in HDFS.

    Raises:
        PermissionDeniedError: the trash cannot be made, or the path may not be removed.
        PathNotFoundError: it is gone.
    """
    from holdfast.namespace.errors import ParentNotDirectoryError, PathExistsError, PermissionDeniedError
    from holdfast.runtime import SystemClock

    namespace, path = item.namespace, item.status.path
    root = namespace.trash_root()
    home = root.rpartition("/")[0]
    now_ms = int(SystemClock().now_s() * 1000)
    for top in ("Current", *range(now_ms, now_ms + 10)):
        target = f"{root}/{top}{path}"
        try:
            if namespace.find(home) is None:
                namespace.mkdirs(home.rpartition("/")[0])
            namespace.mkdirs(target.rpartition("/")[0], mode=_MODE)
        except (PathExistsError, ParentNotDirectoryError):
            continue
        except PermissionDeniedError as error:
            raise PermissionDeniedError(
                f"the trash cannot be made: let the superuser make {home} and give it to the user, or leave out "
                "--trash",
                path=root,
            ) from error
        try:
            namespace.rename(path, target)
        except PathExistsError:
            continue
        return item.base + target
    raise InvalidRequestError("the trash holds this path already: try again", path=path)
