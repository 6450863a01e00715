"""HTTPS, and certificates that prove users."""

from __future__ import annotations

import ssl
import subprocess
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from holdfast.errors import InvalidRequestError, UnavailableError
from holdfast.webhdfs.hadoop_tokens import HadoopToken
from holdfast.webhdfs.server import listen
from holdfast.webhdfs.settings import ServerSettings, check_settings
from tests.patience import PATIENCE_S
from tests.servers.tls import Authority
from tests.unit.webhdfs.served import Served, serve_fresh


@dataclass(frozen=True)
class _Secured:
    """A server with HTTPS, whose clients may have certificates of an authority."""

    served: Served
    authority: Authority

    def as_client(self, name: str = "", *, expired: bool = False, authority: Authority | None = None) -> Served:
        """Return the server as a client with a certificate sees it."""
        context = ssl.create_default_context(cafile=self.authority.bundle)
        if name:
            context.load_cert_chain(*(authority or self.authority).issue(name, expired=expired))
        return Served(self.served.address, self.served.namespace, context)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Secured]:
    folder = tmp_path_factory.mktemp("tls")
    authority = Authority(folder)
    certificate, key = authority.issue("127.0.0.1")
    settings = ServerSettings(
        url="",
        believes_names=False,
        certificate=Path(certificate),
        key=Path(key),
        client_ca=Path(authority.bundle),
    )
    with serve_fresh(settings) as served:
        yield _Secured(served, authority)


def _home(client: Served, query: str = "") -> str:
    return str(client.ask("GET", "/", f"op=GETHOMEDIRECTORY{query}").document["Path"])


def test_the_common_name_of_a_certificate_is_the_user(secured: _Secured) -> None:
    client = secured.as_client("ann")
    assert _home(client) == "/user/ann"
    assert _home(client, "&user.name=root") == "/user/ann"


def test_without_a_certificate_a_client_needs_another_proof(secured: _Secured) -> None:
    client = secured.as_client()
    assert client.ask("GET", "/", "op=GETHOMEDIRECTORY&user.name=root").status == 401
    secret, _ = client.tokens.issue("bob", 60)
    found = client.ask("GET", "/", "op=GETHOMEDIRECTORY", None, {"Authorization": f"Bearer {secret}"})
    assert found.document == {"Path": "/user/bob"}


def test_a_token_comes_before_a_certificate(secured: _Secured) -> None:
    client = secured.as_client("ann")
    secret, _ = client.tokens.issue("bob", 60)
    assert _home(client, f"&delegation={HadoopToken(b'', secret.encode()).encode()}") == "/user/bob"


@pytest.mark.parametrize("name", ["dr. who", "root,ou=x", "1st"])
def test_a_certificate_of_something_else_proves_nobody(secured: _Secured, name: str) -> None:
    reply = secured.as_client(name).ask("GET", "/", "op=GETHOMEDIRECTORY&user.name=root")
    assert reply.status == 401
    assert "common name" in reply.document["RemoteException"]["message"]


def test_certificates_of_others_and_old_ones_are_refused(secured: _Secured, tmp_path: Path) -> None:
    stranger = Authority(tmp_path)
    for client in (secured.as_client("root", authority=stranger), secured.as_client("ann", expired=True)):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            client.ask("GET", "/", "op=GETHOMEDIRECTORY")


def test_files_and_redirects_go_over_https(secured: _Secured) -> None:
    client = secured.as_client("root")
    data = bytes(range(256)) * 1000
    assert client.ask("PUT", "/f", "op=CREATE").headers["location"].startswith(f"{client.address}/webhdfs/v1/f?")
    assert client.address.startswith("https://")
    assert client.transfer("PUT", "/f", "op=CREATE", data).status == 201
    assert client.transfer("GET", "/f", "op=OPEN").body == data
    assert client.namespace.status("/f").owner == "root"


def test_delegation_tokens_are_those_of_https(secured: _Secured) -> None:
    document = secured.as_client("ann").ask("GET", "/", "op=GETDELEGATIONTOKEN").document
    assert HadoopToken.decode(document["Token"]["urlString"]).kind == "SWEBHDFS delegation"


def test_plain_http_gets_no_answer(secured: _Secured) -> None:
    with pytest.raises(ConnectionError):
        Served(secured.served.address, secured.served.namespace).ask("GET", "/", "op=LISTSTATUS")


