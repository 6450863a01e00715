"""Send the three requests that each file costs: create an upload, upload a part, complete the upload.

Source: Amazon S3 API reference, CreateMultipartUpload, UploadPart, CompleteMultipartUpload; docs/decisions/0012.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from botocore.utils import percent_encode

from holdfast.stores.base import Part
from holdfast.stores.s3.direct import exchange

_NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
_PLAIN = re.compile(r"[!-~]+( [!-~]+)*")  # what a header can contain unencoded
_SMALL_BYTES = 1024 * 1024


def create_upload(client: Any, bucket: str, key: str, metadata: Mapping[str, str]) -> str:
    """Create an upload and return its id.

    Raises:
        ClientError: the server rejected the request; the same error as from botocore's own call.
        BotoCoreError: the request or its response was lost.
    """
    if all(_PLAIN.fullmatch(text) for pair in metadata.items() for text in pair):
        headers = {f"x-amz-meta-{name.lower()}": value for name, value in metadata.items()}
        answer = exchange(client, bucket, "POST", key, "uploads", headers, b"")
        if answer is not None:
            if answer.status == 200 and answer.text("UploadId"):
                return answer.text("UploadId")
            raise answer.refusal("CreateMultipartUpload")
    created = client.create_multipart_upload(Bucket=bucket, Key=key, Metadata=metadata)
    return str(created["UploadId"])


def upload_part(client: Any, bucket: str, key: str, upload_id: str, number: int, data: bytes) -> str:
    """Upload a part and return its etag, empty if the server returns none.

    Large parts go through botocore: it asks the server before it sends them, and its overhead is small compared to
    the transfer.

    Raises:
        ClientError: the server rejected the request; the same error as from botocore's own call.
        BotoCoreError: the request or its response was lost.
    """
    if len(data) < _SMALL_BYTES:
        query = f"partNumber={number}&uploadId={percent_encode(upload_id)}"
        answer = exchange(client, bucket, "PUT", key, query, {}, bytes(data))
        if answer is not None:
            if answer.status == 200:
                return str(answer.headers.get("ETag", "")).strip('"')
            raise answer.refusal("UploadPart")
    sent = client.upload_part(Bucket=bucket, Key=key, UploadId=upload_id, PartNumber=number, Body=data)
    return str(sent.get("ETag", "")).strip('"')


def complete_upload(client: Any, bucket: str, key: str, upload_id: str, parts: Sequence[Part]) -> str:
    """Complete an upload and return the object's etag, empty if the server returns none.

    Raises:
        ClientError: the server rejected the request; the same error as from botocore's own call.
        BotoCoreError: the request or its response was lost.
    """
    query = f"uploadId={percent_encode(upload_id)}"
    headers = {"content-type": "application/xml"}
    answer = exchange(client, bucket, "POST", key, query, headers, _body(parts))
    if answer is not None:
        if answer.status == 200 and answer.root == "CompleteMultipartUploadResult":
            return answer.text("ETag").strip('"')
        # 200 with an error in the body: it failed after the server had sent the status to keep the connection alive.
        raise answer.refusal("CompleteMultipartUpload")
    named = [
        {"PartNumber": part.number, "ETag": f'"{part.etag}"'}
        | ({f"Checksum{part.checksum_algorithm}": part.checksum} if part.checksum_algorithm else {})
        for part in parts
    ]
    completed = client.complete_multipart_upload(
        Bucket=bucket, Key=key, UploadId=upload_id, MultipartUpload={"Parts": named}
    )
    return str(completed.get("ETag", "")).strip('"')


def _body(parts: Sequence[Part]) -> bytes:
    named = "".join(
        f'<Part>{_checksum(part)}<ETag>"{_escaped(part.etag)}"</ETag><PartNumber>{part.number}</PartNumber></Part>'
        for part in parts
    )
    return f'<CompleteMultipartUpload xmlns="{_NAMESPACE}">{named}</CompleteMultipartUpload>'.encode()


def _checksum(part: Part) -> str:
    name = f"Checksum{part.checksum_algorithm}"
    return f"<{name}>{_escaped(part.checksum)}</{name}>" if part.checksum_algorithm else ""


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
