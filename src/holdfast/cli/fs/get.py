"""Run ``holdfast fs get``: copy files of a namespace to this machine."""

from __future__ import annotations

from holdfast.cli.fs.command import CopyOptions, fs_command, with_copy_options, with_glob, with_target
from holdfast.cli.output import Output
from holdfast.cli.session import Session, on_namespaces
from holdfast.errors import InvalidRequestError

_EPILOG = """\b
Examples:
  holdfast fs get holdfast://prod/data/one.csv .
  holdfast fs get --glob 'holdfast://prod/data/*.csv' ./csv/
  holdfast fs get holdfast://prod/dumps/db.sql - | psql db

If TARGET is a directory, SOURCE goes into it; with a slash at its end, the directory is made if it is missing. Several
sources need a directory. With - as TARGET, files are printed. A file appears under its name when
it is complete, and local files are replaced only with --overwrite."""


@fs_command("get", epilog=_EPILOG)
@with_target
@with_glob
@with_copy_options
@on_namespaces
def get(
    sources: tuple[str, ...],
    target: str,
    glob: bool,
    how: CopyOptions,
    session: Session,
    out: Output,
) -> None:
    """Copy files and directories of a namespace to this machine."""
    from holdfast.cli.fs.contents import print_files
    from holdfast.cli.fs.locations import Locations
    from holdfast.cli.fs.plan import make_plan
    from holdfast.cli.fs.problems import Problems
    from holdfast.cli.fs.transfer import transfer

    if target == "-":
        if out.json:
            raise InvalidRequestError("standard output takes the files or the document: leave out --json")
        print_files(sources, session, out, glob=glob)
        return
    if "://" in target:
        raise InvalidRequestError("get copies to this machine: copy to elsewhere with fs cp", target=target)
    problems = Problems(out)
    with Locations(session) as locations, out.waiting("planning"):
        goal = locations.local_target(target, overwrite=how.overwrite)
        plan = make_plan(locations.namespace_sources(sources, glob=glob), goal, problems)
    transfer(plan, goal, how, problems, out)
