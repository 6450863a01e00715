"""Sweep a namespace for ``holdfast namespace gc --sweep``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli.output import Output, size
from holdfast.wording import counted

if TYPE_CHECKING:
    from holdfast.namespace import Namespace
    from holdfast.namespace.sweep import Swept


def sweep_namespace(namespace: Namespace, out: Output) -> Swept:
    """Find blobs that no file refers to, and show how many. A collection deletes them a safety age later.

    Raises:
        HoldfastError: see `holdfast.namespace.sweep.sweep`; nothing was deleted.
    """
    with out.progress() as progress:
        swept = namespace.sweep(progress)
    if swept.blobs:
        out.say(f"found {counted(swept.blobs, 'blob')} of no file, {size(swept.blob_bytes)}")
    if swept.records:
        out.say(f"deleted {counted(swept.records, 'record')} of directories that do not exist")
    if swept.uploads:
        out.say(f"gave up {counted(swept.uploads, 'blob')} that dead writers had not finished")
    return swept
