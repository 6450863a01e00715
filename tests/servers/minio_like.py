"""Simulate how MinIO lists pending uploads, over any store, to expose code that relies on listing them.

Worked composition::

    store = MinioLike(MemoryStore())
    upload_id = store.create_upload("t/a")
    assert list(iter_uploads(store, "t/")) == []                  # a directory prefix finds no upload
    assert len(list(iter_uploads_of(store, "t/a"))) == 1          # the whole key finds it
    store.expire_uploads()                                        # a day later: silently dropped

Source: minio/minio#20989, and a run of Holdfast's conformance suite against MinIO's last release.
"""

from __future__ import annotations

import dataclasses

from holdfast.stores.base import Capabilities, MultipartStore, Support, UploadPage, iter_uploads
from holdfast.stores.interceptors import InterceptedStore


class MinioLike(InterceptedStore):
    """A store that lists uploads like MinIO: a prefix finds only the uploads of exactly that key.

    Without a prefix, a MinIO process lists the uploads that it has seen since its start; this class lists all uploads.
    Like MinIO, the wrapper does not declare how it lists uploads: `stores.probe` has to find out.

    Args:
        inner: the store to wrap; all other calls go to it unchanged.
    """

    def __init__(self, inner: MultipartStore) -> None:
        super().__init__(inner, lambda _, proceed: proceed())
        self._uploads = inner

    @property
    def capabilities(self) -> Capabilities:
        return dataclasses.replace(super().capabilities, lists_uploads=Support.UNKNOWN)

    def list_uploads_page(self, prefix: str, marker: tuple[str, str] | None = None) -> UploadPage:
        page = super().list_uploads_page(prefix, marker)
        exact = [upload for upload in page.uploads if not prefix or upload.key == prefix]
        return UploadPage(exact, page.next_marker)

    def expire_uploads(self) -> None:
        """Drop every pending upload, like MinIO when uploads are a day old (``stale_uploads_expiry``)."""
        for upload in list(iter_uploads(self._uploads, "")):
            self._uploads.abort_upload(upload.key, upload.upload_id)
