"""Pages of S3's listings as values, whatever the server makes of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import unquote_plus

from botocore.exceptions import ClientError

from holdfast.errors import CorruptDataError
from holdfast.stores.base import ObjectInfo, ObjectPage, UploadInfo, UploadPage
from holdfast.stores.s3.errors import code_of

__all__ = [
    "decoded",
    "etag_in",
    "is_exact",
    "is_marker_refused",
    "is_xml",
    "least_expiry_days",
    "modified_in",
    "object_page",
    "upload_page",
]


_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def is_xml(key: str) -> bool:
    """Whether a document of XML 1.0 can hold a key; it has no way to write most control characters."""
    return not _NO_XML.search(key)


def etag_in(answer: Mapping[str, Any]) -> str:
    """The etag of an answer or an entry, without quotes; empty if there is none."""
    return str(answer.get("ETag", "")).strip('"')


def modified_in(answer: Mapping[str, Any]) -> float:
    """When an object was written, in seconds since the epoch; 0 if the answer or the entry does not say."""
    found = answer.get("LastModified")
    return float(found.timestamp()) if isinstance(found, datetime) else 0.0


def object_page(page: Mapping[str, Any], prefix: str) -> ObjectPage:
    """A page of ListObjectsV2, whose keys botocore has asked for in urls' encoding and decoded.

    Raises:
        CorruptDataError: there is more, and no token to go on with.
    """
    found = [
        ObjectInfo(entry["Key"], int(entry["Size"]), etag_in(entry), modified_in(entry))
        for entry in page.get("Contents", ())
    ]
    if not page.get("IsTruncated"):
        return ObjectPage(found, None)
    if not page.get("NextContinuationToken"):
        raise CorruptDataError("a listing is cut off without a token; report it to the store's maker", prefix=prefix)
    return ObjectPage(found, page["NextContinuationToken"])


def is_exact(page: Mapping[str, Any]) -> bool:
    """Whether every key of a page of ListMultipartUploads came through XML as it is.

    Servers written in Go put U+FFFD where XML has no way to write a character.
    """
    return not any(_LOST in key for key in (page.get("NextKeyMarker", ""), *_keys(page)))


def decoded(page: Mapping[str, Any], plain: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """A page of ListMultipartUploads that was asked for in urls' encoding, with its keys as they are.

    Not asked for so in the first place: SeaweedFS says that it encodes, and does not, so that "+" would be a space.

    Args:
        plain: the same page without the encoding, whose keys are trusted where they are whole; None if it is no XML.
    """
    key_in = unquote_plus if page.get("EncodingType") == "url" else str
    whole = {entry["UploadId"]: entry["Key"] for entry in (plain or {}).get("Uploads", ()) if _LOST not in entry["Key"]}
    uploads = [
        {**entry, "Key": whole.get(entry["UploadId"]) or key_in(entry["Key"])} for entry in page.get("Uploads", ())
    ]
    marker = (plain or {}).get("NextKeyMarker", _LOST)
    marker = key_in(page.get("NextKeyMarker", "")) if _LOST in marker else marker
    return {**page, "Uploads": uploads, "NextKeyMarker": marker}


_LOST = "\ufffd"


def _keys(page: Mapping[str, Any]) -> Iterator[str]:
    return (entry["Key"] for entry in page.get("Uploads", ()))


def upload_page(page: Mapping[str, Any], prefix: str) -> UploadPage:
    """A page of ListMultipartUploads.

    Raises:
        CorruptDataError: there is more, and no marker to go on with.
    """
    found = [
        UploadInfo(entry["Key"], entry["UploadId"], entry["Initiated"].timestamp() if "Initiated" in entry else 0.0)
        for entry in page.get("Uploads", ())
    ]
    if not page.get("IsTruncated"):
        return UploadPage(found, None)
    if not page.get("NextKeyMarker"):
        raise CorruptDataError(
            "a listing of uploads is cut off without a marker; report it to the store's maker", prefix=prefix
        )
    return UploadPage(found, (page["NextKeyMarker"], page.get("NextUploadIdMarker", "")))


def least_expiry_days(rules: Sequence[Mapping[str, Any]], prefix: str) -> float | None:
    """The shortest time after which a rule in force aborts pending uploads below a directory, or some of them."""
    found = []
    for rule in rules:
        days = rule.get("AbortIncompleteMultipartUpload", {}).get("DaysAfterInitiation")
        condition = rule.get("Filter", {})
        of = str(condition.get("Prefix", condition.get("And", {}).get("Prefix", rule.get("Prefix", ""))) or "")
        touches = prefix.startswith(of) or of.startswith(prefix)
        if rule.get("Status") == "Enabled" and days is not None and touches:
            found.append(float(days))
    return min(found, default=None)


def is_marker_refused(error: ClientError) -> bool:
    """Whether a server refuses the marker that it gave itself, as versitygw does beyond 1,000 pending uploads.

    It keeps the keys behind the key of the marker and then looks for the marker's upload among them.
    """
    return code_of(error) == "InvalidArgument"
