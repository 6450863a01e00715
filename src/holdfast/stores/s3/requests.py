"""Send the three requests that every file needs (create an upload, upload a part, complete it) past botocore.

botocore looks up models, rules and hooks for each request. This takes a millisecond of CPU under the interpreter lock
and limits a process to about 700 requests per second, regardless of the number of threads. This module needs a fifth of
that time, because its requests differ only in their key and body. Credentials, TLS, timeouts and connection pools come
from the client. If there is a proxy, if there are no credentials, or if the internals of botocore have changed, its own
calls send the same requests. docs/decisions/0012.

Source: Amazon S3 API reference: CreateMultipartUpload, UploadPart, CompleteMultipartUpload, and "Signature Calculations
for the Authorization Header" (version 4, payload in one chunk).
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import re
import socket
import ssl
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPMessage
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

from botocore import exceptions as boto
from botocore.auth import SIGV4_TIMESTAMP
from botocore.compat import get_current_datetime
from botocore.exceptions import ClientError
from botocore.utils import percent_encode
from urllib3 import exceptions as http
from urllib3.util.ssl_match_hostname import CertificateError

from holdfast.stores.base import Part

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
        answer = send_request(client, bucket, "POST", key, "uploads", headers, b"")
        if answer is not None:
            if answer.status == 200 and answer.get_element_text("UploadId"):
                return answer.get_element_text("UploadId")
            raise answer.make_client_error("CreateMultipartUpload")
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
        answer = send_request(client, bucket, "PUT", key, query, {}, bytes(data))
        if answer is not None:
            if answer.status == 200:
                return str(answer.headers.get("ETag", "")).strip('"')
            raise answer.make_client_error("UploadPart")
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
    answer = send_request(client, bucket, "POST", key, query, headers, _complete_upload_body(parts))
    if answer is not None:
        if answer.status == 200 and answer.root_element_name == "CompleteMultipartUploadResult":
            return answer.get_element_text("ETag").strip('"')
        # 200 with an error in the body: it failed after the server had sent the status to keep the connection alive.
        raise answer.make_client_error("CompleteMultipartUpload")
    named = [
        {"PartNumber": part.number, "ETag": f'"{part.etag}"'}
        | ({f"Checksum{part.checksum_algorithm}": part.checksum} if part.checksum_algorithm else {})
        for part in parts
    ]
    completed = client.complete_multipart_upload(
        Bucket=bucket, Key=key, UploadId=upload_id, MultipartUpload={"Parts": named}
    )
    return str(completed.get("ETag", "")).strip('"')


def _complete_upload_body(parts: Sequence[Part]) -> bytes:
    named = "".join(
        f'<Part>{_checksum_element(part)}<ETag>"{_escape_xml(part.etag)}"</ETag><PartNumber>{part.number}</PartNumber></Part>'
        for part in parts
    )
    return f'<CompleteMultipartUpload xmlns="{_NAMESPACE}">{named}</CompleteMultipartUpload>'.encode()


def _checksum_element(part: Part) -> str:
    name = f"Checksum{part.checksum_algorithm}"
    return f"<{name}>{_escape_xml(part.checksum)}</{name}>" if part.checksum_algorithm else ""


def _escape_xml(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


# --- one request ------------------------------------------------------------------------------------------------------
_ELSEWHERE = {"PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed"}
_KEY_SAFE = "/~"
_DIRECTORY_BUCKET = "--x-s3"  # how names of S3 Express end
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Response:
    """The response of S3 to a request; `document` is None if the body is not XML."""

    status: int
    headers: Mapping[str, str] | HTTPMessage
    document: ElementTree.Element | None

    @property
    def root_element_name(self) -> str:
        """The name of the root element, without its namespace, which differs between servers."""
        return "" if self.document is None else self.document.tag.rpartition("}")[2]

    def get_element_text(self, name: str) -> str:
        """Return the text of the first element with this name; empty if there is none."""
        found = None if self.document is None else self.document.find(f".//{{*}}{name}")
        return "" if found is None else found.text or ""

    def make_client_error(self, operation: str) -> ClientError:
        """Return the error that botocore's own call would raise; an unexpected response counts as a server error."""
        succeeded = self.status < 300
        code = self.get_element_text("Code") or ("" if succeeded else str(self.status))
        metadata = {
            "HTTPStatusCode": 500 if succeeded else self.status,
            "RequestId": self.get_element_text("RequestId"),
        }
        return ClientError({"Error": {"Code": code, "Message": ""}, "ResponseMetadata": metadata}, operation)


