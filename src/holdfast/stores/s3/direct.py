"""Send requests directly over the connections of botocore's client, without its overhead.

botocore looks up models, rules and hooks for each request. This takes a millisecond of CPU under the interpreter's lock
and limits a process to about 700 requests per second, regardless of the number of threads. This module needs a fifth of
that time, because its requests differ only in their key and body. Credentials, TLS, timeouts and connection pools come
from the client. If there is a proxy, if there are no credentials, or if botocore's internals have changed, botocore's
own signer and session send the same request. docs/decisions/0012.
"""

from __future__ import annotations

import socket
import ssl
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException, HTTPMessage, HTTPResponse
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

from botocore import exceptions as boto
from botocore.auth import SIGV4_TIMESTAMP, S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.compat import get_current_datetime
from botocore.exceptions import ClientError
from botocore.utils import percent_encode
from urllib3 import exceptions as http

from holdfast.stores.s3.signing import Signer

_ELSEWHERE = {"PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed"}
_KEY_SAFE = "/~"
_DIRECTORY_BUCKET = "--x-s3"  # how names of S3 Express end
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Answer:
    """The response to a request; the document is None if the body is not XML."""

    status: int
    headers: Mapping[str, str] | HTTPMessage
    document: ElementTree.Element | None

    @property
    def root(self) -> str:
        """The name of the root element, without its namespace, which differs between servers."""
        return "" if self.document is None else _local(self.document.tag)

    def text(self, name: str) -> str:
        """Return the text of the first element with this name; empty if there is none."""
        if self.document is None:
            return ""
        return next((element.text or "" for element in self.document.iter() if _local(element.tag) == name), "")

    @property
    def is_elsewhere(self) -> bool:
        """Whether the bucket is in another region."""
        return self.status in (301, 307) or self.text("Code") in _ELSEWHERE

    def refusal(self, operation: str) -> ClientError:
        """Return the error that botocore's own call would raise; an unexpected response counts as a server error."""
        succeeded = self.status < 300
        code = self.text("Code") or ("" if succeeded else str(self.status))
        metadata = {"HTTPStatusCode": 500 if succeeded else self.status, "RequestId": self.text("RequestId")}
        return ClientError({"Error": {"Code": code, "Message": ""}, "ResponseMetadata": metadata}, operation)


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


@dataclass(frozen=True, slots=True)
class _Route:
    """The address to which requests for a bucket are sent.

    Attributes:
        address: the part of the bucket's URLs before the key, as botocore builds it.
        host: value of the Host header.
        path: the path in `address`.
        region: the region for signatures.
        pool: the client's connection pool (urllib3's); None to use botocore's session.
        read_timeout_s: how long a response may take.
    """

    address: str
    host: str
    path: str
    region: str
    pool: Any
    read_timeout_s: float | None


# A cache, by client and bucket; None for a bucket whose requests botocore itself must send.
_routes: weakref.WeakKeyDictionary[Any, dict[str, _Route | None]] = weakref.WeakKeyDictionary()


def exchange(
    client: Any, bucket: str, method: str, key: str, query: str, headers: Mapping[str, str], body: bytes
) -> Answer | None:
    """Send a request for a key once.

    Args:
        query: the query, percent-encoded, with its parameters sorted by name.
        headers: names in lower case, values in ASCII.

    Returns:
        The response. None if nothing happened and the caller must use botocore's own call. This is the case if the
        bucket is in another region, because botocore follows the redirect, or if the bucket is of a type with different
        signatures. From then on, every call for this client and bucket returns None.

    Raises:
        BotoCoreError: the request or its response was lost; botocore's own session would raise the same error.
    """
    known = _routes.setdefault(client, {})
    if bucket not in known:
        known[bucket] = None if bucket.endswith(_DIRECTORY_BUCKET) else _route(client, bucket)
    route = known[bucket]
    if route is None:
        return None
    answer = _answer(client, route, method, key, query, headers, body)
    if answer.is_elsewhere:
        known[bucket] = None
        return None
    return answer


