"""Run ``holdfast fs mv``: rename or move files and directories."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.fs.command import fs_command, with_glob, with_target
from holdfast.cli.output import Output
from holdfast.cli.screen import in_one_line
from holdfast.cli.session import Session, on_namespaces
from holdfast.errors import InvalidRequestError

if TYPE_CHECKING:
    from holdfast.cli.fs.items import Item, Spot

_EPILOG = """\b
Examples:
  holdfast fs mv holdfast://prod/data holdfast://prod/archive
  holdfast fs mv --glob 'holdfast://prod/in/*.csv' holdfast://prod/done/

If TARGET is a directory, SOURCE moves into it; so it has to be one for several sources. Each move is one step, however
large the directory: everybody sees the old path or the new one."""


@fs_command("mv", epilog=_EPILOG)
@with_target
@with_glob
@click.option("-f", "--overwrite", is_flag=True, help="Replace a file, or an empty directory, in the same step.")
@on_namespaces
def mv(sources: tuple[str, ...], target: str, glob: bool, overwrite: bool, session: Session, out: Output) -> None:
    """Rename SOURCE to TARGET, or move it into the directory TARGET."""
    from holdfast.cli.fs.items import find_items, find_spot
    from holdfast.cli.fs.problems import Problems

    items = find_items(session, sources, glob=glob)
    spot = find_spot(session, target)
    moves = _moves(items, spot)
    problems = Problems(out)
    moved = []
    for item, path in moves:
        with problems.noted(item.url):
            item.namespace.rename(item.status.path, path, overwrite=overwrite)
            moved.append({"from": item.url, "to": spot.base + path})
            out.say(f"moved {in_one_line(item.url)} to {in_one_line(spot.base + path)}")
    out.document({"moved": moved, "failed": problems.documents})
    problems.end(len(moved))


def _moves(items: list[Item], target: Spot) -> list[tuple[Item, str]]:
    """Return each source with its new path.

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
    found = target.find()
    if found is not None and found.is_directory:
        moves = [(item, f"{target.path.rstrip('/')}/{item.status.name}") for item in items]
        by_path: dict[str, str] = {}
        for item, path in moves:
            if (other := by_path.setdefault(path, item.url)) != item.url:
                raise InvalidRequestError(
                    "two sources have the same name: move them one by one", first=other, second=item.url
                )
        return moves
    if len(items) > 1:
        what = "is a file" if found is not None else "does not exist"
        raise InvalidRequestError(
            f"several sources need a directory to move into, and the target {what}: see fs mkdir", target=target.url
        )
    if target.in_directory and (found is not None or not items[0].status.is_directory):
        raise InvalidRequestError("there is no such directory: make it with fs mkdir", target=target.url)
    return [(items[0], target.path)]
