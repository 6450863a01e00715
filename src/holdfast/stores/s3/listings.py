"""Parse the pages of S3's listings, including the deviations of compatible servers."""

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

_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def is_xml(key: str) -> bool:
    """Check whether XML 1.0 can represent a key; it has no syntax for most control characters."""
    return not _NO_XML.search(key)


def etag_in(answer: Mapping[str, Any]) -> str:
    """Return the etag of a response or an entry without quotes; empty if there is none."""
    return str(answer.get("ETag", "")).strip('"')


def modified_in(answer: Mapping[str, Any]) -> float:
    """Return when an object was written, in seconds since the epoch; 0 if the response does not contain it."""
    found = answer.get("LastModified")
    return float(found.timestamp()) if isinstance(found, datetime) else 0.0


def object_page(page: Mapping[str, Any], prefix: str) -> ObjectPage:
    """Parse a page of ListObjectsV2. botocore requested URL-encoded keys and has already decoded them.

    Raises:
        CorruptDataError: the page is truncated, but has no token to continue with.
    """
    found = [
        # S3Proxy lists directory markers without a size.
        ObjectInfo(entry["Key"], int(entry.get("Size", 0)), etag_in(entry), modified_in(entry))
        for entry in page.get("Contents", ())
    ]
    if not page.get("IsTruncated"):
        return ObjectPage(found, None)
    if not page.get("NextContinuationToken"):
        raise CorruptDataError(
            "a listing is truncated without a token: report it to the vendor of the store", prefix=prefix
        )
    return ObjectPage(found, page["NextContinuationToken"])


def is_exact(page: Mapping[str, Any]) -> bool:
    """Check whether XML preserved every key of a page of ListMultipartUploads.

    Servers written in Go replace characters that XML cannot represent with U+FFFD.
    """
    return not any(_LOST in key for key in (page.get("NextKeyMarker", ""), *_keys(page)))


def decoded(page: Mapping[str, Any], plain: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Decode the keys of a page of ListMultipartUploads that was requested in URL encoding.

    A page is first requested without encoding, because SeaweedFS claims to encode keys but does not, so that decoding
    them would turn "+" into a space.

    Args:
        plain: the same page, requested without encoding; its keys are used where XML preserved them. None if the page
            was not XML.
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
    """Parse a page of ListMultipartUploads.

    Raises:
        CorruptDataError: the page is truncated, but has no marker to continue with.
    """
    found = [
        UploadInfo(entry["Key"], entry["UploadId"], entry["Initiated"].timestamp() if "Initiated" in entry else 0.0)
        for entry in page.get("Uploads", ())
    ]
    if not page.get("IsTruncated"):
        return UploadPage(found, None)
    if not page.get("NextKeyMarker"):
        raise CorruptDataError(
            "a listing of uploads is truncated without a marker: report it to the vendor of the store", prefix=prefix
        )
    return UploadPage(found, (page["NextKeyMarker"], page.get("NextUploadIdMarker", "")))


def least_expiry_days(rules: Sequence[Mapping[str, Any]], prefix: str) -> float | None:
    """Return the shortest time after which an enabled rule aborts some pending uploads below a directory."""
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
    """Check whether a server rejects the page marker that it returned, as versitygw does beyond 1,000 uploads.

    versitygw selects the keys after the marker's key, and then searches these keys for the marker's upload, which is
    not among them.
    """
    return code_of(error) == "InvalidArgument"
