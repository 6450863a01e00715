"""All commands: help, usage errors, exit codes and light imports."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pyarrow as pa
import pyarrow.parquet
import pytest

from holdfast import __version__, errors
from holdfast.cli.app import cli
from holdfast.cli.arguments import parse_age, parse_byte_count
from holdfast.cli.failures import as_holdfast_error, exit_code
from holdfast.cli.output import duration_text, size_text, time_text
from holdfast.errors import HoldfastError
from holdfast.wording import format_count
from tests.patience import PATIENCE_S
from tests.unit.cli.destinations import commit_table, run


def _commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None and command.name == name
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from _commands(command, (*path, name))


_COMMANDS = dict(_commands(cli))
_GROUPS = {path: command for path, command in _COMMANDS.items() if isinstance(command, click.Group)}


@pytest.mark.parametrize("path", _COMMANDS, ids=" ".join)
def test_help_has_examples_that_fit_a_terminal(path: tuple[str, ...]) -> None:
    result = run(*path, "--help")
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= 80
    if path not in _GROUPS:
        assert f"holdfast {' '.join(path)}" in result.stdout.split("Examples:")[1]
        assert ("--json" in result.stdout) == (path != ("fs", "cat"))


@pytest.mark.parametrize("path", [(), *_GROUPS], ids=" ".join)
def test_the_help_of_a_group_has_a_line_for_each_command(path: tuple[str, ...]) -> None:
    listing = run(*path, "--help").stdout
    names = {one[-1] for one in _COMMANDS if one[:-1] == path}
    assert names == {name for name in names if re.search(rf"^  {name} +[A-Z].+\.$", listing, re.MULTILINE)}


def test_the_help_fits_a_screen_and_starts_with_what_most_people_do() -> None:
    lines = run("--help").stdout.splitlines()
    assert len(lines) <= 40 and max(map(len, lines)) <= 80
    assert [line.split()[1] for line in lines if line.startswith("    holdfast ")] == ["demo", "write", "read"]


def test_version() -> None:
    assert run("--version").stdout == f"holdfast {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["hisory", "x"], "did you mean history"),
        (["fs", "rename", "a", "b"], "no such command 'rename': use one of"),
        (["xyzzy"], "use one of the 15 known names"),
        (["verify"], "Missing argument 'URL'"),
        (["verify", "x", "--jsno"], "--json"),
        (["recover", "x", "--older-then", "1h"], "--older-than"),
        (["write", "a.csv", "b", "--mode", "overwrit"], "did you mean overwrite"),
    ],
)
def test_wrong_usage_exits_2_and_offers_the_nearest(arguments: list[str], sentence: str) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")
    assert sentence in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["verify"],
        ["verify", "x", "--bogus"],
        ["hisory", "x"],
        ["read", "x", "-n", "-1"],
        ["write", "a.csv", "b", "--mode", "overwrit"],
        ["write", "a.csv", "b", "--format", "parket"],
        ["uploads", "lst"],
        ["check"],
        ["committers", "--why", "magik"],
        ["recover", "x", "--older-than", "soon"],
    ],
)
def test_wrong_usage_is_a_document_for_programs(arguments: list[str]) -> None:
    result = run(*arguments, "--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["kind"]) == (2, "InvalidRequestError")
    assert f"error: {document['error']}\n" in result.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_command_ends_with_one_document(number: int, code: int) -> None:
    """A command that receives a signal while it waits."""
    program = (
        "import os, signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a background job of a shell ignores SIGINT
        "from holdfast.cli.app import cli, main\n"
        "from holdfast.cli.command import command\n"
        "def wait(run):\n"
        f"    os.kill(os.getpid(), {int(number)})\n"
        "    signal.pause()\n"
        "cli.add_command(command()(wait))\n"
        "main()"
    )
    for arguments in (["wait", "--json"], ["wait"]):
        command = [sys.executable, "-c", program, *arguments]
        found = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert (found.returncode, "Traceback" in found.stderr) == (code, False)
        if "--json" in arguments:
            assert json.loads(found.stdout)["kind"] == "Interrupted"
        else:
            assert found.stdout == ""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_whose_exception_python_ignores_still_ends_the_command(number: int, code: int) -> None:
    """As in a finalizer, or in a callback at the end of an import."""
    program = (
        "import os, signal, weakref\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from holdfast.cli.app import cli, main\n"
        "from holdfast.cli.command import command\n"
        "class Anything: pass\n"
        "def wait(run):\n"
        "    anything = Anything()\n"
        "    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])  # not before the line below\n"
        f"    reference = weakref.ref(anything, lambda _: os.kill(os.getpid(), {int(number)}))\n"
        "    del anything\n"
        "    print('goes on', flush=True)\n"
        "    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])\n"
        "    signal.pause()\n"
        "cli.add_command(command()(wait))\n"
        "main()"
    )
    found = subprocess.run(
        [sys.executable, "-c", program, "wait"], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (found.returncode, found.stdout, "Exception ignored" in found.stderr) == (code, "goes on\n", False)


def test_an_interrupt_that_python_wraps_is_still_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.11 does so if Ctrl-C comes while a class is made, as imports do."""

    def interrupted(name: str) -> None:
        raise RuntimeError("Error calling __set_name__ on 'Field' instance") from KeyboardInterrupt()

    monkeypatch.setattr("holdfast.commit.get_committer", interrupted)
    result = run("committers", "--why", "magic", "--json")
    assert (result.exit_code, result.stderr) == (130, "interrupted\n")
    assert json.loads(result.stdout)["kind"] == "Interrupted"


