"""A file whose close fails leaves no pending upload when it is given up; large files use larger parts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.errors import UnavailableError
from holdfast.namespace import blobs as blobs_module
from holdfast.namespace.blobs import BlobStore, PublishDeadline
from holdfast.namespace.file_writer import FilePublisher, FileWriter
from holdfast.namespace.inode import Extent, Inode, InodeKind
from holdfast.namespace.operations.files import Publish, WriteUnderLease
from holdfast.namespace.paths import NsPath
from holdfast.runtime import Moment, SystemIds
from holdfast.stores.base import MultipartLimits, iter_uploads, multipart
from holdfast.stores.interceptors import InterceptedStore, StoreOperation
from holdfast.stores.memory import MemoryStore
from tests.clocks import StillClock
from tests.interceptors import Fault, FaultMode, Faulty

_LIMITS = MultipartLimits(min_part_size_bytes=1)


_INODE = Inode(id=7, kind=InodeKind.FILE, mode=0o644, owner="", group="", mtime_ms=0)


def _unused(operation: Publish | WriteUnderLease) -> Inode:
    raise AssertionError("nothing is published")


class _File(FilePublisher):
    """A file that is published by a function of the test."""

    def __init__(self, publish: Callable[[Publish | WriteUnderLease], Inode]) -> None:
        self.template = Publish(path=NsPath.parse("/f"), file_id=7)
        self.publish = publish  # type: ignore[method-assign]  # in place of the transaction

    def renew_if_due(self) -> None:
        """Do nothing."""


def _writer(store: object, run: Callable[[Publish | WriteUnderLease], Inode] = _unused) -> FileWriter:
    blobs = BlobStore(store, "", SystemIds())  # type: ignore[arg-type]  # a wrapper of a store
    clock = StillClock()
    return FileWriter(blobs, _File(run), inline_bytes=0, expiry=lambda: PublishDeadline(clock, Moment.of(clock), 60))


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of four bytes, which double after two of them."""
    monkeypatch.setattr(blobs_module, "_PART_BYTES", 4)
    monkeypatch.setattr(blobs_module, "_PARTS_OF_A_SIZE", 2)


@pytest.mark.usefixtures("small_parts")
def test_a_failed_close_leaves_no_pending_upload_after_the_block() -> None:
    inner = MemoryStore(limits=_LIMITS)
    store = InterceptedStore(inner, Faulty(Fault(FaultMode.FAIL, StoreOperation.COMPLETE_UPLOAD)))
    writer = _writer(store)
    writer.write(b"123456")
    assert len(list(iter_uploads(multipart(inner), ""))) == 1
    with pytest.raises(UnavailableError), writer:
        pass
    assert list(iter_uploads(multipart(inner), "")) == []


@pytest.mark.usefixtures("small_parts")
def test_an_error_is_not_hidden_by_a_failed_discard() -> None:
    store = InterceptedStore(MemoryStore(limits=_LIMITS), Faulty(Fault(FaultMode.FAIL, StoreOperation.ABORT_UPLOAD)))

    def fail() -> None:
        with _writer(store) as writer:
            writer.write(b"123456")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()


@pytest.mark.usefixtures("small_parts")
def test_parts_grow() -> None:
    store = MemoryStore(limits=_LIMITS)
    sizes: list[int] = []
    upload_part = store.upload_part

    def noted(key: str, upload_id: str, number: int, data: bytes) -> object:
        sizes.append(len(data))
        return upload_part(key, upload_id, number, data)

    store.upload_part = noted  # type: ignore[method-assign,assignment]  # observed in place
    published: list[Extent] = []

    def run(operation: Publish | WriteUnderLease) -> Inode:
        published.extend(operation.extents)
        return _INODE

    content = bytes(range(60))
    with _writer(store, run) as writer:
        writer.write(content)
    assert sizes == [4, 4, 8, 8, 16, 16, 8]  # with the checksum
    (info,) = store.list_page("").objects
    assert store.get(info.key)[:-4] == content
    assert published[0].length == 60
