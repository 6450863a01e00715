"""Define the command group ``holdfast namespace``."""

from __future__ import annotations

from collections.abc import Mapping

import click

from holdfast.cli.command_group import CommandGroup

_COMMANDS: Mapping[str, tuple[str, str]] = {
    "init": ("namespace.init", "Create a namespace in a database."),
    "list": ("namespace.listing:list_namespaces", "List the namespaces that this user knows."),
    "status": ("namespace.status", "Show a namespace's configuration and its pending work."),
    "set": ("namespace.set:change", "Change the configuration of a namespace."),
    "du": ("namespace.du", "Show what is in each directory of the root, and its quotas."),
    "fsck": ("namespace.fsck", "Prove that a namespace is whole, or show what is wrong."),
    "gc": ("namespace.gc", "Remove what was deleted, and end the leases of dead writers."),
}
"""The commands in order of use; see `CommandGroup`."""

_EPILOG = """\b
Examples:
  holdfast namespace init prod --database sqlite:///var/lib/prod.db \\
      --data s3://bucket/prod
  holdfast namespace status prod
  holdfast namespace gc prod --every 3600"""


@click.group(cls=CommandGroup, table=_COMMANDS, epilog=_EPILOG)
def namespace() -> None:
    """Create, inspect and clean up namespaces: trees of directories and files, as in HDFS, over any object store."""
