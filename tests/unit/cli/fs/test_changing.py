"""`mkdir`, `touch`, `chmod` and `chown`."""

from __future__ import annotations

import json

import pytest

from holdfast.cli.fs.changing import parse_permission_mode
from holdfast.errors import InvalidRequestError
from holdfast.namespace import Namespace
from tests.unit.cli.fs.trees import fill, run_fs, shown


# --- mkdir ------------------------------------------------------------------------------------------------------------
def test_mkdir(ns: Namespace) -> None:
    assert run_fs("mkdir", ":/a", ":/a/b").stdout == "created holdfast://ns/a\ncreated holdfast://ns/a/b\n"
    assert run_fs("mkdir", "-p", "-m", "u=rwx,g=rx,o=", ":/x/y/z", ":/a").exit_code == 0
    assert shown(ns) == ["/a/", "/a/b/", "/x/", "/x/y/", "/x/y/z/"]
    assert ns.status("/x/y/z").permissions == "drwxr-x---"


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ([":/a"], 1, "a directory has this path already"),
        ([":/f"], 1, "a file has this path already"),
        (["-p", ":/f"], 1, "a file has this path already"),
        ([":/f/x"], 2, "a component of the path is a file"),
        ([":/no/x"], 2, "the parent directory does not exist"),
        ([":/x:y"], 2, "must not contain a colon"),
        (["-m", "9", ":/x"], 2, "this is not a mode"),
        (["--user", "bob", ":/x"], 2, "permission denied"),
    ],
)
def test_mkdir_refuses(ns: Namespace, arguments: list[str], code: int, sentence: str) -> None:
    fill(ns, "/a/", "/f")
    result = run_fs("mkdir", *arguments)
    assert (result.exit_code, shown(ns)) == (code, ["/a/", "/f"])
    assert sentence in result.stderr


def test_what_can_be_made_is_made(ns: Namespace) -> None:
    fill(ns, "/f")
    result = run_fs("mkdir", "--json", ":/f", ":/a")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["created"]) == (1, ["holdfast://ns/a"])
    assert [(one["url"], one["kind"]) for one in document["failed"]] == [("holdfast://ns/f", "PathExistsError")]


# --- touch ------------------------------------------------------------------------------------------------------------
def test_touch_creates_and_sets_times(ns: Namespace) -> None:
    assert run_fs("touch", ":/new").stdout == "created holdfast://ns/new\n"
    run_fs("touch", "-t", "2001-09-09T01:46:40Z", ":/new", ":/newer")
    assert [(one.path, one.mtime_ms, one.atime_ms) for one in ns.list("/")] == [
        ("/new", 1_000_000_000_000, 1_000_000_000_000),
        ("/newer", 1_000_000_000_000, 1_000_000_000_000),
    ]
    run_fs("touch", "-t", "2001-09-09T03:46:41+02:00", "--glob", ":/new*")
    run_fs("touch", "-t", "2001-09-09", ":/new")
    assert [one.mtime_ms for one in ns.list("/")] == [999_993_600_000, 1_000_000_001_000]


def test_touch_sets_the_time_of_directories(ns: Namespace) -> None:
    fill(ns, "/d/f")
    run_fs("touch", "-t", "2001-09-09T01:46:40", ":/d")
    assert ns.status("/d").mtime_ms == 1_000_000_000_000


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["-c", ":/none"], 0, ""),
        (["--glob", ":/none*"], 2, "nothing matches"),
        ([":/none/"], 2, "does not exist"),
        ([":/no/x"], 2, "the parent directory does not exist"),
        (["-t", "noon", ":/x"], 2, "is not a time"),
        (["-t", "1969-12-31", ":/f"], 2, "a time is from 1970 on"),
    ],
)
def test_touch_creates_nothing_by_mistake(ns: Namespace, arguments: list[str], code: int, sentence: str) -> None:
    fill(ns, "/f")
    result = run_fs("touch", *arguments)
    assert (result.exit_code, shown(ns)) == (code, ["/f"])
    assert sentence in result.stderr


