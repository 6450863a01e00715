"""Two clients in Python against the WebHDFS server: fsspec's ``webhdfs``, and ``hdfs`` from PyPI."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from hdfs import HdfsError, InsecureClient

from tests.integration.served_namespace import ServedNamespace, serve_namespace

DATA = bytes(range(256)) * 50_000
"""12.8 MB: several chunks of each client."""

ODD_NAMES = ("é漢😀", "a b", "50%", "a+b", "k=v&w", "x;y", "[z]^~")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedNamespace]:
    with serve_namespace(tmp_path_factory.mktemp("served"), superuser=getpass.getuser()) as running:
        yield running


@pytest.fixture(scope="module")
def fs(served: ServedNamespace) -> Any:
    return _fsspec_client(served, getpass.getuser())


def _fsspec_client(served: ServedNamespace, user: str) -> Any:
    """Return a client that is not in fsspec's cache, where it would outlive the server."""
    return fsspec.filesystem("webhdfs", host="127.0.0.1", port=served.port, user=user, skip_instance_cache=True)


@pytest.fixture(scope="module")
def client(served: ServedNamespace) -> InsecureClient:
    return InsecureClient(f"http://127.0.0.1:{served.port}", user=getpass.getuser())


# --- fsspec -----------------------------------------------------------------------------------------------------------
def test_fsspec_writes_and_reads_large_files(fs: Any) -> None:
    """It appends all chunks of a file by one address: none of them is a repeat of another."""
    with fs.open("/fsspec/large", "wb", block_size=1024 * 1024) as file:
        for start in range(0, len(DATA), 700_000):
            file.write(DATA[start : start + 700_000])
    assert fs.size("/fsspec/large") == len(DATA)
    assert fs.cat_file("/fsspec/large") == DATA
    assert fs.cat_file("/fsspec/large", start=1_000_000, end=1_000_010) == DATA[1_000_000:1_000_010]
    with fs.open("/fsspec/large", "rb", block_size=65536) as file:
        file.seek(-5, 2)
        assert file.read(100) == DATA[-5:]
        file.seek(3_000_000)
        assert file.read(70_000) == DATA[3_000_000:3_070_000]


def test_fsspec_appends_equal_chunks(fs: Any) -> None:
    """Equal requests by the same address, one after the other, are all done."""
    chunk = b"x" * 1024 * 1024
    with fs.open("/fsspec/equal", "wb", block_size=len(chunk)) as file:
        for _ in range(8):
            file.write(chunk)
    assert fs.cat_file("/fsspec/equal") == chunk * 8
    assert fs.tail("/fsspec/equal", 4) == b"xxxx"


def test_fsspec_moves_trees_to_and_fro(fs: Any, tmp_path: Path) -> None:
    files = {f"d{number}/{name}": f"{number}{name}".encode() for number in range(2) for name in ODD_NAMES}
    for name, data in files.items():
        path = tmp_path / "there" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    fs.put(str(tmp_path / "there"), "/fsspec/tree", recursive=True)
    found = fs.find("/fsspec/tree")
    assert found == sorted(f"/fsspec/tree/{name}" for name in files)
    assert [fs.cat_file(path) for path in found] == [files[path.removeprefix("/fsspec/tree/")] for path in found]
    assert fs.glob("/fsspec/tree/*/a*") == [f"/fsspec/tree/d{n}/{name}" for n in range(2) for name in ("a b", "a+b")]
    fs.get("/fsspec/tree/", str(tmp_path / "back"), recursive=True)
    assert {name: (tmp_path / "back" / name).read_bytes() for name in files} == files
    assert fs.du("/fsspec/tree") == sum(map(len, files.values()))
    summary = fs.content_summary("/fsspec/tree")
    assert (summary["fileCount"], summary["directoryCount"], summary["length"]) == (14, 3, fs.du("/fsspec/tree"))
    fs.rm("/fsspec/tree", recursive=True)
    assert not fs.exists("/fsspec/tree")


def test_fsspec_changes_names_and_attributes(fs: Any) -> None:
    fs.makedirs("/fsspec/names/a")
    fs.pipe_file("/fsspec/names/f", b"1")
    fs.mv("/fsspec/names/f", "/fsspec/names/g")
    fs.cp_file("/fsspec/names/g", "/fsspec/names/h")
    assert fs.ls("/fsspec/names") == [f"/fsspec/names/{name}" for name in "agh"]
    fs.chmod("/fsspec/names/g", "640")
    fs.chown("/fsspec/names/g", owner="ann", group="staff")
    info = fs.info("/fsspec/names/g")
    assert (info["permission"], info["owner"], info["group"], info["type"]) == ("640", "ann", "staff", "file")
    assert fs.ukey("/fsspec/names/g")["algorithm"] == "MD5-of-0MD5-of-512CRC32C"
    assert fs.home_directory() == f"/user/{getpass.getuser()}"
    assert fs.modified("/fsspec/names/g") is not None
    assert [path for path, _, _ in fs.walk("/fsspec/names")] == ["/fsspec/names", "/fsspec/names/a"]


