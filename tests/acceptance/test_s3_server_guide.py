"""Start `holdfast s3-server` as the guide says, use it from another shell, and end it with Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.guides import assert_shown, blocks
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.acceptance, pytest.mark.s3]

PAGE = "how-to/connect-to-s3.md"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "temporary").mkdir()
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "TMPDIR": str(tmp_path / "temporary"),
        "AWS_PROFILE": "of somebody else",
    }


def _start(environment: dict[str, str], *options: str, cwd: Path | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "holdfast.cli", "s3-server", *options],
        env=environment,
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_server_of_the_page_serves_until_ctrl_c(tmp_path: Path, environment: dict[str, str]) -> None:
    start, printed, use, shown = blocks(PAGE)[:4]
    assert start.splitlines()[-1] == "holdfast s3-server"
    with _start(environment) as server:
        assert server.stdout is not None
        lines = "".join(server.stdout.readline() for _ in printed.splitlines())
        assert_shown(printed, lines)
        other = subprocess.run(
            ["bash", "-e", "-c", lines + use], env=environment, capture_output=True, text=True, timeout=PATIENCE_S
        )
        assert other.returncode == 0, other.stderr
        assert_shown(shown, other.stdout)
        server.send_signal(signal.SIGINT)
        _, notes = server.communicate(timeout=PATIENCE_S)
    assert (server.returncode, "Traceback" in notes) == (130, False)
    assert list((tmp_path / "temporary").iterdir()) == []  # the end of the test run checks for processes


@pytest.mark.slow
def test_a_directory_keeps_the_data_for_the_next_start(tmp_path: Path, environment: dict[str, str]) -> None:
    """As in the example of ``--help``, whose path begins at the directory of the shell."""
    for call in ("s3.put_object(Bucket='bucket', Key='a', Body=b'kept')", "s3.get_object(Bucket='bucket', Key='a')"):
        with _start(environment, "--directory", "./s3", cwd=tmp_path) as server:
            assert server.stdout is not None
            lines = "".join(server.stdout.readline() for _ in range(5))
            use = f"{lines}\n{sys.executable} -c \"import boto3; s3 = boto3.client('s3'); {call}\""
            other = subprocess.run(["bash", "-c", use], env=environment, stderr=subprocess.PIPE, timeout=PATIENCE_S)
            server.send_signal(signal.SIGTERM)
            _, notes = server.communicate(timeout=PATIENCE_S)
        assert (server.returncode, other.returncode) == (143, 0), (notes, other.stderr)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--bucket", "a_b"], "this cannot be the name of a bucket: use 3 to 63"),
        (["--directory", "/proc/nowhere"], "cannot be kept in this directory: choose another"),
    ],
)
def test_what_it_refuses(environment: dict[str, str], options: list[str], sentence: str) -> None:
    with _start(environment, *options) as server:
        _, notes = server.communicate(timeout=PATIENCE_S)
    assert (server.returncode, len(notes.splitlines())) == (2, 1)
    assert sentence in notes