def test_help_needs_nothing_heavy() -> None:
    program = (
        "import sys\nimport holdfast.cli\n"
        "print(*sorted({'boto3', 'pandas', 'pyarrow', 'pyspark', 'rich'} & set(sys.modules)))"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    assert found.stdout.strip() == ""


# --- exit codes -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("InvalidRequestError", 2),
        ("NotFoundError", 2),
        ("AccessDeniedError", 2),
        ("UnsupportedError", 2),
        ("ConflictError", 1),
        ("DestinationExistsError", 1),
        ("FencedError", 1),
        ("CorruptDataError", 1),
        ("UnavailableError", 3),
        ("StorageFullError", 3),
        ("OutcomeUnknownError", 3),
    ],
)
def test_errors_have_their_exit_codes(name: str, code: int) -> None:
    error = getattr(errors, name)("sentence")
    assert exit_code(error) == code


def test_a_missing_extra_names_the_command_that_installs_it() -> None:
    found = as_holdfast_error(ModuleNotFoundError("No module named 'pyspark'", name="pyspark.sql"))
    assert isinstance(found, HoldfastError)
    assert "pip install 'holdfast[spark]'" in str(found)
    assert as_holdfast_error(ModuleNotFoundError("", name="nonsense")) is None
    assert as_holdfast_error(RuntimeError("a bug keeps its traceback")) is None


def test_write_without_pyspark(tmp_path: Path) -> None:
    """Without the extra, everything except write works, and write names the package to install."""
    program = (
        "import sys\nsys.modules['pyspark'] = None\nsys.modules['pyspark.sql'] = None\n"
        "from holdfast.cli import main\nmain()"
    )
    commit_table(str(tmp_path / "t"))
    (tmp_path / "a.csv").write_text("a\n1\n")
    for arguments, code in ((["read", "t"], 0), (["verify", "t"], 0), (["write", "a.csv", "u"], 2)):
        command = [sys.executable, "-c", program, *arguments]
        found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert (found.returncode, "Traceback" in found.stderr) == (code, False), found.stderr
    assert "pip install 'holdfast[spark]'" in found.stderr


def test_it_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "holdfast", "read"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert found.returncode == 2
    assert "URL" in found.stderr and "Traceback" not in found.stderr


@pytest.mark.slow
def test_an_unreachable_endpoint_exits_3(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key-id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "very-secret")
    result = run("verify", "s3://bucket/t", "--endpoint-url", "http://127.0.0.1:9", "--region", "us-east-1", "--json")
    assert result.exit_code == 3
    assert json.loads(result.stdout)["kind"] == "UnavailableError"
    assert "cannot be reached" in result.stderr
    assert "very-secret" not in result.output


def test_missing_credentials_exit_2() -> None:
    result = run("verify", "s3://bucket/t", "--endpoint-url", "http://127.0.0.1:9", "--region", "us-east-1")
    assert result.exit_code == 2
    assert "credentials" in result.stderr


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    """`holdfast history … | head`."""
    commit_table(str(tmp_path / "t"))
    for command in (["history", "t"], ["read", "t", "--json"]):
        process = subprocess.Popen(
            [sys.executable, "-m", "holdfast.cli", *command],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        _, said = process.communicate(timeout=PATIENCE_S)
        assert said == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_stdout_that_cannot_be_written_is_reported_in_one_sentence(tmp_path: Path) -> None:
    commit_table(str(tmp_path))
    command = [sys.executable, "-m", "holdfast.cli", "read", str(tmp_path)]
    for more in ([], ["--json"]):
        with open("/dev/full", "w") as full:
            found = subprocess.run([*command, *more], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        assert (found.returncode, found.stderr) == (1, "error: stdout cannot be written: No space left on device\n")
    closed = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *command], capture_output=True, text=True, check=False)
    assert (closed.returncode, closed.stderr) == (
        1,
        "error: stdout is closed: open it, or send the output to /dev/null\n",
    )


