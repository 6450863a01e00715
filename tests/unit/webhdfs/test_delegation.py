"""GETDELEGATIONTOKEN, RENEWDELEGATIONTOKEN and CANCELDELEGATIONTOKEN, as clients ask for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from holdfast.webhdfs.hadoop_tokens import KIND, HadoopToken
from holdfast.webhdfs.settings import ServerSettings
from holdfast.webhdfs.tokens import DELEGATION_MOST_S, DELEGATION_S, Token
from tests.unit.webhdfs.served import Served, serve_fresh
from tests.webhdfs_server import Reply

_INVALID = "org.apache.hadoop.security.token.SecretManager$InvalidToken"
_DENIED = "org.apache.hadoop.security.AccessControlException"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    users: Path = tmp_path_factory.mktemp("users") / "users.ini"
    users.write_text("[groups]\nann = staff\n[proxy hue]\nusers = ann\n", encoding="utf-8")
    with serve_fresh(ServerSettings(url="", users_file=users)) as found:
        yield found


def _get(served: Served, query: str, headers: Mapping[str, str] = {}) -> HadoopToken:
    reply = served.ask("GET", "/", f"op=GETDELEGATIONTOKEN&{query}", None, headers)
    return HadoopToken.decode(reply.document["Token"]["urlString"])


def _known(served: Served, token: HadoopToken) -> Token | None:
    return served.tokens.find(token.password.decode())


def _whoami(served: Served, token: HadoopToken, more: str = "") -> str:
    return str(served.ask("GET", "/", f"op=GETHOMEDIRECTORY&delegation={token.encode()}{more}").document["Path"])


def _put(served: Served, operation: str, user: str, token: HadoopToken) -> Reply:
    return served.ask("PUT", "/", f"op={operation}DELEGATIONTOKEN&user.name={user}&token={token.encode()}")


def test_a_token_proves_its_user_whatever_else_a_request_says(served: Served) -> None:
    token = _get(served, "user.name=ann")
    assert (token.kind, token.service) == (KIND, "")
    assert _whoami(served, token) == "/user/ann"
    assert _whoami(served, token, "&user.name=root") == "/user/ann"
    known = _known(served, token)
    assert known is not None
    assert (known.user, known.renewer, known.groups, known.parent) == ("ann", "ann", None, "")
    assert known.expires_ms - known.issued_ms == DELEGATION_S * 1000
    assert known.most_ms - known.issued_ms == DELEGATION_MOST_S * 1000
    assert b"ann" in token.identifier


def test_kind_and_service_are_what_the_client_wants(served: Served) -> None:
    token = _get(served, "user.name=ann&renewer=yarn&kind=other&service=127.0.0.1:1")
    assert (token.kind, token.service) == ("other", "127.0.0.1:1")
    assert b"yarn" in token.identifier


def test_the_renewer_renews_and_who_may_cancels(served: Served) -> None:
    token = _get(served, "user.name=ann&renewer=yarn")
    known = _known(served, token)
    assert known is not None
    assert _put(served, "RENEW", "yarn", token).document["long"] >= known.expires_ms
    for operation, user in (("RENEW", "ann"), ("RENEW", "bob"), ("CANCEL", "bob"), ("CANCEL", "root")):
        reply = _put(served, operation, user, token)
        assert (reply.status, reply.java_class) == (403, _DENIED)
    assert _put(served, "CANCEL", "yarn", token).status == 200
    for operation in ("RENEW", "CANCEL"):
        reply = _put(served, operation, "yarn", token)
        assert (reply.status, reply.java_class) == (403, _INVALID)
    reply = served.ask("GET", "/", f"op=LISTSTATUS&delegation={token.encode()}")
    assert (reply.status, reply.java_class) == (403, "java.lang.SecurityException")
    message = reply.document["RemoteException"]["message"]
    assert len(message.split(": ", 2)) == 3  # Hadoop's client takes these apart
    assert message.split(": ")[1] == _INVALID


def test_a_delegation_token_gets_no_other_one(served: Served) -> None:
    """Else no job would ever lose its rights."""
    token = _get(served, "user.name=ann")
    reply = served.ask("GET", "/", f"op=GETDELEGATIONTOKEN&delegation={token.encode()}")
    assert (reply.status, reply.java_class) == (400, "java.lang.IllegalArgumentException")
    bearer = {"Authorization": f"Bearer {token.password.decode()}"}
    reply = served.ask("GET", "/", "op=GETDELEGATIONTOKEN", None, bearer)
    assert (reply.status, reply.java_class) == (403, _DENIED)


def test_a_token_got_with_a_bearer_token_has_its_groups_and_its_end(served: Served) -> None:
    secret, parent = served.tokens.issue("ann", 600, groups=("readers",))
    known = _known(served, _get(served, "renewer=yarn", {"Authorization": f"Bearer {secret}"}))
    assert known is not None
    assert (known.groups, known.parent) == (("readers",), parent.id)
    assert known.expires_ms == known.most_ms == parent.expires_ms
    served.tokens.revoke(parent.id)
    assert served.tokens.find(secret) is None
    assert [token for _, token in served.tokens.iter_tokens() if token.parent == parent.id] == []


def test_a_token_of_a_proxy_is_that_of_the_user_without_the_proxys_groups(served: Served) -> None:
    secret, parent = served.tokens.issue("hue", 600, groups=("admins",))
    token = _get(served, "doas=ann", {"Authorization": f"Bearer {secret}"})
    known = _known(served, token)
    assert known is not None
    assert (known.user, known.groups, known.parent) == ("ann", None, parent.id)
    assert _whoami(served, token) == "/user/ann"
    assert _whoami(served, _get(served, "user.name=hue&doas=ann")) == "/user/ann"


@pytest.mark.parametrize("operation", ["RENEW", "CANCEL"])
@pytest.mark.parametrize("query", ["", "&token=", "&token=!", "&token=AAAA"])
def test_what_is_no_token_is_refused(served: Served, operation: str, query: str) -> None:
    reply = served.ask("PUT", "/", f"op={operation}DELEGATIONTOKEN&user.name=ann{query}")
    assert reply.java_class in ("java.lang.IllegalArgumentException", _INVALID)
    assert reply.status in (400, 403)
