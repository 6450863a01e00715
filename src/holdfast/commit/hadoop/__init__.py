"""Encode and decode Hadoop's file formats, which Hadoop's tools can read, and interpret magic paths.

All functions are pure, and convert between bytes and frozen values; none accesses a store.
"""

from holdfast.commit.hadoop.magic_path import (
    BASE,
    MAGIC,
    MARKER_LENGTH,
    PENDING,
    PENDINGSET,
    final_path,
    is_magic,
    is_pending,
    is_pendingset,
    magic_dir,
    pending_path,
)
from holdfast.commit.hadoop.manifest import (
    MAX_MANIFEST_BYTES,
    DirStatus,
    IntermediateManifest,
    ManifestDir,
    ManifestFile,
    decode_intermediate_manifest,
    encode_intermediate_manifest,
    manifest_job_dir,
)
from holdfast.commit.hadoop.pending import (
    MAX_PENDING_BYTES,
    MAX_PENDINGSET_BYTES,
    TASK_ATTEMPT_ID,
    Etags,
    PendingPart,
    PendingSet,
    SinglePending,
    decode_pending,
    decode_pendingset,
    encode_pending,
    encode_pendingset,
)
from holdfast.commit.hadoop.statistics import decode_statistics, encode_statistics
from holdfast.commit.hadoop.uri import encode_uri

__all__ = [
    "BASE",
    "MAGIC",
    "MARKER_LENGTH",
    "MAX_MANIFEST_BYTES",
    "MAX_PENDINGSET_BYTES",
    "MAX_PENDING_BYTES",
    "PENDING",
    "PENDINGSET",
    "TASK_ATTEMPT_ID",
    "DirStatus",
    "Etags",
    "IntermediateManifest",
    "ManifestDir",
    "ManifestFile",
    "PendingPart",
    "PendingSet",
    "SinglePending",
    "decode_intermediate_manifest",
    "decode_pending",
    "decode_pendingset",
    "decode_statistics",
    "encode_intermediate_manifest",
    "encode_pending",
    "encode_pendingset",
    "encode_statistics",
    "encode_uri",
    "final_path",
    "is_magic",
    "is_pending",
    "is_pendingset",
    "magic_dir",
    "manifest_job_dir",
    "pending_path",
]
