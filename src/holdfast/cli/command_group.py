"""Provide groups of commands that import a command's module only when the command is looked up.

So ``--help`` is fast, and works without packages that only one command needs.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import click

from holdfast.wording import nearest

ENTRY_POINT_GROUP = "holdfast.commands"


class CommandGroup(click.Group):
    """A group of commands that suggests the nearest command for a wrong one.

    Args:
        table: the commands in order of use, each with its module in `holdfast.cli` and its line in ``--help``. The
            module has the command under its name, with ``_`` for ``-``, or under another one: ``module:name``.
        extensible: also find commands that other packages register as entry points of `ENTRY_POINT_GROUP`.
        settings: what `click.Group` takes.
    """

    def __init__(self, *, table: Mapping[str, tuple[str, str]], extensible: bool = False, **settings: Any) -> None:
        super().__init__(**settings)
        self._table = table
        self._extensible = extensible

    def _others(self) -> dict[str, EntryPoint]:
        """Return the commands of other packages, by name."""
        return {entry.name: entry for entry in entry_points(group=ENTRY_POINT_GROUP)} if self._extensible else {}

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found: click.Command | None
        others: dict[str, EntryPoint] = {}
        if cmd_name in self._table:
            module, _, attribute = self._table[cmd_name][0].partition(":")
            found = getattr(importlib.import_module(f"holdfast.cli.{module}"), attribute or cmd_name.replace("-", "_"))
        elif cmd_name in (others := self._others()):
            found = others[cmd_name].load()
        else:
            found = super().get_command(ctx, cmd_name)
        if found is None and not cmd_name.startswith("-"):
            ctx.fail(f"no such command '{cmd_name}': {nearest(cmd_name, [*self._table, *others])}")
        return found

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self._table, *self._others()]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        lines = [(name, line) for name, (_module, line) in self._table.items()]
        lines += [(name, entry.load().get_short_help_str(100)) for name, entry in self._others().items()]
        with formatter.section("Commands"):
            formatter.write_dl(lines)
