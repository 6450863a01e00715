"""Run ``holdfast fs chown``: change owner and group."""

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
  holdfast fs chown ann holdfast://prod/user/ann
  holdfast fs chown -R ann:staff holdfast://prod/user/ann
  holdfast fs chown :staff holdfast://prod/data

Only the superuser may change the owner; an owner may change the group to another one of the owner's own."""


@fs_command("chown", epilog=_EPILOG)
@click.argument("owner", metavar="OWNER[:GROUP]")
@with_urls
@click.option("-R", "--recursive", is_flag=True, help="Change everything below too.")
@on_namespaces
def chown(owner: str, urls: tuple[str, ...], glob: bool, recursive: bool, session: Session, out: Output) -> None:
    """Give files and directories to another owner or group."""
    from holdfast.cli.fs.changing import change_all
    from holdfast.cli.fs.items import find_items

    user, colon, group = owner.partition(":")
    if not (user or group) or (colon and not group):
        raise click.UsageError("write OWNER, OWNER:GROUP or :GROUP")

    def apply(item: Item) -> None:
        item.namespace.set_owner(item.status.path, user or None, group or None)

    change_all(find_items(session, urls, glob=glob), apply, recursive=recursive, out=out)
