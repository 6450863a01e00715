"""CompleteMultipartUpload, the request that a job commit sends for every file, without botocore's general machinery.

botocore looks up models, rules and hooks for each request: a millisecond of CPU, in which a driver can send only some
700 requests a second however many threads it has. This request is always the same, so it is put together and signed
here and handed to the connections of botocore's client: credentials, TLS and pools are the client's. Through a proxy,
and should botocore's inside look otherwise one day, its own signer and session do it.
Source: Amazon S3 API reference, CompleteMultipartUpload; docs/decisions/0011, 0038.
"""

from __future__ import annotations

import socket
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from botocore import exceptions as boto
from botocore.auth import SIGV4_TIMESTAMP, S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.compat import get_current_datetime
from botocore.exceptions import ClientError
from botocore.utils import percent_encode
from urllib3 import exceptions as http

from holdfast.stores.base import Part
from holdfast.stores.s3_sign import Signer

__all__ = ["complete_upload"]

_OPERATION = "CompleteMultipartUpload"
_NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
_ELSEWHERE = {"PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed"}
_KEY_SAFE = "/~"
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class _Road:
    """How requests about a bucket travel.

    Attributes:
        address: what stands before the key in the urls of the bucket, as botocore's own rules have it.
        host: as the header says it.
        path: of `address`.
        pool: the client's connections to it (urllib3's); None to leave it to botocore's session.
    """

    address: str
    host: str
    path: str
    pool: Any


_roads: weakref.WeakKeyDictionary[Any, dict[str, _Road]] = weakref.WeakKeyDictionary()  # a cache, by client and bucket


def complete_upload(client: Any, bucket: str, key: str, upload_id: str, parts: Sequence[Part]) -> str:
    """Complete an upload; returns the object's etag, empty if the server names none.

    Raises:
        ClientError: as botocore's own call would. Other errors of botocore: the request or its answer was lost.
    """
    known = _roads.setdefault(client, {})
    road = known.get(bucket) or known.setdefault(bucket, _road(client, bucket))
    # Private to botocore's client and there since its first release; nothing public leads to it.
    credentials = client._request_signer._credentials
    body = _body(parts)
    if road.pool is None or credentials is None:
        status, content = _by_session(client, road, key, upload_id, body)
    else:
        frozen = credentials.get_frozen_credentials()
        signer = Signer(frozen.access_key, frozen.secret_key, frozen.token, client.meta.region_name)
        status, content = _by_pool(road, signer, client.meta.config.user_agent, key, upload_id, body)
    root = _parsed(content)
    if status == 200 and root is not None and _local(root.tag) == f"{_OPERATION}Result":
        return _text(root, "ETag").strip('"')
    code = "" if root is None else _text(root, "Code")
    if code in _ELSEWHERE or status in (301, 307):
        return _by_client(client, bucket, key, upload_id, parts)
    # 200 with an error in the body means that it failed while the server kept the connection alive.
    error = {"Code": code, "Message": ""}
    request_id = "" if root is None else _text(root, "RequestId")
    metadata = {"HTTPStatusCode": 500 if status == 200 else status, "RequestId": request_id}
    raise ClientError({"Error": error, "ResponseMetadata": metadata}, _OPERATION)


def _road(client: Any, bucket: str) -> _Road:
    url: str = client.generate_presigned_url("head_object", {"Bucket": bucket, "Key": "k"})
    address = url.partition("?")[0].removesuffix("k")
    place = urlsplit(address)
    host = place.hostname or ""
    if place.port and place.port != _DEFAULT_PORTS.get(place.scheme):
        host = f"{host}:{place.port}"
    return _Road(address, host, place.path, _pool(client, address))


def _pool(client: Any, address: str) -> Any:
    try:
        session = client._endpoint.http_session
        if session._proxy_config.proxy_url_for(address) is not None:
            return None
        pool = session._manager.connection_from_url(address)
        session._setup_ssl_cert(pool, address, session._verify)
    except AttributeError:  # another botocore
        return None
    return pool


def _by_pool(road: _Road, signer: Signer, user_agent: str, key: str, upload_id: str, body: bytes) -> tuple[int, bytes]:
    path = road.path + percent_encode(key, safe=_KEY_SAFE)
    query = f"uploadId={percent_encode(upload_id)}"
    timestamp = get_current_datetime().strftime(SIGV4_TIMESTAMP)
    headers = signer.signed(
        "POST", path, query, {"host": road.host, "content-type": "application/xml"}, body, timestamp
    )
    headers["user-agent"] = user_agent
    try:
        answer = road.pool.urlopen(
            "POST",
            f"{path}?{query}",
            body,
            headers,
            retries=False,
            redirect=False,
            assert_same_host=False,
            decode_content=False,
        )
    except Exception as error:
        raise _as_botocore_says(error, road.address) from error
    return answer.status, answer.data


_AS_BOTOCORE = (  # what its own session makes of urllib3's errors, in the order in which it asks
    (http.SSLError, boto.SSLError),
    ((http.NewConnectionError, socket.gaierror), boto.EndpointConnectionError),
    (http.ConnectTimeoutError, boto.ConnectTimeoutError),
    (http.ReadTimeoutError, boto.ReadTimeoutError),
    (http.ProtocolError, boto.ConnectionClosedError),
)


def _as_botocore_says(error: Exception, url: str) -> Exception:
    """The error of botocore's own session, so that one table of errors serves."""
    for theirs, botocores in _AS_BOTOCORE:
        if isinstance(error, theirs):
            found: Exception = botocores(endpoint_url=url, error=error)
            return found
    unknown: Exception = boto.HTTPClientError(error=error)
    return unknown


def _by_session(client: Any, road: _Road, key: str, upload_id: str, body: bytes) -> tuple[int, bytes]:
    request = AWSRequest(
        method="POST",
        url=road.address + percent_encode(key, safe=_KEY_SAFE),
        params={"uploadId": upload_id},
        data=body,
        headers={"Content-Type": "application/xml", "User-Agent": client.meta.config.user_agent},
    )
    credentials = client._request_signer._credentials
    if credentials is not None:  # without any the server says what is wrong
        S3SigV4Auth(credentials.get_frozen_credentials(), "s3", client.meta.region_name).add_auth(request)
    answer = client._endpoint.http_session.send(request.prepare())
    return answer.status_code, answer.content


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
