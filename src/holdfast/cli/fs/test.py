"""Run ``holdfast fs test``: check a path, for scripts."""

from __future__ import annotations

import click

from holdfast.cli.failures import PROBLEM
from holdfast.cli.fs.command import fs_command
from holdfast.cli.output import Output
from holdfast.cli.session import Session, on_namespaces

_EPILOG = """\b
Examples:
  holdfast fs test -e holdfast://prod/data/_SUCCESS && echo there
  holdfast fs test -d holdfast://prod/data || exit 1

Prints nothing. The exit code is 0 for yes and 1 for no; 2 and 3 mean that there is no answer. With several options,
all must hold."""


@fs_command("test", epilog=_EPILOG)
@click.argument("url")
@click.option("-e", "exists", is_flag=True, help="Something has the path.")
@click.option("-f", "is_file", is_flag=True, help="It is a file.")
@click.option("-d", "is_directory", is_flag=True, help="It is a directory.")
@click.option("-s", "has_content", is_flag=True, help="It is a file with content, or a directory with entries.")
@click.option("-z", "is_empty", is_flag=True, help="It is a file of no bytes.")
@click.option("-r", "readable", is_flag=True, help="You may read it.")
@click.option("-w", "writable", is_flag=True, help="You may write it.")
@on_namespaces
def test(
    url: str,
    exists: bool,
    is_file: bool,
    is_directory: bool,
    has_content: bool,
    is_empty: bool,
    readable: bool,
    writable: bool,
    session: Session,
    out: Output,
) -> None:
    """Check the path at URL."""
    from holdfast.cli.fs.items import find_spot
    from holdfast.namespace.errors import PermissionDeniedError
    from holdfast.namespace.permissions import READ, WRITE

    if not any((exists, is_file, is_directory, has_content, is_empty, readable, writable)):
        raise click.UsageError("nothing is asked: give -e, -f, -d, -s, -z, -r or -w")
    spot = find_spot(session, url)
    status = spot.find()
    answer = status is not None
    if status is not None:
        answer = not (
            (is_file and status.is_directory)
            or (is_directory and not status.is_directory)
            or (is_empty and (status.is_directory or status.size > 0))
        )
        if has_content and status.is_directory:
            answer = answer and bool(spot.namespace.list_page(spot.path, limit=1).entries)
        elif has_content:
            answer = answer and status.size > 0
        try:
            spot.namespace.check_access(spot.path, (READ if readable else 0) | (WRITE if writable else 0))
        except PermissionDeniedError:
            answer = False
    out.document({"url": spot.url, "answer": answer})
    if not answer:
        raise click.exceptions.Exit(PROBLEM)
