"""Run ``holdfast fs put``: copy local files into a namespace."""

from __future__ import annotations

from holdfast.cli.fs.command import CopyOptions, fs_command, with_copy_options, with_target
from holdfast.cli.output import Output
from holdfast.cli.session import Session, on_namespaces
from holdfast.errors import InvalidRequestError

_EPILOG = """\b
Examples:
  holdfast fs put one.csv holdfast://prod/data/
  holdfast fs put ./flights holdfast://prod/data
  pg_dump db | holdfast fs put - holdfast://prod/dumps/db.sql

SOURCE is a file, a directory with everything in it, or - for standard input. If TARGET is a directory, SOURCE goes into
it; with a slash at its end, the directory is made if it is missing. Several sources need a directory. Links are
followed. Nobody sees a file before it is complete, and files that are there already are replaced only with
--overwrite."""


@fs_command("put", epilog=_EPILOG)
@with_target
@with_copy_options
@on_namespaces
def put(
    sources: tuple[str, ...],
    target: str,
    how: CopyOptions,
    session: Session,
    out: Output,
) -> None:
    """Copy local files and directories into a namespace."""
    from holdfast.cli.fs.locations import Locations
    from holdfast.cli.fs.places.local import STDIN
    from holdfast.cli.fs.plan import make_plan
    from holdfast.cli.fs.problems import Problems
    from holdfast.cli.fs.transfer import transfer

    for source in sources:
        if "://" in source:
            raise InvalidRequestError("put copies files of this machine: copy from elsewhere with fs cp", source=source)
    if STDIN in sources and len(sources) > 1:
        raise InvalidRequestError("standard input is one file: put it by itself")
    problems = Problems(out)
    with Locations(session) as locations, out.waiting("planning"):
        goal = locations.namespace_target(target, overwrite=how.overwrite)
        plan = make_plan(locations.local_sources(sources), goal, problems)
    transfer(plan, goal, how, problems, out)
