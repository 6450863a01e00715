"""Run ``holdfast fs rm``: remove files and directories."""

from __future__ import annotations

import click

from holdfast.cli.fs.command import fs_command, with_urls
from holdfast.cli.output import Output
from holdfast.cli.screen import in_one_line
from holdfast.cli.session import Session, on_namespaces

_EPILOG = """\b
Examples:
  holdfast fs rm holdfast://prod/data/one.csv
  holdfast fs rm -r holdfast://prod/data
  holdfast fs rm -r --trash --glob 'holdfast://prod/logs/2013-*'

Nothing is removed if one of the paths does not exist (see -f), or is a directory and -r is missing. A directory is gone
in one step, however large. Its space in the store comes back with holdfast namespace gc. --trash moves everything to
/user/NAME/.Trash/Current instead, under its present path."""


@fs_command("rm", epilog=_EPILOG)
@with_urls
@click.option("-r", "-R", "--recursive", is_flag=True, help="Remove directories with everything below them.")
@click.option("-f", "--force", is_flag=True, help="Ignore what does not exist.")
@click.option("--trash", is_flag=True, help="Move to the trash instead.")
@on_namespaces
def rm(
    urls: tuple[str, ...], glob: bool, recursive: bool, force: bool, trash: bool, session: Session, out: Output
) -> None:
    """Remove files and directories."""
    from holdfast.cli.fs.items import Item, find_items
    from holdfast.cli.fs.problems import Problems
    from holdfast.cli.fs.trash import check_trashable, move_to_trash
    from holdfast.errors import InvalidRequestError
    from holdfast.namespace.errors import PathIsDirectoryError, PathNotFoundError

    found: dict[str, Item] = {}
    for url in urls:
        try:
            found.update((item.url, item) for item in find_items(session, [url], glob=glob))
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
            check_trashable(item)
    problems = Problems(out)
    removed = []
    for item in found.values():
        with problems.noted(item.url):
            if trash:
                place = move_to_trash(item)
                out.say(f"moved {in_one_line(item.url)} to {in_one_line(place)}")
                removed.append({"url": item.url, "trash": place})
            else:
                item.namespace.delete(item.status.path, recursive=recursive)
                out.say(f"removed {in_one_line(item.url)}")
                removed.append({"url": item.url})
    out.document({"removed": removed, "failed": problems.documents})
    problems.end(len(removed))
