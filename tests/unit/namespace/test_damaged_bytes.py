"""Bytes that are not those that were written are never taken for data: wherever they are, through every reader."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from holdfast.errors import CorruptDataError
from holdfast.fs import NamespaceFileSystem
from holdfast.namespace import Configuration, Namespace, init_namespace, open_namespace
from holdfast.namespace.inode import Extent
from holdfast.namespace.keys import data_key
from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.runtime import SystemIds
from holdfast.stores.s3 import S3Options
from holdfast.transactions.base import Commit
from tests.servers.moto import MotoServer
from tests.unit.cli.destinations import run

_FRAME = 64 * 1024
_STORED = _FRAME + 4
_CONTENT = bytes(range(251)) * 530  # two frames and a bit
_OTHER = _CONTENT[::-1]
_LAST = len(_CONTENT) // _FRAME * _FRAME


@dataclass
class Place:
    """A namespace, and access to what is really stored.

    Attributes:
        options: what commands need to reach it.
    """

    namespace: Namespace
    options: tuple[str, ...]

    def extent(self, path: str) -> Extent:
        (extent,) = self.namespace.open(path).inode.extents
        return extent

    def load(self, extent: Extent) -> bytes:
        if extent.inline:
            key = data_key(extent.blob)
            return self.namespace.database.get_many([key])[key].value
        return self.namespace.blobs.store.get(self.namespace.blobs.key(extent.blob))

    def replace(self, extent: Extent, stored: bytes) -> None:
        if extent.inline:
            self.namespace.database.commit(Commit(puts={data_key(extent.blob): stored}))
        else:
            self.namespace.blobs.store.put(self.namespace.blobs.key(extent.blob), stored)


@pytest.fixture(scope="module")
def bucket() -> Iterator[S3Options]:
    with MotoServer() as server:
        server.create_bucket("bucket")
        yield S3Options(
            endpoint_url=server.endpoint_url,
            addressing_style="path",
            region="us-east-1",
            access_key="holdfast",
            secret_key="secret",
        )


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """The namespace ``holdfast://ns`` with two files of one size."""
    monkeypatch.setenv("HOLDFAST_NAMESPACES", str(tmp_path / "catalog.json"))
    monkeypatch.setenv("LOGNAME", "root")
    inline_bytes = 200_000 if request.param == "database" else 0
    data = f"s3://bucket/{SystemIds().token()}" if request.param == "s3" else str(tmp_path / "data")
    options = [request.getfixturevalue("bucket")] if request.param == "s3" else []
    if options:
        for name, value in (("ACCESS_KEY_ID", "holdfast"), ("SECRET_ACCESS_KEY", "secret")):
            monkeypatch.setenv(f"AWS_{name}", value)
    configuration = Configuration(name="ns", data=data, superuser="root", inline_bytes=inline_bytes)
    init_namespace(configuration, f"memory://{SystemIds().token()}", store_options=options)
    with open_namespace("holdfast://ns", store_options=options) as namespace:
        namespace.write_file("/d/f", _CONTENT)
        namespace.write_file("/d/g", _OTHER)
        given = [part for one in options for part in ("--endpoint-url", one.endpoint_url, "--region", one.region)]
        yield Place(namespace, (*given, *(["--store-option", "path_style=true"] if given else [])))


# --- damage -----------------------------------------------------------------------------------------------------------
Damage = Callable[[bytes, bytes], bytes]
"""Returns what is stored after the damage, given what is stored for the file and for the other one."""


def _flipped(position: int) -> Damage:
    def damage(stored: bytes, other: bytes) -> bytes:
        at = position % len(stored)
        return stored[:at] + bytes([stored[at] ^ 1]) + stored[at + 1 :]

    return damage


