"""`cat`, `head` and `get -`: the bytes of files, as they are."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from holdfast.cli.fs import places
from holdfast.namespace import Namespace
from tests.patience import PATIENCE_S
from tests.unit.cli.fs.trees import fill, run_fs

BINARY = bytes(range(256)) * 4


@pytest.fixture(autouse=True)
def files(ns: Namespace) -> None:
    """A binary file, two text files, an empty one and a directory."""
    ns.write_file("/binary", BINARY)
    ns.write_file("/one.txt", b"1\n2\n3\n")
    ns.write_file("/two.txt", b"a\nb")
    ns.write_file("/empty", b"")
    fill(ns, "/d/")


@pytest.mark.parametrize("command", [["cat"], ["head", "-c", "1M"]])
def test_bytes_are_printed_as_they_are(command: list[str]) -> None:
    assert run_fs(*command, ":/binary").stdout_bytes == BINARY
    assert run_fs(*command, "--glob", ":/*.txt", ":/empty").stdout_bytes == b"1\n2\n3\na\nb"


def test_large_files_are_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "PIECE_BYTES", 100)
    assert run_fs("cat", ":/binary").stdout_bytes == BINARY
    assert run_fs("get", ":/binary", ":/one.txt", "-").stdout_bytes == BINARY + b"1\n2\n3\n"


@pytest.mark.parametrize(
    ("options", "printed"),
    [
        ([], b"1\n2\n3\na\nb"),
        (["-n", "2"], b"1\n2\na\nb"),
        (["-n", "1"], b"1\na\n"),
        (["-n", "0"], b""),
        (["-c", "3"], b"1\n2a\nb"),
        (["-c", "0"], b""),
    ],
)
def test_head(options: list[str], printed: bytes) -> None:
    assert run_fs("head", *options, "--glob", ":/*.txt").stdout_bytes == printed


def test_a_directory_is_reported_and_files_are_printed() -> None:
    for command in (["cat"], ["head"]):
        result = run_fs(*command, ":/d", ":/one.txt")
        assert (result.exit_code, result.stdout_bytes) == (1, b"1\n2\n3\n")
        assert "the path is a directory: list it instead" in result.stderr


def test_nothing_is_printed_if_a_file_does_not_exist() -> None:
    result = run_fs("cat", ":/one.txt", ":/none")
    assert (result.exit_code, result.stdout_bytes) == (2, b"")


def test_bytes_and_a_document_do_not_mix() -> None:
    result = run_fs("get", ":/one.txt", "-", "--json")
    assert (result.exit_code, json.loads(result.stdout)["kind"]) == (2, "InvalidRequestError")
    assert "No such option '--json'" in run_fs("cat", "--json", ":/one.txt").stderr


def test_a_missing_blob_is_damage(ns: Namespace) -> None:
    (blob,) = ns.blobs.store.list_page(ns.blobs.key("")).objects
    ns.blobs.store.delete(blob.key)
    result = run_fs("cat", ":/binary")
    assert (result.exit_code, result.stdout_bytes) == (1, b"")
    assert "a blob of the file is missing: open the file again" in result.stderr


def test_a_reader_that_closes_the_pipe_ends_the_command(ns: Namespace, tmp_path: object) -> None:
    """`holdfast fs cat … | head -c 1`, in processes, so on SQLite."""
    program = (
        "import sys\n"
        "from holdfast.namespace import Configuration, init_namespace, open_namespace\n"
        "from holdfast.cli import main\n"
        f"place = {str(tmp_path)!r}\n"
        "init_namespace(Configuration(name='p', data=place + '/data', superuser='root'), f'sqlite://{place}/p.db')\n"
        "with open_namespace('holdfast://p', user='root') as ns:\n"
        "    ns.write_file('/f', bytes(10_000_000))\n"
        "sys.argv[1:] = ['fs', 'cat', 'holdfast://p/f']\n"
        "main()\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.read(1) == b"\0"
    process.stdout.close()
    process.stdout = None
    _, said = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, said) == (0, b"")
