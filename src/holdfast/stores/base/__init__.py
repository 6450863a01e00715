"""Define what a commit protocol needs from an object store, and no more.

A store is one bucket (or one directory tree). Keys are ``/``-separated UTF-8 strings without a leading slash.
Each method is one call to the store: a point at which a process can die, a reply can be lost, or a test can intervene.
The functions `iter_objects` and `iter_uploads` loop over pages, and detect a faulty server whose listing would never
end.

Besides the errors in its own docstring, any method may raise `AccessDeniedError`, `UnavailableError` (nothing
happened), `OutcomeUnknownError` (a write may have happened) and `NotFoundError` (the bucket is missing).

Worked composition::

    store = MemoryStore()
    upload_id = store.create_upload("t/a", {})
    part = store.upload_part("t/a", upload_id, 1, b"rows")
    assert list(iter_objects(store, "t/")) == []          # pending: invisible
    store.complete_upload("t/a", upload_id, [part])       # now the whole object is visible
"""

from __future__ import annotations

from holdfast.stores.base.changes import (
    Change,
    Complete,
    Delete,
    Put,
    Require,
    RequireEmpty,
    keys_of,
    sent_bytes,
)
from holdfast.stores.base.functions import (
    MAX_KEY_BYTES,
    MAX_KEYS_PER_DELETE,
    batched_keys,
    check_changes,
    check_delete,
    check_key,
    check_move,
    check_part_number,
    check_parts,
    check_range,
    is_marker,
    iter_objects,
    iter_uploads,
    iter_uploads_of,
    multipart,
    page_size,
    rename,
    replaced,
    transactional,
)
from holdfast.stores.base.protocols import (
    CopyStore,
    ExpiringUploads,
    MultipartStore,
    ObjectStore,
    RenameStore,
    TransactionalStore,
    WritableFile,
)
from holdfast.stores.base.values import (
    Capabilities,
    Create,
    MultipartLimits,
    ObjectInfo,
    ObjectPage,
    Overwrite,
    Part,
    PutMode,
    Support,
    Update,
    UploadInfo,
    UploadPage,
)

__all__ = [
    "MAX_KEYS_PER_DELETE",
    "MAX_KEY_BYTES",
    "Capabilities",
    "Change",
    "Complete",
    "CopyStore",
    "Create",
    "Delete",
    "ExpiringUploads",
    "MultipartLimits",
    "MultipartStore",
    "ObjectInfo",
    "ObjectPage",
    "ObjectStore",
    "Overwrite",
    "Part",
    "Put",
    "PutMode",
    "RenameStore",
    "Require",
    "RequireEmpty",
    "Support",
    "TransactionalStore",
    "Update",
    "UploadInfo",
    "UploadPage",
    "WritableFile",
    "batched_keys",
    "check_changes",
    "check_delete",
    "check_key",
    "check_move",
    "check_part_number",
    "check_parts",
    "check_range",
    "is_marker",
    "iter_objects",
    "iter_uploads",
    "iter_uploads_of",
    "keys_of",
    "multipart",
    "page_size",
    "rename",
    "replaced",
    "sent_bytes",
    "transactional",
]
