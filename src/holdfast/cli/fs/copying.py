"""Run ``holdfast fs cp``, ``get`` and ``put``: what each of them may copy from where to where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import click

from holdfast.cli.command import Glob, Opens, Overwrite, Run, argument, command, option
from holdfast.errors import InvalidRequestError

if TYPE_CHECKING:
    from holdfast.cli.fs.plan import Side


Paths = Annotated[tuple[str, ...], argument("SOURCE... TARGET")]
Preserve = Annotated[bool, option("-p --preserve", "Keep permissions and modification times of files.")]
Threads = Annotated[int, option("-t --threads", "Parallel copies.", type=click.IntRange(1, 64), default=8)]


def split_target(paths: Sequence[str]) -> tuple[Sequence[str], str]:
    """Return the sources and the target, which comes last.

    Raises:
        UsageError: one of them is missing.
    """
    if len(paths) < 2:
        raise click.UsageError(f"Missing argument '{'TARGET' if paths else 'SOURCE'}'.")
    return paths[:-1], paths[-1]


@command(Opens.NAMESPACES)
def cp(run: Run, paths: Paths, glob: Glob, overwrite: Overwrite, preserve: Preserve, threads: Threads) -> None:
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

    sources, target = split_target(paths)
    outside = [source for source in sources if not is_namespace_url(source)]
    if outside and not is_namespace_url(target):
        raise InvalidRequestError(
            "neither source nor target is in a namespace: copy with the tools of the store", source=outside[0]
        )
    _copy(
        run,
        sources,
        target,
        ("anything", "anything"),
        glob=glob,
        overwrite=overwrite,
        preserve=preserve,
        threads=threads,
    )


@command(Opens.NAMESPACES)
def get(run: Run, paths: Paths, glob: Glob, overwrite: Overwrite, preserve: Preserve, threads: Threads) -> None:
    """Copy files and directories of a namespace to this machine.

    Examples:
      holdfast fs get holdfast://prod/data/one.csv .
      holdfast fs get --glob 'holdfast://prod/data/*.csv' ./csv/
      holdfast fs get holdfast://prod/dumps/db.sql - | psql db

    If TARGET is a directory, SOURCE goes into it; with a slash at its end, the directory is made if it is missing.
    Several sources need a directory. With - as TARGET, files are printed. A file appears under its name when it is
    complete, and local files are replaced only with --overwrite.
    """
    from holdfast.cli.fs.contents import print_files

    sources, target = split_target(paths)
    if target == "-":
        if run.out.json:
            raise InvalidRequestError("standard output takes the files or the document: leave out --json")
        print_files(sources, run, glob=glob)
        return
    if "://" in target:
        raise InvalidRequestError("get copies to this machine: copy to elsewhere with fs cp", target=target)
    _copy(
        run,
        sources,
        target,
        ("namespaces", "this machine"),
        glob=glob,
        overwrite=overwrite,
        preserve=preserve,
        threads=threads,
    )


@command(Opens.NAMESPACES)
def put(run: Run, paths: Paths, overwrite: Overwrite, preserve: Preserve, threads: Threads) -> None:
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
    sources, target = split_target(paths)
    for source in sources:
        if "://" in source:
            raise InvalidRequestError("put copies files of this machine: copy from elsewhere with fs cp", source=source)
    if "-" in sources and len(sources) > 1:
        raise InvalidRequestError("standard input is one file: put it by itself")
    _copy(
        run,
        sources,
        target,
        ("this machine", "namespaces"),
        glob=False,
        overwrite=overwrite,
        preserve=preserve,
        threads=threads,
    )


def _copy(
    run: Run,
    sources: Sequence[str],
    target: str,
    sides: tuple[Side, Side],
    *,
    glob: bool,
    overwrite: bool,
    preserve: bool,
    threads: int,
) -> None:
    from holdfast.cli.fs.items import Problems
    from holdfast.cli.fs.plan import make_plan
    from holdfast.cli.fs.transfer import find_sources, find_target, transfer

    problems = Problems(run.out)
    with run.out.waiting("planning"):
        goal = find_target(run, target, sides[1], overwrite=overwrite)
        plan = make_plan(find_sources(run, sources, sides[0], glob=glob), goal, problems)
    transfer(plan, goal, problems, run.out, preserve=preserve, threads=threads)
