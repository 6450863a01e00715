"""Implement the store protocols on S3 and compatible servers.

Worked composition::

    store = S3Store("bucket", S3Options(endpoint_url="http://127.0.0.1:9000", access_key="…", secret_key="…"))
    upload_id = store.create_upload("t/a")                               # in one process
    part = store.upload_part("t/a", upload_id, 1, rows)
    S3Store("bucket", options).complete_upload("t/a", upload_id, [part])  # in another
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, ResponseStreamingError
from urllib3.exceptions import HTTPError

from holdfast.errors import (
    AccessDeniedError,
    CorruptDataError,
    InvalidRequestError,
    NotFoundError,
    PreconditionError,
    UnavailableError,
)
from holdfast.runtime import Clock, Ids, SystemClock, SystemIds
from holdfast.stores.base import (
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
    replaced,
)
from holdfast.stores.checks import check_delete, check_key, check_part_number, check_parts, check_range, page_size
from holdfast.stores.s3.client import Client, S3Connection, is_aws_endpoint
from holdfast.stores.s3.errors import BULK_DELETE_REFUSED, error_code_of, http_status_of
from holdfast.stores.s3.options import S3Options
from holdfast.stores.s3.requests import complete_upload, create_upload, upload_part

_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


class S3Store:
    """A `MultipartStore` and `CopyStore` in one bucket.

    Guarantee: threads may share a store. Each process creates its own client at its first request, even after a fork.
    Pickling carries the bucket and the options, never a client. Errors and `repr` show no credentials.

    Args:
        bucket: the name of the bucket, which must exist.
        options: how to reach S3.
        clock: used for waiting between attempts.
        ids: adds jitter to the waiting times, so that many clients do not retry at the same time.
    """

    def __init__(
        self, bucket: str, options: S3Options | None = None, clock: Clock | None = None, ids: Ids | None = None
    ) -> None:
        self.bucket = bucket
        self._connection = S3Connection(bucket, options or S3Options(), clock or SystemClock(), ids or SystemIds())
        self._bulk_delete_refused = False

    def __repr__(self) -> str:
        return f"S3Store({self.bucket!r}, {self._connection.options!r})"

    @cached_property
    def capabilities(self) -> Capabilities:  # cached, because it reads the configuration
        endpoint = self._connection.endpoint()
        return Capabilities(
            conditional_put=Support.UNKNOWN,
            multipart=MultipartLimits(),
            metadata=True,
            copy=True,
            lists_uploads=Support.YES if is_aws_endpoint(endpoint) else Support.UNKNOWN,
            server=f"{endpoint} {self.bucket}",
        )

    @property
    def retries(self) -> int:
        return self._connection.retries

    # --- objects ------------------------------------------------------------------------------------------------------
    def put(
        self, key: str, data: bytes, mode: PutMode = Overwrite(), metadata: Mapping[str, str] | None = None
    ) -> ObjectInfo:
        _require_listable_key(key)
        arguments: dict[str, object] = {"Bucket": self.bucket, "Key": key, "Body": data, "Metadata": metadata or {}}
        if isinstance(mode, Create):
            arguments["IfNoneMatch"] = "*"
        elif isinstance(mode, Update):
            arguments["IfMatch"] = f'"{mode.etag}"'

        def send_put(client: Client) -> ObjectInfo:
            try:
                done = client.put_object(**arguments)
            except ClientError as error:
                if isinstance(mode, Update) and _is_missing(error):
                    raise PreconditionError("the object is gone: start over", bucket=self.bucket, key=key) from error
                raise
            return ObjectInfo(key, len(data), _etag_in_answer(done), metadata=dict(metadata or {}))

        return self._connection.request(
            "PutObject", key, send_put, visible=True, repeatable=isinstance(mode, Overwrite)
        )

    def get(self, key: str, start: int = 0, length: int | None = None, etag: str = "") -> bytes:
        check_range(start, length)
        if length == 0:
            self._refuse_replaced(key, etag, self.head(key).etag)
            return b""
        arguments = {"Bucket": self.bucket, "Key": key}
        if start or length is not None:
            arguments["Range"] = f"bytes={start}-{'' if length is None else start + length - 1}"

        def send_get(client: Client) -> bytes:
            try:
                answer = client.get_object(**arguments)
                with contextlib.closing(answer["Body"]) as body:
                    # Instead of sending If-Match, compare the response's etag: this is equivalent, and works on every
                    # server.
                    self._refuse_replaced(key, etag, _etag_in_answer(answer))
                    return _read_whole_body(body)
            except ClientError as error:
                if http_status_of(error) != 416:
                    raise
            # The range starts at or after the end of the object, which may have been replaced.
            if etag:
                self._refuse_replaced(key, etag, _etag_in_answer(client.head_object(Bucket=self.bucket, Key=key)))
            return b""

        return self._connection.request("GetObject", key, send_get)

    @staticmethod
    def _refuse_replaced(key: str, wanted: str, found: str) -> None:
        if wanted and found and wanted != found:
            raise replaced(key)

    def head(self, key: str) -> ObjectInfo:
        found = self._connection.request(
            "HeadObject", key, lambda client: client.head_object(Bucket=self.bucket, Key=key)
        )
        if "ContentLength" not in found:
            raise CorruptDataError("a response has no length: report it to the vendor of the store", key=key)
        return ObjectInfo(
            key,
            int(found["ContentLength"]),
            _etag_in_answer(found),
            _modified_s_in_answer(found),
            {name.lower(): value for name, value in found.get("Metadata", {}).items()},
        )

    def list_page(
        self, prefix: str, start_after: str = "", max_keys: int = 1000, token: str | None = None
    ) -> ObjectPage:
        arguments: dict[str, object] = {"Bucket": self.bucket, "Prefix": prefix, "MaxKeys": page_size(max_keys)}
        if start_after:
            arguments["StartAfter"] = start_after
        if token is not None:
            arguments["ContinuationToken"] = token
        page = self._connection.request("ListObjectsV2", prefix, lambda client: client.list_objects_v2(**arguments))
        return _parse_object_page(page, prefix)

    def delete(self, key: str) -> None:
        def send_delete(client: Client) -> None:
            with _ignore_missing():
                client.delete_object(Bucket=self.bucket, Key=key)

        self._connection.request("DeleteObject", key, send_delete, visible=True)

    def delete_many(self, keys: Sequence[str]) -> None:
        check_delete(keys)
        if keys and (self._bulk_delete_refused or not self._bulk_delete(keys)):
            for key in keys:
                self.delete(key)

    def _bulk_delete(self, keys: Sequence[str]) -> bool:
        """Delete objects in one request; if the server does not support this, remember that and return False."""
        entries = {"Objects": [{"Key": key} for key in keys], "Quiet": True}

        def send_bulk_delete(client: Client) -> list[dict[str, str]] | None:
            try:
                answer = client.delete_objects(Bucket=self.bucket, Delete=entries)
            except ClientError as error:
                if error_code_of(error) in BULK_DELETE_REFUSED:
                    return None
                raise
            return [entry for entry in answer.get("Errors", ()) if entry.get("Code") != "NoSuchKey"]

        errors = self._connection.request("DeleteObjects", keys[0], send_bulk_delete, visible=True)
        if errors is None:
            self._bulk_delete_refused = True
            return False
        if errors:
            first, code = errors[0].get("Key", ""), errors[0].get("Code", "")
            if code == "AccessDenied":
                raise AccessDeniedError("the policy forbids deleting: allow it", bucket=self.bucket, key=first)
            raise UnavailableError(
                "some objects were not deleted: repeat the whole call",
                bucket=self.bucket,
                key=first,
                errors=len(errors),
            )
        return True

    def copy(self, source: ObjectInfo, target: str) -> None:
        check_key(target)
        arguments = {"Bucket": self.bucket, "Key": target, "CopySource": {"Bucket": self.bucket, "Key": source.key}}
        self._connection.request("CopyObject", target, lambda client: client.copy_object(**arguments), visible=True)

    def close(self) -> None:
        self._connection.close()

    # --- uploads ------------------------------------------------------------------------------------------------------
    def create_upload(self, key: str, metadata: Mapping[str, str] | None = None) -> str:
        _require_listable_key(key)
        return self._connection.request(
            "CreateMultipartUpload",
            key,
            lambda client: create_upload(client, self.bucket, key, metadata or {}),
        )

    def upload_part(self, key: str, upload_id: str, number: int, data: bytes) -> Part:
        check_part_number(key, number, MultipartLimits().max_parts)

        def send_part(client: Client) -> Part:
            try:
                return Part(number, upload_part(client, self.bucket, key, upload_id, number, data), len(data))
            except ClientError as error:
                if _is_server_failure(error):
                    self._is_upload_pending_or_raise(client, key, upload_id, error)
                raise

        return self._connection.request("UploadPart", key, send_part)

    def complete_upload(self, key: str, upload_id: str, parts: Sequence[Part]) -> ObjectInfo:
        check_parts(key, parts)

        def send_completion(client: Client) -> ObjectInfo:
            try:
                etag = complete_upload(client, self.bucket, key, upload_id, parts)
            except ClientError as error:
                if _is_server_failure(error) and self._is_upload_pending_or_raise(client, key, upload_id, error):
                    raise UnavailableError(
                        "the store failed and the upload is still pending: repeat", key=key
                    ) from error
                raise
            return ObjectInfo(key, sum(part.size_bytes for part in parts), etag)

        return self._connection.request("CompleteMultipartUpload", key, send_completion, visible=True, repeatable=False)

    def _is_upload_pending_or_raise(self, client: Client, key: str, upload_id: str, cause: ClientError) -> bool:
        """Check after a 5xx response whether the upload still exists, so that nothing happened; False if unknown.

        Some servers respond with 500 if the upload does not exist (radosgw 16.2, moto): retries would never end.

        Raises:
            NotFoundError: the upload does not exist.
        """
        try:
            client.list_parts(Bucket=self.bucket, Key=key, UploadId=upload_id, MaxParts=1)
        except (BotoCoreError, ClientError) as error:
            if error_code_of(error) == "NoSuchUpload" or http_status_of(error) == 404:
                raise NotFoundError(
                    "no such upload: it was completed or aborted, or never existed", bucket=self.bucket, key=key
                ) from cause
            return False
        return True

    def abort_upload(self, key: str, upload_id: str) -> None:
        def send_abort(client: Client) -> None:
            with _ignore_missing():
                client.abort_multipart_upload(Bucket=self.bucket, Key=key, UploadId=upload_id)

        self._connection.request("AbortMultipartUpload", key, send_abort)

    def list_uploads_page(self, prefix: str, marker: tuple[str, str] | None = None) -> UploadPage:
        if marker is None:
            first = self._list_upload_page(prefix)
            assert first is not None, "only a marker can be rejected"
            return first
        page = self._list_upload_page(prefix, KeyMarker=marker[0], UploadIdMarker=marker[1])
        return self._list_uploads_from(prefix, marker[0]) if page is None else page

    def _list_uploads_from(self, prefix: str, key: str) -> UploadPage:
        """Return all uploads of a key and of later keys. `iter_uploads` omits those that it has already returned."""
        of_key, rest = self._list_upload_page(key), self._list_upload_page(prefix, KeyMarker=key)
        assert of_key is not None, "only an upload id marker can be rejected"
        assert rest is not None, "only an upload id marker can be rejected"
        if of_key.next_marker is not None and of_key.next_marker[0] == key:
            raise CorruptDataError(
                "one key has more pending uploads than the server can list: abort some of them", key=key
            )
        return UploadPage([*(one for one in of_key.uploads if one.key == key), *rest.uploads], rest.next_marker)

    def _list_upload_page(self, prefix: str, **marker: str) -> UploadPage | None:
        """Return one page; None if the server rejects its own marker."""

        # No MaxUploads: SeaweedFS loses uploads between small pages. Its default page contains all of them.
        arguments = {"Bucket": self.bucket, "Prefix": prefix, **marker}

        def send_listing(client: Client) -> UploadPage | None:
            try:
                return _parse_upload_page(client.list_multipart_uploads(**arguments), prefix)
            except ClientError as error:
                if "UploadIdMarker" in marker and _is_page_marker_rejected(error):
                    return None
                raise

        return self._connection.request("ListMultipartUploads", prefix, send_listing)


def _require_listable_key(key: str) -> None:
    """Reject a key that S3 could not list: XML has no syntax for most control characters."""
    check_key(key)
    if _NO_XML.search(key):
        raise InvalidRequestError("a key on S3 must not contain control characters: change it", key=key)


def _is_missing(error: ClientError) -> bool:
    """Check whether an object or an upload does not exist, in a bucket that does."""
    return http_status_of(error) == 404 and error_code_of(error) != "NoSuchBucket"


@contextlib.contextmanager
def _ignore_missing() -> Iterator[None]:
    """Suppress the error for an object or an upload that does not exist."""
    try:
        yield
    except ClientError as error:
        if not _is_missing(error):
            raise


def _is_server_failure(error: ClientError) -> bool:
    return error_code_of(error) == "InternalError" or (http_status_of(error) >= 500 and http_status_of(error) != 503)


def _read_whole_body(body: Any) -> bytes:
    """Read the whole body of a response; convert a broken connection into botocore's error."""
    try:
        return bytes(body.read())
    except HTTPError as error:
        raise ResponseStreamingError(error=error) from error


