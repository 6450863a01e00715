"""Reading the files of a namespace through fsspec."""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path
from typing import Any

import pytest
from fsspec.callbacks import Callback

from holdfast.errors import InvalidRequestError, UnsupportedError
from holdfast.fs import NamespaceFileSystem
from holdfast.namespace.errors import FeatureUnsupportedError
from holdfast.namespace.namespace import Namespace

CONTENT = bytes(range(256)) * 40


@pytest.fixture(params=["small", "large"])
def path(request: pytest.FixtureRequest, namespace: Namespace) -> str:
    """Write a file of 256 or of 10,240 bytes; return its path."""
    namespace.write_file("/dir/file", CONTENT if request.param == "large" else CONTENT[:256])
    return f"{namespace.configuration.name}/dir/file"


def test_parts_of_files(fs: NamespaceFileSystem, path: str) -> None:
    content = fs.cat_file(path)
    assert content in (CONTENT, CONTENT[:256])
    for start in (None, 0, 5, -5, 250, 100_000, -100_000):
        for end in (None, 0, 5, -5, 250, 100_000, -100_000):
            assert fs.cat_file(path, start, end) == content[start:end]
    assert fs.head(path, 3) == content[:3] and fs.tail(path, 3) == content[-3:]
    assert fs.read_block(path, 10, 20) == content[10:30]


@pytest.mark.parametrize("cache_type", ["readahead", "none", "bytes", "all", "blockcache", "first", "background"])
def test_seeking_with_each_cache(fs: NamespaceFileSystem, path: str, cache_type: str) -> None:
    content = fs.cat_file(path)
    with fs.open(path, block_size=100, cache_type=cache_type) as file:
        assert file.size == len(content) and file.seekable() and file.readable() and not file.writable()
        assert file.read(10) == content[:10] and file.tell() == 10
        assert file.seek(-7, 2) == len(content) - 7 and file.read() == content[-7:] and file.read() == b""
        assert file.seek(50) == 50 and file.read(120) == content[50:170]
        buffer = bytearray(5)
        assert file.seek(1) == 1 and file.readinto(buffer) == 5 and buffer == content[1:6]
    assert file.closed


def test_an_open_file_stays_what_it_was(fs: NamespaceFileSystem, namespace: Namespace, path: str) -> None:
    content = fs.cat_file(path)
    with fs.open(path, block_size=16) as file:
        assert file.read(3) == content[:3]
        fs.pipe_file(path, b"other")
        fs.rm(path)
        namespace.collect()
        assert file.read() == content[3:] and file.details["size"] == len(content)


def test_a_pickled_file_is_opened_anew(tmp_path: Path) -> None:
    from holdfast.namespace import Configuration, init_namespace

    database = f"sqlite:///{tmp_path}/ns.db?synchronous=normal"
    init_namespace(Configuration(name="n", data=f"{tmp_path}/data", superuser="me"), database, register=False)
    fs = NamespaceFileSystem(database=database, user="me")
    fs.pipe_file("n/a", b"0123456789")
    with fs.open("n/a", cache_type="none") as file:
        file.seek(4)
        with pickle.loads(pickle.dumps(file)) as other:
            assert other.read() == b"456789"


def test_errors(fs: NamespaceFileSystem, path: str) -> None:
    directory = path.rpartition("/")[0]
    for read in (fs.cat_file, fs.open):
        with pytest.raises(FileNotFoundError):
            read(f"{directory}/none")
        with pytest.raises(IsADirectoryError):
            read(directory)
        with pytest.raises(NotADirectoryError):
            read(f"{path}/below")
    with pytest.raises(FeatureUnsupportedError, match="to read"), fs.open(path, "r+b"):
        pass


