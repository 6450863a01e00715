"""Run ``holdfast fs ls``, ``tree``, ``find``, ``stat`` and ``test``."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import click

from holdfast.cli.arguments import Word, byte_count, time_ms
from holdfast.cli.command import Glob, Human, Opens, Run, Shape, Url, Urls, command, option
from holdfast.cli.failures import PROBLEM
from holdfast.cli.output import Column, as_text, document, when
from holdfast.cli.patterns import compile_word
from holdfast.cli.screen import in_one_line
from holdfast.wording import counted

if TYPE_CHECKING:
    from holdfast.cli.fs.items import Item, Problems
    from holdfast.namespace import FileStatus


# --- ls ---------------------------------------------------------------------------------------------------------------
@command(Opens.NAMESPACES, Shape.LINES)
def ls(
    run: Run,
    urls: Urls,
    glob: Glob,
    is_long: Annotated[bool, option("-l --long", "Show permissions, owner, size and time.")],
    human: Human,
    itself: Annotated[bool, option("-d --directory", "Show directories themselves, not their entries.")],
    recursive: Annotated[bool, option("-R --recursive", "List everything below.")],
    by_time: Annotated[bool, option("-t --by-time", "Newest first.")],
    by_size: Annotated[bool, option("-S --by-size", "Largest first.")],
    reverse: Annotated[bool, option("-r --reverse", "Reverse the order.")],
) -> None:
    """List directories.

    Shows the entries of directories, in the order of their names, and files themselves. The name of a directory ends in
    a slash. With several URLs, the files come first, then each directory with a title.

    Examples:
      holdfast fs ls holdfast://prod/
      holdfast fs ls -l -h holdfast://prod/data
      holdfast fs ls -l -t --glob 'holdfast://prod/logs/2013-0[1-6]*'
      holdfast fs ls -R --json holdfast://prod/data | jq -r .url
    """
    from holdfast.cli.fs.items import Problems, find_items

    if by_time and by_size:
        raise click.UsageError("-t and -S are two orders: leave one out")
    if itself and recursive:
        raise click.UsageError("-d shows no entries, and -R shows all: leave one out")
    problems = Problems(run.out, lines=True)
    found: list[Item] = []
    for url in urls:
        with problems.noted(url):
            found += find_items(run, [url], glob=glob)
    listing = _Listing(run, problems, is_long, human, by_time, by_size, reverse)
    plain = [item for item in found if itself or not item.status.is_directory]
    directories = [] if itself else [item for item in found if item.status.is_directory]
    if plain:
        listing.show(listing.ordered(plain), whole=True)
    titled = recursive or len(urls) > 1 or len(found) > 1
    for number, item in enumerate(directories):
        if titled and (number or plain):
            run.out.say("")
        listing.directory(item, titled=titled, recursive=recursive)
    problems.end(len(found))


@dataclass(frozen=True)
class _Listing:
    """How to list: see the options of the command."""

    run: Run
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
        from holdfast.cli.fs.items import ITEM, amount

        def name(item: Item) -> str:
            return item.url if whole else item.status.name

        out = self.run.out
        if out.json:
            for item in items:
                out.line(document(ITEM, item))
        elif self.is_long:
            columns = (
                Column("", "mode", lambda item: item.status.permissions),
                Column("", "owner", lambda item: item.status.owner),
                Column("", "group", lambda item: item.status.group),
                Column("", "size", _file_size, amount(human=self.human)),
                Column("", "modified (UTC)", lambda item: _minute(item.status.mtime_ms)),
                Column("", "name", name),
            )
            if listed := list(items):
                out.show(columns, listed)
        else:
            out.columns(f"{name(item).rstrip('/')}/" if item.status.is_directory else name(item) for item in items)

    def directory(self, top: Item, *, titled: bool, recursive: bool) -> None:
        """Print the entries of a directory and, if wanted, of all directories below it."""
        waiting = [top]
        while waiting:
            directory = waiting.pop()
            if directory is not top:
                self.run.out.say("")
            if titled:
                self.run.out.say(f"{in_one_line(directory.url)}:")
            below: list[Item] = []
            with self.problems.noted(directory.url):
                self.show(self._entries(directory, below))
            if recursive:
                waiting += reversed(below)

    def _entries(self, directory: Item, below: list[Item]) -> Iterator[Item]:
        """Yield the entries of a directory in order, and add those that are directories to `below`."""
        from holdfast.cli.fs.items import entries

        found = (directory.at(one) for one in entries(directory.namespace, directory.status.path))
        for item in self.ordered(found):
            if item.status.is_directory:
                below.append(item)
            yield item


def _file_size(item: Item) -> int | None:
    return None if item.status.is_directory else item.status.size


def _minute(time_ms: int) -> str:
    found = when(time_ms / 1000)
    return found[:-4] if found.endswith("Z") else found  # seconds would leave names no room


# --- tree -------------------------------------------------------------------------------------------------------------
@command(Opens.NAMESPACES, Shape.LINES)
def tree(
    run: Run,
    urls: Urls,
    glob: Glob,
    max_depth: Annotated[int | None, option("-L --level", "Show N levels.", type=click.IntRange(min=1))],
    directories: Annotated[bool, option("-d --directories", "Show directories only.")],
) -> None:
    """Draw the tree below directories.

    Examples:
      holdfast fs tree holdfast://prod/data
      holdfast fs tree -L 2 -d holdfast://prod/
    """
    from holdfast.cli.fs.items import ITEM, Problems, descend, find_items

    out = run.out
    problems = Problems(out, lines=True)
    tops = find_items(run, urls, glob=glob)
    for number, top in enumerate(tops):
        if number:
            out.say("")
        out.say(in_one_line(top.url))
        count = {True: 0, False: 0}
        below = descend(top.namespace, top.status.path, max_depth=max_depth, failed=problems.below(top.base))
        for level, status in below if top.status.is_directory else ():
            if status.is_directory or not directories:
                count[status.is_directory] += 1
                out.line({"level": level, **document(ITEM, top.at(status))})
                out.say("    " * level + in_one_line(status.name) + ("/" if status.is_directory else ""))
        files = "" if directories else f", {counted(count[False], 'file')}"
        out.say(f"{counted(count[True], 'directory', 'directories')}{files}")
    problems.end(len(tops))


# --- find -------------------------------------------------------------------------------------------------------------
_Condition = Callable[["FileStatus"], bool]


def _size(text: str) -> tuple[str, int]:
    sign = text[:1] if text[:1] in "+-" else ""
    return sign, byte_count(text[len(sign) :])


_LEVELS = {"type": click.IntRange(min=0)}
_NAME = option("-name", "The name matches; one of them, if repeated.", metavar="PATTERN")
_SIZE = option("-size", "The file is larger, smaller or this large.", type=_size, metavar="[+-]N[kMGT]")


@command(Opens.NAMESPACES, Shape.LINES)
def find(
    run: Run,
    urls: Urls,
    glob: Glob,
    names: Annotated[tuple[str, ...], _NAME],
    any_case: Annotated[tuple[str, ...], option("-iname", "The same, in lower or upper case.", metavar="PATTERN")],
    kind: Annotated[str | None, option("-type", "Files (f) or directories (d) only.", type=Word(["f", "d"]))],
    size: Annotated[tuple[str, int] | None, _SIZE],
    newer: Annotated[str | None, option("-newer", "Modified after a time, or after another file.", metavar="TIME|URL")],
    min_depth: Annotated[int, option("-mindepth", "Not above level N.", default=0, show_default=False, **_LEVELS)],
    max_depth: Annotated[int | None, option("-maxdepth", "Not below level N; URL is 0.", **_LEVELS)],
) -> None:
    """Find files and directories by name, type, size or time.

    Prints the URLs of all that are at and below URL and meet the conditions.

    Examples:
      holdfast fs find holdfast://prod/data -name '*.parquet' -size +100M
      holdfast fs find holdfast://prod/ -type d -maxdepth 2
      holdfast fs find holdfast://prod/logs -newer 2013-01-31T12:00
      holdfast fs find holdfast://prod/data -newer holdfast://prod/data/_SUCCESS

    All conditions must hold. Sizes are +N for more than N bytes, -N for less, N for exactly N, with k, M, G or T for
    multiples of 1024. A directory comes just before its entries, which are sorted.
    """
    from holdfast.cli.fs.items import ITEM, Problems, descend, find_items

    conditions = _conditions(names, any_case, kind, size)
    if newer is not None:
        after_ms = _newer_than(newer, run)
        conditions.append(lambda status: status.mtime_ms > after_ms)
    problems = Problems(run.out, lines=True)
    tops = find_items(run, urls, glob=glob)
    for top in tops:
        below = descend(top.namespace, top.status.path, max_depth=max_depth, failed=problems.below(top.base))
        for depth, status in itertools.chain([(0, top.status)], below):
            if depth >= min_depth and all(condition(status) for condition in conditions):
                item = top.at(status)
                run.out.line(document(ITEM, item))
                run.out.say(in_one_line(item.url))
    problems.end(len(tops))


def _conditions(
    names: Sequence[str], any_case: Sequence[str], kind: str | None, size: tuple[str, int] | None
) -> list[_Condition]:
    conditions: list[_Condition] = []
    patterns = [compile_word(one) for one in names]
    patterns += [re.compile(compile_word(one).pattern, re.DOTALL | re.IGNORECASE) for one in any_case]
    if patterns:
        conditions.append(lambda status: any(pattern.fullmatch(status.name) for pattern in patterns))
    if kind is not None:
        conditions.append(lambda status: status.is_directory == (kind == "d"))
    if size is not None:
        sign, amount = size
        conditions.append(lambda status: not status.is_directory and _compares(status.size, sign, amount))
    return conditions


def _compares(size_bytes: int, sign: str, amount: int) -> bool:
    if sign == "+":
        return size_bytes > amount
    return size_bytes < amount if sign == "-" else size_bytes == amount


def _newer_than(text: str, run: Run) -> int:
    """Return the time that the option means, milliseconds since the epoch."""
    from holdfast.cli.fs.items import find_path, is_namespace_url

    if not is_namespace_url(text):
        return time_ms(text)
    place = find_path(run, text)
    return place.namespace.status(place.path).mtime_ms


# --- stat -------------------------------------------------------------------------------------------------------------
_LETTERS: Mapping[str, Callable[[Item], object]] = {
    "n": lambda item: item.status.name,
    "p": lambda item: item.status.path,
    "N": lambda item: item.url,
    "i": lambda item: item.status.id,
    "u": lambda item: item.status.owner,
    "g": lambda item: item.status.group,
    "F": lambda item: "directory" if item.status.is_directory else "file",
    "s": lambda item: item.status.size,
    "o": lambda item: item.status.block_size,
    "r": lambda item: item.status.replication,
    "a": lambda item: f"{item.status.mode:04o}",
    "A": lambda item: item.status.permissions,
    "y": lambda item: when(item.status.mtime_ms / 1000),
    "Y": lambda item: item.status.mtime_ms,
    "x": lambda item: when(item.status.atime_ms / 1000),
    "X": lambda item: item.status.atime_ms,
    "%": lambda item: "%",
}


def _template(text: str) -> str:
    for found in re.finditer(r"%(.?)", text, re.DOTALL):
        if found[1] not in _LETTERS:
            known = " ".join("%" + one for one in _LETTERS)
            raise click.BadParameter(f"'{found[0]}' means nothing: use one of {known}")
    return text


@command(Opens.NAMESPACES, Shape.LINES)
def stat(
    run: Run,
    urls: Urls,
    glob: Glob,
    template: Annotated[str | None, option("--format", "Print a line like this.", metavar="FORMAT", type=_template)],
) -> None:
    """Show everything that is known about files and directories.

    Examples:
      holdfast fs stat holdfast://prod/data/one.csv
      holdfast fs stat --format '%s %n' --glob 'holdfast://prod/data/*.csv'

    \b
    Letters of --format:
      %n  name            %F  file or directory     %y  modified
      %p  path            %s  size in bytes         %Y  modified, ms since 1970
      %N  URL             %o  block size            %x  last read
      %i  id              %r  replication           %X  last read, ms since 1970
      %u  owner           %a  mode, such as 0644    %%  a percent sign
      %g  group           %A  mode, such as -rw-r--r--
    """
    from holdfast.cli.fs.items import ITEM, Problems, find_items
    from holdfast.cli.fs.sizes import quotas_of

    problems = Problems(run.out, lines=True)
    shown = 0
    for url in urls:
        with problems.noted(url):
            for item in find_items(run, [url], glob=glob):
                quotas = quotas_of(item) if item.status.is_directory else {}
                has_quota = any(quotas.get(one) is not None for one in ("names_quota", "space_quota"))
                found = document(ITEM, item) | (quotas if has_quota else {})
                run.out.line(found)
                if template is not None:
                    run.out.say(in_one_line(_formatted(template, item)))
                else:
                    if shown:
                        run.out.say("")
                    rows = [(name.replace("_", " "), as_text(one)) for name, one in found.items()]
                    run.out.table(["field", "value"], rows)
                shown += 1
    problems.end(shown)


def _formatted(template: str, item: Item) -> str:
    return re.sub(r"%(.)", lambda letter: str(_LETTERS[letter[1]](item)), template)


# --- test -------------------------------------------------------------------------------------------------------------
@command(Opens.NAMESPACES)
def test(
    run: Run,
    url: Url,
    exists: Annotated[bool, option("-e", "Something has the path.")],
    is_file: Annotated[bool, option("-f", "It is a file.")],
    is_directory: Annotated[bool, option("-d", "It is a directory.")],
    has_content: Annotated[bool, option("-s", "It is a file with content, or a directory with entries.")],
    is_empty: Annotated[bool, option("-z", "It is a file of no bytes.")],
    readable: Annotated[bool, option("-r", "You may read it.")],
    writable: Annotated[bool, option("-w", "You may write it.")],
) -> None:
    """Check a path, for scripts: the answer is the exit code.

    Examples:
      holdfast fs test -e holdfast://prod/data/_SUCCESS && echo there
      holdfast fs test -d holdfast://prod/data || exit 1

    Prints nothing. The exit code is 0 for yes and 1 for no; 2 and 3 mean that there is no answer. With several options,
    all must hold.
    """
    from holdfast.cli.fs.items import find_path
    from holdfast.namespace.errors import PermissionDeniedError
    from holdfast.namespace.permissions import READ, WRITE

    if not any((exists, is_file, is_directory, has_content, is_empty, readable, writable)):
        raise click.UsageError("nothing is asked: give -e, -f, -d, -s, -z, -r or -w")
    place = find_path(run, url)
    status = place.namespace.find(place.path)
    answer = status is not None
    if status is not None:
        answer = not (
            (is_file and status.is_directory)
            or (is_directory and not status.is_directory)
            or (is_empty and (status.is_directory or status.size > 0))
        )
        if has_content and status.is_directory:
            answer = answer and bool(place.namespace.list_page(place.path, limit=1).entries)
        elif has_content:
            answer = answer and status.size > 0
        try:
            place.namespace.check_access(place.path, (READ if readable else 0) | (WRITE if writable else 0))
        except PermissionDeniedError:
            answer = False
    run.out.document({"url": place.url, "answer": answer})
    if not answer:
        raise click.exceptions.Exit(PROBLEM)
