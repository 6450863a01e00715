"""Run ``holdfast fs cp``: copy within namespaces, and to and from other stores."""

from __future__ import annotations

from holdfast.cli.fs.command import CopyOptions, fs_command, with_copy_options, with_glob, with_target
from holdfast.cli.output import Output
from holdfast.cli.session import Session, on_namespaces
from holdfast.errors import InvalidRequestError

_EPILOG = """\b
Examples:
  holdfast fs cp holdfast://prod/data holdfast://prod/copy
  holdfast fs cp s3://bucket/flights holdfast://prod/data/
  holdfast fs cp --glob 'holdfast://prod/data/*.csv' s3://bucket/export/
  holdfast fs cp holdfast://prod/data holdfast://test/data

SOURCE and TARGET are holdfast://, s3:// or file:// URLs, URLs of other stores, or paths; one of them has to be in a
namespace. Directories are copied with everything in them. If TARGET is a directory, SOURCE goes into it; with a slash
at its end, the directory is made if it is missing. Nobody sees a file before it is
complete; files that are there already are replaced only with --overwrite."""


@fs_command("cp", epilog=_EPILOG)
@with_target
@with_glob
@with_copy_options
@on_namespaces
def cp(
    sources: tuple[str, ...],
    target: str,
    glob: bool,
    how: CopyOptions,
    session: Session,
    out: Output,
) -> None:
    """Copy files and directories, from or to a namespace."""
    from holdfast.cli.fs.items import is_namespace_url
    from holdfast.cli.fs.locations import Locations
    from holdfast.cli.fs.plan import make_plan
    from holdfast.cli.fs.problems import Problems
    from holdfast.cli.fs.transfer import transfer

    outside = [source for source in sources if not is_namespace_url(source)]
    if outside and not is_namespace_url(target):
        raise InvalidRequestError(
            "neither source nor target is in a namespace: copy with the tools of the store", source=outside[0]
        )
    problems = Problems(out)
    with Locations(session) as locations:
        with out.waiting("planning"):
            goal = locations.any_target(target, overwrite=how.overwrite)
            plan = make_plan(locations.any_sources(sources, glob=glob), goal, problems)
        transfer(plan, goal, how, problems, out)
