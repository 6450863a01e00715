"""Run ``holdfast fs ls``: list directories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from holdfast.cli.fs.command import fs_command, with_urls
from holdfast.cli.output import Output
from holdfast.cli.screen import in_one_line
from holdfast.cli.session import Session, lists_from_namespaces

if TYPE_CHECKING:
    from holdfast.cli.fs.items import Item
    from holdfast.cli.fs.problems import Problems

_EPILOG = """\b
Examples:
  holdfast fs ls holdfast://prod/
  holdfast fs ls -l -h holdfast://prod/data
  holdfast fs ls -l -t --glob 'holdfast://prod/logs/2013-0[1-6]*'
  holdfast fs ls -R --json holdfast://prod/data | jq -r .url"""


@fs_command("ls", epilog=_EPILOG)
@with_urls
@click.option("-l", "--long", "is_long", is_flag=True, help="Show permissions, owner, size and time.")
@click.option("-h", "--human", is_flag=True, help="Show sizes in units such as MiB.")
@click.option("-d", "--directory", "itself", is_flag=True, help="Show directories themselves, not their entries.")
@click.option("-R", "--recursive", is_flag=True, help="List everything below.")
@click.option("-t", "--by-time", is_flag=True, help="Newest first.")
@click.option("-S", "--by-size", is_flag=True, help="Largest first.")
@click.option("-r", "--reverse", is_flag=True, help="Reverse the order.")
@lists_from_namespaces
def ls(
    urls: tuple[str, ...],
    glob: bool,
    is_long: bool,
    human: bool,
    itself: bool,
    recursive: bool,
    by_time: bool,
    by_size: bool,
    reverse: bool,
    session: Session,
    out: Output,
) -> None:
    """List the entries of directories, in the order of their names; of files, the files.

    The name of a directory ends in a slash. With several URLs, the files come first, then each directory with a title.
    """
    from holdfast.cli.fs.items import find_items
    from holdfast.cli.fs.problems import Problems

    if by_time and by_size:
        raise click.UsageError("-t and -S are two orders: leave one out")
    if itself and recursive:
        raise click.UsageError("-d shows no entries, and -R shows all: leave one out")
    problems = Problems(out, lines=True)
    found: list[Item] = []
    for url in urls:
        with problems.noted(url):
            found += find_items(session, [url], glob=glob)
    listing = _Listing(out, problems, is_long, human, by_time, by_size, reverse)
    plain = [item for item in found if itself or not item.status.is_directory]
    directories = [] if itself else [item for item in found if item.status.is_directory]
    if plain:
        listing.show(listing.ordered(plain), whole=True)
    titled = recursive or len(urls) > 1 or len(found) > 1
    for number, item in enumerate(directories):
        if titled and (number or plain):
            out.say("")
        listing.directory(item, titled=titled, recursive=recursive)
    problems.end(len(found))


@dataclass(frozen=True)
class _Listing:
    """How to list: see the options of the command."""

    out: Output
    problems: Problems
    is_long: bool
    human: bool
    by_time: bool
    by_size: bool
    reverse: bool

    def ordered(self, items: Iterable[Item]) -> Iterable[Item]:
        """Return entries, which come in the order of their names, in the order that the user wants."""
        if not (self.by_time or self.by_size or self.reverse):
            return items

        def rank(item: Item) -> int:
            return -item.status.mtime_ms if self.by_time else -item.status.size if self.by_size else 0

        ordered = sorted(items, key=rank)
        return reversed(ordered) if self.reverse else ordered

    def show(self, items: Iterable[Item], *, whole: bool = False) -> None:
        """Print files and directories, with their names or with their whole URLs."""
        from holdfast.cli.fs.rows import LONG_COLUMNS, RIGHT, fields, long_row

        named = ((item.url if whole else item.status.name, item) for item in items)
        if self.out.json:
            for _, item in named:
                self.out.line(fields(item))
        elif self.is_long:
            rows = [long_row(item.status, name, human=self.human) for name, item in named]
            if rows:
                self.out.table(LONG_COLUMNS, rows, right=RIGHT)
        else:
            self.out.columns(f"{name.rstrip('/')}/" if item.status.is_directory else name for name, item in named)

    def directory(self, top: Item, *, titled: bool, recursive: bool) -> None:
        """Print the entries of a directory and, if wanted, of all directories below it."""
        waiting = [top]
        while waiting:
            directory = waiting.pop()
            if directory is not top:
                self.out.say("")
            if titled:
                self.out.say(f"{in_one_line(directory.url)}:")
            below: list[Item] = []
            with self.problems.noted(directory.url):
                self.show(self._entries(directory, below))
            if recursive:
                waiting += reversed(below)

    def _entries(self, directory: Item, below: list[Item]) -> Iterator[Item]:
        """Yield the entries of a directory in order, and add those that are directories to `below`."""
        from holdfast.cli.fs.descent import entries

        found = (directory.at(one) for one in entries(directory.namespace, directory.status.path))
        for item in self.ordered(found):
            if item.status.is_directory:
                below.append(item)
            yield item