def test_an_answer_on_a_connection_that_the_server_closes_counts_as_delivered(secured: _Secured) -> None:
    """Defect: over TLS it counted as lost, so that every further piece of a file was taken for a repeat."""
    client = secured.as_client("root")
    client.namespace.write_file("/pieces", b"0")
    target = urlsplit(client.ask("POST", "/pieces", "op=APPEND").headers["location"])
    context = ssl.create_default_context(cafile=secured.authority.bundle)
    context.load_cert_chain(*secured.authority.issue("root"))
    for piece in (b"1", b"2", b"3"):
        address = f"{client.address}{target.path}?{target.query}"
        request = urllib.request.Request(address, piece, method="POST")  # it sends Connection: close
        with urllib.request.urlopen(request, context=context, timeout=PATIENCE_S) as reply:
            assert reply.status == 200
    assert client.namespace.open("/pieces").read() == b"0123"


# --- settings ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (("certificate",), "give both"),
        (("key",), "give both"),
        (("client_ca",), "need HTTPS"),
    ],
)
def test_half_of_what_https_needs_is_refused(tmp_path: Path, given: tuple[str, ...], sentence: str) -> None:
    path = tmp_path / "file.pem"
    path.write_text("", encoding="utf-8")
    with pytest.raises(InvalidRequestError, match=sentence):
        check_settings(ServerSettings(url="", **dict.fromkeys(given, path)))  # type: ignore[arg-type]  # all are paths


@pytest.mark.parametrize("missing", ["certificate", "key", "client_ca", "users_file"])
def test_a_file_that_is_not_there_is_refused(tmp_path: Path, missing: str) -> None:
    path = tmp_path / "file.pem"
    path.write_text("", encoding="utf-8")
    given = {**dict.fromkeys(("certificate", "key", "client_ca", "users_file"), path), missing: tmp_path / "nothing"}
    with pytest.raises(InvalidRequestError, match="does not exist"):
        check_settings(ServerSettings(url="", **given))  # type: ignore[arg-type]  # all are paths


@pytest.mark.parametrize("what", ["key of another certificate", "no key", "key with a password", "no authority"])
def test_certificates_that_cannot_be_used_are_refused(tmp_path: Path, what: str) -> None:
    """Defect: the server said that it serves, and its processes failed one after the other."""
    authority, text = Authority(tmp_path), tmp_path / "text.pem"
    text.write_text("nothing", encoding="utf-8")
    certificate, key = map(Path, authority.issue("one"))
    files = {"certificate": certificate, "key": key, "client_ca": Path(authority.bundle)}
    if what == "key of another certificate":
        files["key"] = Path(authority.issue("other")[1])
    elif what == "key with a password":
        locked = tmp_path / "locked.pem"
        command = ["openssl", "pkey", "-in", str(key), "-aes256", "-passout", "pass:word", "-out", str(locked)]
        subprocess.run(command, check=True, capture_output=True)
        files["key"] = locked
    else:
        files["key" if what == "no key" else "client_ca"] = text
    with pytest.raises(InvalidRequestError, match="certificates cannot be used"):
        check_settings(ServerSettings(url="", **files))


# --- other settings ---------------------------------------------------------------------------------------------------
def test_what_would_fail_later_is_refused(tmp_path: Path) -> None:
    users = tmp_path / "users.ini"
    users.write_text("[groups\n", encoding="utf-8")
    for given, sentence in (
        ({"users_file": users}, "file of users cannot be read"),
        ({"access_log": str(tmp_path)}, "access log cannot be written"),
        ({"access_log": str(tmp_path / "nothing" / "log")}, "access log cannot be written"),
        ({"trash_s": 59.0}, "in minutes"),
    ):
        with pytest.raises(InvalidRequestError, match=sentence):
            check_settings(ServerSettings(url="", **given))  # type: ignore[arg-type]  # the names say which
    check_settings(ServerSettings(url="", access_log=str(tmp_path / "log"), trash_s=60.0))


def test_an_address_that_is_not_here_is_no_port_in_use() -> None:
    with pytest.raises(InvalidRequestError, match="no such address"):
        listen("203.0.113.7", 0)
    with pytest.raises(InvalidRequestError, match="no such address"):
        listen("no such host", 0)
    with listen("127.0.0.1", 0) as first, pytest.raises(UnavailableError, match="stop what uses it"):
        listen("127.0.0.1", first.getsockname()[1])