# --- responses --------------------------------------------------------------------------------------------------------
def _etag_in_answer(answer: Mapping[str, Any]) -> str:
    """Return the etag of a response or an entry without quotes; empty if there is none."""
    return str(answer.get("ETag", "")).strip('"')


def _modified_s_in_answer(answer: Mapping[str, Any]) -> float:
    """Return when an object was written, in seconds since the epoch; 0 if the response does not contain it."""
    found = answer.get("LastModified")
    return float(found.timestamp()) if isinstance(found, datetime) else 0.0


def _parse_object_page(page: Mapping[str, Any], prefix: str) -> ObjectPage:
    """Parse a page of ListObjectsV2. botocore requested URL-encoded keys and has already decoded them.

    Raises:
        CorruptDataError: the page is truncated, but has no token to continue with.
    """
    found = [
        # S3Proxy lists directory markers without a size.
        ObjectInfo(entry["Key"], int(entry.get("Size", 0)), _etag_in_answer(entry), _modified_s_in_answer(entry))
        for entry in page.get("Contents", ())
    ]
    if not page.get("IsTruncated"):
        return ObjectPage(found, None)
    if not page.get("NextContinuationToken"):
        raise CorruptDataError(
            "a listing is truncated without a token: report it to the vendor of the store", prefix=prefix
        )
    return ObjectPage(found, page["NextContinuationToken"])


def _parse_upload_page(page: Mapping[str, Any], prefix: str) -> UploadPage:
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


def _is_page_marker_rejected(error: ClientError) -> bool:
    """Check whether a server rejects the page marker that it returned, as versitygw does beyond 1,000 uploads.

    versitygw selects the keys after the marker's key, and then searches these keys for the marker's upload, which is
    not among them.
    """
    return error_code_of(error) == "InvalidArgument"