_FLIPS = {
    f"flipped-{position}": (_flipped(position), position // _STORED * _FRAME if position >= 0 else _LAST)
    for position in (0, _FRAME - 1, _FRAME, _STORED - 1, _STORED, 2 * _STORED - 5, 2 * _STORED - 1, 2 * _STORED, -5, -1)
}
_DAMAGES: dict[str, tuple[Damage, int]] = {
    **_FLIPS,
    "exchanged": (lambda stored, other: other, 0),
    "one-frame-of-another": (lambda stored, other: stored[:_STORED] + other[_STORED:], _FRAME),
    "frames-exchanged": (lambda stored, _: stored[_STORED : 2 * _STORED] + stored[:_STORED] + stored[2 * _STORED :], 0),
    "cut-and-refilled": (lambda stored, _: stored[:_STORED] + bytes(len(stored) - _STORED), _FRAME),
    "refilled-in-a-frame": (lambda stored, _: stored[:-100] + bytes(100), _LAST),
    "cut-between-frames": (lambda stored, _: stored[:_STORED], _FRAME),
    "cut-in-a-frame": (lambda stored, _: stored[:-1], _LAST),
    "cut-to-a-checksum": (lambda stored, _: stored[: _STORED + 4], _FRAME),
    "longer": (lambda stored, _: stored + b"x", _LAST),
    "empty": (lambda stored, _: b"", 0),
}
"""Each damage, and from which byte of the file on it is."""

_QUICK = ("flipped-0", "exchanged", "cut-and-refilled", "cut-between-frames")


def _in_each_place(argument: str, cases: Iterable[object], quick: Collection[object]) -> pytest.MarkDecorator:
    """Run a test in each place; in an S3 server, which is slow, only quick cases belong to the default tests."""
    return pytest.mark.parametrize(
        ("place", argument),
        [
            pytest.param(
                place,
                case,
                marks=[pytest.mark.s3, *([] if case in quick else [pytest.mark.slow])] if place == "s3" else [],
            )
            for place in ("local", "database", "s3")
            for case in cases
        ],
        indirect=["place"],
    )


@_in_each_place("name", _DAMAGES, _QUICK)
def test_no_reader_returns_damaged_bytes(place: Place, name: str, tmp_path: Path) -> None:
    damage, offset = _DAMAGES[name]
    namespace, extent = place.namespace, place.extent("/d/f")
    place.replace(extent, damage(place.load(extent), place.load(place.extent("/d/g"))))
    file, store = namespace.open("/d/f"), NamespaceStore(namespace, close_namespace=False)
    fs = NamespaceFileSystem.over(namespace)
    for read in (
        file.read,
        lambda: file.read(offset, 1),
        lambda: file.read(len(_CONTENT) - 1) if offset == _LAST else file.read(),
        lambda: list(file.chunks(chunk_bytes=_FRAME)),
        lambda: namespace.checksum("/d/f"),
        lambda: store.get("d/f"),
        lambda: store.get("d/f", offset, 10),
        lambda: fs.cat_file("ns/d/f"),
        lambda: fs.cat_file("ns/d/f", offset, offset + 1),
        lambda: fs.open("ns/d/f").read(),
        lambda: fs.get_file("ns/d/f", str(tmp_path / "copy")),
        lambda: fs.cp_file("ns/d/f", "ns/d/copy"),
    ):
        with pytest.raises(CorruptDataError) as raised:
            read()
        variables = raised.value.variables
        assert (variables["path"], variables["blob"], variables["offset"]) == ("/d/f", extent.blob, offset)
        assert "restore" in raised.value.message and "holdfast namespace fsck" in raised.value.message
    assert file.read(0, offset) == _CONTENT[:offset], "what is before the damage can be read"
    assert _CONTENT[:offset].startswith((tmp_path / "copy").read_bytes()), "fsspec leaves what it has copied"
    assert not namespace.exists("/d/copy")


@_in_each_place("name", _QUICK, _QUICK[:1])
def test_commands_print_and_copy_no_damaged_bytes(place: Place, name: str, tmp_path: Path) -> None:
    damage, offset = _DAMAGES[name]
    extent = place.extent("/d/f")
    place.replace(extent, damage(place.load(extent), place.load(place.extent("/d/g"))))
    commands: list[tuple[str, ...]] = [
        ("cat", "holdfast://ns/d/f"),
        ("get", "holdfast://ns/d/f", str(tmp_path / "copy")),
        ("cp", "holdfast://ns/d/f", "holdfast://ns/d/copy"),
    ]
    for command in commands:
        result = run("fs", *command, *place.options)
        assert result.exit_code == 1, result.output
        assert command[0] != "cat" or _CONTENT[:offset].startswith(result.stdout_bytes)
        assert all(text in result.stderr for text in ("restore", "/d/f", extent.blob, f"offset={offset}"))
    assert not place.namespace.exists("/d/copy") and not (tmp_path / "copy").exists()
    result = run("namespace", "fsck", "ns", "--read", *place.options)
    assert result.exit_code == 1 and "/d/f" in result.stdout


@_in_each_place("name", _DAMAGES, _QUICK)
def test_fsck_finds_damaged_bytes_where_it_reads(place: Place, name: str) -> None:
    damage, offset = _DAMAGES[name]
    extent = place.extent("/d/f")
    assert place.namespace.check(reads=True).totals == {}
    place.replace(extent, damage(place.load(extent), place.load(place.extent("/d/g"))))
    report = place.namespace.check(reads=True)
    is_short = "cut-between" in name or name in ("cut-in-a-frame", "cut-to-a-checksum", "empty")
    (finding,) = report.findings
    assert (finding.kind.name, finding.path) == ("short-blob" if is_short else "damaged-blob", "/d/f")
    assert is_short or finding.detail == f"from byte {offset} of the blob on"
    assert report.has_read_blobs and report.to_json()["blobs_read"] is True
    plain = place.namespace.check()
    assert plain.is_healthy is not (is_short or extent.inline)
    assert not plain.has_read_blobs


@pytest.mark.parametrize("place", ["local", "database"], indirect=True)
def test_bytes_that_nobody_needs_may_be_damaged(place: Place) -> None:
    """A file that was cut needs the frames up to its end, and nothing behind them."""
    extent = place.extent("/d/f")
    place.namespace.truncate("/d/f", _FRAME + 10)
    stored = place.load(extent)
    place.replace(extent, stored[: 2 * _STORED])
    assert place.namespace.open("/d/f").read() == _CONTENT[: _FRAME + 10]
    place.replace(extent, stored[: 2 * _STORED] + b"x")
    assert place.namespace.open("/d/f").read() == _CONTENT[: _FRAME + 10]
    assert place.namespace.check(reads=True).is_healthy
    place.replace(extent, stored[: 2 * _STORED - 1])
    with pytest.raises(CorruptDataError):
        place.namespace.open("/d/f").read(_FRAME, 1)


def _sync_and_append(place: Place) -> bytes:
    with place.namespace.create_with_lease("/d/new") as file:
        file.write(_CONTENT[:10])
        file.sync()
        for start in range(10, 3000, 7):  # many small pieces of one blob
            file.write(_CONTENT[start : min(start + 7, 3000)])
    with place.namespace.append("/d/new") as file:
        file.write(_OTHER)
    return _CONTENT[:3000] + _OTHER


def _concat(place: Place) -> bytes:
    place.namespace.write_file("/d/new", b"begin")
    place.namespace.concat("/d/new", ["/d/f", "/d/g"])
    return b"begin" + _CONTENT + _OTHER


def _truncate(place: Place) -> bytes:
    kept = _concat(place)[: 5 + len(_CONTENT) + _FRAME + 1]
    place.namespace.truncate("/d/new", len(kept))
    return kept


def _parallel_parts(place: Place) -> bytes:
    store = NamespaceStore(place.namespace, close_namespace=False)
    upload = store.create_upload("d/new")
    contents = [_CONTENT, b"", b"small", _OTHER, _CONTENT[:_FRAME]]
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda one: store.upload_part("d/new", upload, one[0], one[1]), enumerate(contents, 1)))
    store.complete_upload("d/new", upload, parts)
    return b"".join(contents)