def test_errors_of_fsspec(fs: Any, served: ServedNamespace) -> None:
    for call in (fs.info, fs.ls, fs.cat_file):
        with pytest.raises(FileNotFoundError):
            call("/none")
    with pytest.raises(PermissionError):
        _fsspec_client(served, "eve").pipe_file("/eve", b"1")
    fs.pipe_file("/fsspec/d/f", b"1")
    with pytest.raises(RuntimeError, match="not empty"):
        fs.rm("/fsspec/d")


# --- hdfs -------------------------------------------------------------------------------------------------------------
def test_hdfs_writes_and_reads(client: InsecureClient) -> None:
    client.write("/hdfs/f", (DATA[start : start + 999_999] for start in range(0, len(DATA), 999_999)))
    with client.read("/hdfs/f", chunk_size=65536) as pieces:
        assert b"".join(pieces) == DATA
    with client.read("/hdfs/f", offset=1_000_000, length=10) as reader:
        assert reader.read() == DATA[1_000_000:1_000_010]
    client.write("/hdfs/f", b" and more", append=True)
    with client.read("/hdfs/f", offset=len(DATA)) as reader:
        assert reader.read() == b" and more"
    with pytest.raises(HdfsError, match="out of the range"), client.read("/hdfs/f", offset=10**9):
        pass
    with pytest.raises(HdfsError, match="a file has this path already"):
        client.write("/hdfs/f", b"")
    client.write("/hdfs/f", "é", overwrite=True, encoding="utf-8", permission=600)
    with client.read("/hdfs/f", encoding="utf-8") as reader:
        assert reader.read() == "é"
    with client.write("/hdfs/g") as writer:
        writer.write(DATA)
    assert client.status("/hdfs/g")["length"] == len(DATA)


def test_hdfs_moves_trees_to_and_fro(client: InsecureClient, tmp_path: Path) -> None:
    files = {f"d{number}/{name}": f"{number}{name}".encode() for number in range(2) for name in ODD_NAMES}
    for name, data in files.items():
        path = tmp_path / "there" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    client.upload("/hdfs/tree", str(tmp_path / "there"), n_threads=4)
    found = {f"{folder}/{name}" for folder, _, names in client.walk("/hdfs/tree") for name in names}
    assert found == {f"/hdfs/tree/{name}" for name in files}
    client.download("/hdfs/tree", str(tmp_path / "back"), n_threads=4)
    assert {name: (tmp_path / "back" / name).read_bytes() for name in files} == files
    assert client.content("/hdfs/tree")["fileCount"] == len(files)
    assert client.delete("/hdfs/tree", recursive=True) and not client.delete("/hdfs/tree")


def test_hdfs_changes_names_and_attributes(client: InsecureClient) -> None:
    client.makedirs("/hdfs/names/d", permission=750)
    client.write("/hdfs/names/f", b"12345")
    client.rename("/hdfs/names/f", "/hdfs/names/g")
    with pytest.raises(HdfsError):
        client.rename("/hdfs/names/f", "/hdfs/names/h")
    client.set_permission("/hdfs/names/g", 640)
    client.set_owner("/hdfs/names/g", owner="ann", group="staff")
    client.set_times("/hdfs/names/g", access_time=1000, modification_time=2000)
    client.set_replication("/hdfs/names/g", 3)
    status = client.status("/hdfs/names/g")
    assert [status[name] for name in ("permission", "owner", "group")] == ["640", "ann", "staff"]
    assert [status[name] for name in ("accessTime", "modificationTime", "replication")] == [1000, 2000, 3]
    assert client.content("/hdfs/names")["spaceConsumed"] == 15
    assert client.list("/hdfs/names") == ["d", "g"]
    assert [name for name, _ in client.list("/hdfs/names", status=True)] == ["d", "g"]
    assert client.checksum("/hdfs/names/g")["length"] == 28
    assert client.acl_status("/hdfs/names/g")["entries"] == []
    assert client.status("/none", strict=False) is None


def test_errors_of_hdfs(client: InsecureClient) -> None:
    client.write("/hdfs/errors/f", b"")
    for call in (
        lambda: client.status("/none"),
        lambda: client.delete("/hdfs/errors"),
        lambda: client.create_snapshot("/hdfs/errors"),
        lambda: client.set_acl("/hdfs/errors", "user:bob:rwx"),
    ):
        with pytest.raises(HdfsError):
            call()
