"""The filesystem over an object store that has parts and no rename; the options of the store reach it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.fs import NamespaceFileSystem
from holdfast.namespace import Configuration, init_namespace
from holdfast.stores.s3 import S3Options
from tests.servers.moto import MotoServer

pytestmark = pytest.mark.s3

LARGE = b"0123456789abcdef" * 1024 * 1024  # two parts of 8 MiB


@pytest.fixture
def fs() -> Iterator[NamespaceFileSystem]:
    with MotoServer() as server:
        server.create_bucket("bucket")
        configuration = Configuration(name="n", data="s3://bucket/data", superuser="me")
        access = {"access_key": "holdfast", "secret_key": "secret"}
        options = S3Options(endpoint_url=server.endpoint_url, addressing_style="path", region="us-east-1", **access)
        init_namespace(configuration, "memory://on-s3", register=False, store_options=[options])
        reach = {"endpoint": server.endpoint_url, "region": "us-east-1", "path_style": True, **access}
        yield NamespaceFileSystem(database="memory://on-s3", user="me", **reach)
        NamespaceFileSystem.clear_instance_cache()


def test_large_files(fs: NamespaceFileSystem) -> None:
    with fs.open("n/a", "wb") as file:
        for start in range(0, len(LARGE), 1_000_000):
            file.write(LARGE[start : start + 1_000_000])
    with fs.open("n/a", "ab") as file:
        file.write(b"small end")
    assert fs.size("n/a") == len(LARGE) + 9 and fs.cat_file("n/a", -20) == LARGE[-11:] + b"small end"
    with fs.open("n/a", block_size=1_000_000) as file:
        file.seek(8 * 1024 * 1024 - 5)
        assert file.read(32) == LARGE[11:16] + LARGE[:27]
    starts = list(range(0, 4_000_000, 100_000))
    assert fs.cat_ranges(["n/a"] * 40, starts, [start + 5 for start in starts]) == [
        LARGE[start : start + 5] for start in starts
    ]
    with fs.transaction:
        fs.cp_file("n/a", "n/b")
        fs.pipe_file("n/c", LARGE[:100_000])
        assert fs.ls("n", detail=False) == ["n/a"]
    assert fs.ukey("n/a") != fs.ukey("n/b") and fs.cat_file("n/b", 100, 200) == LARGE[100:200]

    def fails() -> None:
        with fs.open("n/a", "wb") as broken:
            broken.write(LARGE)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    assert fs.size("n/a") == len(LARGE) + 9
