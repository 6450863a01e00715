"""`check-store` reports correct and faulty stores as they are, and leaves nothing behind."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.check_store import _call_and_track_uploads, remove_directory
from holdfast.commit import COMMITTERS
from holdfast.errors import NotFoundError, UnavailableError
from holdfast.runtime import ThreadRunner
from holdfast.stores import memory
from holdfast.stores.base import (
    Create,
    MultipartLimits,
    ObjectInfo,
    Overwrite,
    Part,
    PutMode,
    iter_objects,
    iter_uploads,
)
from holdfast.stores.conformance import checks_for
from holdfast.stores.conformance.topics import TOPICS, findings
from holdfast.stores.interceptors import InterceptedStore
from holdfast.stores.local.store import LocalStore
from holdfast.stores.memory import MemoryStore
from tests.patience import PATIENCE_S
from tests.servers.minio_like import MinioLike
from tests.servers.moto import MotoServer
from tests.unit.cli.destinations import run
from tests.unit.stores.s3.scripted_server import ScriptedServer, error

TINY_PARTS = MultipartLimits(min_part_size_bytes=16)


def _at(store: MemoryStore, monkeypatch: pytest.MonkeyPatch, *more: str) -> tuple[int, dict[str, Any], str]:
    """Run the command on a store that is registered as ``memory://it``."""
    monkeypatch.setitem(memory._stores, "it", store)
    result = run("check-store", "memory://it/t", "--rounds", "3", "--json", *more)
    return result.exit_code, json.loads(result.stdout), result.stderr


def _verdicts(document: Mapping[str, Any]) -> dict[str, str]:
    return {one["name"]: one["here"] for one in document["committers"]}


def _failed(document: Mapping[str, Any]) -> dict[str, list[str]]:
    return {one["name"]: one["failed"] for one in document["topics"] if one["failed"]}


@pytest.mark.parametrize("rename", [False, True])
def test_every_check_belongs_to_one_topic(rename: bool) -> None:
    memory = MemoryStore(rename=rename, transactions=True)
    for capabilities in (memory.capabilities, LocalStore("/").capabilities):
        for check in checks_for(capabilities):
            assert len(findings({check.name: None})) == 1, check.name
    assert len({topic.name for topic in TOPICS}) == len(TOPICS)


def test_every_name_in_a_topic_is_a_check() -> None:
    plain, files = MemoryStore(transactions=True), MemoryStore(rename=True)
    both = MemoryStore(rename=True, transactions=True)
    stores = (plain, files, both, MemoryStore(rename=True, rename_dir=False))
    known = {check.name for store in stores for check in checks_for(store.capabilities)}
    named = {name for topic in TOPICS for name in topic.checks if not name.endswith(":")}
    assert named <= known


