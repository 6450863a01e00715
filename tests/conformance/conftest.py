"""Provide the stores on which the conformance suite runs, each with two handles on the same data."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.namespace import Configuration, init_namespace, open_namespace
from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.s3_server import SeaweedServer
from holdfast.stores.base import MultipartLimits
from holdfast.stores.interceptors import InterceptedStore
from holdfast.stores.local.store import LocalStore
from holdfast.stores.memory import MemoryStore
from holdfast.stores.s3 import S3Options
from holdfast.stores.s3.store import S3Store
from tests.interceptors import Faulty, Recorder, Throttled, ThrottleOptions
from tests.servers.moto import MotoServer

Handles = tuple[object, object]

TINY_PARTS = MultipartLimits(min_part_size_bytes=16)


@pytest.fixture(scope="session")
def memory() -> Handles:
    store = MemoryStore(limits=TINY_PARTS)
    return store, store


@pytest.fixture(scope="session")
def memory_with_rename() -> Handles:
    store = MemoryStore(limits=TINY_PARTS, rename=True)
    return store, store


@pytest.fixture(scope="session")
def memory_with_file_rename() -> Handles:
    """Return a store that renames files but not directories, like GCS, which renames a directory file by file."""
    store = MemoryStore(limits=TINY_PARTS, rename=True, rename_dir=False)
    return store, store


@pytest.fixture(scope="session")
def memory_without_uploads() -> Handles:
    store = MemoryStore(limits=None, rename=True, copy=False)
    return store, store


@pytest.fixture(scope="session")
def memory_with_transactions() -> Handles:
    store = MemoryStore(limits=TINY_PARTS, transactions=True)
    return store, store


@pytest.fixture(scope="session")
def memory_namespace() -> Handles:
    """Return a store with directories and with transactions, like a file system in a database."""
    store = MemoryStore(limits=TINY_PARTS, rename=True, transactions=True)
    return store, store


@pytest.fixture(scope="session")
def namespace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Handles]:
    folder = tmp_path_factory.mktemp("namespace")
    database = f"sqlite://{folder}/ns.db"
    configuration = Configuration(name="ns", data=str(folder / "data"), superuser="root", inline_bytes=64)
    init_namespace(configuration, database, register=False)
    stores = [NamespaceStore(open_namespace(database, user="root")) for _ in range(2)]
    yield stores[0], stores[1]
    for store in stores:
        store.close()


@pytest.fixture(scope="session")
def faulty() -> Handles:
    inner = MemoryStore(limits=TINY_PARTS, rename=True)
    return InterceptedStore(inner, Faulty()), inner


@pytest.fixture(scope="session")
def recorded() -> Handles:
    inner = MemoryStore(limits=TINY_PARTS, rename=True)
    return InterceptedStore(inner, Recorder()), inner


@pytest.fixture(scope="session")
def throttled() -> Handles:
    inner = MemoryStore(limits=TINY_PARTS, rename=True)
    options = ThrottleOptions(request_s=0.0, copy_bytes_per_s=1e12, upload_bytes_per_s=1e12, max_concurrent=3)
    return InterceptedStore(inner, Throttled(options)), inner


@pytest.fixture(scope="session")
def nested() -> Handles:
    """Wrap a store three times."""
    inner = InterceptedStore(MemoryStore(limits=TINY_PARTS, rename=True, transactions=True), Faulty())
    return InterceptedStore(InterceptedStore(inner, Throttled(ThrottleOptions(request_s=0.0))), Recorder()), inner


@pytest.fixture(scope="session")
def local(tmp_path_factory: pytest.TempPathFactory) -> Handles:
    root = tmp_path_factory.mktemp("local") / "not made yet"
    return LocalStore(str(root)), LocalStore(str(root))


@pytest.fixture(scope="session")
def local_recorded(tmp_path_factory: pytest.TempPathFactory) -> Handles:
    root: Path = tmp_path_factory.mktemp("local")
    return InterceptedStore(LocalStore(str(root)), Recorder()), LocalStore(str(root))


def _s3_handles(options: S3Options) -> Handles:
    store = S3Store("conformance", options)
    return store, pickle.loads(pickle.dumps(store))


@pytest.fixture(scope="session")
def moto() -> Iterator[Handles]:
    with MotoServer() as server:
        server.create_bucket("conformance")
        handles = _s3_handles(server.options)
        yield handles
        for handle in handles:
            handle.close()  # type: ignore[attr-defined]  # an S3Store


@pytest.fixture(scope="session")
def weed() -> Iterator[Handles]:
    with SeaweedServer() as server:
        server.create_bucket("conformance")
        handles = _s3_handles(server.options)
        yield handles
        for handle in handles:
            handle.close()  # type: ignore[attr-defined]  # an S3Store
