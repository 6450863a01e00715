"""Run ``holdfast fs cp``, ``get``, ``put`` and ``cat``: what may be copied from where to where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import click

from holdfast.cli.command import CommandRun, Glob, OutputForm, Overwrite, ResourceKind, Urls, argument, command, option
from holdfast.errors import InvalidRequestError

if TYPE_CHECKING:
    from holdfast.cli.fs.plan import Side


Sources = Annotated[tuple[str, ...], argument("SOURCE...", required=True)]
Target = Annotated[str, argument()]
Threads = Annotated[int, option("-t --threads", "Parallel copies.", type=click.IntRange(1, 64), default=8)]


@command(ResourceKind.NAMESPACES)
def cp(run: CommandRun, sources: Sources, target: Target, glob: Glob, overwrite: Overwrite, threads: Threads) -> None:
    """Copy files and directories, from or to a namespace.

    Examples:
      holdfast fs cp holdfast://prod/data holdfast://prod/copy
      holdfast fs cp s3://bucket/flights holdfast://prod/data/
      holdfast fs cp --glob 'holdfast://prod/data/*.csv' s3://bucket/export/
      holdfast fs cp holdfast://prod/data holdfast://test/data

    SOURCE and TARGET are holdfast://, s3:// or file:// URLs, URLs of other stores, or paths; one of them has to be in a
    namespace. Directories are copied with everything in them. If TARGET is a directory, SOURCE goes into it; with a
    slash at its end, the directory is made if it is missing. A file appears when it is complete; files that are there
    already are replaced only with --overwrite.
    """
    from holdfast.cli.fs.items import is_namespace_url

    outside = [source for source in sources if not is_namespace_url(source)]
    if outside and not is_namespace_url(target):
        raise InvalidRequestError(
            "neither source nor target is in a namespace: copy with the tools of the store", source=outside[0]
        )
    _copy_sources(run, sources, target, ("anything", "anything"), glob, overwrite, threads)


@command(ResourceKind.NAMESPACES)
def get(run: CommandRun, sources: Sources, target: Target, glob: Glob, overwrite: Overwrite, threads: Threads) -> None:
    """Copy files and directories of a namespace to this machine.

    Examples:
      holdfast fs get holdfast://prod/data/one.csv .
      holdfast fs get --glob 'holdfast://prod/data/*.csv' ./csv/
      holdfast fs get holdfast://prod/dumps/db.sql - | psql db

    If TARGET is a directory, SOURCE goes into it; with a slash at its end, the directory is made if it is missing.
    Several sources need a directory. With - as TARGET, files are printed. A file appears under its name when it is
    complete, and local files are replaced only with --overwrite.
    """
    if target == "-":
        if run.out.json:
            raise InvalidRequestError("standard output takes the files or the document: leave out --json")
        _print_files(sources, run, glob=glob)
        return
    if "://" in target:
        raise InvalidRequestError("get copies to this machine: copy to elsewhere with fs cp", target=target)
    _copy_sources(run, sources, target, ("namespaces", "this machine"), glob, overwrite, threads)


@command(ResourceKind.NAMESPACES)
def put(run: CommandRun, sources: Sources, target: Target, overwrite: Overwrite, threads: Threads) -> None:
    """Copy local files and directories into a namespace.

    Examples:
      holdfast fs put one.csv holdfast://prod/data/
      holdfast fs put ./flights holdfast://prod/data
      pg_dump db | holdfast fs put - holdfast://prod/dumps/db.sql

    SOURCE is a file, a directory with everything in it, or - for standard input. If TARGET is a directory, SOURCE goes
    into it; with a slash at its end, the directory is made if it is missing. Several sources need a directory. Links
    are followed. A file appears when it is complete, and files that are there already are replaced only with
    --overwrite.
    """
    for source in sources:
        if "://" in source:
            raise InvalidRequestError("put copies files of this machine: copy from elsewhere with fs cp", source=source)
    if "-" in sources and len(sources) > 1:
        raise InvalidRequestError("standard input is one file: put it by itself")
    _copy_sources(run, sources, target, ("this machine", "namespaces"), False, overwrite, threads)


def _copy_sources(
    run: CommandRun,
    sources: Sequence[str],
    target: str,
    sides: tuple[Side, Side],
    glob: bool,
    overwrite: bool,
    threads: int,
) -> None:
    from holdfast.cli.fs.items import PathErrors
    from holdfast.cli.fs.plan import make_copy_plan
    from holdfast.cli.fs.transfer import find_copy_sources, parse_copy_target, transfer_files

    problems = PathErrors(run.out)
    with run.out.show_spinner("planning"):
        goal = parse_copy_target(run, target, sides[1], overwrite=overwrite)
        plan = make_copy_plan(find_copy_sources(run, sources, sides[0], glob=glob), goal, problems)
    transfer_files(plan, goal, problems, run.out, threads=threads)


# --- printing ---------------------------------------------------------------------------------------------------------
_READERS = 4
"""How many pieces of a large file are read at the same time."""


@command(ResourceKind.NAMESPACES, OutputForm.BYTES)
def cat(run: CommandRun, urls: Urls, glob: Glob) -> None:
    """Print files, one after the other.

    Examples:
      holdfast fs cat holdfast://prod/data/one.csv | head
      holdfast fs cat --glob 'holdfast://prod/logs/*.gz' | gunzip | wc -l

    The bytes are printed as they are.
    """
    _print_files(urls, run, glob=glob)


def _print_files(urls: Sequence[str], run: CommandRun, *, glob: bool) -> None:
    """Print the bytes of files, one after the other, and end the command if one of them could not be printed."""
    from holdfast.cli.fs.items import PathErrors, find_items
    from holdfast.cli.fs.places import read_pieces

    items = find_items(run, urls, glob=glob)
    problems = PathErrors(run.out)
    printed = 0
    for item in items:
        with problems.collect_errors(item.url):
            file = item.namespace.open(item.status.path)
            for piece in read_pieces(file.read, file.size, _READERS):
                run.out.data(piece)
            printed += 1
    problems.end(printed)
