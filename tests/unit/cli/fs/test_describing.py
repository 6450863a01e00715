"""`stat`, `test`, `du` and `quota`."""

from __future__ import annotations

import json

import pytest

from holdfast.namespace import Namespace
from tests.unit.cli.fs.trees import fill, lines, run_fs


@pytest.fixture(autouse=True)
def files(ns: Namespace) -> None:
    """Two directories with files, and an empty file."""
    fill(ns, "/data/a.csv", "/data/sub/bb.csv", "/other/")
    ns.write_file("/empty", b"")
    ns.set_times("/data/a.csv", mtime_ms=1_000_000_000_123, atime_ms=0)


# --- stat -------------------------------------------------------------------------------------------------------------
def test_stat_shows_every_field() -> None:
    shown = [line.split("  ", 1) for line in run_fs("stat", ":/data/a.csv").stdout.splitlines()]
    values = {name: value.strip() for name, value in shown}
    assert values["url"] == "holdfast://ns/data/a.csv"
    assert (values["modified"], values["modified ms"]) == ("2001-09-09 01:46:40Z", "1000000000123")
    assert {"permissions", "owner", "group", "size", "replication", "id", "being written"} <= set(values)


def test_stat_shows_quotas_of_directories_that_have_them(ns: Namespace) -> None:
    assert "names_quota" not in lines(run_fs("stat", "--json", ":/data"))[0]
    ns.set_quota("/data", names=10)
    found = lines(run_fs("stat", "--json", ":/data"))[0]
    assert (found["names_quota"], found["names_used"], found["space_quota"]) == (10, 4, None)


# --- test -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["-e", ":/data"], 0),
        (["-e", ":/none"], 1),
        (["-e", ":/empty/x"], 1),
        (["-f", ":/empty"], 0),
        (["-f", ":/data"], 1),
        (["-d", ":/data"], 0),
        (["-d", ":/empty"], 1),
        (["-d", ":/none"], 1),
        (["-z", ":/empty"], 0),
        (["-z", ":/data/a.csv"], 1),
        (["-z", ":/data"], 1),
        (["-s", ":/data/a.csv"], 0),
        (["-s", ":/empty"], 1),
        (["-s", ":/data"], 0),
        (["-s", ":/other"], 1),
        (["-f", "-s", ":/data/a.csv"], 0),
        (["-e", "holdfast://nowhere/x"], 2),
        ([":/data"], 2),
    ],
)
def test_the_answer_is_the_exit_code(arguments: list[str], code: int) -> None:
    result = run_fs("test", *arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert bool(result.stderr) == (code == 2)


def test_the_answer_as_json() -> None:
    result = run_fs("test", "-e", ":/none", "--json")
    assert (result.exit_code, json.loads(result.stdout)) == (1, {"url": "holdfast://ns/none", "answer": False})


# --- du -----------------------------------------------------------------------------------------------------
def test_du_shows_the_entries_or_the_total(ns: Namespace) -> None:
    ns.set_replication("/data/sub/bb.csv", 3)
    assert [line.split() for line in run_fs("du", ":/data").stdout.splitlines()] == [
        ["directories", "files", "size", "space", "path"],
        ["0", "1", "11", "11", "/data/a.csv"],
        ["1", "1", "16", "48", "/data/sub"],
    ]
    assert run_fs("du", "-s", "-h", ":/data").stdout.splitlines()[1].split() == [
        *("2", "2", "27", "B", "59", "B", "/data"),
    ]
    assert [(one["size"], one["space"]) for one in lines(run_fs("du", "--json", "-s", "--glob", ":/*"))] == [
        *((27, 59), (0, 0), (0, 0)),
    ]


def test_a_path_that_does_not_exist_does_not_hide_the_others() -> None:
    for command in (["du", "-s"], ["stat"]):
        result = run_fs(*command, ":/none", ":/other")
        assert result.exit_code == 1
        assert "path='/none'" in result.stderr


# --- quotas -----------------------------------------------------------------------------------------------------------
def test_quotas_are_set_one_by_one_shown_and_removed(ns: Namespace) -> None:
    shown = run_fs("quota", "--names", "10", ":/data").stdout.splitlines()
    assert [line.split() for line in shown[1:]] == [["10", "4", "-", "-", "/data"]]
    run_fs("quota", "--space", "1k", ":/data")
    assert [line.split() for line in run_fs("quota", "-h", ":/data", ":/other").stdout.splitlines()[1:]] == [
        ["10", "4", "1.0", "KiB", "27", "B", "/data"],
        ["-", "-", "-", "-", "/other"],
    ]
    run_fs("quota", "--names", "none", ":/data")
    usage = ns.quota_usage("/data")
    assert (usage.names_quota, usage.space_quota) == (None, 1024)
    run_fs("quota", "--names", "none", "--space", "none", ":/data")
    assert lines(run_fs("quota", "--json", ":/data"))[0]["space_quota"] is None


def test_a_quota_that_is_exceeded_is_one_sentence(ns: Namespace) -> None:
    run_fs("quota", "--names", "4", ":/data")
    result = run_fs("touch", ":/data/one-more")
    assert result.exit_code == 2
    assert "the quota of names of a directory on the path is exceeded" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--names", "0", ":/data"], "a quota of names is positive"),
        (["--space", "much", ":/data"], "is not a size"),
        (["--names", "9", ":/empty"], "only directories have quotas"),
        (["--names", "9", "--user", "bob", ":/data"], "only the superuser may set quotas"),
        ([":/none"], "does not exist"),
    ],
)
def test_wrong_quotas(arguments: list[str], sentence: str) -> None:
    result = run_fs("quota", *arguments)
    assert result.exit_code == 2
    assert sentence in result.stderr
