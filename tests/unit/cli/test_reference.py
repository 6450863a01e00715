"""The reference of the command line knows every command of the groups, and every option of theirs."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from holdfast.cli.app import cli
from holdfast.cli.database.group import database
from holdfast.cli.fs.group import fs
from holdfast.cli.namespace.group import namespace
from holdfast.stores.registry import BUILT_IN
from holdfast_checker.cli.options import NAMESPACE, TRANSACTIONS, UNITS

_TEXT = (Path(__file__).parents[3] / "docs/reference/cli.md").read_text("utf-8")


def test_every_command_is_in_the_table_at_the_top() -> None:
    """Of the groups `fs` and `database`, some: the table of their section has all, as the next test checks."""
    table = set(re.findall(r"`(?:holdfast )?([a-z0-9 -]+?)(?: \[?[A-Z].*?)?`", _TEXT.split("\n## ")[0]))
    context = click.Context(cli)
    commands = {f"check {name}" for name in (TRANSACTIONS, NAMESPACE, UNITS)}
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        below = command.list_commands(context) if isinstance(command, click.Group) else []
        commands.update([f"{name} {one}" for one in below if name not in ("fs", "database")] or [name])
    assert {*(one for one in commands if one not in ("fs", "database"))} - table == set()


@pytest.mark.parametrize("group", [fs, namespace, database])
def test_every_command_of_a_group_is_in_the_reference(group: click.Group) -> None:
    section = _TEXT.split(f"\n## {group.name}\n")[1].split("\n## ")[0]
    known = set(re.findall(r"`(\w+) [A-Z]|`(list)`|`(quota) set", section))
    assert {"".join(one) for one in known} == set(group.list_commands(click.Context(group)))


@pytest.mark.parametrize("group", [namespace, database])
def test_every_option_of_a_command_is_in_the_reference(group: click.Group) -> None:
    section = _TEXT.split(f"\n## {group.name}\n")[1].split("\n## ")[0]
    everywhere = {
        "--json",
        "--debug",
        "--user",
        "--database-option",
        *(one.flag for provider in BUILT_IN for one in provider.flags),
    }
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        options = [
            one.opts for one in command.params if isinstance(one, click.Option) and not everywhere & set(one.opts)
        ]
        assert [names for names in options if not any(f"`{name}" in section for name in names)] == [], name
