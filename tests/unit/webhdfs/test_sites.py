"""Pages of other sites, users without a proof, and paths that try to leave the namespace."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.webhdfs.failures import RequestRefusedError
from holdfast.webhdfs.settings import ServerSettings, is_loopback
from holdfast.webhdfs.sites import SiteGate
from tests.namespace_world import all_records
from tests.unit.webhdfs.served import Served, serve_fresh

_REFUSED = "java.lang.SecurityException"
_MKDIRS = "op=MKDIRS&user.name=root"


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serve_fresh() as found:
        found.namespace.mkdirs("/d")
        found.namespace.write_file("/outside", b"1")
        yield found


def _changes(served: Served) -> set[bytes]:
    """Return the keys of inodes, and of receipts of changes."""
    return {key for key in all_records(served.namespace.database) if key[:1] in (b"i", b"q")}


# --- pages of other sites ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "https://evil.example", "null", "http://localhost", "http://127.0.0.1:1", "http://[", "x"],
)
@pytest.mark.parametrize(("method", "query"), [("PUT", _MKDIRS), ("GET", "op=LISTSTATUS&user.name=root")])
def test_a_page_of_another_site_changes_and_reads_nothing(served: Served, origin: str, method: str, query: str) -> None:
    before = _changes(served)
    reply = served.ask(method, "/site", query, headers={"Origin": origin})
    assert (reply.status, reply.java_class) == (403, _REFUSED)
    assert "access-control-allow-origin" not in reply.headers
    assert _changes(served) <= before


@pytest.mark.parametrize("prefix", ["evil-", "evil.", "user@"])
def test_a_site_whose_name_ends_as_that_of_the_server_is_another_one(served: Served, prefix: str) -> None:
    origin = served.address.replace("://", f"://{prefix}")
    assert served.ask("PUT", "/site", _MKDIRS, headers={"Origin": origin}).java_class == _REFUSED


def test_a_page_of_the_server_itself_may_use_it(served: Served) -> None:
    assert served.ask("PUT", "/own", _MKDIRS, headers={"Origin": served.address}).status == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "notlocalhost", "127.0.0.1.evil.example", "[", "a:b:c"]
)
def test_a_site_whose_name_leads_to_loopback_is_refused(served: Served, host: str) -> None:
    """Its page comes from the same origin as the server, as the browser sees it."""
    for headers in ({"host": f"{host}:9870"}, {"host": f"{host}:9870", "Origin": f"http://{host}:9870"}):
        reply = served.ask("PUT", "/site", _MKDIRS, headers=headers)
        assert (reply.status, reply.java_class) == (403, _REFUSED)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "[::1]", "10.0.0.7", "spark.localhost"])
def test_names_of_this_machine_and_addresses_are_answered(served: Served, host: str) -> None:
    for name in (host, f"{host}:9870"):
        assert served.ask("GET", "/d", "op=GETFILESTATUS&user.name=root", headers={"host": name}).status == 200


@pytest.mark.parametrize(
    "settings",
    [
        ServerSettings(url="", host="0.0.0.0"),
        ServerSettings(url="", believes_names=True),
        ServerSettings(url="", believes_names=False),
    ],
    ids=["others reach it", "names are believed", "names prove nothing"],
)
def test_a_server_that_is_not_only_for_this_machine_answers_to_every_name(settings: ServerSettings) -> None:
    SiteGate.of(settings).check("files.example.org:9870", "")
    with pytest.raises(RequestRefusedError):
        SiteGate.of(settings).check("files.example.org:9870", "https://evil.example")


@pytest.mark.parametrize("site", ["cross-site", "same-site", "same-origin", "none", ""])
def test_what_needs_no_permission_of_a_browser_is_refused_by_the_site(served: Served, site: str) -> None:
    """Defect: an image of another site read files, because a browser sends no Origin with it."""
    for query in ("op=OPEN&leg=1&user.name=root", "op=GETDELEGATIONTOKEN&user.name=root"):
        reply = served.ask("GET", "/outside", query, headers={"Sec-Fetch-Site": site} if site else {})
        assert (reply.status == 403) == (site in ("cross-site", "same-site"))
    reply = served.ask("GET", "/outside", "op=OPEN&leg=1&user.name=root")
    assert reply.headers["x-content-type-options"] == "nosniff"


# --- users without a proof --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.7", "files.example.org", "", "127.0.0.1.example.org"])
def test_a_name_is_believed_on_loopback_only(host: str) -> None:
    assert not ServerSettings(url="", host=host).does_believe_names
    assert ServerSettings(url="", host=host, believes_names=True).does_believe_names


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_only_this_machine_reaches_loopback(host: str) -> None:
    assert is_loopback(host)
    assert ServerSettings(url="", host=host).does_believe_names
    assert not ServerSettings(url="", host=host, believes_names=False).does_believe_names


def test_a_name_alone_is_refused_where_others_reach_the_server() -> None:
    with serve_fresh(ServerSettings(url="", host="0.0.0.0")) as served:
        for query in ("op=LISTSTATUS", "op=LISTSTATUS&user.name=root", "op=LISTSTATUS&user.name=root&doas=ann"):
            reply = served.ask("GET", "/", query)
            assert reply.status == 401
            assert reply.headers["www-authenticate"] == "Bearer"
            assert reply.java_class == "org.apache.hadoop.security.AccessControlException"
        for_hadoop = served.ask("GET", "/", "op=LISTSTATUS", headers={"User-Agent": "Java/17.0.1"})
        assert for_hadoop.status == 403  # of a 401, Hadoop's client shows the status only
        assert "send a token" in for_hadoop.document["RemoteException"]["message"]
        for operation in ("MKDIRS", "CREATE", "GETDELEGATIONTOKEN"):
            method = "GET" if operation.startswith("GET") else "PUT"
            assert served.ask(method, "/d", f"op={operation}&user.name=root").status == 401
        assert served.namespace.find("/d") is None
        secret, _ = served.tokens.issue("root", 60)
        reply = served.ask("PUT", "/d", "op=MKDIRS", headers={"Authorization": f"Bearer {secret}"})
        assert reply.document == {"boolean": True}


# --- paths ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "path",
    [
        "/d/../outside",
        "/d/%2e%2e/outside",
        "/d/%2E%2e/outside",
        "/d/.%2e/outside",
        "/d/..%2foutside",
        "/d/..%2Foutside",
        "/d%2f..%2foutside",
        "/d/%2e/../outside",
        "/..%2f..%2f..%2foutside",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/d/./outside",
        "/d//outside",
        "/d/a%00b",
        "/d/%00",
    ],
)
@pytest.mark.parametrize(
    ("method", "query"),
    [("GET", "op=OPEN"), ("GET", "op=GETFILESTATUS"), ("PUT", "op=CREATE"), ("DELETE", "op=DELETE&recursive=true")],
)
def test_a_path_that_goes_up_or_has_no_name_is_refused(served: Served, path: str, method: str, query: str) -> None:
    reply = served.transfer(method, path, f"{query}&user.name=root", b"1")
    assert (reply.status, reply.java_class) == (400, "org.apache.hadoop.fs.InvalidPathException")
    assert served.namespace.open("/outside").read() == b"1"


@pytest.mark.parametrize("path", ["/d/%c0%ae%c0%ae/outside", "/d/%ff", "/d/%c0%af..", "/d/%ed%a0%80"])
def test_a_path_that_is_not_utf_8_is_refused(served: Served, path: str) -> None:
    """Overlong encodings of a dot and of a slash, and half of a surrogate pair."""
    reply = served.ask("PUT", path, _MKDIRS)
    assert (reply.status, reply.java_class) == (400, "java.lang.IllegalArgumentException")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/d/%252e%252e", "%2e%2e"),
        ("/d/..%252foutside", "..%2foutside"),
        ("/d/..%5coutside", "..\\outside"),
        ("/d/..;", "..;"),
        ("/d/..;/x", "..;"),
        ("/d/;a=b", ";a=b"),
        ("/d/%", "%"),
        ("/d/%2", "%2"),
        ("/d/%zz", "%zz"),
        ("/d/...", "..."),
        ("/d/a%3fop=DELETE", "a?op=DELETE"),
        ("/d/a%23b", "a#b"),
        ("/d/a%0d%0ab", "a\r\nb"),
    ],
)
def test_what_is_decoded_once_is_a_name_like_others(served: Served, path: str, name: str) -> None:
    assert served.ask("PUT", path, _MKDIRS).document == {"boolean": True}
    assert name in [entry.name for entry in served.namespace.list("/d")]
    served.namespace.delete(f"/d/{name}", recursive=True)


@pytest.mark.parametrize(
    "target", ["/webhdfs/v1../d", "/webhdfs/v2/d", "/webhdfs/v1%2fd", "/../etc/passwd", "//webhdfs"]
)
def test_nothing_is_outside_of_the_prefix(served: Served, target: str) -> None:
    assert served.send("GET", f"{target}?op=OPEN&user.name=root", None, {}).status == 404


@pytest.mark.parametrize("destination", ["/d/../outside", "/d/%2e%2e/x", "d", "..%2foutside", "/d/a%00"])
def test_a_destination_stays_below_the_root(served: Served, destination: str) -> None:
    reply = served.ask("PUT", "/outside", f"op=RENAME&user.name=root&destination={destination}")
    assert reply.status == 400
    assert served.namespace.open("/outside").read() == b"1"


def test_the_address_of_the_second_request_is_on_one_line(served: Served) -> None:
    reply = served.ask("PUT", "/d/new%0d%0ax", "op=CREATE&user.name=root&x=%0d%0aSet-Cookie:%20c=d")
    assert reply.status == 307
    assert "/d/new%0d%0ax?" in reply.headers["location"]
    assert "set-cookie" not in reply.headers
