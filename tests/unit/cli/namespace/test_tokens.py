"""`namespace token issue`, `list` and `revoke`; what `status` and `gc` say of servers."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.namespace import open_namespace
from holdfast.namespace.maintenance import LeaderElection
from holdfast.runtime import SystemClock
from holdfast.transactions.base import Commit
from holdfast.webhdfs.hadoop_tokens import HadoopToken
from holdfast.webhdfs.servers import ServerRecord, server_key
from holdfast.webhdfs.tokens import Token, TokenKind, TokenStore
from tests.patience import PATIENCE_S
from tests.unit.cli.destinations import run


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a namespace whose superuser is root, as whom the commands run."""
    monkeypatch.setenv("HOLDFAST_NAMESPACES", str(tmp_path / "catalog.json"))
    monkeypatch.setenv("LOGNAME", "root")
    database = f"sqlite://{tmp_path}/n.db?synchronous=normal"
    arguments = ("--database", database, "--data", str(tmp_path / "data"), "--superuser", "root")
    assert run("namespace", "init", "ns", *arguments).exit_code == 0
    return tmp_path


def _find(secret: str) -> Token | None:
    with open_namespace("holdfast://ns") as namespace:
        return TokenStore(namespace.database, namespace.environment).find(secret)


def _ids() -> list[str]:
    lines = run("namespace", "token", "list", "ns", "--json").stdout.splitlines()
    return [json.loads(line)["id"] for line in lines]


# --- issue ------------------------------------------------------------------------------------------------------------
def test_stdout_is_the_token_alone(place: Path) -> None:
    result = run("namespace", "token", "issue", "ns", "ann", "--for", "2d", "--group", "a", "--group", "b")
    assert result.exit_code == 0
    secret = result.stdout.strip()
    token = _find(secret)
    assert token is not None
    assert (token.user, token.groups, token.kind) == ("ann", ("a", "b"), TokenKind.BEARER)
    assert token.expires_ms - token.issued_ms == 2 * 86400 * 1000
    assert secret not in result.stderr
    assert f"token {token.id} for ann, until 20" in result.stderr


def test_a_token_lasts_thirty_days_and_has_the_groups_that_servers_know() -> None:
    document = json.loads(run("namespace", "token", "issue", "ns", "ann", "--note", "é", "--json").stdout)
    token = _find(document["token"])
    assert token is not None
    assert token.expires_ms - token.issued_ms == 30 * 86400 * 1000
    assert token.groups is None
    assert (document["id"], document["user"], document["groups"], document["note"]) == (token.id, "ann", None, "é")


def test_files_are_new_and_for_their_owner_only(place: Path) -> None:
    file, for_hadoop = place / "token", place / "hadoop"
    files = ("--file", str(file), "--hadoop-file", str(for_hadoop), "--server", "127.0.0.1:9870")
    before = os.umask(0)
    try:
        result = run("namespace", "token", "issue", "ns", "ann", *files, "--json")
    finally:
        os.umask(before)
    secret = file.read_text(encoding="utf-8").strip()
    assert _find(secret) is not None
    assert "token" not in json.loads(result.stdout)
    assert secret not in result.output
    assert secret.encode() in for_hadoop.read_bytes()
    assert {stat.S_IMODE(path.stat().st_mode) for path in (file, for_hadoop)} == {0o600}


def test_with_servers_the_token_is_printed_as_hadoop_takes_it() -> None:
    servers = ("--server", "127.0.0.1:9870", "--server", "swebhdfs://127.0.0.2:9871")
    texts = run("namespace", "token", "issue", "ns", "ann", *servers).stdout.strip().split(",")
    tokens = [HadoopToken.decode(text) for text in texts]
    assert [(token.kind, token.service) for token in tokens] == [
        ("WEBHDFS delegation", "127.0.0.1:9870"),
        ("SWEBHDFS delegation", "127.0.0.2:9871"),
    ]
    (secret,) = {token.password.decode() for token in tokens}
    assert _find(secret) is not None


@pytest.mark.parametrize("option", ["--file", "--hadoop-file"])
@pytest.mark.parametrize("where", ["there", "link", "none/new"])
def test_a_file_that_cannot_be_new_leaves_no_token_and_no_file(place: Path, option: str, where: str) -> None:
    (place / "there").write_text("kept", encoding="utf-8")
    (place / "link").symlink_to(place / "there")
    good = ("--file", str(place / "good")) if option == "--hadoop-file" else ()
    files = (*good, option, str(place / where), "--server", "127.0.0.1:1")
    result = run("namespace", "token", "issue", "ns", "ann", *files)
    assert result.exit_code == 2
    assert "choose another" in result.stderr
    assert result.stdout == ""
    assert _ids() == []
    assert not (place / "good").exists()
    assert (place / "there").read_text(encoding="utf-8") == "kept"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["ann", "--hadoop-file", "f"], "give --server HOST:PORT"),
        (["ann", "--server", "nowhere"], "a server is HOST:PORT"),
        (["ann", "--server", "webhdfs://127.0.0.1"], "a server is HOST:PORT"),
        (["ann", "--server", "swebhdfs://localhost"], "a server is HOST:PORT"),
        (["ann", "--for", "0s"], "lasts for a positive time"),
        (["ann", "--for", "soon"], "is not an age"),
        ([""], "the name of a user is empty"),
        (["ann", "--group", ""], "the value is empty"),
        ([], "Missing argument 'USER'"),
    ],
)
def test_mistakes_issue_no_token(arguments: list[str], sentence: str) -> None:
    result = run("namespace", "token", "issue", "ns", *arguments)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert _ids() == []


