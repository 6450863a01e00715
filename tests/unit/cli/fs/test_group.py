"""All commands of ``holdfast fs``: help, light imports, and names that would harm a terminal."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from holdfast.namespace import Namespace
from tests.patience import PATIENCE_S
from tests.unit.cli.destinations import on_screen, run
from tests.unit.cli.fs.trees import lines, run_fs


@pytest.mark.parametrize("option", ["--user", "--database"])
@pytest.mark.parametrize("command", [["fs", "ls", "holdfast://ns/"], ["namespace", "gc", "ns"]], ids=" ".join)
def test_an_empty_value_never_means_the_default(ns: Namespace, command: list[str], option: str) -> None:
    """An unset shell variable must not turn a user into the superuser."""
    result = run(*command, option, "")
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"'{option}': the value is empty" in result.stderr


def test_the_help_needs_nothing_heavy() -> None:
    """The help of a group imports no command; that of a command imports nothing that it needs to run."""
    program = (
        "import sys\n"
        "from holdfast.cli.app import cli\n"
        "for words in (['fs', '--help'], ['namespace', '--help'], ['fs', 'put', '--help']):\n"
        "    try:\n        cli.main(words)\n    except SystemExit:\n        pass\n"
        "heavy = {'boto3', 'pyarrow', 'rich', 'sqlite3', 'holdfast.namespace', 'holdfast.commit'}\n"
        "print('imported:', *sorted(heavy & set(sys.modules)))\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    assert found.stdout.splitlines()[-1] == "imported:"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["lss"], "did you mean ls"),
        (["ls", ":/", "--recursve"], "--recursive"),
        ([], "Usage: "),
    ],
)
def test_wrong_commands_and_options(ns: Namespace, arguments: list[str], sentence: str) -> None:
    result = run_fs(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr


# --- names ------------------------------------------------------------------------------------------------------------
_EVIL = "a\x1b[2J\nb\u202egpj"
_SAFE = "a\\x1b[2J\\nb\\u202egpj"


@pytest.mark.parametrize(
    "command",
    [
        *(["ls", ":/d"], ["ls", "-l", ":/d"], ["ls", "-R", ":/d"], ["find", ":/d"]),
        *(
            ["stat", "--glob", ":/d/*"],
            ["du", ":/d"],
        ),
        *(
            ["quota", "--glob", ":/d/*"],
            ["touch", "--glob", ":/d/*", "/"],
            ["mv", "--glob", ":/d/*", ":/e"],
            ["rm", "--glob", ":/d/*"],
        ),
        *(
            ["rm", "--trash", "--glob", ":/d/*"],
            ["mkdir", "holdfast://ns/d/" + _EVIL],
            ["cat", "holdfast://ns/" + _EVIL],
        ),
        *(["ls", "holdfast://" + _EVIL], ["get", "--glob", ":/d/*", _EVIL + "/x"], ["put", _EVIL, ":/"]),
        *(["mkdir", "holdfast://ns/x" + _EVIL], ["cp", "--glob", ":/d/*", "holdfast://ns/x" + _EVIL]),
    ],
    ids=str,
)
@pytest.mark.parametrize("as_json", [False, True])
def test_control_characters_never_reach_the_terminal(ns: Namespace, command: list[str], as_json: bool) -> None:
    ns.write_file(f"/d/{_EVIL}", b"")
    result = run_fs(*command, *(["--json"] if as_json else []))
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e]", result.output)
    assert "b\\u202egpj" in result.output or command[0] in ("cat", "touch") or (as_json and command[0] != "ls")
    if not as_json and command[:2] in (["ls", ":/d"], ["find", ":/d"]):
        assert _SAFE in result.output


def test_json_has_the_name_itself(ns: Namespace) -> None:
    ns.write_file(f"/d/{_EVIL}", b"")
    assert [one["path"] for one in lines(run_fs("ls", "--json", ":/d"))] == [f"/d/{_EVIL}"]


def test_names_are_no_markup(ns: Namespace) -> None:
    ns.write_file("/d/[red]x[bold]", b"")
    for command in (["ls"], ["ls", "-l"], ["du"]):
        assert "[red]x[bold]" in on_screen("fs", *command, "holdfast://ns/d", columns=120)
