"""Check that every `holdfast …` command in the documents exists and has the options that are used."""

from __future__ import annotations

import re
import shlex

import click
import pytest

from holdfast.cli.app import cli
from tests.tidy.source_tree import text_files

_SPAN = re.compile(r"(?<![\w./-])holdfast ((?:[a-z][a-z0-9]*(?:-[a-z]+)*|--version)(?: [^`\n|#]*)?)")
_CODE = re.compile(r"^ *```(\S*)\n(.*?)^ *```|`([^`\n]+)`", re.DOTALL | re.MULTILINE)
_SHELL = ("", "bash", "console", "sh", "text")

_COMMANDS = sorted(
    {
        found.strip()
        for name, text in text_files()
        if name.endswith(".md") and not name.startswith("docs/decisions/")
        for block in _CODE.finditer(text)
        for found in _SPAN.findall(block[3] or (block[2] if block[1] in _SHELL else ""))
    }
)


def test_documents_name_commands() -> None:
    assert any(command.startswith("recover") for command in _COMMANDS)


@pytest.mark.parametrize("line", _COMMANDS)
def test_it_exists(line: str) -> None:
    words = shlex.split(line.replace("…", ""))
    command: click.Command = cli
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        context, name = click.Context(command), words.pop(0)
        found = command.get_command(context, name) if name in command.list_commands(context) else None
        assert found is not None, f"holdfast {line}"
        command = found
    with click.Context(command) as context:
        options = {option for parameter in command.get_params(context) for option in parameter.opts}
    assert {word.partition("=")[0] for word in words if word.startswith("--")} <= options
