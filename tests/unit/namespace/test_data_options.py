"""What a namespace keeps for all its clients: how to reach the object store of its data."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import CorruptDataError, HoldfastError, InvalidRequestError, NotFoundError
from holdfast.fs import NamespaceFileSystem
from holdfast.namespace import Configuration, init_namespace, open_namespace
from holdfast.namespace.object_store.provider import NamespaceOptions
from holdfast.stores.provider import StoreOptions
from holdfast.stores.registry import open_destination
from holdfast.stores.s3 import S3Options
from tests.servers.moto import MotoServer
from tests.unit.cli.destinations import run

pytestmark = pytest.mark.s3

_LARGE = b"0123456789" * 1000
_URL = "holdfast://ns/f"


@pytest.fixture(scope="module")
def server() -> Iterator[MotoServer]:
    with MotoServer() as server:
        server.create_bucket("bucket")
        yield server


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a database, and an environment that has credentials for the data, but no endpoint."""
    monkeypatch.setenv("HOLDFAST_NAMESPACES", str(tmp_path / "catalog.json"))
    monkeypatch.setenv("LOGNAME", "root")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "holdfast")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    return f"sqlite://{tmp_path}/n.db"


def _init(database: str, *more: str) -> str:
    data = f"s3://bucket/{Path(database).parent.name}"
    result = run("namespace", "init", "ns", "--database", database, "--data", data, "--inline-bytes", "4", *more)
    assert result.exit_code == 0, result.output
    return result.output


def _configuration(tmp_path: Path, options: dict[str, str]) -> Configuration:
    return Configuration(name="ns", data=f"s3://bucket/{tmp_path.name}", superuser="root", data_options=options)


def test_clients_need_no_more_than_the_url(server: MotoServer, database: str) -> None:
    """Defect: the endpoint of `init` was forgotten, and every other command asked AWS."""
    _init(database, "--endpoint-url", server.endpoint_url, "--region", "eu-test-1", "--store-option", "pathStyle=true")
    with open_namespace("holdfast://ns") as namespace:
        kept = {"endpoint": server.endpoint_url, "region": "eu-test-1", "pathStyle": "true"}
        assert namespace.configuration.data_options == kept
        namespace.write_file("/f", _LARGE)
    fs = NamespaceFileSystem(skip_instance_cache=True)
    assert fs.cat_file("ns/f") == _LARGE
    assert run("fs", "cat", _URL).stdout.encode() == _LARGE
    store = open_destination("holdfast://ns").store
    assert store.get("f") == _LARGE
    store.close()
    assert f"endpoint={server.endpoint_url} region=eu-test-1" in " ".join(
        run("namespace", "status", "ns").stdout.split()
    )
    assert "canary" not in Path(database.removeprefix("sqlite://")).read_bytes().decode("latin-1")
    assert "exists already" in _init(database), "who repeats it needs no endpoint either"


def test_the_same_place_without_options_forgets_them(server: MotoServer, database: str) -> None:
    _init(database, "--endpoint-url", server.endpoint_url, "--region", "eu-test-1")
    data = f"s3://bucket/{Path(database).parent.name}"
    result = run("namespace", "set", "ns", "--data", data, "--endpoint-url", server.endpoint_url)
    assert result.exit_code == 0, result.output
    with open_namespace("holdfast://ns") as namespace:
        assert namespace.configuration.data_options == {"endpoint": server.endpoint_url}


def test_what_a_client_says_itself_goes_before(server: MotoServer, database: str) -> None:
    _init(database, "--endpoint-url", server.endpoint_url)
    nobody = S3Options(endpoint_url="http://127.0.0.1:1", max_attempts=1, connect_timeout_s=0.5)
    with open_namespace("holdfast://ns", store_options=[nobody]) as namespace:
        with pytest.raises(HoldfastError, match=r"127\.0\.0\.1:1"):
            namespace.write_file("/f", _LARGE)


@pytest.mark.parametrize("options", [[], [NamespaceOptions(user="root")]])
def test_options_of_a_store_over_a_namespace_reach_its_data(
    server: MotoServer, database: str, monkeypatch: pytest.MonkeyPatch, options: list[StoreOptions]
) -> None:
    """Defect: a job on a namespace got its endpoint as an option, and asked AWS."""
    with monkeypatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", server.endpoint_url)
        _init(database)
    options = [*options, S3Options(endpoint_url=server.endpoint_url, region="us-east-1")]
    with open_namespace("holdfast://ns", store_options=options) as namespace:
        assert namespace.configuration.data_options == {}
        namespace.write_file("/f", _LARGE)
    store = open_destination("holdfast://ns", options).store
    assert store.get("f") == _LARGE
    store.close()


def test_a_wrong_server_is_seen_at_once(server: MotoServer, database: str) -> None:
    arguments = ["namespace", "init", "ns", "--database", database, "--endpoint-url", server.endpoint_url]
    result = run(*arguments, "--data", "s3://no-such-bucket/data")
    assert result.exit_code == 2 and "bucket" in result.stderr
    with pytest.raises(NotFoundError):
        open_namespace(database)


@pytest.mark.parametrize("options", [{"secretKey": "canary"}, {"caBundle": "/ca.pem"}, {"odd": "canary"}])
def test_only_what_is_the_same_for_all_is_kept(database: str, tmp_path: Path, options: dict[str, str]) -> None:
    with pytest.raises(InvalidRequestError, match="cannot be kept for all clients") as caught:
        init_namespace(_configuration(tmp_path, options), database)
    assert "canary" not in str(caught.value)
    assert not (tmp_path / "n.db").exists()


def test_what_the_database_says_is_checked(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong: list[Any] = [{"endpoint": 1}, ["endpoint"]]
    for options in wrong:
        with pytest.raises(InvalidRequestError, match="names and texts"):
            _configuration(tmp_path, options)
    for damaged in ('"x"', '["endpoint"]', '{"endpoint": {}}'):
        path = tmp_path / "m.db"
        path.unlink(missing_ok=True)
        configuration = Configuration(name="m", data=str(tmp_path / f"data-{len(damaged)}"), superuser="root")
        init_namespace(configuration, f"sqlite://{path}", register=False)
        _damage(path, damaged)
        with pytest.raises(CorruptDataError, match="configuration of the namespace is damaged"):
            open_namespace(f"sqlite://{path}")


def _damage(path: Path, text: str) -> None:
    with sqlite3.connect(path) as connection:
        changed = connection.execute(
            """UPDATE records SET value = CAST(replace(CAST(value AS TEXT), '"data_options": {}', ?) AS BLOB)
               WHERE instr(CAST(value AS TEXT), '"data_options"') > 0""",
            (f'"data_options": {text}',),
        ).rowcount
    connection.close()
    assert changed == 1
