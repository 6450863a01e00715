"""Save and restore the complete contents of an in-memory object store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from holdfast.stores.memory import MemoryStore, StoredObject, StoredUpload


@dataclass(frozen=True, slots=True)
class StoreSnapshot:
    """A snapshot of a `MemoryStore`, to restore it and to compare states.

    Attributes:
        key: a value to compare: equal for two snapshots if no caller could distinguish the stores.
    """

    objects: Mapping[str, StoredObject]
    uploads: Mapping[str, StoredUpload]
    renamed_directories: tuple[str, ...]
    key: tuple[object, ...] = field(repr=False)


class RestorableStore(MemoryStore):
    """A `MemoryStore` whose contents can be saved and restored."""

    def take_snapshot(self) -> StoreSnapshot:
        """Return an immutable snapshot of the store's contents."""
        with self._lock:
            objects = tuple(
                (key, found.info.etag, found.info.size_bytes, found.info.modified_at_s, *found.info.metadata.items())
                for key, found in ((key, self._objects[key]) for key in self._keys)
            )
            uploads = tuple(
                (
                    key,
                    name,
                    found.info.initiated_at_s,
                    *found.metadata.items(),
                    *((number, part.etag) for number, (part, _data) in found.parts.items()),
                )
                for key, name, found in ((key, name, self._uploads[name]) for key, name in self._upload_order)
            )
            renamed = tuple(self._renamed_directories)
            return StoreSnapshot(
                dict(self._objects),
                {name: replace(found, parts=dict(found.parts)) for name, found in self._uploads.items()},
                renamed,
                (objects, uploads, renamed),
            )

    def restore(self, image: StoreSnapshot) -> None:
        """Replace the contents of the store by those of a snapshot."""
        with self._lock:
            self._objects = dict(image.objects)
            self._keys = sorted(image.objects)
            self._uploads = {name: replace(found, parts=dict(found.parts)) for name, found in image.uploads.items()}
            self._upload_order = sorted((found.info.key, name) for name, found in image.uploads.items())
            self._renamed_directories = list(image.renamed_directories)
