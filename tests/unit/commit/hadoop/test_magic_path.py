"""Test magic paths: paper 000 Table III, and the rules that Hadoop tests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.commit import layout
from holdfast.commit.hadoop.pending import (
    BASE,
    MAGIC,
    final_path,
    is_magic_path,
    is_pending_path,
    is_pendingset_path,
    magic_dir,
    pending_path,
)
from holdfast.errors import InvalidRequestError


@pytest.mark.parametrize(
    ("path", "final"),
    [
        ("dest", "dest"),
        ("dest/__magic/1", "dest/1"),
        ("dest/__magic/1/2", "dest/1/2"),
        ("dest/__magic/job1/task003/__base/3", "dest/3"),
        ("dest/__magic/job2/task004/__base/4/5", "dest/4/5"),
        ("dest/__magic/1/2.pending", "dest/__magic/1/2.pending"),
        ("dest/__magic/job1/task003.pendingset", "dest/__magic/job1/task003.pendingset"),
    ],
)
def test_table_iii_of_paper_000(path: str, final: str) -> None:
    """Scenario 34 and scenario 35."""
    assert final_path(path) == final


@pytest.mark.parametrize(
    ("path", "final"),
    [
        ("first/2", "first/2"),
        ("first/__magic/2", "first/2"),
        ("__magic/3.txt", "3.txt"),
        ("__magic/__base/3.txt", "3.txt"),
        ("__magic/4/__base/2/3.txt", "2/3.txt"),
        ("__base/home/__magic/3.txt", "__base/home/3.txt"),
        ("s3://bucket/dest/__magic/__base/3.txt", "s3://bucket/dest/3.txt"),
        ("/dest/__magic/__base/3.txt", "/dest/3.txt"),
    ],
)
def test_base_above_magic_is_a_name_like_any_other(path: str, final: str) -> None:
    """scenario 34, the cases of TestMagicCommitPaths in which Hadoop and the paper agree"""
    assert final_path(path) == final


def test_the_last_base_counts() -> None:
    """Paper 001: "the last parent element of a path which is __base sets the base"."""
    assert final_path("dest/__magic/job/__base/a/__base/b/c") == "dest/b/c"


def test_a_magic_directory_may_carry_the_job() -> None:
    """HADOOP-18797: jobs in one destination have separate magic directories."""
    assert magic_dir("j7") == "__magic_job-j7"
    assert final_path("out put/__magic_job-j7/00/tasks/attempt_3/__base/a b.csv") == "out put/a b.csv"


@pytest.mark.parametrize("path", ["dest/__magical/1", "dest/__magic_job-/1", "dest/x__magic/1", "__magic_trick/1", ""])
def test_names_that_only_look_magic_are_not(path: str) -> None:
    assert not is_magic_path(path)
    assert final_path(path) == path


@pytest.mark.parametrize(
    "path",
    [
        "__magic",
        "dest/__magic",
        "dest/__magic_job-1",
        "dest/__magic/__base",
        "dest/__magic/a/__base",
        "dest/__magic/",
        "dest/__magic/a/",
        "dest/__magic/__base//a",
        "dest/__magic/../../secret",
        "dest/__magic/__base/./a",
        "dest/__magic/__base/a/..",
        "dest/__magic/__base/__magic/a",
        "dest/__magic/1/__magic_job-2/a",
    ],
)
def test_a_magic_path_without_a_plain_child_is_refused(path: str) -> None:
    """scenario 34"""
    with pytest.raises(InvalidRequestError):
        final_path(path)


def test_records_of_uploads_are_told_apart() -> None:
    assert pending_path("dest/__magic/x") == "dest/__magic/x.pending"
    assert is_pending_path("a/x.pending") and not is_pendingset_path("a/x.pending")
    assert is_pendingset_path("a/x.pendingset") and not is_pending_path("a/x.pendingset")
    assert not is_pending_path("a/x.pending/y")


_NAME = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=8).filter(
    lambda name: (
        name not in (".", "..", BASE) and not is_magic_path(name) and not name.endswith((".pending", ".pendingset"))
    )
)
_TREE = st.lists(_NAME, min_size=1, max_size=4).map("/".join)
_MAGIC = st.one_of(st.just(MAGIC), _NAME.map(magic_dir))


@given(_TREE, _MAGIC, _TREE, _TREE)
def test_what_a_task_writes_below_base_appears_below_the_destination(
    dest: str, magic: str, own: str, path: str
) -> None:
    attempt = f"{dest}/{magic}/{own}/{BASE}"
    assert final_path(f"{attempt}/{path}") == f"{dest}/{path}"
    assert final_path(f"{dest}/{magic}/{own}") == f"{dest}/{own}"
    assert layout.is_hidden(f"{attempt}/{path}")


@given(st.lists(st.sampled_from(["a", "..", ".", "", MAGIC, "__magic_job-1", BASE, "b.pending", "c c"]), max_size=7))
def test_a_final_path_is_never_magic_and_stays_below_the_destination(segments: list[str]) -> None:
    path = "/".join(["dest", *segments])
    try:
        final = final_path(path)
    except InvalidRequestError:
        return
    assert final == path or (not is_magic_path(final) and final.startswith("dest/"))
    assert final_path(final) == final  # also a record's path, which is its own final path