# --- list and revoke --------------------------------------------------------------------------------------------------
def test_tokens_are_listed_without_secrets_and_revoked_by_id() -> None:
    assert run("namespace", "token", "list", "ns").stdout.startswith("there is no token")
    secrets = [run("namespace", "token", "issue", "ns", user, "--note", "laptop").stdout.strip() for user in ("b", "a")]
    listed = run("namespace", "token", "list", "ns").stdout
    assert [line.split()[1:3] for line in listed.splitlines()[1:]] == [["a", "bearer"], ["b", "bearer"]]
    assert "laptop" in listed
    document = json.loads(run("namespace", "token", "list", "ns", "--json").stdout.splitlines()[0])
    assert document.keys() == {"id", "user", "kind", "groups", "issued", "expires", "note"}
    assert not any(secret in listed or secret in str(document) for secret in secrets)
    result = run("namespace", "token", "revoke", "ns", document["id"])
    assert result.stdout.startswith(f"revoked the token {document['id']} of a")
    assert [_find(secret) is None for secret in secrets] == [False, True]
    again = run("namespace", "token", "revoke", "ns", document["id"])
    assert again.exit_code == 2
    assert "there is no such token" in again.stderr


@pytest.mark.parametrize("arguments", [["issue", "ns", "ann"], ["list", "ns"], ["revoke", "ns", "x"]])
def test_only_the_superuser_has_to_do_with_tokens(place: Path, arguments: list[str]) -> None:
    secret = run("namespace", "token", "issue", "ns", "ann").stdout.strip()
    files = ["--file", str(place / "f")] if arguments[0] == "issue" else []
    result = run("namespace", "token", *arguments, *files, "--user", "ann")
    assert result.exit_code == 2
    assert "superuser" in result.stderr
    assert result.stdout == ""
    assert not (place / "f").exists()
    assert len(_ids()) == 1
    assert _find(secret) is not None


# --- servers ----------------------------------------------------------------------------------------------------------
def _tell_of_servers(leader: str) -> None:
    now_s = SystemClock().now_s()
    records = [
        ServerRecord(token="one", host="10.0.0.7", port=9870, pid=11, since_s=now_s - 7200, at_s=now_s, requests=1234),
        ServerRecord(
            token="two", host="::1", port=9871, pid=12, since_s=0, at_s=now_s - 90, duties={"files": 1500, "trees": 0}
        ),
    ]
    with open_namespace("holdfast://ns") as namespace:
        puts = {server_key(one.token): one.encode() for one in records}
        namespace.database.commit(Commit(puts={**puts, server_key("damaged"): b"{}"}))
        assert LeaderElection(namespace.database, SystemClock(), leader).try_to_lead()


def test_status_shows_servers_and_what_the_leader_has_done() -> None:
    assert json.loads(run("namespace", "status", "ns", "--json").stdout)["servers"] == []
    _tell_of_servers("two")
    one, two = json.loads(run("namespace", "status", "ns", "--json").stdout)["servers"]
    assert (one["host"], one["port"], one["pid"], one["requests"], one["leads"]) == ("10.0.0.7", 9870, 11, 1234, False)
    assert (two["leads"], two["duties"], one["duties"]) == (True, {"files": 1500, "trees": 0}, None)
    assert one["silent_s"] < 60 < two["silent_s"]
    rows = run("namespace", "status", "ns").stdout.splitlines()
    assert any(row.split()[:3] == ["10.0.0.7", "9870", "11"] and "1,234" in row for row in rows)
    assert any(row.split()[:3] == ["::1", "9871", "12"] and row.endswith("1,500 files") for row in rows)


@pytest.mark.parametrize(("leader", "server"), [("two", "[::1]:9871"), ("someone", None)])
def test_gc_says_that_a_server_leads(leader: str, server: str | None) -> None:
    _tell_of_servers(leader)
    assert json.loads(run("namespace", "gc", "ns", "--json").stdout) == {"leads": False, "server": server}
    who = f"the server {server}" if server else "another process"
    assert run("namespace", "gc", "ns").stdout == f"{who} is at work: nothing was done\n"


def test_tokens_and_servers_need_no_packages_of_a_server() -> None:
    """The command line works without the extra `server`."""
    program = """if True:
        import sys
        for name in ("uvicorn", "httptools", "prometheus_client", "uvloop"):
            sys.modules[name] = None
        from holdfast.cli.app import cli
        for words in ("status ns", "gc ns", "token issue ns ann --server 127.0.0.1:1", "token list ns"):
            try:
                cli.main(["namespace", *words.split()])
            except SystemExit as end:
                print("exit code of", words, end.code)
    """
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S)
    ends = [line for line in found.stdout.splitlines() if line.startswith("exit code of")]
    assert [end[-2:] for end in ends] == [" 0"] * 4, found.stdout + found.stderr
