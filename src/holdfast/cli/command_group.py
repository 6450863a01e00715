"""Provide groups of commands that import a command's module only when the command is looked up.

So ``--help`` is fast, and works without packages that only one command needs.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click

from holdfast.wording import nearest

__all__ = ["CommandGroup"]


class CommandGroup(click.Group):
    """A group of commands that suggests the nearest command for a wrong one.

    Args:
        table: the commands in order of use, each with its module in `holdfast.cli` and its line in ``--help``. The
            module has the command under its name, with ``_`` for ``-``, or under another one: ``module:name``.
        settings: what `click.Group` takes.
    """

    def __init__(self, *, table: Mapping[str, tuple[str, str]], **settings: Any) -> None:
        super().__init__(**settings)
        self._table = table

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = super().get_command(ctx, cmd_name)
        if cmd_name in self._table:
            module, _, attribute = self._table[cmd_name][0].partition(":")
            found = getattr(importlib.import_module(f"holdfast.cli.{module}"), attribute or cmd_name.replace("-", "_"))
        elif found is None and not cmd_name.startswith("-"):
            ctx.fail(f"no such command '{cmd_name}': {nearest(cmd_name, self._table)}")
        return found

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._table)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_module, line) in self._table.items()])
