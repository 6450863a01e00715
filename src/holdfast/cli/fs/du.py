"""Run ``holdfast fs du`` and ``holdfast fs count``: show what trees contain and how much space they take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from holdfast.cli.fs.command import fs_command, with_urls
from holdfast.cli.output import Output
from holdfast.cli.session import Session, lists_from_namespaces

if TYPE_CHECKING:
    from holdfast.cli.fs.items import Item
    from holdfast.cli.fs.problems import Problems
    from holdfast.namespace import ContentSummary

_DU_EPILOG = """\b
Examples:
  holdfast fs du -h holdfast://prod/data
  holdfast fs du -s -h --glob 'holdfast://prod/*'

"space" is the size times the replication, which is what quotas count."""

_COUNT_EPILOG = """\b
Examples:
  holdfast fs count holdfast://prod/data
  holdfast fs count -q -h --glob 'holdfast://prod/user/*'"""


@fs_command("du", epilog=_DU_EPILOG)
@with_urls
@click.option("-s", "--summarize", is_flag=True, help="Show one total for each URL, not its entries.")
@click.option("-h", "--human", is_flag=True, help="Show sizes in units such as MiB.")
@lists_from_namespaces
def du(urls: tuple[str, ...], glob: bool, summarize: bool, human: bool, session: Session, out: Output) -> None:
    """Show how much space the entries of directories take, with everything below them."""
    from holdfast.cli.fs.rows import amount

    def row(found: ContentSummary) -> Sequence[str]:
        return (amount(found.size, human=human), amount(found.space, human=human))

    _show(urls, glob, ["size", "space", "path"], row, session, out, inside=not summarize)


@fs_command("count", epilog=_COUNT_EPILOG)
@with_urls
@click.option("-q", "--quotas", is_flag=True, help="Show quotas, and what is left of them.")
@click.option("-h", "--human", is_flag=True, help="Show sizes in units such as MiB.")
@lists_from_namespaces
def count(urls: tuple[str, ...], glob: bool, quotas: bool, human: bool, session: Session, out: Output) -> None:
    """Count the directories, the files and the bytes at and below URL."""
    from holdfast.cli.fs.rows import amount

    def left(quota: int | None, used: int) -> str:
        return "-" if quota is None else str(quota - used)

    def row(found: ContentSummary) -> Sequence[str]:
        cells = (f"{found.directories}", f"{found.files}", amount(found.size, human=human))
        if not quotas:
            return cells
        space = "-" if found.space_quota is None else amount(found.space_quota, human=human)
        space_left = "-" if found.space_quota is None else amount(found.space_quota - found.space, human=human)
        names = "-" if found.names_quota is None else str(found.names_quota)
        return (names, left(found.names_quota, found.directories + found.files), space, space_left, *cells)

    limits = ["names quota", "names left", "space quota", "space left"] if quotas else []
    _show(urls, glob, [*limits, "directories", "files", "size", "path"], row, session, out, inside=False)


def _show(
    urls: Sequence[str],
    glob: bool,
    columns: Sequence[str],
    row: Callable[[ContentSummary], Sequence[str]],
    session: Session,
    out: Output,
    *,
    inside: bool,
) -> None:
    """Print a row for each item, or for each entry of a directory."""
    from holdfast.cli.fs.problems import Problems
    from holdfast.cli.fs.rows import titles

    problems = Problems(out, lines=True)
    counted: list[tuple[Item, Sequence[str]]] = []
    with out.waiting("counting") as show:
        for item in _items(urls, glob, inside, session, problems):
            show(f"counting {item.url}")
            with problems.noted(item.url):
                found = item.namespace.content_summary(item.status.path)
                out.line(_fields(item, found))
                counted.append((item, row(found)))
    if counted:
        names = titles([item for item, _ in counted])
        rows = [(*cells, name) for (_, cells), name in zip(counted, names, strict=True)]
        out.table(columns, rows, right=columns[:-1])
    problems.end(len(counted))


def _items(urls: Sequence[str], glob: bool, inside: bool, session: Session, problems: Problems) -> Iterator[Item]:
    """Yield what the URLs name or, if wanted, the entries of the directories that they name."""
    from holdfast.cli.fs.descent import entries
    from holdfast.cli.fs.items import find_items

    for url in urls:
        with problems.noted(url):
            for item in find_items(session, [url], glob=glob):
                if inside and item.status.is_directory:
                    yield from (item.at(one) for one in entries(item.namespace, item.status.path))
                else:
                    yield item


def _fields(item: Item, found: ContentSummary) -> dict[str, object]:
    return {
        "url": item.url,
        "path": item.status.path,
        "directories": found.directories,
        "files": found.files,
        "size": found.size,
        "space": found.space,
        "names_quota": found.names_quota,
        "space_quota": found.space_quota,
    }
