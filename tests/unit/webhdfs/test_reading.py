"""What the operations that read answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from holdfast.namespace.errors import PermissionDeniedError
from holdfast.webhdfs import reading
from holdfast.webhdfs.failures import RequestRefusedError
from tests.namespace_world import World
from tests.unit.webhdfs.carried import CarryingServer

_NO_XATTR = "org.apache.hadoop.hdfs.protocol.XAttrNotFoundException"


@pytest.fixture
def server() -> CarryingServer:
    world = World()
    client = world.client()
    for name in ("a", "b", "c"):
        client.write_file(f"/d/{name}", b"12345")
        client.set_replication(f"/d/{name}", 2)
    client.mkdirs("/d/e")
    client.set_xattr("/d/a", "user.one", b"\x00\xff")
    client.set_xattr("/d/a", "user.two", b"text")
    return CarryingServer(world)


def _ask(server: CarryingServer, path: str, query: str, user: str = "hdfs") -> Mapping[str, Any]:
    found = server.answer(server.receive("GET", path, query, user=user))
    document: Mapping[str, Any] = json.loads(found.body or b"{}") if found.document is None else found.document
    return document


@pytest.mark.parametrize(
    ("after", "names", "remaining"),
    [("", ["a", "b"], 1), ("&startafter=a", ["b", "c"], 1), ("&startAfter=b", ["c", "e"], 0), ("&startafter=e", [], 0)],
)
def test_a_page_begins_after_an_entry(
    server: CarryingServer, monkeypatch: pytest.MonkeyPatch, after: str, names: list[str], remaining: int
) -> None:
    monkeypatch.setattr(reading, "PAGE_SIZE", 2)
    listing = _ask(server, "/d", f"op=LISTSTATUS_BATCH{after}")["DirectoryListing"]
    assert [one["pathSuffix"] for one in listing["partialListing"]["FileStatuses"]["FileStatus"]] == names
    assert listing["remainingEntries"] == remaining


def test_a_directory_that_is_too_large_for_one_answer_is_listed_in_pages(
    server: CarryingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_MOST_ENTRIES", 4)
    assert len(_ask(server, "/d", "op=LISTSTATUS")["FileStatuses"]["FileStatus"]) == 4
    monkeypatch.setattr(reading, "_MOST_ENTRIES", 3)
    with pytest.raises(RequestRefusedError, match="list it in pages"):
        _ask(server, "/d", "op=LISTSTATUS")


def test_a_file_is_its_own_only_entry(server: CarryingServer) -> None:
    (found,) = _ask(server, "/d/a", "op=LISTSTATUS")["FileStatuses"]["FileStatus"]
    assert (found["pathSuffix"], found["type"], found["length"]) == ("", "FILE", 5)


@pytest.mark.parametrize("has_quota", [False, True])
def test_the_usage_of_a_directory_counts_files_directories_and_replicas(
    server: CarryingServer, has_quota: bool
) -> None:
    if has_quota:
        server.world.client().set_quota("/d", names=10)
    found = _ask(server, "/d", "op=GETQUOTAUSAGE")["QuotaUsage"]
    assert (found["fileAndDirectoryCount"], found["spaceConsumed"]) == (5, 30)
    assert (found["quota"], found["spaceQuota"]) == (10 if has_quota else -1, -1)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", {"user.one": "0sAP8=", "user.two": "0sdGV4dA=="}),
        ("&encoding=hex", {"user.one": "0x00ff", "user.two": "0x74657874"}),
        ("&encoding=TEXT&xattr.name=USER.two", {"user.two": '"text"'}),
        ("&encoding=hex&xattr.name=user.two&xattr.name=user.one", {"user.one": "0x00ff", "user.two": "0x74657874"}),
        ("&xattr.name=user.Two", None),
        ("&xattr.name=user.one&xattr.name=user.none", None),
    ],
)
def test_attributes_of_the_given_names_are_all_there_or_an_error(
    server: CarryingServer, query: str, found: dict[str, str] | None
) -> None:
    if found is None:
        with pytest.raises(RequestRefusedError) as refused:
            _ask(server, "/d/a", f"op=GETXATTRS{query}")
        assert refused.value.java_class == _NO_XATTR
    else:
        assert {one["name"]: one["value"] for one in _ask(server, "/d/a", f"op=GETXATTRS{query}")["XAttrs"]} == found


@pytest.mark.parametrize(
    ("mode", "allowed"),
    [(0o604, ["r--", "---"]), (0o602, ["-w-", "---"]), (0o601, ["--x", "---"]), (0o606, ["r--", "-w-", "rw-", "---"])],
)
def test_access_is_what_the_mode_allows(server: CarryingServer, mode: int, allowed: list[str]) -> None:
    server.world.client().set_permission("/d/a", mode)
    found = []
    for action in ("r--", "-w-", "--x", "rw-", "r-x", "-wx", "rwx", "---"):
        try:
            _ask(server, "/d/a", f"op=CHECKACCESS&fsaction={action}", "ann")
        except PermissionDeniedError:
            continue
        found.append(action)
    assert found == allowed


@pytest.mark.parametrize("action", ["", "r", "rwxr", "xwr", "abc", "r-w"])
def test_what_is_no_action_is_refused(server: CarryingServer, action: str) -> None:
    with pytest.raises(RequestRefusedError, match="fsaction"):
        _ask(server, "/d/a", f"op=CHECKACCESS&fsaction={action}")


def test_blocks_are_at_the_server_as_the_client_names_it(server: CarryingServer) -> None:
    (block,) = _ask(server, "/d/a", "op=GETFILEBLOCKLOCATIONS&offset=1&length=1")["BlockLocations"]["BlockLocation"]
    assert (block["offset"], block["length"]) == (0, 5)
    assert (block["hosts"], block["names"]) == (["server"], ["server:9870"])