def _answer(
    client: Any, route: _Route, method: str, key: str, query: str, headers: Mapping[str, str], body: bytes
) -> Answer:
    # Private to botocore's client, but unchanged since its first release; no public attribute leads to it.
    credentials = client._request_signer._credentials
    target = f"{percent_encode(key, safe=_KEY_SAFE)}?{query}"
    user_agent = client.meta.config.user_agent
    if route.pool is None or credentials is None:
        request = AWSRequest(
            method=method, url=route.address + target, data=body, headers={**headers, "User-Agent": user_agent}
        )
        if credentials is not None:  # without any, the server reports what is wrong
            S3SigV4Auth(credentials.get_frozen_credentials(), "s3", route.region).add_auth(request)
        answer = client._endpoint.http_session.send(request.prepare())
        return Answer(answer.status_code, answer.headers, _parsed(answer.content))
    frozen = credentials.get_frozen_credentials()
    signer = Signer(frozen.access_key, frozen.secret_key, frozen.token, route.region)
    timestamp = get_current_datetime().strftime(SIGV4_TIMESTAMP)
    path, _, query = (route.path + target).partition("?")
    signed = signer.signed(method, path, query, {**headers, "host": route.host}, body, timestamp)
    return _sent(route, method, f"{path}?{query}", {**signed, "user-agent": user_agent}, body)


def _route(client: Any, bucket: str) -> _Route | None:
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
    return _Route(address, host, place.path, region, _pool(client, address), client.meta.config.read_timeout)


def _pool(client: Any, address: str) -> Any:
    try:
        session = client._endpoint.http_session
        if session._proxy_config.proxy_url_for(address) is not None:
            return None
        pool = session._manager.connection_from_url(address)
        session._setup_ssl_cert(pool, address, session._verify)
        pool._put_conn(pool._get_conn())  # as `_sent` uses it
    except AttributeError:  # another version of botocore
        return None
    return pool


def _sent(route: _Route, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
    """Send a request over a connection of the pool; urllib3 opens new ones if needed, with TLS."""
    connection = route.pool._get_conn()
    if connection.sock is not None:
        return _sent_along(route, connection, method, target, headers, body)
    route.pool._put_conn(connection)
    try:
        answer = route.pool.urlopen(
            method,
            target,
            body,
            headers,
            retries=False,
            redirect=False,
            assert_same_host=False,
            decode_content=False,
        )
    except Exception as error:
        raise _as_botocore_says(error, route.address) from error
    return Answer(answer.status, answer.headers, _parsed(answer.data))


def _sent_along(
    route: _Route, connection: Any, method: str, target: str, headers: Mapping[str, str], body: bytes
) -> Answer:
    """Send a request over an open connection without urllib3, whose overhead would double the time."""
    fields = {**headers, "content-length": str(len(body))}
    head = "\r\n".join([f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())])
    try:
        if head.count("\n") != len(fields) or head.count("\r") != len(fields):
            raise ValueError("a header contains a line break")
        connection.sock.settimeout(route.read_timeout_s)
        connection.sock.sendall(head.encode("ascii") + b"\r\n\r\n" + body)
        with HTTPResponse(connection.sock, method=method) as answer:
            answer.begin()
            content = answer.read()
            if answer.will_close:
                connection.close()
    except BaseException as error:
        connection.close()
        if isinstance(error, Exception):
            raise _as_botocore_says(error, route.address) from error
        raise
    finally:
        route.pool._put_conn(connection)
    return Answer(answer.status, answer.headers, _parsed(content))


_AS_BOTOCORE = (  # how its own session converts urllib3's errors, in the same order
    (http.SSLError, boto.SSLError),
    ((http.NewConnectionError, socket.gaierror), boto.EndpointConnectionError),
    (http.ConnectTimeoutError, boto.ConnectTimeoutError),
    (http.ReadTimeoutError, boto.ReadTimeoutError),
    (http.ProtocolError, boto.ConnectionClosedError),
    (ssl.SSLError, boto.SSLError),
    (TimeoutError, boto.ReadTimeoutError),
    ((OSError, HTTPException), boto.ConnectionClosedError),
)


def _as_botocore_says(error: Exception, url: str) -> Exception:
    """Convert a urllib3 error as botocore's own session does, so that one table of errors covers both."""
    for theirs, botocores in _AS_BOTOCORE:
        if isinstance(error, theirs):
            found: Exception = botocores(endpoint_url=url, error=error)
            return found
    unknown: Exception = boto.HTTPClientError(error=error)
    return unknown


def _parsed(content: bytes) -> ElementTree.Element | None:
    try:
        return ElementTree.fromstring(content) if content else None
    except ElementTree.ParseError:
        return None
