"""What tests of local files ask and do."""

from __future__ import annotations

from pathlib import Path

from holdfast.stores.base import Part
from holdfast.stores.local.store import LocalStore


def hidden_names(tmp_path: Path) -> list[str]:
    """Names of what is not finished, sorted."""
    return sorted(path.name for path in tmp_path.rglob(".holdfast-*"))


def upload_parts(store: LocalStore, key: str, count: int) -> tuple[str, list[Part]]:
    """A pending upload of so many parts of ten bytes, each its number: the id and the parts."""
    upload_id = store.create_upload(key)
    return upload_id, [store.upload_part(key, upload_id, n, b"%d" % n * 10) for n in range(1, count + 1)]