@dataclass(frozen=True, slots=True)
class _BucketAddress:
    """The address to which requests for a bucket are sent.

    Attributes:
        address: the part of the bucket's URLs before the key, as botocore builds it.
        host: value of the Host header.
        path: the path in `address`.
        region: the region for signatures.
        pool: the client's connection pool (urllib3's).
        read_timeout_s: how long a response may take.
    """

    address: str
    host: str
    path: str
    region: str
    pool: Any
    read_timeout_s: float | None


# A cache, by client and bucket; None for a bucket whose requests botocore itself must send.
_routes: weakref.WeakKeyDictionary[Any, dict[str, _BucketAddress | None]] = weakref.WeakKeyDictionary()


def send_request(
    client: Any, bucket: str, method: str, key: str, query: str, headers: Mapping[str, str], body: bytes
) -> Response | None:
    """Sign a request for a key and send it once, through the connections of a botocore client.

    Args:
        query: the query, percent-encoded, with its parameters sorted by name.
        headers: names in lower case, values in ASCII.

    Returns:
        The response. None if nothing happened and the caller must use botocore's own call. This is the case if the
        bucket is in another region, because botocore follows the redirect, or if the bucket is of a type with different
        signatures: from then on, every call for this client and bucket returns None. It is also the case if there is a
        proxy, or no credentials, or another version of botocore.

    Raises:
        BotoCoreError: the request or its response was lost; botocore's own session would raise the same error.
    """
    known = _routes.setdefault(client, {})
    if bucket not in known:
        known[bucket] = None if bucket.endswith(_DIRECTORY_BUCKET) else _find_bucket_address(client, bucket)
    route = known[bucket]
    # Private to botocore's client, but unchanged since its first release; no public attribute leads to it.
    credentials = client._request_signer._credentials
    if route is None or credentials is None:
        return None
    path = route.path + percent_encode(key, safe=_KEY_SAFE)
    timestamp = get_current_datetime().strftime(SIGV4_TIMESTAMP)
    named = {**headers, "host": route.host}
    sent = sign_headers(credentials.get_frozen_credentials(), route.region, method, path, query, named, body, timestamp)
    answer = _send_over_pool(
        route, method, f"{path}?{query}", {**sent, "user-agent": client.meta.config.user_agent}, body
    )
    if answer.status in (301, 307) or answer.get_element_text("Code") in _ELSEWHERE:
        known[bucket] = None
        return None
    return answer


def _find_bucket_address(client: Any, bucket: str) -> _BucketAddress | None:
    """Return where the client itself sends requests for the bucket; None if botocore does not reveal it.

    Presigned URLs are no substitute: they use Amazon's global endpoint, regardless of the region.
    """
    context: dict[str, Any] = {
        "client_region": client.meta.region_name,
        "client_config": client.meta.config,
        "has_streaming_input": False,
        "auth_type": None,
    }
    try:
        model = client.meta.service_model.operation_model("HeadObject")
        url = str(client._resolve_endpoint_ruleset(model, {"Bucket": bucket, "Key": "k"}, context)[0])
    except (AttributeError, TypeError, boto.BotoCoreError):
        return None  # another version of botocore; or botocore itself reports what is wrong
    region = str(context.get("signing", {}).get("region") or client.meta.region_name)
    address = url.rstrip("/") + "/"
    place = urlsplit(address)
    host = place.netloc.rpartition("@")[2].lower()
    if place.port is not None and place.port == _DEFAULT_PORTS.get(place.scheme):
        host = host.rpartition(":")[0]
    region = "us-east-1" if region == "aws-global" else region
    pool = _find_pool(client, address)
    return pool and _BucketAddress(address, host, place.path, region, pool, client.meta.config.read_timeout)


