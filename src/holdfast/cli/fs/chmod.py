"""Run ``holdfast fs chmod``: change permissions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.fs.command import fs_command, with_urls
from holdfast.cli.output import Output
from holdfast.cli.session import Session, on_namespaces

if TYPE_CHECKING:
    from holdfast.cli.fs.items import Item

_EPILOG = """\b
Examples:
  holdfast fs chmod 640 holdfast://prod/data/one.csv
  holdfast fs chmod -R u+rwX,go-w holdfast://prod/data
  holdfast fs chmod +t holdfast://prod/tmp

X gives the right to execute to directories, and to files that somebody may execute already."""


@fs_command("chmod", epilog=_EPILOG, ignore_unknown_options=True)
@click.argument("mode")
@with_urls
@click.option("-R", "--recursive", is_flag=True, help="Change everything below too.")
@on_namespaces
def chmod(mode: str, urls: tuple[str, ...], glob: bool, recursive: bool, session: Session, out: Output) -> None:
    """Change the permissions of files and directories to MODE, or by MODE."""
    from holdfast.cli.fs.changing import change_all
    from holdfast.cli.fs.items import find_items
    from holdfast.cli.fs.modes import parse_mode

    change = parse_mode(mode)

    def apply(item: Item) -> None:
        item.namespace.set_permission(item.status.path, change(item.status.mode, item.status.is_directory))

    change_all(
        find_items(session, urls, glob=glob),
        apply,
        recursive=recursive,
        out=out,
        is_late=lambda status: change(status.mode, True) & _OWNER_LISTS != _OWNER_LISTS,
    )


_OWNER_LISTS = 0o500
