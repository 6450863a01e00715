"""`mv` and `rm`, with and without the trash."""

from __future__ import annotations

import json

import pytest

from holdfast.commit import TWO_PHASE, CommitContext, TaskCommit
from holdfast.errors import LogRemovedError
from holdfast.namespace import Namespace
from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.stores.base import iter_uploads
from tests.simulation.world import run_task, start
from tests.unit.cli.fs.trees import fill, run_fs, shown


# --- mv ---------------------------------------------------------------------------------------------------------------
def test_a_directory_is_renamed(ns: Namespace) -> None:
    fill(ns, "/a/b/f")
    assert run_fs("mv", ":/a", ":/z").stdout == "moved holdfast://ns/a to holdfast://ns/z\n"
    assert shown(ns) == ["/z/", "/z/b/", "/z/b/f"]


def test_sources_move_into_a_directory(ns: Namespace) -> None:
    fill(ns, "/a/1.csv", "/a/2.csv", "/a/x", "/done/")
    result = run_fs("mv", "--json", "--glob", ":/a/*.csv", ":/a/x", ":/done/")
    assert [one["to"] for one in json.loads(result.stdout)["moved"]] == [
        *("holdfast://ns/done/1.csv", "holdfast://ns/done/2.csv", "holdfast://ns/done/x"),
    ]
    assert shown(ns) == ["/a/", "/done/", "/done/1.csv", "/done/2.csv", "/done/x"]


def test_a_file_is_replaced_only_on_request(ns: Namespace) -> None:
    fill(ns, "/a", "/b")
    result = run_fs("mv", ":/a", ":/b")
    assert (result.exit_code, ns.open("/b").read()) == (1, b"/b")
    assert "the target exists" in result.stderr
    assert run_fs("mv", "--overwrite", ":/a", ":/b").exit_code == 0
    assert (shown(ns), ns.open("/b").read()) == (["/b"], b"/a")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([":/none", ":/x"], "does not exist"),
        ([":/a", ":/none/x"], "the parent of the target does not exist"),
        ([":/a", ":/d", ":/none"], "the parent of the target does not exist: create it path='/none'"),
        ([":/a", ":/d", ":/b"], "a component of the path is a file: check the path path='/b/d'"),
        ([":/a", ":/none/"], "the parent of the target does not exist: create it path='/none'"),
        ([":/a", ":/b/"], "a component of the path is a file: check the path path='/b/a'"),
        ([":/d", ":/d/e/x"], "a directory cannot be moved into itself"),
        ([":/d", ":/d/e"], "a directory cannot be moved into itself"),
        ([":/", ":/x"], "the root cannot be renamed"),
        ([":/a", ":/a/x"], "file"),
        ([":/a", ":/d/e/a", ":/d"], "two sources have the same name"),
        ([":/a", "holdfast://other/x"], "no such namespace"),
        ([":/a"], "Missing argument 'SOURCE...'"),
    ],
)
def test_mv_refuses(ns: Namespace, arguments: list[str], sentence: str) -> None:
    fill(ns, "/a", "/b", "/d/e/a")
    before = shown(ns)
    result = run_fs("mv", *arguments)
    assert (result.exit_code, shown(ns)) == (2, before)
    assert sentence in result.stderr


# --- rm ---------------------------------------------------------------------------------------------------------------
def test_rm(ns: Namespace) -> None:
    fill(ns, "/a", "/b1", "/b2", "/d/e/f")
    assert run_fs("rm", "--glob", ":/a", ":/b*").stdout == (
        "removed holdfast://ns/a\nremoved holdfast://ns/b1\nremoved holdfast://ns/b2\n"
    )
    assert run_fs("rm", "-r", "--json", ":/d").stdout == (
        '{\n  "removed": [\n    {\n      "url": "holdfast://ns/d"\n    }\n  ],\n  "failed": []\n}\n'
    )
    assert shown(ns) == []


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ([":/a", ":/none"], 2, "does not exist"),
        ([":/a", ":/d"], 2, "the path is a directory: remove it with -r"),
        (["-f", ":/none", ":/none*"], 0, ""),
        (["-f", "--glob", ":/none*"], 0, ""),
        ([":/[ab]"], 2, "add --glob if it is a pattern"),
        (["--glob", ":/[bc]"], 2, "nothing matches the pattern"),
        (["-r", ":/"], 2, "the root cannot be deleted"),
        (["-r", "--trash", ":/"], 2, "this contains the trash"),
        ([":/a", "--user", "bob"], 2, "permission denied"),
    ],
)
def test_rm_removes_nothing_by_mistake(ns: Namespace, arguments: list[str], code: int, sentence: str) -> None:
    fill(ns, "/a", "/d/f")
    result = run_fs("rm", *arguments)
    assert (result.exit_code, shown(ns)) == (code, ["/a", "/d/", "/d/f"])
    assert sentence in result.stderr


# --- the trash --------------------------------------------------------------------------------------------------------
def test_what_goes_to_the_trash_keeps_its_path(ns: Namespace) -> None:
    fill(ns, "/d/e/f", "/d/x")
    assert run_fs("rm", "--trash", "-r", ":/d/e", ":/d/x").stdout == (
        "moved holdfast://ns/d/e to holdfast://ns/user/root/.Trash/Current/d/e\n"
        "moved holdfast://ns/d/x to holdfast://ns/user/root/.Trash/Current/d/x\n"
    )
    assert ns.open("/user/root/.Trash/Current/d/e/f").read() == b"/d/e/f"
    assert ns.status("/user/root/.Trash/Current").permissions == "drwx------"