def _find_pool(client: Any, address: str) -> Any:
    try:
        session = client._endpoint.http_session
        if session._proxy_config.proxy_url_for(address) is not None:
            return None
        pool = session._manager.connection_from_url(address)
        session._setup_ssl_cert(pool, address, session._verify)
        pool._put_conn(pool._get_conn())  # as `_send_over_pool` uses it
    except AttributeError:  # another version of botocore
        return None
    return pool


def _send_over_pool(
    route: _BucketAddress, method: str, target: str, headers: Mapping[str, str], body: bytes
) -> Response:
    """Send a request over a connection of the pool, which connects if needed, with TLS.

    Neither the pool's own loop nor urllib3's responses are used: they would double the time.
    """
    connection = route.pool._get_conn()
    try:
        HTTPConnection.request(connection, method, target, body, headers)
        connection.sock.settimeout(route.read_timeout_s)
        with HTTPConnection.getresponse(connection) as answer:
            content = answer.read()
    except BaseException as error:
        connection.close()
        if isinstance(error, Exception):
            raise _convert_to_botocore_error(error, route.address) from error
        raise
    finally:
        route.pool._put_conn(connection)
    return Response(answer.status, answer.headers, _parse_xml(content))


_AS_BOTOCORE = (  # how its own session converts urllib3's errors, in the same order
    ((http.SSLError, CertificateError), boto.SSLError),
    ((http.NewConnectionError, socket.gaierror), boto.EndpointConnectionError),
    (http.ConnectTimeoutError, boto.ConnectTimeoutError),
    (http.ReadTimeoutError, boto.ReadTimeoutError),
    (http.ProtocolError, boto.ConnectionClosedError),
    (ssl.SSLError, boto.SSLError),
    (TimeoutError, boto.ReadTimeoutError),
    ((OSError, HTTPException), boto.ConnectionClosedError),
)


def _convert_to_botocore_error(error: Exception, url: str) -> Exception:
    """Convert a urllib3 error as botocore's own session does, so that one table of errors covers both."""
    for theirs, botocores in _AS_BOTOCORE:
        if isinstance(error, theirs):
            found: Exception = botocores(endpoint_url=url, error=error)
            return found
    unknown: Exception = boto.HTTPClientError(error=error)
    return unknown


def _parse_xml(content: bytes) -> ElementTree.Element | None:
    try:
        return ElementTree.fromstring(content) if content else None
    except ElementTree.ParseError:
        return None


# --- signatures -------------------------------------------------------------------------------------------------------
_ALGORITHM = "AWS4-HMAC-SHA256"


def sign_headers(
    credentials: Any,
    region: str,
    method: str,
    path: str,
    query: str,
    headers: Mapping[str, str],
    body: bytes,
    timestamp: str,
) -> dict[str, str]:
    """Sign a request (AWS signature version 4), and return its headers.

    Args:
        credentials: botocore's frozen credentials.
        path, query: percent-encoded, exactly as sent; query parameters are sorted by name.
        headers: names in lower case, including ``host``; all of them are signed.
        timestamp: the current time, such as ``20130524T000000Z``.
    """
    found = {**headers, "x-amz-content-sha256": hashlib.sha256(body).hexdigest(), "x-amz-date": timestamp}
    if credentials.token:
        found["x-amz-security-token"] = credentials.token
    names = sorted(found)
    listed = ";".join(names)
    lines = "".join(f"{name}:{' '.join(found[name].split())}\n" for name in names)
    canonical = "&".join(one if "=" in one else f"{one}=" for one in query.split("&"))
    request = f"{method}\n{path}\n{canonical}\n{lines}\n{listed}\n{found['x-amz-content-sha256']}"
    day = timestamp[:8]
    scope = f"{day}/{region}/s3/aws4_request"
    text = f"{_ALGORITHM}\n{timestamp}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    signature = hmac.new(_signing_key(credentials.secret_key, day, region), text.encode(), hashlib.sha256).hexdigest()
    found["authorization"] = (
        f"{_ALGORITHM} Credential={credentials.access_key}/{scope}, SignedHeaders={listed}, Signature={signature}"
    )
    return found


@functools.lru_cache(maxsize=8)
def _signing_key(secret_key: str, day: str, region: str) -> bytes:
    key = f"AWS4{secret_key}".encode()
    for text in (day, region, "s3", "aws4_request"):
        key = hmac.new(key, text.encode(), hashlib.sha256).digest()
    return key
