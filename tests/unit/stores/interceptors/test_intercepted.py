"""The wrapper: every call of every protocol goes through the interceptor, and nothing else does."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TypeVar

import pytest

from holdfast.errors import UnavailableError, UnsupportedError
from holdfast.stores import base
from holdfast.stores.base import Create, MultipartLimits, ObjectInfo
from holdfast.stores.interceptors.intercepted import InterceptedStore, Operation, StoreCall
from holdfast.stores.interceptors.recording import Recorder
from holdfast.stores.memory.store import MemoryStore

T = TypeVar("T")

_PROTOCOLS = (base.ObjectStore, base.MultipartStore, base.RenameStore, base.CopyStore, base.TransactionalStore)
_NO_CALLS = {"capabilities", "close", "retries", "make_durable"}


def _protocol_methods() -> set[str]:
    return {name for protocol in _PROTOCOLS for name in vars(protocol) if not name.startswith("_")}


def test_every_method_of_every_protocol_is_intercepted() -> None:
    """A method that is added to a protocol has to be added here, with the same parameters."""
    names = {operation.value for operation in Operation if not operation.value.startswith("file.")}
    assert names == _protocol_methods() - _NO_CALLS
    for name in names:
        for protocol in _PROTOCOLS:
            if name in vars(protocol):
                declared = list(inspect.signature(getattr(protocol, name)).parameters)
                assert list(inspect.signature(getattr(InterceptedStore, name)).parameters) == declared
    file_methods = {name for name in vars(base.WritableFile) if not name.startswith("_")}
    assert {operation.value for operation in Operation} - names == {f"file.{name}" for name in file_methods}


def _use_everything(store: InterceptedStore) -> None:
    store.put("a", b"12", Create())
    store.get("a")
    store.head("a")
    store.list_page("")
    upload_id = store.create_upload("u")
    part = store.upload_part("u", upload_id, 1, b"123")
    store.list_uploads_page("")
    store.complete_upload("u", upload_id, [part])
    store.abort_upload("u", upload_id)
    file = store.open_write("f")
    file.write(b"1234")
    file.close()
    file.discard()
    store.check_targets(["g", "i/j"])
    store.rename("f", "g")
    store.put("d/x", b"")
    store.rename_dir("d", "e")
    store.copy(ObjectInfo("g", 4), "h")
    store.delete_many(["a", "u"])
    store.delete("g")
    store.apply([base.Put("p", b"12345", Create()), base.Put("q", b"6"), base.Delete("h"), base.Require("e/x")])
    store.close()


def test_calls_tell_what_they_are() -> None:
    recorded = Recorder()
    store = InterceptedStore(MemoryStore(rename=True, transactions=True), recorded)
    _use_everything(store)
    assert [call.operation for call in recorded.calls] == [
        *(Operation.PUT, Operation.GET, Operation.HEAD, Operation.LIST),
        *(Operation.CREATE_UPLOAD, Operation.UPLOAD_PART, Operation.LIST_UPLOADS),
        *(Operation.COMPLETE_UPLOAD, Operation.ABORT_UPLOAD),
        *(Operation.OPEN_WRITE, Operation.FILE_WRITE, Operation.FILE_CLOSE, Operation.FILE_DISCARD),
        *(Operation.CHECK_TARGETS, Operation.RENAME, Operation.PUT, Operation.RENAME_DIR),
        *(Operation.COPY, Operation.DELETE_MANY, Operation.DELETE, Operation.APPLY),
    ]
    by_operation = {call.operation: call for call in recorded.calls}
    assert by_operation.keys() == set(Operation)
    assert recorded.calls[0] == StoreCall(Operation.PUT, "a", 2, mode=Create())
    part = by_operation[Operation.UPLOAD_PART]
    assert (part.key, part.size_bytes, part.number) == ("u", 3, 1)
    assert part.upload_id == by_operation[Operation.COMPLETE_UPLOAD].upload_id != ""
    assert by_operation[Operation.RENAME] == StoreCall(Operation.RENAME, "f", target="g")
    assert by_operation[Operation.CHECK_TARGETS].keys == ("g", "i/j")
    assert by_operation[Operation.RENAME_DIR] == StoreCall(Operation.RENAME_DIR, "d", target="e")
    assert by_operation[Operation.COPY] == StoreCall(Operation.COPY, "g", 4, target="h")
    assert by_operation[Operation.DELETE_MANY].keys == ("a", "u")
    assert by_operation[Operation.APPLY] == StoreCall(Operation.APPLY, "p", 6, keys=("p", "q", "h", "e/x"))
    assert by_operation[Operation.FILE_WRITE] == StoreCall(Operation.FILE_WRITE, "f", 4)


def test_capabilities_are_those_of_the_wrapped_store() -> None:
    inner = MemoryStore(limits=MultipartLimits(min_part_size_bytes=7), rename=True)
    assert InterceptedStore(inner, Recorder()).capabilities is inner.capabilities


def test_an_interceptor_may_refuse() -> None:
    def refuse(call: StoreCall, proceed: Callable[[], T]) -> T:
        raise UnavailableError("no", operation=call.operation.value)

    inner = MemoryStore()
    with pytest.raises(UnavailableError, match="put"):
        InterceptedStore(inner, refuse).put("a", b"1")
    assert list(base.iter_objects(inner, "")) == []


def test_recorded_keeps_failed_calls_and_counts() -> None:
    recorded = Recorder()
    store = InterceptedStore(MemoryStore(), recorded)
    for _ in range(3):
        with pytest.raises(ValueError, match="no such object"):
            store.get("missing")
    store.put("a", b"")
    assert recorded.count(Operation.GET) == 3
    assert recorded.count(Operation.DELETE) == 0
    assert recorded.counts() == {Operation.GET: 3, Operation.PUT: 1}
    recorded.clear()
    assert recorded.calls == []


def test_each_operation_is_counted_also_when_it_fails() -> None:
    recorded = Recorder()
    store = InterceptedStore(MemoryStore(rename=True, transactions=True), recorded)
    _use_everything(store)
    with pytest.raises(ValueError, match="nothing exists at the source"):
        store.rename_dir("missing", "e")
    once = dict.fromkeys(Operation, 1)
    assert recorded.counts() == once | {Operation.PUT: 2, Operation.RENAME_DIR: 2}
    assert recorded.counts().total() == len(recorded.calls) == len(Operation) + 2


def test_directories_are_renamed_by_stores_that_can() -> None:
    recorded = Recorder()
    store = InterceptedStore(MemoryStore(rename=True, rename_dir=False), recorded)
    store.put("d/x", b"")
    assert not store.capabilities.rename_dir
    with pytest.raises(UnsupportedError, match="rename file by file"):
        store.rename_dir("d", "e")
    assert recorded.count(Operation.RENAME_DIR) == 1