def test_characters_that_the_locale_lacks_are_escaped(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pa.table({"a": ["né"], "b": ["東"]}), tmp_path / "x.parquet")
    command = [sys.executable, "-m", "holdfast.cli", "read", str(tmp_path)]
    environ = {**os.environ, "PYTHONIOENCODING": "latin-1", "LC_ALL": "C", "PYTHONUTF8": "0"}
    found = subprocess.run(command, env=environ, capture_output=True, check=True)
    assert found.stdout.decode("latin-1").splitlines()[1].split() == ["né", "\\u6771"]
    found = subprocess.run([*command, "--json"], env=environ, capture_output=True, check=True)
    assert json.loads(found.stdout.decode("ascii"))["rows"] == [{"a": "né", "b": "東"}]


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (
            "[X] Traceback (most recent call last):\nModuleNotFoundError: No module named 'pyarrow.lib'",
            "Spark's workers run a Python without pyarrow: set PYSPARK_PYTHON",
        ),
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12 than that in driver: 3.11, PySpark",
            "another Python version than the driver: set PYSPARK_PYTHON",
        ),
        ('java.io.IOException: Cannot run program "/opt/python3": error=2', "do not find the configured Python"),
        (
            "An error occurred while calling o45.save.\n: org.x.SomeException: the sentence\n\tat a.b",
            "nothing was written: org.x.SomeException: the sentence",
        ),
        (
            "An error occurred.\n\tat a.b\nCaused by: x.Outer: no\n\tat c.d\nCaused by: x.Inner: the cause\n",
            "nothing was written: An error occurred., caused by x.Inner: the cause",
        ),
        (
            "[X] Failed: Traceback (most recent call last):\n  File x\n    y\nValueError: the last line\n SQLSTATE: 1",
            "nothing was written: ValueError: the last line",
        ),
        (
            "x.Y: Number of columns is not equal to number of fields in the schema:\n Header length: 5\n\tat a.b",
            "number of fields in the schema: Header length: 5",
        ),
        (
            'x.UnsupportedFileSystemException: No FileSystem for scheme "s3"\n\tat a.b',
            "hadoop-aws:VERSION pyspark-shell' and write s3a://",
        ),
        (
            "java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found",
            "this Spark cannot read s3a:// urls: copy the input to this machine, or let Spark load the package",
        ),
        ("x.Y: No FileSystem for scheme gs", "this Spark cannot read gs:// urls: copy the input to this machine"),
    ],
)
def test_stack_traces_of_spark_become_one_sentence(said: str, sentence: str) -> None:
    foreign = type("SomeSparkError", (Exception,), {"__module__": "pyspark.errors"})
    found = as_holdfast_error(foreign(said))
    assert sentence in str(found)
    assert "\n" not in str(found)


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    result = run("verify", str(tmp_path / "nothing"), "--debug")
    assert "Traceback" in result.stderr
    assert result.stderr.rstrip().splitlines()[-1].startswith("error: ")


# --- words ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0s", 0), ("90s", 90), ("15m", 900), ("15min", 900), ("1.5h", 5400), ("2D", 172800), ("1w", 604800)],
)
def test_ages(text: str, seconds: float) -> None:
    assert parse_age(text) == seconds


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        *(("0", 0), ("512", 512), ("12b", 12), ("64k", 65536), ("1.5KiB", 1536), ("10M", 10 * 1024**2)),
        *(("2PB", 2 * 1024**5), ("9007199254740993", 9007199254740993)),
    ],
)
def test_sizes(text: str, size_bytes: int) -> None:
    assert parse_byte_count(text) == size_bytes


@pytest.mark.parametrize("text", ["", "M", "-1", "1 x", "1e3", "1,5k"])
def test_no_sizes(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a size: write a number and a unit"):
        parse_byte_count(text)


def test_values_for_a_person() -> None:
    assert [size_text(0), size_text(1023), size_text(1536), size_text(5 * 1024**3), size_text(2 * 1024**5)] == [
        *("0 B", "1023 B", "1.5 KiB", "5.0 GiB", "2048.0 TiB"),
    ]
    assert [duration_text(0), duration_text(59), duration_text(60), duration_text(7200), duration_text(864000)] == [
        "0s",
        "59s",
        "1min",
        "2h",
        "10d",
    ]
    assert [format_count(0, "job"), format_count(1, "job"), format_count(1200, "job")] == [
        "0 jobs",
        "1 job",
        "1,200 jobs",
    ]
    assert [format_count(1, "history", "histories"), format_count(2, "history", "histories")] == [
        "1 history",
        "2 histories",
    ]
    assert time_text(0) == "1970-01-01 00:00:00Z"


def test_an_empty_endpoint_is_refused() -> None:
    result = run("verify", "s3://bucket/t", "--endpoint-url", "")
    assert result.exit_code == 2
    assert "--endpoint-url is empty" in result.stderr


def test_a_missing_ca_bundle_is_reported_for_any_url(tmp_path: Path) -> None:
    for url in (str(tmp_path), "s3://bucket/t"):
        result = run("history", url, "--ca-bundle", str(tmp_path / "none.pem"))
        assert result.exit_code == 2
        assert "the CA bundle cannot be read" in result.stderr


def test_an_unknown_profile_is_named() -> None:
    result = run("verify", "s3://bucket/t", "--profile", "prod")
    assert result.exit_code == 2
    assert "no such profile 'prod'" in result.stderr


def test_no_arguments_print_the_help() -> None:
    for arguments in ([], ["uploads"]):
        result = run(*arguments)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith("Usage: ")
        assert "error" not in result.stderr.splitlines()[-1]


def test_a_command_whose_package_is_not_installed_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.cli.command.entry_points", lambda **_group: ())
    result = run("check", "two_phase")
    assert (result.exit_code, "pip install 'holdfast[checker]'" in result.stderr) == (2, True)
    assert "did you mean read" in run("raed").stderr