# --- chmod ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "before", "of_file", "of_directory"),
    [
        ("640", 0o777, 0o640, 0o640),
        ("1777", 0o000, 0o1777, 0o1777),
        ("u+rwX", 0o044, 0o644, 0o744),
        ("u+rwX", 0o144, 0o744, 0o744),
        ("u+rwX", 0o040, 0o640, 0o740),
        ("u+rwX", 0o050, 0o750, 0o750),
        ("go+X", 0o645, 0o655, 0o655),
        ("go-w", 0o666, 0o644, 0o644),
        ("a=r", 0o777, 0o444, 0o444),
        ("=r", 0o777, 0o444, 0o444),
        ("+x", 0o644, 0o755, 0o755),
        ("g=u", 0o740, 0o770, 0o770),
        ("o=g,g=", 0o750, 0o705, 0o705),
        ("u=rwx,g=rx,o=", 0o000, 0o750, 0o750),
        ("g+w-x", 0o755, 0o765, 0o765),
        ("+t", 0o755, 0o1755, 0o1755),
        ("u+t", 0o755, 0o755, 0o755),
        ("a-t", 0o1755, 0o755, 0o755),
        ("-w", 0o666, 0o444, 0o444),
        ("ug+r,o+X", 0o000, 0o440, 0o441),
    ],
)
def test_modes(text: str, before: int, of_file: int, of_directory: int) -> None:
    change = parse_permission_mode(text)
    assert (oct(change(before, False)), oct(change(before, True))) == (oct(of_file), oct(of_directory))


@pytest.mark.parametrize("text", ["", "8", "2777", "77777", "u", "z+r", "u+z", "u+s", "u+r,", "+rw!", "-R"])
def test_no_modes(text: str) -> None:
    with pytest.raises(InvalidRequestError, match="this is not a mode"):
        parse_permission_mode(text)


def test_chmod_takes_modes_that_begin_with_a_dash(ns: Namespace) -> None:
    fill(ns, "/a", "/b")
    assert run_fs("chmod", "-w", ":/a", ":/b").stdout == "changed 2 paths\n"
    assert [one.permissions for one in ns.list("/")] == ["-r--r--r--"] * 2
    assert "--recursive" in run_fs("chmod", "--recursiv", "600", ":/a").stderr


def test_chmod_of_a_tree(ns: Namespace) -> None:
    fill(ns, "/d/a", "/d/e/b", "/d/e/f/")
    assert run_fs("chmod", "-R", "u=rwX,go=", ":/d").stdout == "changed 5 paths\n"
    assert {one.permissions for one in ns.walk("/")} == {"drwx------", "-rw-------"}


def test_an_owner_can_lock_and_unlock_a_tree(ns: Namespace) -> None:
    """Rights are taken from directories after their entries, and given before."""
    fill(ns, "/d/a", "/d/e/b")
    run_fs("chown", "-R", "bob", ":/d")
    assert run_fs("chmod", "-R", "000", ":/d", "--user", "bob").stdout == "changed 4 paths\n"
    assert {one.mode for one in ns.walk("/")} == {0}
    assert run_fs("chmod", "-R", "u+rwX", ":/d", "--user", "bob").stdout == "changed 4 paths\n"
    assert {one.permissions for one in ns.walk("/")} == {"drwx------", "-rw-------"}


def test_chmod_changes_what_it_may_and_names_the_rest(ns: Namespace) -> None:
    fill(ns, "/d/mine", "/d/yours", "/d/other/")
    ns.set_owner("/d/mine", "bob")
    result = run_fs("chmod", "-R", "600", ":/d", "--user", "bob", "--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["changed"]) == (1, 1)
    assert sorted(one["url"] for one in document["failed"]) == [
        *("holdfast://ns/d", "holdfast://ns/d/other", "holdfast://ns/d/yours"),
    ]
    assert ns.status("/d/mine").mode == 0o600


def test_thousands_of_errors_are_not_all_shown(ns: Namespace) -> None:
    for number in range(25):
        fill(ns, f"/d/{number}")
    result = run_fs("chmod", "-R", "600", ":/d", "--user", "bob")
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 21
    assert result.stderr.splitlines()[-1] == "error: and 6 more errors like these"


# --- chown ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("owner", "found"),
    [("ann", "ann:supergroup"), ("ann:staff", "ann:staff"), (":staff", "root:staff")],
)
def test_chown(ns: Namespace, owner: str, found: str) -> None:
    fill(ns, "/d/a")
    assert run_fs("chown", "-R", owner, ":/d").stdout == "changed 2 paths\n"
    assert {f"{one.owner}:{one.group}" for one in ns.walk("/")} == {found}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([":", ":/f"], "write OWNER, OWNER:GROUP or :GROUP"),
        (["ann:", ":/f"], "write OWNER, OWNER:GROUP or :GROUP"),
        (["ann", ":/f", "--user", "bob"], "only the owner or the superuser may do this"),
        (["ann", ":/none"], "does not exist"),
    ],
)
def test_chown_refuses(ns: Namespace, arguments: list[str], sentence: str) -> None:
    fill(ns, "/f")
    result = run_fs("chown", *arguments)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert ns.status("/f").owner == "root"