def test_a_path_that_is_taken_gets_a_directory_of_its_own(ns: Namespace) -> None:
    for content in (b"1", b"2", b"3"):
        ns.write_file("/d/x", content)
        assert run_fs("rm", "--trash", ":/d/x").exit_code == 0
    times = [one.name for one in ns.list("/user/root/.Trash")]
    assert times[-1] == "Current" and all(len(one) == 13 and one.isdigit() for one in times[:-1])
    found = [ns.open(f"/user/root/.Trash/{one}/d/x").read() for one in ("Current", *times[:-1])]
    assert found == [b"1", b"2", b"3"]


def test_only_homes_and_what_is_in_them_are_restricted(ns: Namespace) -> None:
    """Defect: /user had mode 0700, so nobody but the superuser could use a home."""
    ns.write_file("/d/x", b"1")
    assert run_fs("rm", "--trash", ":/d/x").exit_code == 0
    modes = {path: ns.status(path).mode for path in ("/user", "/user/root", "/user/root/.Trash")}
    assert modes == {"/user": 0o755, "/user/root": 0o700, "/user/root/.Trash": 0o700}
    assert run_fs("mkdir", "-p", ":/user/ann").exit_code == run_fs("chown", "ann", ":/user/ann").exit_code == 0
    assert run_fs("mkdir", ":/user/ann/new", "--user", "ann").exit_code == 0
    ns.write_file("/user/ann/y", b"1")
    assert run_fs("rm", "--trash", ":/user/ann/y", "--user", "ann").exit_code == 0


def test_a_file_in_the_trash_is_no_obstacle_for_a_directory(ns: Namespace) -> None:
    fill(ns, "/d")
    run_fs("rm", "--trash", ":/d")
    fill(ns, "/d/x")
    assert run_fs("rm", "--trash", ":/d/x").exit_code == 0
    assert len([path for path in shown(ns) if path.endswith("/d/x")]) == 1


def test_what_is_in_the_trash_is_removed_without_it(ns: Namespace) -> None:
    fill(ns, "/x")
    run_fs("rm", "--trash", ":/x")
    result = run_fs("rm", "--trash", ":/user/root/.Trash/Current/x")
    assert (result.exit_code, "this is in the trash already" in result.stderr) == (2, True)
    assert "this contains the trash" in run_fs("rm", "-r", "--trash", ":/user").stderr
    assert run_fs("rm", "-r", ":/user/root/.Trash").exit_code == 0


@pytest.mark.parametrize("user", ["..", ".", "a/b", "ann/", "a:b"])
def test_a_user_whose_name_no_directory_can_have_has_no_trash(ns: Namespace, user: str) -> None:
    """Above all, it is not in the home of somebody else, or above all homes."""
    fill(ns, "/x", "/user/a/", "/user/ann/")
    ns.set_permission("/", 0o777)
    ns.set_permission("/x", 0o666)
    for path in ("/user/a", "/user/ann", "/user"):
        ns.set_permission(path, 0o777)
    before = shown(ns)
    result = run_fs("rm", "--trash", ":/x", "--user", user)
    assert (result.exit_code, shown(ns)) == (2, before)
    assert "no directory can have the name of this user" in result.stderr
    assert run_fs("rm", ":/x", "--user", user).exit_code == 0


def test_a_user_without_a_home_is_told_what_to_do(ns: Namespace) -> None:
    fill(ns, "/x")
    ns.set_permission("/x", 0o666)
    result = run_fs("rm", "--trash", ":/x", "--user", "bob")
    assert result.exit_code == 2
    assert "let the superuser make /user/bob and give it to the user" in result.stderr


# --- beside a job -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "left"),
    [(("mv", ":/t", ":/z"), ["/z/old"]), (("rm", "-r", ":/t"), []), (("rm", "-r", "--trash", ":/t"), ["…/t/old"])],
    ids=["mv", "rm", "trash"],
)
@pytest.mark.parametrize("moment", ["set-up", "one-task", "all-tasks"])
def test_a_job_goes_with_its_destination(
    ns: Namespace, arguments: tuple[str, ...], left: list[str], moment: str
) -> None:
    fill(ns, "/t/old")
    store = NamespaceStore(ns, close_namespace=False)
    ctx = CommitContext(store=store, prefix="t/", url="holdfast://ns/t")
    job = start(ctx)
    commits: list[TaskCommit | None] = []
    for task, reached in enumerate(["set-up", "one-task"]):
        if moment == reached:
            assert run_fs(*arguments).exit_code == 0
        commits.append(run_task(ctx, job, task, "new"))
    if moment == "all-tasks":
        assert run_fs(*arguments).exit_code == 0
    with pytest.raises(LogRemovedError, match="the destination was renamed or deleted while the job ran"):
        TWO_PHASE.commit_job(ctx, job, commits, 2)
    assert not TWO_PHASE.abort_job(ctx, job).committed
    files = [path for path in shown(ns) if not path.endswith("/") and "_holdfast" not in path]
    assert [path.replace("/user/root/.Trash/Current", "…") for path in files] == left
    assert not ns.exists("/t") and list(iter_uploads(store, "")) == []