def test_ranges(fs: NamespaceFileSystem, path: str) -> None:
    content = fs.cat_file(path)
    other = path.replace("file", "other")
    fs.pipe_file(other, b"abc")
    assert fs.cat_ranges([path, other, path], [0, 1, -3], [4, None, None]) == [content[:4], b"bc", content[-3:]]
    assert fs.cat_ranges([path, other], 1, 2) == [content[1:2], b"b"] and fs.cat_ranges([], [], []) == []
    assert fs.cat_ranges([other], 0, 1) == [b"a"]
    found = fs.cat_ranges([path, f"{path}/no", other], 0, 1)
    assert (found[0], found[2]) == (content[:1], b"a") and isinstance(found[1], NotADirectoryError)
    with pytest.raises(FileNotFoundError):
        fs.cat_ranges([other, f"{other}2"], 0, 1, on_error="raise")
    with pytest.raises(ValueError, match="as many"):
        fs.cat_ranges([path], [1, 2], [3, 4])
    with pytest.raises(TypeError):
        fs.cat_ranges(path, 1, 2)
    with pytest.raises(NotImplementedError):
        fs.cat_ranges([path], 1, 2, max_gap=3)


def test_the_ranges_of_a_file_are_from_one_version(
    fs: NamespaceFileSystem, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = fs.cat_file(path)
    from holdfast.fs import arguments

    read_slice = arguments.read_slice

    def replacing(*given: Any) -> bytes:
        fs.pipe_file(path, b"-" * len(content))
        return read_slice(*given)

    monkeypatch.setattr(arguments, "read_slice", replacing)
    assert fs.cat_ranges([path] * 3, [0, 10, 20], [10, 20, 30]) == [content[:10], content[10:20], content[20:30]]


def test_text_and_compression(fs: NamespaceFileSystem, path: str) -> None:
    text = path + ".txt"
    with fs.open(text, "w", encoding="utf-16", newline="\r\n") as file:
        file.write("snow ☃\nline")
    with fs.open(text, "r", encoding="utf-16", newline="") as file:
        assert file.read() == "snow ☃\r\nline"
    assert fs.read_text(text, encoding="utf-16") == "snow ☃\nline"
    packed = path + ".gz"
    for compression in ("infer", "gzip"):
        with pytest.raises(UnsupportedError, match="compressed by its writer"):
            fs.open(packed, "wt", compression=compression)
    with fs.open(packed, "wb") as file, gzip.open(file, "wt") as writer:
        writer.write("packed")
    with fs.open(packed, "rt", compression="gzip") as file:
        assert file.read() == "packed"


def test_checksums_name_a_version(fs: NamespaceFileSystem, path: str) -> None:
    content, directory = fs.cat_file(path), path.rpartition("/")[0]
    first = (fs.checksum(path), fs.ukey(path))
    fs.mv(path, f"{directory}/moved")
    assert (fs.checksum(f"{directory}/moved"), fs.ukey(f"{directory}/moved")) == first
    fs.pipe_file(path, content)
    assert fs.ukey(path) != first[1], "another version, even if the bytes are the same"
    key = fs.ukey(path)
    with fs.open(path, "ab") as file:
        file.write(b"more")
    assert fs.ukey(path) != key and len(fs.ukey(directory)) == 64
    with pytest.raises(FileNotFoundError):
        fs.checksum(f"{directory}/none")


def test_a_checksum_changes_with_the_length(fs: NamespaceFileSystem, namespace: Namespace, path: str) -> None:
    """A file that is cut keeps its blobs."""
    key, number = fs.ukey(path), fs.checksum(path)
    namespace.truncate("/dir/file", fs.size(path) - 1)
    assert fs.ukey(path) != key and fs.checksum(path) != number


class Counting(Callback):
    """Notes what a copy reports, also of single files."""

    def __init__(self) -> None:
        super().__init__()
        self.children: list[Counting] = []

    def branched(self, path_1: str, path_2: str, **_options: object) -> Counting:
        self.children.append(Counting())
        return self.children[-1]


def test_getting_and_putting_files(fs: NamespaceFileSystem, path: str, tmp_path: Path) -> None:
    content, directory = fs.cat_file(path), path.rpartition("/")[0]
    callback = Counting()
    fs.get(directory, str(tmp_path / "got"), recursive=True, callback=callback)
    assert (tmp_path / "got" / "file").read_bytes() == content
    fs.get(path, str(tmp_path / "one"), callback=callback)
    assert callback.children[-1].size == callback.children[-1].value == len(content)
    callback = Counting()
    fs.put(str(tmp_path / "got"), f"{directory}/put", recursive=True, callback=callback)
    assert fs.cat_file(f"{directory}/put/file") == content
    assert sum(one.value for one in callback.children) == len(content)
    with pytest.raises(FileExistsError):
        fs.put_file(str(tmp_path / "one"), path, mode="create")
    fs.put_file(str(tmp_path / "one"), f"{directory}/created", mode="create")
    assert fs.cat_file(f"{directory}/created") == content
    with pytest.raises(InvalidRequestError, match="'overwrite' or 'create'"):
        fs.put_file(str(tmp_path / "one"), path, mode="update")
    with pytest.raises(FileNotFoundError):
        fs.put_file(str(tmp_path / "none"), f"{directory}/none")
    assert not fs.exists(f"{directory}/none")


def test_getting_a_path_that_looks_like_a_pattern(fs: NamespaceFileSystem, path: str, tmp_path: Path) -> None:
    directory = path.rpartition("/")[0]
    for name in ("a?b/x", "acb/z"):
        fs.pipe_file(f"{directory}/{name}", name.encode())
    for source in (f"{directory}/a?b", f"{directory}/a?b/x"):
        with pytest.raises(UnsupportedError, match="give two lists"):
            fs.get(source, str(tmp_path / "new"), recursive=True)
    fs.get([f"{directory}/a?b/x"], [str(tmp_path / "file")])
    fs.get([f"{directory}/a?b/x"], str(tmp_path / "into/"))
    fs.get(f"{directory}/a[c]b", str(tmp_path / "pattern"), recursive=True)
    found = sorted(str(one.relative_to(tmp_path)) for one in tmp_path.rglob("*") if one.is_file())
    assert found == ["file", "into/x", "pattern/z"]
    assert (tmp_path / "file").read_bytes() == (tmp_path / "into" / "x").read_bytes() == b"a?b/x"


@pytest.mark.parametrize("name", ["a[c]b", "a?b", "a*b"])
def test_putting_a_file_that_looks_like_a_pattern(
    fs: NamespaceFileSystem, root: str, name: str, tmp_path: Path
) -> None:
    for one in (name, "acb"):
        (tmp_path / one).write_text(one)
    for source in (str(tmp_path / name), tmp_path / name, [str(tmp_path / name)]):
        with pytest.raises(UnsupportedError, match="give two lists"):
            fs.put(source, f"{root}/dir/")
    assert fs.find(root) == []
    fs.put([str(tmp_path / name)], [f"{root}/one"])
    assert fs.cat_file(f"{root}/one") == name.encode() and fs.find(root) == [f"{root}/one"]
    fs.put(str(tmp_path / "a[bc]b"), f"{root}/pattern/")
    fs.put(tmp_path / "acb", f"{root}/path")
    assert fs.find(f"{root}/pattern") == [f"{root}/pattern/acb"] and fs.cat_file(f"{root}/path") == b"acb"


def test_the_etag_changes_with_the_content(fs: NamespaceFileSystem, root: str) -> None:
    """Caches of downloads, such as that of Hugging Face's datasets, ask for it by this name."""
    fs.pipe_file(f"{root}/x.csv", b"1,2")
    first = fs.info(f"{root}/x.csv")["ETag"]
    fs.mv(f"{root}/x.csv", f"{root}/y.csv")
    assert fs.info(f"{root}/y.csv")["ETag"] == first
    fs.pipe_file(f"{root}/y.csv", b"7,8")
    assert fs.info(f"{root}/y.csv")["ETag"] != first
    assert fs.ls(root, detail=True)[0]["ETag"] == fs.info(f"{root}/y.csv")["ETag"]
    assert "ETag" not in fs.info(root)