def test_a_correct_store(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore(limits=TINY_PARTS)
    store.put("t/mine", b"1")
    pending = store.create_upload("t/pending")
    code, document, _ = _at(store, monkeypatch)
    assert (code, document["safe"], _failed(document)) == (0, True, {})
    assert _verdicts(document)["two_phase"] == "safe"
    assert _verdicts(document)["manifest"] == "refused"
    assert set(_verdicts(document)) == set(COMMITTERS)
    assert [info.key for info in iter_objects(store, "")] == ["t/mine"]
    assert [upload.upload_id for upload in iter_uploads(store, "")] == [pending]


class _LosesUploads(MemoryStore):
    """A file system in a database, which says that a missing upload was completed."""

    def complete_upload(self, key: str, upload_id: str, parts: Sequence[Part]) -> ObjectInfo:
        try:
            return super().complete_upload(key, upload_id, parts)
        except NotFoundError:
            return ObjectInfo(key, 0)


def test_a_store_with_transactions_needs_uploads_although_it_renames(monkeypatch: pytest.MonkeyPatch) -> None:
    code, document, _ = _at(MemoryStore(limits=TINY_PARTS, rename=True, transactions=True), monkeypatch)
    assert (code, document["safe"], _failed(document)) == (0, True, {})
    assert "transactions" in {one["name"] for one in document["topics"]}
    code, document, _ = _at(_LosesUploads(limits=TINY_PARTS, rename=True, transactions=True), monkeypatch)
    [reason] = [one["reason"] for one in document["committers"] if one["name"] == "two_phase"]
    assert (code, document["safe"], reason.partition(":")[0]) == (1, False, "uploads")


class _IgnoresConditions(MemoryStore):
    def put(
        self, key: str, data: bytes, mode: PutMode = Overwrite(), metadata: Mapping[str, str] | None = None
    ) -> ObjectInfo:
        return super().put(key, data, Overwrite(), metadata)


def test_a_store_that_ignores_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    code, document, _ = _at(_IgnoresConditions(limits=TINY_PARTS), monkeypatch)
    assert (code, document["safe"]) == (1, False)
    assert "conditional writes" in _failed(document)
    assert _verdicts(document)["two_phase"] == "not safe"
    assert _verdicts(document)["magic"] == "safe"


class _OnlyRacesFail(MemoryStore):
    """Lets a second writer win that comes while the first one is writing."""

    def put(
        self, key: str, data: bytes, mode: PutMode = Overwrite(), metadata: Mapping[str, str] | None = None
    ) -> ObjectInfo:
        if isinstance(mode, Create) and "race" in key and data != b"0":
            return super().put(key, data, Overwrite(), metadata)
        return super().put(key, data, mode, metadata)


def test_a_store_that_lets_two_win_in_races_only(monkeypatch: pytest.MonkeyPatch) -> None:
    code, document, _ = _at(_OnlyRacesFail(limits=TINY_PARTS), monkeypatch)
    assert code == 1
    assert document["heeds_conditions"] is True
    assert list(_failed(document)) == ["conditional writes, many at once"]
    two_phase = next(one for one in document["committers"] if one["name"] == "two_phase")
    assert two_phase["here"] == "not safe"
    assert "decide at the same time" in two_phase["reason"]


def test_a_store_that_lists_uploads_by_whole_keys_only(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = MemoryStore(limits=TINY_PARTS)
    code, document, _ = _at(MinioLike(inner), monkeypatch)  # type: ignore[arg-type]  # stands where a memory store does
    assert (code, document["upload_listing"]) == (0, "by whole key")
    assert list(_failed(document)) == ["listings of pending uploads"]
    assert list(iter_objects(inner, "")) == []
    assert list(iter_uploads(inner, "")) == [], "also those that the server does not list"


def test_the_report_for_a_person(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(memory._stores, "it", _IgnoresConditions(limits=TINY_PARTS))
    result = run("check-store", "memory://it/t", "--rounds", "3", "--verbose")
    lines = result.stdout.splitlines()
    assert any(line.startswith("conditional writes ") and " NO " in line for line in lines)
    assert any(line.startswith("check_create ") and "expected PreconditionError" in line for line in lines)
    assert lines[-1].startswith("two_phase is not safe at memory://it/t: ")


@pytest.mark.slow
def test_a_directory_is_left_unchanged(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("1")
    result = run("check-store", str(tmp_path), "--rounds", "2", "--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["safe"]) == (0, True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine"]
    assert run("check-store", str(tmp_path / "a/b"), "--rounds", "1").exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine"], "directories that it has made go too"
    assert {"file-v1": "safe", "manifest": "safe"}.items() <= _verdicts(document).items()


def test_a_bucket_whose_lifecycle_rules_abort_uploads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command against a server, and the bucket's lifecycle rules; no check of the suite runs twice here."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    with MotoServer() as server:
        server.create_bucket("bucket")
        missing = run("check-store", "s3://not-there/t", "--endpoint-url", server.endpoint_url, "--region", "us-east-1")
    assert missing.exit_code == 2
    assert "no such bucket" in missing.stderr


def test_credentials_that_may_not_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    with ScriptedServer(error("AccessDenied", 403)) as server:
        result = run("check-store", "s3://bucket/t", "--endpoint-url", server.url, "--region", "us-east-1")
        assert result.exit_code == 2
        assert "check them and the policy" in result.stderr
        assert len(server.requests) == 1


def test_everything_that_was_written_is_removed() -> None:
    inner = MemoryStore(limits=TINY_PARTS, transactions=True)
    pending: set[tuple[str, str]] = set()
    store = InterceptedStore(MinioLike(inner), partial(_call_and_track_uploads, pending))
    for name in ("c/a", "c/b/", "c/d//e"):
        store.put(name, b"")
    done = store.create_upload("c/done")
    store.complete_upload("c/done", done, [store.upload_part("c/done", done, 1, b"1")])
    for number in range(5):
        store.create_upload(f"c/{number}")
    store.put("d", b"another's")
    assert len(pending) == 5
    assert remove_directory(MinioLike(inner), "c/", pending, ThreadRunner(2)) == []
    assert [info.key for info in iter_objects(inner, "", markers=True)] == ["d"]
    assert list(iter_uploads(inner, "")) == []


class _Keeps(MemoryStore):
    """Deletes nothing."""

    def delete_many(self, keys: Sequence[str]) -> None:
        """Do nothing."""


def test_what_cannot_be_removed_is_named() -> None:
    inner = _Keeps(limits=TINY_PARTS)
    inner.put("c/a", b"1")
    inner.create_upload("c/b")
    assert remove_directory(inner, "c/", set(), ThreadRunner(2)) == ["c/a"]
    assert list(iter_uploads(inner, "")) == []


class _RefusesOddKeys(MemoryStore):
    def head(self, key: str) -> ObjectInfo:
        if "\t" in key:
            raise UnavailableError("no XML")
        return super().head(key)


def test_no_upload_is_started_where_no_object_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """It could not be removed."""
    code, document, _ = _at(_RefusesOddKeys(limits=TINY_PARTS), monkeypatch)
    assert code == 0
    assert document["checks"]["listed-upload:tab"] == "skipped: key:tab failed"
    assert document["checks"]["listed-upload:space"] is None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_removes_what_it_wrote(tmp_path: Path, number: signal.Signals) -> None:
    place, said = tmp_path / "place", tmp_path / "said"
    command = [sys.executable, "-m", "holdfast.cli", "check-store", str(place), "--rounds", "10000"]
    with said.open("wb") as stderr:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr)
    try:
        deadline_s = time.monotonic() + PATIENCE_S
        while not list(place.glob("_holdfast-check-*/suite/*")):
            assert time.monotonic() < deadline_s
            with contextlib.suppress(subprocess.TimeoutExpired):
                pytest.fail(f"ended with {process.wait(0.05)}: {said.read_text()}")
        process.send_signal(number)
        process.wait(PATIENCE_S)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 128 + number
    assert "removing what was written" in said.read_text()
    assert not place.exists()
