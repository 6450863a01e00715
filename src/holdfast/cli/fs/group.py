"""Define the command group ``holdfast fs``."""

from __future__ import annotations

from collections.abc import Mapping

import click

from holdfast.cli.command_group import CommandGroup

_COMMANDS: Mapping[str, tuple[str, str]] = {
    "ls": ("fs.ls", "List directories."),
    "tree": ("fs.tree", "Draw the tree below a directory."),
    "find": ("fs.find", "Find files and directories by name, type, size or time."),
    "stat": ("fs.stat", "Show everything about files and directories."),
    "test": ("fs.test", "Check a path, for scripts: the answer is the exit code."),
    "mkdir": ("fs.mkdir", "Make directories."),
    "put": ("fs.put", "Copy local files into the namespace."),
    "get": ("fs.get", "Copy files to this machine."),
    "cp": ("fs.cp", "Copy within namespaces, and to and from other stores."),
    "cat": ("fs.contents", "Print files."),
    "head": ("fs.contents", "Print the beginning of files."),
    "mv": ("fs.mv", "Rename or move files and directories, in one step each."),
    "rm": ("fs.rm", "Remove files and directories, however large."),
    "touch": ("fs.touch", "Set times, or create empty files."),
    "chmod": ("fs.chmod", "Change permissions."),
    "chown": ("fs.chown", "Change owner and group."),
    "du": ("fs.du", "Show how much space trees take."),
    "count": ("fs.du", "Count directories, files and bytes, and show quotas."),
    "quota": ("fs.quota", "Limit the names and the bytes in a directory."),
    "setfattr": ("fs.attributes", "Set or remove an extended attribute."),
    "getfattr": ("fs.attributes", "Show extended attributes."),
}
"""The commands in order of use; see `CommandGroup`."""

_EPILOG = """\b
Examples:
  holdfast fs ls -l holdfast://prod/data
  holdfast fs put ./flights holdfast://prod/data
  holdfast fs mv holdfast://prod/data holdfast://prod/archive
  holdfast fs rm -r --trash --glob 'holdfast://prod/archive/2013-*'

A path is holdfast://NAME/path, where holdfast namespace init has created NAME. Every character of a path is literal.
With --glob, paths are patterns: *, ?, [a-c], [!a], {a,b}, and ** for any number of directories. Put them in quotes, so
that the shell does not expand them. Options, such as --user, follow the command: holdfast fs ls --user ann URL."""


@click.group(cls=CommandGroup, table=_COMMANDS, epilog=_EPILOG)
def fs() -> None:
    """Work with the files of a namespace, as with hadoop fs."""
