"""Run ``holdfast fs ls``, ``tree``, ``find``, ``stat`` and ``test``."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated

import click

from holdfast.cli.arguments import WordChoice, parse_byte_count, parse_time_ms
from holdfast.cli.command import CommandRun, Glob, Human, OutputForm, ResourceKind, Url, Urls, command, option
from holdfast.cli.failures import PROBLEM
from holdfast.cli.output import ResultColumn, time_text, to_document
from holdfast.cli.screen import escape_to_one_line

if TYPE_CHECKING:
    from holdfast.cli.fs.items import NamespaceItem
    from holdfast.namespace import FileStatus


# --- ls ---------------------------------------------------------------------------------------------------------------
@command(ResourceKind.NAMESPACES, OutputForm.LINES)
def ls(
    run: CommandRun,
    urls: Urls,
    glob: Glob,
    is_long: Annotated[bool, option("-l --long", "Show permissions, owner, size and time.")],
    human: Human,
    itself: Annotated[bool, option("-d --directory", "Show directories themselves, not their entries.")],
    recursive: Annotated[bool, option("-R --recursive", "Show everything below.")],
    by_time: Annotated[bool, option("-t --by-time", "Newest first.")],
    by_size: Annotated[bool, option("-S --by-size", "Largest first.")],
    reverse: Annotated[bool, option("-r --reverse", "Reverse the order.")],
) -> None:
    """List directories.

    Shows the entries of directories, in the order of their names, and files themselves. The name of a directory ends in
    a slash. With several URLs, the files come first, then each directory with a title. With -R, everything is shown
    with its URL, each directory just before its entries.

    Examples:
      holdfast fs ls holdfast://prod/
      holdfast fs ls -l -h holdfast://prod/data
      holdfast fs ls -l -t --glob 'holdfast://prod/logs/2013-0[1-6]*'
      holdfast fs ls -R --json holdfast://prod/data | jq -r .url
    """
    from holdfast.cli.fs.items import ITEM, PathErrors, walk_tree

    if by_time and by_size:
        raise click.UsageError("-t and -S are two orders: leave one out")
    if itself and recursive:
        raise click.UsageError("-d shows no entries, and -R shows all: leave one out")
    problems = PathErrors(run.out, lines=True)
    found = list(problems.items(run, urls, glob=glob))
    plain = [item for item in found if itself or not item.status.is_directory]
    directories = [] if itself else [item for item in found if item.status.is_directory]
    titled = not recursive and (len(urls) > 1 or len(found) > 1)

    def show_items(items: Iterable[NamespaceItem], *, whole: bool) -> None:
        """Print files and directories, with their names or with their whole URLs."""
        if by_time or by_size:
            items = sorted(items, key=lambda one: -one.status.mtime_ms if by_time else -one.status.size)
        ordered = reversed(list(items)) if reverse else items
        if is_long and not run.out.json:
            _show_long(run, list(ordered), human=human, whole=whole)
            return
        for item in ordered:
            name = item.url if whole else item.status.name
            run.out.line(to_document(ITEM, item))
            run.out.say(escape_to_one_line(f"{name.rstrip('/')}/" if item.status.is_directory else name))

    if plain:
        show_items(plain, whole=True)
    for number, item in enumerate(directories):
        if titled and (number or plain):
            run.out.say("")
        if titled:
            run.out.say(f"{escape_to_one_line(item.url)}:")
        depth, failed = None if recursive else 1, problems.make_collector(item.base)
        below = walk_tree(item.namespace, item.status.path, max_depth=depth, failed=failed)
        show_items((item.at(status) for _, status in below), whole=recursive)
    problems.end(len(found))


def _show_long(run: CommandRun, items: Sequence[NamespaceItem], *, human: bool, whole: bool) -> None:
    from holdfast.cli.fs.items import size_formatter

    columns = (
        ResultColumn("", "mode", lambda item: item.status.permissions),
        ResultColumn("", "owner", lambda item: item.status.owner),
        ResultColumn("", "group", lambda item: item.status.group),
        ResultColumn(
            "", "size", lambda one: None if one.status.is_directory else one.status.size, size_formatter(human=human)
        ),
        # seconds would leave names no room
        ResultColumn("", "modified (UTC)", lambda item: time_text(item.status.mtime_ms / 1000)[:-4]),
        ResultColumn("", "name", lambda item: item.url if whole else item.status.name),
    )
    if items:
        run.out.show(columns, items)


# --- find -------------------------------------------------------------------------------------------------------------
def _parse_size_condition(text: str) -> tuple[str, int]:
    sign = text[:1] if text[:1] in "+-" else ""
    return sign, parse_byte_count(text[len(sign) :])


_NAME = option("-name", "The name matches; one of them, if repeated.", metavar="PATTERN")
_SIZE = option("-size", "The file is larger, smaller or this large.", type=_parse_size_condition, metavar="[+-]N[kMGT]")


@command(ResourceKind.NAMESPACES, OutputForm.LINES)
def find(
    run: CommandRun,
    urls: Urls,
    glob: Glob,
    names: Annotated[tuple[str, ...], _NAME],
    kind: Annotated[str | None, option("-type", "Files (f) or directories (d) only.", type=WordChoice(["f", "d"]))],
    size: Annotated[tuple[str, int] | None, _SIZE],
    newer_ms: Annotated[int | None, option("-newer", "Modified after this time.", type=parse_time_ms)],
    max_depth: Annotated[int | None, option("-maxdepth", "Not below level N; URL is 0.", type=click.IntRange(min=0))],
) -> None:
    """Find files and directories by name, type, size or time.

    Prints the URLs of all that are at and below URL and meet the conditions.

    Examples:
      holdfast fs find holdfast://prod/data -name '*.parquet' -size +100M
      holdfast fs find holdfast://prod/ -type d -maxdepth 2
      holdfast fs find holdfast://prod/logs -newer 2013-01-31T12:00

    All conditions must hold. Sizes are +N for more than N bytes, -N for less, N for exactly N, with k, M, G or T for
    multiples of 1024. A directory comes just before its entries, which are sorted.
    """
    from holdfast.cli.fs.items import ITEM, PathErrors, compile_segment, find_items, walk_tree

    patterns = [compile_segment(one) for one in names]

    def is_wanted(status: FileStatus) -> bool:
        return (
            (not patterns or any(pattern.fullmatch(status.name) for pattern in patterns))
            and (kind is None or status.is_directory == (kind == "d"))
            and (size is None or (not status.is_directory and _size_matches(status.size, *size)))
            and (newer_ms is None or status.mtime_ms > newer_ms)
        )

    problems = PathErrors(run.out, lines=True)
    tops = find_items(run, urls, glob=glob)
    for top in tops:
        below = walk_tree(top.namespace, top.status.path, max_depth=max_depth, failed=problems.make_collector(top.base))
        for _, status in itertools.chain([(0, top.status)], below):
            if is_wanted(status):
                item = top.at(status)
                run.out.line(to_document(ITEM, item))
                run.out.say(escape_to_one_line(item.url))
    problems.end(len(tops))


def _size_matches(size_bytes: int, sign: str, amount: int) -> bool:
    if sign == "+":
        return size_bytes > amount
    return size_bytes < amount if sign == "-" else size_bytes == amount


# --- stat -------------------------------------------------------------------------------------------------------------
@command(ResourceKind.NAMESPACES, OutputForm.LINES)
def stat(run: CommandRun, urls: Urls, glob: Glob) -> None:
    """Show everything that is known about files and directories.

    Examples:
      holdfast fs stat holdfast://prod/data/one.csv
      holdfast fs stat --json --glob 'holdfast://prod/data/*' | jq .modified_ms
    """
    from holdfast.cli.fs.items import ITEM, PathErrors
    from holdfast.cli.fs.sizes import quota_fields

    problems = PathErrors(run.out, lines=True)
    shown = 0
    for item in problems.items(run, urls, glob=glob):
        with problems.collect_errors(item.url):
            found = to_document(ITEM, item) | (quota_fields(item) if item.status.is_directory else {})
            run.out.line(found)
            if shown:
                run.out.say("")
            run.out.fields(found)
            shown += 1
    problems.end(shown)


# --- test -------------------------------------------------------------------------------------------------------------
@command(ResourceKind.NAMESPACES)
def test(
    run: CommandRun,
    url: Url,
    exists: Annotated[bool, option("-e", "Something has the path.")],
    is_file: Annotated[bool, option("-f", "It is a file.")],
    is_directory: Annotated[bool, option("-d", "It is a directory.")],
    has_content: Annotated[bool, option("-s", "It is a file with content, or a directory with entries.")],
    is_empty: Annotated[bool, option("-z", "It is a file of no bytes.")],
) -> None:
    """Check a path, for scripts: the answer is the exit code.

    Examples:
      holdfast fs test -e holdfast://prod/data/_SUCCESS && echo there
      holdfast fs test -d holdfast://prod/data || exit 1

    Prints nothing. The exit code is 0 for yes and 1 for no; 2 and 3 mean that there is no answer. With several options,
    all must hold.
    """
    from holdfast.cli.fs.items import parse_namespace_path

    if not any((exists, is_file, is_directory, has_content, is_empty)):
        raise click.UsageError("nothing is asked: give -e, -f, -d, -s or -z")
    place = parse_namespace_path(run, url)
    status = place.namespace.find(place.path)
    answer = status is not None and not (
        (is_file and status.is_directory)
        or (is_directory and not status.is_directory)
        or (is_empty and (status.is_directory or status.size > 0))
        or (has_content and not status.is_directory and not status.size)
        or (has_content and status.is_directory and not place.namespace.list_page(place.path, limit=1).entries)
    )
    run.out.document({"url": place.url, "answer": answer})
    if not answer:
        raise click.exceptions.Exit(PROBLEM)
