"""`ls` and `find`: order, forms, and what they do with paths that cannot be listed."""

from __future__ import annotations

import pytest

from holdfast.namespace import Namespace
from tests.unit.cli.destinations import on_screen
from tests.unit.cli.fs.trees import fill, lines, run_fs


@pytest.fixture(autouse=True)
def files(ns: Namespace) -> None:
    """A few directories and files."""
    fill(ns, "/data/b.csv", "/data/a.csv", "/data/sub/deep/x.csv", "/data/empty/", "/top.txt")
    ns.set_times("/data/b.csv", mtime_ms=1_000_000_000_000)


# --- ls ---------------------------------------------------------------------------------------------------------------
def test_names_are_sorted_and_directories_end_in_a_slash() -> None:
    result = run_fs("ls", ":/data")
    assert (result.exit_code, result.stdout) == (0, "a.csv\nb.csv\nempty/\nsub/\n")


def test_a_url_without_a_path_is_the_root() -> None:
    assert run_fs("ls", "holdfast://ns").stdout == run_fs("ls", ":///").stdout == "data/\ntop.txt\n"


def test_long_rows(ns: Namespace) -> None:
    ns.set_owner("/data/b.csv", "ann", "staff")
    ns.set_permission("/data/b.csv", 0o640)
    rows = run_fs("ls", "-l", ":/data").stdout.splitlines()
    assert rows[0].split() == ["mode", "owner", "group", "size", "modified", "(UTC)", "name"]
    assert rows[2].split() == ["-rw-r-----", "ann", "staff", "11", "2001-09-09", "01:46", "b.csv"]
    assert rows[3].split()[:2] == ["drwxr-xr-x", "root"]
    assert "11 B  2001-09-09" in run_fs("ls", "-l", "-h", ":/data").stdout


def test_files_come_first_and_directories_have_titles() -> None:
    result = run_fs("ls", ":/data/sub", ":/top.txt", ":/data/empty")
    assert result.stdout == ("holdfast://ns/top.txt\n\nholdfast://ns/data/sub:\ndeep/\n\nholdfast://ns/data/empty:\n")


def test_directories_themselves() -> None:
    assert run_fs("ls", "-d", ":/data", ":/").stdout == "holdfast://ns/data/\nholdfast://ns/\n"


def test_recursion_shows_everything_once_with_its_url() -> None:
    below = ("a.csv", "b.csv", "empty/", "sub/", "sub/deep/", "sub/deep/x.csv")
    assert run_fs("ls", "-R", ":/data").stdout.splitlines() == [f"holdfast://ns/data/{one}" for one in below]


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (["-t"], ["a.csv", "b.csv"]),
        (["-t", "-r"], ["b.csv", "a.csv"]),
        (["-S"], ["b.csv", "a.csv"]),
        (["-r"], ["b.csv", "a.csv"]),
    ],
)
def test_orders(ns: Namespace, options: list[str], names: list[str]) -> None:
    ns.write_file("/data/b.csv", b"longer than a", overwrite=True)
    ns.set_times("/data/b.csv", mtime_ms=1_000_000_000_000)
    assert [one for one in run_fs("ls", *options, ":/data").stdout.split() if one.endswith("csv")] == names


def test_every_entry_is_a_line_of_json() -> None:
    found = lines(run_fs("ls", "-R", "--json", ":/data"))
    assert [one["path"] for one in found] == [
        *("/data/a.csv", "/data/b.csv", "/data/empty", "/data/sub", "/data/sub/deep", "/data/sub/deep/x.csv")
    ]
    assert found[1] == {
        "url": "holdfast://ns/data/b.csv",
        "path": "/data/b.csv",
        "type": "file",
        "size": 11,
        "mode": "0644",
        "permissions": "-rw-r--r--",
        "owner": "root",
        "group": "supergroup",
        "modified": "2001-09-09 01:46:40Z",
        "modified_ms": 1_000_000_000_000,
        "accessed_ms": found[1]["accessed_ms"],
        "replication": 1,
        "block_size": 128 * 1024 * 1024,
        "id": found[1]["id"],
        "being_written": False,
    }


