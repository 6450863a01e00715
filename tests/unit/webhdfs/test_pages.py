"""What a server has besides WebHDFS: its page, and the data that only the page asks for."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest

from holdfast.namespace.keys import ROOT_KEY
from holdfast.namespace.maintenance import LeaderElection
from holdfast.transactions.base import Commit
from holdfast.webhdfs import metrics
from holdfast.webhdfs.page_data import describe_servers, describe_usage, describe_work
from holdfast.webhdfs.pages import Pages
from holdfast.webhdfs.servers import ServerRecord, server_key
from holdfast.webhdfs.settings import ServerSettings
from holdfast.webhdfs.tokens import TokenStore
from tests.namespace_world import SUPERUSER, World
from tests.patience import wait_until
from tests.unit.webhdfs.carried import CarryingServer
from tests.unit.webhdfs.served import Served, serve_fresh


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with serve_fresh(duties_s=0.1) as found:
        yield found


def test_the_page_and_its_parts_come_from_the_server_alone(server: Served) -> None:
    page = server.get("/")
    assert page.status == 200
    assert page.body == server.get("/index.html").body
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    text = page.body.decode()
    assert "//" not in text.replace("<!doctype html>", "")
    assert " style=" not in text
    for part, kind in (("page.js", "text/javascript"), ("page.css", "text/css"), ("icon.svg", "image/svg+xml")):
        found = server.get(f"/page/{part}")
        assert found.status == 200
        assert found.headers["content-type"] == f"{kind}; charset=utf-8"
        assert f"/page/{part}" in text


def test_the_page_may_run_no_script_but_its_own_and_talk_to_nobody_else(server: Served) -> None:
    for path in ("/", "/page/page.js", "/page/icon.svg"):
        headers = server.get(path).headers
        policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
        assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("path", ["/page/", "/page/index.html", "/page/../pages.py", "/page/nothing.js", "/nothing"])
def test_nothing_else_is_there(server: Served, path: str) -> None:
    assert server.get(path).status == 404


@pytest.mark.parametrize("what", ["servers", "work", "usage"])
def test_data_are_not_kept_and_not_taken_for_a_page(server: Served, what: str) -> None:
    found = server.get(f"/page/{what}", {"user.name": "ann"})
    assert found.status == 200
    assert found.headers["content-type"] == "application/json"
    assert found.headers["cache-control"] == "no-store"
    assert found.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("what", ["servers", "work", "usage"])
def test_data_need_a_user_as_webhdfs_does(what: str) -> None:
    with serve_fresh(ServerSettings(url="", believes_names=False)) as closed:
        refused = closed.get(f"/page/{what}", {"user.name": "root"})
        assert refused.status == 401
        assert refused.headers["www-authenticate"] == "Bearer"
        assert "does not believe user.name" in refused.document["RemoteException"]["message"]
        assert closed.get("/").status == 200
        tokens = TokenStore(closed.namespace.database, closed.namespace.environment)
        secret, _ = tokens.issue("ann", 60.0)
        assert closed.get(f"/page/{what}", headers={"authorization": f"Bearer {secret}"}).status == 200


def test_a_page_of_another_site_gets_no_data(server: Served) -> None:
    refused = server.get("/page/servers", {"user.name": "root"}, {"origin": "https://elsewhere.example"})
    assert refused.status == 403
    assert "another site" in refused.document["RemoteException"]["message"]


def test_servers_and_their_leader_are_told(server: Served) -> None:
    def find_leaders() -> list[object]:
        return [one for one in server.ask_page("servers")["servers"] if one["leads"] and one["done"] is not None]

    wait_until(find_leaders, "no server leads")
    found = server.ask_page("servers", "ann")
    (one,) = found["servers"]
    assert (found["user"], found["isSuperuser"]) == ("ann", False)
    assert found["namespace"] == server.namespace.configuration.name
    assert (one["host"], one["port"], one["isSilent"]) == ("127.0.0.1", server.port, False)
    assert found["leader"]["holder"] == one["id"]
    assert one["since"] <= one["at"] <= found["now"]
    assert server.ask_page("servers")["isSuperuser"]


def test_a_server_on_all_addresses_is_shown_by_the_name_of_its_machine() -> None:
    machine = os.uname().nodename
    shown = {host: ServerSettings(url="", host=host).shown_host for host in ("0.0.0.0", "::", "10.0.0.1", "localhost")}
    assert shown == {"0.0.0.0": machine, "::": machine, "10.0.0.1": "10.0.0.1", "localhost": "localhost"}


def test_paths_of_open_files_are_for_their_owner_and_the_superuser(server: Served) -> None:
    ann = server.namespace.as_user("ann")
    server.namespace.mkdirs("/open", mode=0o777)
    server.namespace.set_permission("/open", 0o777)
    with ann.create_with_lease("/open/of ann") as file:
        file.write(b"123")
        file.sync()
        seen = {}
        for user in ("root", "ann", "bob"):
            found = server.ask_page("work", user)
            assert found["pending"]["leases"] == 1
            (seen[user],) = found["openFiles"]
    assert seen["root"]["path"] == seen["ann"]["path"] == "/open/of ann"
    assert (seen["bob"]["path"], seen["bob"]["isHidden"], seen["bob"]["size"]) == (None, True, 3)
    assert server.ask_page("work")["openFiles"] == []


def test_usage_is_what_the_caller_may_see_the_largest_first(server: Served) -> None:
    for path, size in (("/u/a/1", 5), ("/u/b/2", 7), ("/u/c", 1)):
        server.namespace.write_file(path, b"." * size)
    server.namespace.set_permission("/u/b", 0o700)
    found = server.ask_page("usage", path="/u")
    assert [(one["name"], one["size"]) for one in found["entries"]] == [("b", 7), ("a", 5), ("c", 1)]
    assert found["total"] == {"size": 13, "files": 3, "directories": 2, "unreadable": 0}
    assert found["isComplete"]
    of_ann = server.ask_page("usage", "ann", path="/u")
    assert [(one["name"], one["size"]) for one in of_ann["entries"]] == [("a", 5), ("c", 1), ("b", 0)]
    assert of_ann["total"]["unreadable"] == 1
    refused = server.get("/page/usage", {"user.name": "ann", "path": "/u/b"})
    assert refused.status == 403
    assert refused.document["RemoteException"]["exception"] == "AccessControlException"
    assert server.get("/page/usage", {"user.name": "ann", "path": "/nothing"}).status == 404


def test_the_smallest_of_many_entries_are_one(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{describe_usage.__module__}._MOST_ENTRIES", 2)
    for number in range(5):
        server.namespace.write_file(f"/few/{number}", b"." * number)
    found = server.ask_page("usage", path="/few")
    assert [one["name"] for one in found["entries"]] == ["4", "3"]
    assert found["others"] == {"number": 3, "size": 3, "files": 3, "directories": 0, "unreadable": 0}


def test_only_operations_of_webhdfs_count_as_operations(server: Served) -> None:
    before = metrics.count_requests()
    server.get("/")
    server.ask_page("servers")
    server.get("/health")
    assert metrics.count_requests() == before
    server.get("/webhdfs/v1/", {"op": "GETFILESTATUS", "user.name": "ann"})
    assert metrics.count_requests() == before + 1


def test_a_server_that_stops_or_has_no_namespace_is_not_healthy() -> None:
    world = World()
    server = CarryingServer(world)
    pages = Pages(server.carrier, ServerSettings(url=""))

    def ask(is_draining: bool) -> tuple[int, str]:
        exchange = server.receive("GET", "/", "op=GETHOMEDIRECTORY")
        exchange.connection.is_draining = is_draining
        exchange.scope["raw_path"] = b"/health"  # type: ignore[index]  # it is a dictionary
        answer = pages.find(exchange)
        assert answer is not None
        return answer.status, json.loads(answer.body).get("problem", "")

    assert ask(False) == (200, "")
    assert ask(True) == (503, "the server stops")
    world.database.commit(Commit(deletes=[ROOT_KEY]))
    assert ask(False) == (503, "the database has no root directory")


def test_the_path_of_an_open_file_that_is_gone_is_for_the_superuser() -> None:
    world = World()
    file = world.client().create_with_lease("/secret")
    (key,) = (key for key in world.records(b"i") if key.endswith(b"secret"))
    world.database.commit(Commit(deletes=[key]))
    server = CarryingServer(world)
    for user, path in ((SUPERUSER, "/secret"), ("ann", None)):
        call = server.carrier.make_call(server.receive("GET", "/", "op=GETHOMEDIRECTORY", user=user))
        found = describe_work(call)["openFiles"]
        assert isinstance(found, list)
        assert [(one["path"], one["isHidden"]) for one in found] == [(path, path is None)]
    file.discard()


def test_of_several_servers_one_leads_and_some_are_silent() -> None:
    world = World()
    for token, port, age_s in (("one", 1, 0.0), ("two", 2, 61.0), ("three", 3, 59.0)):
        record = ServerRecord(token=token, host="h", port=port, pid=1, since_s=0, at_s=world.clock.at_s - age_s)
        world.database.commit(Commit(puts={server_key(token): record.encode()}))
    assert LeaderElection(world.database, world.clock, "three").try_to_lead()
    server = CarryingServer(world)
    found = describe_servers(server.carrier.make_call(server.receive("GET", "/", "op=GETHOMEDIRECTORY")))["servers"]
    assert isinstance(found, list)
    assert [(one["id"], one["leads"], one["isSilent"]) for one in found] == [
        ("one", False, False),
        ("two", False, True),
        ("three", True, False),
    ]
