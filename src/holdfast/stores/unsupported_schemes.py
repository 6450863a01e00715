"""Recognize URL schemes of storage systems that Holdfast does not support yet, so that errors do not guess a typo."""

from __future__ import annotations

_SYSTEMS = {
    "Google Cloud Storage": ("gs", "gcs"),
    "Azure Storage": ("abfs", "abfss", "adl", "az", "azure", "wasb", "wasbs"),
    "HDFS": ("hdfs", "swebhdfs", "viewfs", "webhdfs"),
    "the Databricks File System": ("dbfs",),
    "Alibaba Cloud OSS": ("oss",),
    "Tencent Cloud COS": ("cos", "cosn"),
    "Huawei Cloud OBS": ("obs",),
}


def why_unsupported(scheme: str) -> str:
    """Return a sentence that says what can be used instead; empty if this is the scheme of no known system."""
    system = next((name for name, schemes in _SYSTEMS.items() if scheme in schemes), "")
    if not system:
        return ""
    return (
        f"{system} is not supported yet: use a bucket on a server that speaks S3 (s3://bucket/key), or a directory "
        "that all machines mount (/path)"
    )