def test_what_exists_is_listed_even_if_another_path_does_not() -> None:
    result = run_fs("ls", ":/nothing", ":/top.txt")
    assert (result.exit_code, result.stdout) == (1, "holdfast://ns/top.txt\n")
    assert result.stderr == "error: the path does not exist: check it path='/nothing'\n"
    found = lines(run_fs("ls", "--json", ":/nothing", ":/top.txt"))
    assert [one.get("kind") for one in found] == ["PathNotFoundError", None]


def test_debug_shows_the_tracebacks_of_problems() -> None:
    result = run_fs("ls", ":/nothing", ":/top.txt", "--debug")
    assert (result.exit_code, "Traceback" in result.stderr) == (1, True)


def test_a_directory_without_rights_is_reported_and_the_others_are_listed(ns: Namespace) -> None:
    fill(ns, "/data/locked/secret.csv")
    ns.set_permission("/data/locked", 0o700)
    result = run_fs("ls", "-R", "--user", "bob", ":/data")
    assert result.exit_code == 1
    assert "secret" not in result.stdout and "x.csv" in result.stdout
    assert "permission denied" in result.stderr and "path='/data/locked'" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([":/nothing"], "the path does not exist"),
        ([":/top.txt/x"], "the path does not exist"),
        ([":/top.txt/"], "the url ends in a slash, and is a file"),
        (["/data"], "write holdfast://name/path"),
        (["ns:/data"], "write holdfast://name/path"),
        (["holdfast:///data"], "write holdfast://name/path"),
        (["holdfast://nsx/data"], "no such namespace: did you mean ns"),
        ([":/a/../b"], "must not contain '..'"),
        (["--glob", ":/none*"], "nothing matches the pattern"),
        (["--glob", ":/{a"], "a { in the pattern is not closed"),
        (["-t", "-S", ":/"], "leave one out"),
        (["-d", "-R", ":/"], "leave one out"),
    ],
)
def test_wrong_requests_exit_2_with_a_sentence(arguments: list[str], sentence: str) -> None:
    result = run_fs("ls", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr


def test_a_heading_is_cut_between_its_words() -> None:
    """Defect: the heading said "directori" and, on the next line, "es"."""
    shown = on_screen("fs", "du", "-h", "holdfast://ns/data", columns=48)
    assert {"directories", "files", "space"} <= set(shown.split())
    assert max(map(len, shown.splitlines())) <= 48


# --- find -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "paths"),
    [
        ([":/data"], ["/data", "/data/a.csv", "/data/b.csv", "/data/empty", "/data/sub", "/data/sub/deep"]),
        ([":/data", "-name", "*.csv"], ["/data/a.csv", "/data/b.csv", "/data/sub/deep/x.csv"]),
        ([":/data", "-name", "a*", "-name", "x*"], ["/data/a.csv", "/data/sub/deep/x.csv"]),
        ([":/", "-type", "d", "-name", "[!/]*"], ["/data", "/data/empty", "/data/sub", "/data/sub/deep"]),
        ([":/", "-type", "f", "-maxdepth", "1"], ["/top.txt"]),
        ([":/data", "-maxdepth", "0"], ["/data"]),
        ([":/data", "-size", "+11"], ["/data/sub/deep/x.csv"]),
        ([":/", "-size", "-11"], ["/top.txt"]),
        ([":/data", "-size", "11"], ["/data/a.csv", "/data/b.csv"]),
        ([":/data", "-type", "f", "-newer", "2001-09-09T01:46:40Z"], ["/data/a.csv", "/data/sub/deep/x.csv"]),
        (["--glob", ":/data/*.csv", ":/top.txt"], ["/data/a.csv", "/data/b.csv", "/top.txt"]),
    ],
)
def test_find(arguments: list[str], paths: list[str]) -> None:
    result = run_fs("find", *arguments)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[: len(paths)] == [f"holdfast://ns{path}" for path in paths]
    if arguments != [":/data"]:
        assert len(result.stdout.splitlines()) == len(paths)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["-size", "large"], "is not a size"),
        (["-newer", "yesterday"], "is not a time: write 2013-01-31"),
        (["-type", "l"], "use one of d, f"),
        (["-name", "{a"], "is not closed"),
    ],
)
def test_wrong_conditions(arguments: list[str], sentence: str) -> None:
    result = run_fs("find", ":/", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr
