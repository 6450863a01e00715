"""Let a process use a simulated object store through the `ObjectStore` interface; each call is a step of the world."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from holdfast.stores.base import (
    Capabilities,
    Change,
    Complete,
    ObjectInfo,
    ObjectPage,
    Overwrite,
    Part,
    Put,
    PutMode,
    Require,
    UploadPage,
)
from holdfast.stores.memory import MemoryFile
from holdfast_checker.kernel.calls import Call
from holdfast_checker.kernel.world import Port


def _keep_data_unchanged(key: str, data: bytes) -> bytes:
    return data


class SimulatedStore:
    """The `ObjectStore` through which one process uses a simulated store that all actors share.

    Args:
        blur: takes the key and the bytes of a put, and returns the bytes to store. It leaves out data that depend on
            the process's history and that no process reads, so that fewer states differ.
        piecemeal: whether a listing takes two steps, as on a file system, and may show some of the changes made between
            these steps and miss others. A listing that does not fit on one page takes one step.
    """

    def __init__(
        self,
        port: Port,
        name: str,
        capabilities: Capabilities,
        blur: Callable[[str, bytes], bytes] = _keep_data_unchanged,
        piecemeal: bool = False,
    ) -> None:
        self._port = port
        self._piecemeal = piecemeal
        self._blur = blur
        self._name = name
        self._capabilities = capabilities

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    @property
    def retries(self) -> int:
        return 0

    def _call_store(self, operation: str, *args: object) -> Any:
        return self._port.call(Call(self._name, operation, args))

    def put(
        self, key: str, data: bytes, mode: PutMode = Overwrite(), metadata: Mapping[str, str] | None = None
    ) -> ObjectInfo:
        return cast(
            "ObjectInfo", self._call_store("put", key, self._blur(key, bytes(data)), mode, _hashable_metadata(metadata))
        )

    def get(self, key: str, start: int = 0, length: int | None = None, etag: str = "") -> bytes:
        return cast("bytes", self._call_store("get", key, start, length, *((etag,) if etag else ())))

    def head(self, key: str) -> ObjectInfo:
        return cast("ObjectInfo", self._call_store("head", key))

    def list_page(
        self, prefix: str, start_after: str = "", max_keys: int = 1000, token: str | None = None
    ) -> ObjectPage:
        page = cast("ObjectPage", self._call_store("list_page", prefix, start_after, max_keys, token))
        if self._piecemeal:
            page = cast("ObjectPage", self._call_store("list_rest", prefix, start_after, max_keys, token, page))
        return page

    def delete(self, key: str) -> None:
        self._call_store("delete", key)

    def delete_many(self, keys: Sequence[str]) -> None:
        if keys:
            self._call_store("delete_many", tuple(keys))

    def close(self) -> None:
        """Do nothing, since the simulated store has nothing to release."""

    def create_upload(self, key: str, metadata: Mapping[str, str] | None = None) -> str:
        return cast("str", self._call_store("create_upload", key, _hashable_metadata(metadata), self._port.token()))

    def upload_part(self, key: str, upload_id: str, number: int, data: bytes) -> Part:
        return cast("Part", self._call_store("upload_part", key, upload_id, number, bytes(data)))

    def complete_upload(self, key: str, upload_id: str, parts: Sequence[Part]) -> ObjectInfo:
        return cast("ObjectInfo", self._call_store("complete_upload", key, upload_id, tuple(parts)))

    def abort_upload(self, key: str, upload_id: str) -> None:
        self._call_store("abort_upload", key, upload_id)

    def list_uploads_page(self, prefix: str, marker: tuple[str, str] | None = None) -> UploadPage:
        return cast("UploadPage", self._call_store("list_uploads_page", prefix, marker))

    def open_write(self, key: str) -> MemoryFile:
        opened_after = cast("int", self._call_store("begin_write", key))
        return MemoryFile(
            key, lambda data: cast("ObjectInfo", self._call_store("finish_write", key, data, opened_after))
        )

    def rename(self, source: str, target: str) -> None:
        self._call_store("rename", source, target)

    def check_targets(self, targets: Sequence[str]) -> None:
        self._call_store("check_targets", tuple(targets))

    def rename_dir(self, source: str, target: str) -> None:
        self._call_store("rename_dir", source, target)

    def copy(self, source: ObjectInfo, target: str) -> None:
        self._call_store("copy", source, target)

    def apply(self, changes: Sequence[Change]) -> None:
        if changes:
            self._call_store("apply", tuple(self._normalize_change_data(change) for change in changes))

    def make_durable(self, written: Sequence[Complete | Require] = ()) -> None:
        """Do nothing, since a simulated store never loses a write."""

    def _normalize_change_data(self, change: Change) -> Change:
        return replace(change, data=self._blur(change.key, change.data)) if isinstance(change, Put) else change


class _HashableMetadata(dict[str, str]):
    """The metadata in a call. They never change, so they have a hash."""

    def __hash__(self) -> int:  # type: ignore[override]  # dicts are not hashable; this one is a value
        return hash(tuple(sorted(self.items())))


def _hashable_metadata(metadata: Mapping[str, str] | None) -> _HashableMetadata | None:
    return None if metadata is None else _HashableMetadata(metadata)
