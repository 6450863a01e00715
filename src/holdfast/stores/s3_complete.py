"""CompleteMultipartUpload, the request that a job commit sends for every file, without botocore's general machinery.

botocore looks up models, rules and hooks for each request: a millisecond of CPU, in which a driver can send only some
700 requests a second however many threads it has. This request is always the same, so it is put together here and then
signed and sent by botocore's own signer and HTTP session: credentials, proxies, TLS and pools are the client's.
Source: Amazon S3 API reference, CompleteMultipartUpload; docs/decisions/0011.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import ClientError
from botocore.utils import percent_encode

from holdfast.stores.base import Part

__all__ = ["complete_upload"]

_OPERATION = "CompleteMultipartUpload"
_NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
_ELSEWHERE = {"PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed"}
_KEY_SAFE = "/~"

_addresses: weakref.WeakKeyDictionary[Any, dict[str, str]] = (
    weakref.WeakKeyDictionary()
)  # a cache, by client and bucket


def complete_upload(client: Any, bucket: str, key: str, upload_id: str, parts: Sequence[Part]) -> str:
    """Complete an upload; returns the object's etag, empty if the server names none.

    Raises:
        ClientError: as botocore's own call would. Other errors of botocore: the request or its answer was lost.
    """
    request = AWSRequest(
        method="POST",
        url=_address(client, bucket) + percent_encode(key, safe=_KEY_SAFE),
        params={"uploadId": upload_id},
        data=_body(parts),
        headers={"Content-Type": "application/xml", "User-Agent": client.meta.config.user_agent},
    )
    # Both are private to botocore's client and have been there since its first release; nothing public leads to them.
    credentials = client._request_signer._credentials
    http = client._endpoint.http_session
    if credentials is not None:  # without any the server says what is wrong
        S3SigV4Auth(credentials.get_frozen_credentials(), "s3", client.meta.region_name).add_auth(request)
    answer = http.send(request.prepare())
    root = _parsed(answer.content)
    if answer.status_code == 200 and root is not None and _local(root.tag) == f"{_OPERATION}Result":
        return _text(root, "ETag").strip('"')
    code = "" if root is None else _text(root, "Code")
    if code in _ELSEWHERE or answer.status_code in (301, 307):
        return _by_client(client, bucket, key, upload_id, parts)
    # 200 with an error in the body means that it failed while the server kept the connection alive.
    status = 500 if answer.status_code == 200 else answer.status_code
    error = {"Code": code, "Message": ""}
    raise ClientError({"Error": error, "ResponseMetadata": {"HTTPStatusCode": status}}, _OPERATION)


def _address(client: Any, bucket: str) -> str:
    """What stands before the key in the urls of this bucket, as botocore's own rules have it."""
    known = _addresses.setdefault(client, {})
    if bucket not in known:
        url: str = client.generate_presigned_url("head_object", {"Bucket": bucket, "Key": "k"})
        known[bucket] = url.partition("?")[0].removesuffix("k")
    return known[bucket]


def _body(parts: Sequence[Part]) -> bytes:
    named = "".join(
        f'<Part><ETag>"{escape(part.etag)}"</ETag><PartNumber>{part.number}</PartNumber></Part>' for part in parts
    )
    return f'<CompleteMultipartUpload xmlns="{_NAMESPACE}">{named}</CompleteMultipartUpload>'.encode()


def _by_client(client: Any, bucket: str, key: str, upload_id: str, parts: Sequence[Part]) -> str:
    """The same through all of botocore, which follows a bucket to its region."""
    named = [{"PartNumber": part.number, "ETag": f'"{part.etag}"'} for part in parts]
    answer = client.complete_multipart_upload(
        Bucket=bucket, Key=key, UploadId=upload_id, MultipartUpload={"Parts": named}
    )
    return str(answer.get("ETag", "")).strip('"')


def _parsed(content: bytes) -> ElementTree.Element | None:
    try:
        return ElementTree.fromstring(content)
    except ElementTree.ParseError:
        return None


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def _text(root: ElementTree.Element, name: str) -> str:
    """The text of the first element of that name, in whatever namespace the server uses."""
    return next((element.text or "" for element in root.iter() if _local(element.tag) == name), "")
