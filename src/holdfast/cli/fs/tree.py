"""Run ``holdfast fs tree``: draw the tree below a directory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from holdfast.cli.fs.command import fs_command, with_urls
from holdfast.cli.output import Output
from holdfast.cli.screen import in_one_line
from holdfast.cli.session import Session, lists_from_namespaces
from holdfast.errors import HoldfastError
from holdfast.wording import counted

if TYPE_CHECKING:
    from holdfast.cli.fs.items import Item
    from holdfast.cli.fs.problems import Problems
    from holdfast.namespace import FileStatus

_EPILOG = """\b
Examples:
  holdfast fs tree holdfast://prod/data
  holdfast fs tree -L 2 -d holdfast://prod/"""


@fs_command("tree", epilog=_EPILOG)
@with_urls
@click.option("-L", "--level", "max_depth", metavar="N", type=click.IntRange(min=1), help="Show so many levels.")
@click.option("-d", "--directories", is_flag=True, help="Show directories only.")
@lists_from_namespaces
def tree(
    urls: tuple[str, ...], glob: bool, max_depth: int | None, directories: bool, session: Session, out: Output
) -> None:
    """Draw the tree below directories."""
    from holdfast.cli.fs.items import find_items
    from holdfast.cli.fs.problems import Problems
    from holdfast.cli.fs.rows import fields

    problems = Problems(out, lines=True)
    tops = find_items(session, urls, glob=glob)
    for number, top in enumerate(tops):
        if number:
            out.say("")
        out.say(in_one_line(top.url))
        count = {True: 0, False: 0}
        for level, guides, status in _branches(top, max_depth, directories, problems):
            count[status.is_directory] += 1
            out.line({"level": level, **fields(top.at(status))})
            out.say(guides + in_one_line(status.name) + ("/" if status.is_directory else ""))
        files = "" if directories else f", {counted(count[False], 'file')}"
        out.say(f"{counted(count[True], 'directory', 'directories')}{files}")
    problems.end(len(tops))


def _branches(
    top: Item, max_depth: int | None, only_directories: bool, problems: Problems
) -> Iterator[tuple[int, str, FileStatus]]:
    """Yield everything below a directory with its level, from 1, and with the lines that lead to it.

    At any moment, memory holds a page of entries for each level.
    """
    from holdfast.cli.fs.descent import entries

    def following(directory: str, rest: Iterator[FileStatus]) -> FileStatus | None:
        try:
            return next((entry for entry in rest if entry.is_directory or not only_directories), None)
        except HoldfastError as error:
            problems.add(top.base + directory, error)
            return None

    def opened(directory: str, guides: str) -> _Level:
        rest = entries(top.namespace, directory)
        return _Level(directory, guides, rest, following(directory, rest))

    levels = [opened(top.status.path, "")] if top.status.is_directory else []
    while levels:
        level = levels[-1]
        entry = level.entry
        if entry is None:
            levels.pop()
            continue
        level.entry = following(level.directory, level.rest)
        is_last = level.entry is None
        yield len(levels), level.guides + ("└── " if is_last else "├── "), entry
        if entry.is_directory and (max_depth is None or len(levels) < max_depth):
            levels.append(opened(entry.path, level.guides + ("    " if is_last else "│   ")))


@dataclass
class _Level:
    """A directory that is being drawn.

    Attributes:
        guides: what stands in front of its entries.
        rest: its entries after `entry`.
        entry: the next one to draw; None if there is none.
    """

    directory: str
    guides: str
    rest: Iterator[FileStatus]
    entry: FileStatus | None
