"""No secret of a client is in what a server writes: logs, errors, counters, answers and the database."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from holdfast.webhdfs.calls import Call
from holdfast.webhdfs.hadoop_tokens import HadoopToken
from holdfast.webhdfs.parameters import Parameters
from holdfast.webhdfs.settings import ServerSettings
from holdfast.webhdfs.tokens import TokenKind
from tests.namespace_world import all_records
from tests.unit.webhdfs.served import Served, serve_fresh
from tests.webhdfs_server import Reply


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "access.log"


@pytest.fixture
def served(log: Path) -> Iterator[Served]:
    """A server with a log, and a directory of ann's."""
    with serve_fresh(ServerSettings(url="", access_log=str(log), believes_names=False)) as found:
        found.namespace.mkdirs("/d")
        found.namespace.set_permission("/d", 0o777)
        yield found


def _spellings(secret: str, token: HadoopToken) -> list[bytes]:
    """Return how a secret may be written, without what else is in a token."""
    text = token.encode()
    return [secret.encode(), text.encode(), text[-40:].encode(), quote(text).encode(), repr(secret).encode()]


def _use(served: Served, secret: str, token: HadoopToken) -> list[Reply]:
    """Send good and bad requests with a secret in every place where one can be."""
    text = token.encode()
    bearer = {"Authorization": f"Bearer {secret}"}
    wrong = text[:-1] + ("A" if text[-1] != "A" else "B")
    replies = [
        served.transfer("PUT", "/d/f", "op=CREATE&overwrite=true", b"1", bearer),
        served.ask("GET", "/d/f", "op=GETFILESTATUS", None, bearer),
        served.ask("GET", "/d/nothing", "op=GETFILESTATUS", None, bearer),
        served.ask("GET", "/d/../x", "op=GETFILESTATUS", None, bearer),
        served.ask("GET", "/d", "op=NOTHING", None, bearer),
        served.ask("GET", "/d", f"op=GETFILESTATUS&offset={text}", None, bearer),
        served.ask("GET", "/d", "op=LISTSTATUS", None, {"Authorization": f"Bearer {secret}x"}),
        served.ask("GET", "/d", "op=LISTSTATUS", None, {"Authorization": secret}),
        served.ask("GET", "/d", "op=LISTSTATUS", None, {"Authorization": f"Negotiate {secret}"}),
        served.ask("GET", "/d", "op=LISTSTATUS", None, {**bearer, "Origin": "http://evil.example"}),
    ]
    for given in (text, wrong, text[:-9], f"{text}%ff", f"{text}%00", secret):
        replies += [
            served.ask("GET", "/d", f"op=LISTSTATUS&delegation={given}"),
            served.ask("GET", "/d", f"op=GETCONTENTSUMMARY&Delegation={given}"),
            served.ask("PUT", "/d", f"op=SETOWNER&owner=bob&delegation={given}"),
            served.ask("PUT", "/d", f"op=MKDIRS&permission=x&delegation={given}"),
            served.ask("PUT", "/", f"op=RENEWDELEGATIONTOKEN&token={given}", None, bearer),
            served.ask("GET", "/", f"op=GETDELEGATIONTOKEN&delegation={given}"),
            served.ask("GET", "/d", f"op=LISTSTATUS&doas=bob&delegation={given}"),
            served.ask("GET", "/d", f"op=LISTSTATUS&delegation={given}", None, {"Origin": "null"}),
        ]
    first = served.ask("GET", "/d/f", f"op=OPEN&delegation={text}")
    assert first.status == 307
    assert f"delegation={text}" in first.headers["location"]  # as HDFS does: the client adds nothing
    return replies


@pytest.mark.parametrize("kind", TokenKind)
def test_a_secret_is_only_where_its_client_has_put_it(
    served: Served, log: Path, kind: TokenKind, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    secret, _ = served.tokens.issue("ann", 600, kind=kind)
    token = HadoopToken(b"ann", secret.encode())
    replies = _use(served, secret, token)
    assert {reply.status for reply in replies} >= {200, 201, 400, 401, 403, 404}
    written = {
        "answers": b"".join(reply.body + repr(reply.headers).encode() for reply in replies),
        "access log": log.read_bytes(),
        "log": caplog.text.encode(),
        "output": "".join(capfd.readouterr()).encode(),
        "metrics": served.send("GET", "/metrics", None, {}).body,
        "health": served.send("GET", "/health", None, {}).body,
        "database": b"".join(key + one.value for key, one in all_records(served.namespace.database).items()),
    }
    assert b'"user":"ann"' in written["access log"]
    assert b"holdfast_requests_total" in written["metrics"]
    found = {(name, one) for name, data in written.items() for one in _spellings(secret, token) if one in data}
    assert found == set()


def test_a_request_does_not_show_its_secrets(served: Served) -> None:
    parameters = Parameters.parse(b"op=OPEN&delegation=very-secret&token=very-secret")
    call = Call(
        method="GET",
        operation="OPEN",
        path="/",
        parameters=parameters,
        namespace=served.namespace,
        host="",
        port=0,
        tokens=served.tokens,
    )
    assert "very-secret" not in repr(parameters) + repr(call) + repr(parameters.error("op", "no"))


def test_the_log_says_who_acts_for_whom(tmp_path: Path, log: Path) -> None:
    users = tmp_path / "users.ini"
    users.write_text("[groups]\n[proxy hue]\nusers = ann\n", encoding="utf-8")
    with serve_fresh(ServerSettings(url="", access_log=str(log), users_file=users)) as served:
        served.ask("GET", "/", "op=LISTSTATUS&user.name=hue&doas=ann")
        served.ask("GET", "/", "op=LISTSTATUS&user.name=hue")
    first, second = log.read_text(encoding="utf-8").splitlines()
    assert '"user":"ann"' in first
    assert '"real_user":"hue"' in first
    assert '"user":"hue"' in second
    assert "real_user" not in second
