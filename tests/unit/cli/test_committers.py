"""`committers`: legible tables, and the committers that a store allows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.commit import COMMITTERS
from holdfast.commit.registry import installed_committers
from holdfast.guarantees import GUARANTEES
from holdfast.stores import memory
from holdfast.stores.memory import MemoryStore
from tests.servers.moto import MotoServer
from tests.servers.tls import Authority, TlsFront
from tests.unit.cli.destinations import on_screen, run
from tests.unit.stores.s3.scripted_server import Answer, ScriptedServer, error


@pytest.mark.parametrize("columns", [80, 100, 200])
def test_the_table_fits_the_screen_and_has_every_row_and_committer(columns: int) -> None:
    shown = on_screen("committers", columns=columns)
    assert max(map(len, shown.splitlines())) <= columns
    for row in GUARANTEES:
        assert row.title in shown
    for name in COMMITTERS:
        assert name in shown
    assert shown.count("C10 repeatable") >= 1
    assert "two_phase (default)" in shown


def test_without_a_terminal_every_row_is_one_line() -> None:
    lines = run("committers").stdout.splitlines()
    heads = [line for line in lines if line.startswith("guarantee")]
    assert len(heads) == 1
    assert "two_phase" in heads[0]
    assert sum(line.startswith("C10 repeatable") for line in lines) == 1


def test_exceptions_are_marked_and_explained() -> None:
    lines = run("committers").stdout.splitlines()
    assert next(line.split()[2] for line in lines if line.startswith("abortable task")) == "yes*"
    assert lines[-1].startswith("* with an exception, which holdfast committers --why COMMITTER names")


def test_as_json() -> None:
    document = json.loads(run("committers", "--json").stdout)
    assert document["default"] == "two_phase"
    assert [one["name"] for one in document["committers"]] == list(installed_committers())
    rows = {row["name"]: row for row in document["guarantees"]}
    assert rows["C8"]["answers"]["two_phase"] == {
        "holds": True,
        "unless": None,
        "why": "one log, written by put-if-absent",
    }
    assert document["committers"][0]["here"] is None
    assert document["transactions"] is None


def test_one_committer_with_its_reasons() -> None:
    result = run("committers", "--why", "two-phase")
    assert "one log, written by" in result.stdout
    if "file-v1" in COMMITTERS:
        assert "file-v1" not in result.stdout


def test_an_unknown_committer_offers_the_nearest() -> None:
    result = run("committers", "--why", "two_fase")
    assert result.exit_code == 2
    assert "did you mean two_phase" in result.stderr


def test_committers_that_a_directory_allows(tmp_path: Path) -> None:
    found = {one["name"]: one for one in json.loads(run("committers", str(tmp_path), "--json").stdout)["committers"]}
    assert found["two_phase"]["here"] == "runs"
    assert "runs" in run("committers", str(tmp_path)).stdout


def test_committers_on_a_store_with_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(memory._stores, "database", MemoryStore(rename=True, transactions=True))
    monkeypatch.setitem(memory._stores, "bucket", MemoryStore())
    document = json.loads(run("committers", "memory://database/t", "--json").stdout)
    assert document["transactions"] is True
    assert {one["name"]: one["here"] for one in document["committers"]}["two_phase"] == "runs"
    sentence = "every reader sees all of it at one instant"
    rows = [line for line in run("committers", "memory://database/t").stdout.splitlines() if sentence in line]
    assert [row.split()[0] for row in rows] == ["two_phase"]
    assert sentence not in run("committers", "memory://bucket/t").stdout
    assert json.loads(run("committers", "memory://bucket/t", "--json").stdout)["transactions"] is False


def test_committers_that_s3_allows_and_a_missing_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scenario 63: committers that rename are refused on S3, with the reason."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    with MotoServer() as server:
        where = ("--endpoint-url", server.endpoint_url, "--region", "us-east-1", "--json")
        server.create_bucket("there")
        found = {one["name"]: one for one in json.loads(run("committers", "s3://there/t", *where).stdout)["committers"]}
        missing = run("committers", "s3://not-there/t", *where)
    assert found["two_phase"]["here"] == "runs"
    if "manifest" in found:
        assert found["manifest"]["here"] != "runs"
        assert "atomic file rename" in found["manifest"]["reason"]
    assert missing.exit_code == 2
    assert "no such bucket" in missing.stderr


LISTED = Answer(body="<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>")
WRITTEN = Answer(headers={"ETag": '"e"'})


def _of_server(*answers: Answer) -> tuple[dict[str, object], str]:
    with ScriptedServer(LISTED, *answers) as server:
        where = ("--endpoint-url", server.url, "--region", "us-east-1", "--json")
        result = run("committers", "s3://bucket/t", *where)
    assert result.exit_code == 0, result.output
    return {one["name"]: one["here"] for one in json.loads(result.stdout)["committers"]}, result.stderr


def test_committers_on_a_server_that_ignores_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Like `write`, which refuses such a server: s3rver, rclone and juicefs ignore the header."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    here, _ = _of_server(WRITTEN, WRITTEN, Answer(204))
    assert here["two_phase"] == "runs with allowUnfenced"
    here, _ = _of_server(WRITTEN, error("PreconditionFailed", 412), Answer(204))
    assert here["two_phase"] == "runs"


def test_without_permission_to_probe_a_note_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    here, said = _of_server(error("AccessDenied", 403))
    assert here["two_phase"] == "runs"
    assert "cannot test whether the store supports conditional writes" in said


def test_a_wrong_url_is_refused() -> None:
    assert run("committers", "s4://bucket/x").exit_code == 2


def test_a_ca_bundle_is_passed_on_with_its_absolute_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's workers may run in another directory."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    monkeypatch.chdir(tmp_path)
    authority = Authority(tmp_path)
    with MotoServer() as moto, TlsFront(moto.endpoint_url, *authority.issue("127.0.0.1")) as front:
        moto.create_bucket("bucket")
        where = ("--endpoint-url", front.url, "--region", "us-east-1")
        reached = run("uploads", "list", "s3://bucket/t", *where, "--ca-bundle", "authority.pem")
        refused = run("history", "s3://bucket/t", *where, "--ca-bundle", "missing.pem")
    assert reached.exit_code == 0, reached.stderr
    assert refused.exit_code == 2
    assert f"ca_bundle='{tmp_path / 'missing.pem'}'" in refused.stderr
