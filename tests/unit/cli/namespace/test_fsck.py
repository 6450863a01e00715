"""The command ``fsck`` shows what a check finds, for persons and for programs; its exit code tells how bad it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from holdfast.cli.namespace.upkeep import fsck, sweep_namespace
from holdfast.cli.output import Output
from holdfast.namespace import Configuration, Namespace, init_namespace, open_namespace
from holdfast.namespace.keys import garbage_key, times_key
from holdfast.transactions.base import Commit

_LARGE = b"0123456789"


@pytest.fixture
def database(tmp_path: Path) -> str:
    """A new namespace in a file, with its data in a directory."""
    url = f"sqlite:///{tmp_path}/ns.db"
    configuration = Configuration(name="prod", data=str(tmp_path / "data"), superuser="hdfs", inline_bytes=4)
    init_namespace(configuration, url, register=False)
    return url


@pytest.fixture
def namespace(database: str) -> Iterator[Namespace]:
    with open_namespace(database, user="hdfs") as found:
        found.write_file("/a/small", b"123")
        found.write_file("/a/large", _LARGE)
        yield found


def _run(database: str, *arguments: str) -> Result:
    return CliRunner().invoke(fsck, ["prod", "--database", database, "--user", "hdfs", *arguments])


def _blob(namespace: Namespace, path: str) -> str:
    (extent,) = namespace.open(path).inode.extents
    return extent.blob


def test_a_healthy_namespace(database: str, namespace: Namespace) -> None:
    result = _run(database)
    assert result.exit_code == 0
    assert result.output == "healthy: prod (2 directories, 2 files of 13 B, 1 blob of 14 B, not read: see --read)\n"
    document = json.loads(_run(database, "--json").output)
    assert document["healthy"] is True
    assert document["counts"]["directories"] == 2
    assert (document["findings"], document["totals"]) == ([], {})


def test_damage(database: str, namespace: Namespace) -> None:
    namespace.blobs.store.delete(namespace.blobs.key(_blob(namespace, "/a/large")))
    result = _run(database)
    assert result.exit_code == 1
    lines = result.output.splitlines()
    assert lines[0] == "damage: bytes of a file are missing: /a/large"
    assert lines[1].startswith("  next: restore the object from a backup")
    assert lines[-1].startswith("DAMAGED: 1 finding in prod")
    again = _run(database, "--repair")
    assert again.exit_code == 1
    document = json.loads(_run(database, "--json").output)
    assert [finding["kind"] for finding in document["findings"]] == ["missing-blob"]
    assert document["findings"][0]["path"] == "/a/large"


def test_leftovers_are_no_damage(database: str, namespace: Namespace) -> None:
    namespace.database.commit(Commit(adds={times_key(10**6): 5}))
    result = _run(database)
    assert result.exit_code == 0
    assert "leftover: the time of a directory that does not exist" in result.output
    assert result.output.splitlines()[-1].startswith("healthy: prod")


def test_a_repair(database: str, namespace: Namespace) -> None:
    blob = _blob(namespace, "/a/large")
    namespace.database.commit(Commit(puts={garbage_key(1, blob): b""}))
    assert _run(database).exit_code == 1
    result = _run(database, "--repair")
    assert result.exit_code == 0
    assert result.output.startswith("repaired: a blob of a file is noted as garbage: /a/large\n")
    namespace.collect()
    assert namespace.open("/a/large").read() == _LARGE
    document = json.loads(_run(database, "--repair", "--json").output)
    assert (document["repaired"], document["lost_and_found"]) == ([], "")


def test_what_belongs_nowhere_is_shown(database: str, namespace: Namespace) -> None:
    namespace.mkdirs("/b/c")
    key = next(key for key, _ in namespace.database.scan(b"i", b"j", 100).records if key.endswith(b"b"))
    namespace.database.commit(Commit(deletes=[key]))
    result = _run(database, "--repair")
    assert result.exit_code == 0
    (shown,) = [line for line in result.output.splitlines() if line.startswith("what belonged nowhere is in ")]
    assert "c" in [entry.name for entry in namespace.walk(shown.removeprefix("what belonged nowhere is in "))]


def test_only_the_superuser_repairs(database: str, namespace: Namespace) -> None:
    result = CliRunner().invoke(fsck, ["prod", "--database", database, "--user", "nobody", "--repair"])
    assert result.exit_code == 2
    assert "only the superuser may repair" in result.output


def test_an_unknown_namespace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_NAMESPACES", str(tmp_path / "catalog.json"))
    result = CliRunner().invoke(fsck, ["nothing-of-this-name"])
    assert result.exit_code == 2
    assert "no such namespace" in result.output


def test_a_sweep_says_what_it_found(namespace: Namespace, capsys: pytest.CaptureFixture[str]) -> None:
    namespace.database.commit(Commit(adds={times_key(10**6): 5}))
    assert sweep_namespace(namespace, Output()).records == 1
    assert capsys.readouterr().out == "deleted 1 record of directories that do not exist\n"
    assert sweep_namespace(namespace, Output()).records == 0
    assert capsys.readouterr().out == ""
