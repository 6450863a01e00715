"""A store that treats pending uploads as MinIO does, over any other: what is rested on a listing shows here.

Worked composition::

    store = MinioLike(MemoryStore())
    upload_id = store.create_upload("t/a")
    assert list(iter_uploads(store, "t/")) == []                  # by directory: nothing
    assert len(list(iter_uploads_of(store, "t/a"))) == 1          # by whole key: there it is
    store.expire_uploads()                                        # a day later: gone, without a word

Source: minio/minio#20989, and a run of Holdfast's conformance suite against MinIO's last release.
"""

from __future__ import annotations

import dataclasses

from holdfast.stores.base import Capabilities, MultipartStore, Support, UploadPage, iter_uploads
from holdfast.stores.interceptors.intercepted import InterceptedStore

__all__ = ["MinioLike"]


class MinioLike(InterceptedStore):
    """`inner` with MinIO's listing of uploads: a prefix finds only the uploads of exactly that key.

    Without a prefix MinIO shows what the process that answers remembers, until it is restarted: everything here. It
    says neither that it lists by key nor anything else about itself: `stores.probe` has to find out.

    Args:
        inner: the store that is wrapped; everything else is as it is there.
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
        """Drop every pending upload, as MinIO does when it was started a day ago (``stale_uploads_expiry``)."""
        for upload in list(iter_uploads(self._uploads, "")):
            self._uploads.abort_upload(upload.key, upload.upload_id)