def _created(place: Place) -> bytes:
    with place.namespace.create("/d/new") as file:
        file.write(_CONTENT)
        file.write(memoryview(_OTHER))
    return _CONTENT + _OTHER


def _put(place: Place) -> bytes:
    NamespaceStore(place.namespace, close_namespace=False).put("d/new", _CONTENT)
    return _CONTENT


@_in_each_place("write", [_sync_and_append, _concat, _truncate, _parallel_parts, _created, _put], [_parallel_parts])
def test_every_writer_makes_checked_blobs(place: Place, write: Callable[[Place], bytes]) -> None:
    content = write(place)
    assert place.namespace.open("/d/new").read() == content
    for start in (0, 1, _FRAME - 1, _FRAME, len(content) // 2, len(content) - 1):
        assert place.namespace.open("/d/new").read(start, 10) == content[start : start + 10]
    assert place.namespace.check(reads=True).is_healthy
    extents = place.namespace.open("/d/new").inode.extents
    for extent in extents:
        stored = place.load(extent)
        place.replace(extent, _flipped(0)(stored, b""))
        with pytest.raises(CorruptDataError):
            place.namespace.open("/d/new").read()
        assert {one.blob for one in place.namespace.check(reads=True).findings} == {extent.blob}
        place.replace(extent, stored)
    assert place.namespace.open("/d/new").read() == content
