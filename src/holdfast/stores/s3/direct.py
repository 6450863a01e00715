"""Requests that go straight to the connections of botocore's client, without the machinery in between.

botocore looks up models, rules and hooks for each request: a millisecond of CPU under the interpreter's lock, in which
a process can send only some 700 requests a second however many threads it has. A request that is always the same but
for its key is put together and signed here, in a fifth of that; credentials, TLS, time-outs and pools are the client's.
Through a proxy, without credentials, and should botocore's inside look otherwise one day, its own signer and session
send the same request. docs/decisions/0038.
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

__all__ = ["Answer", "exchange"]

_ELSEWHERE = {"PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed"}
_KEY_SAFE = "/~"
_DIRECTORY_BUCKET = "--x-s3"  # how names of S3 Express end
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered; the document is None if the body is no XML."""

    status: int
    headers: Mapping[str, str] | HTTPMessage
    document: ElementTree.Element | None

    @property
    def root(self) -> str:
        """The name of the document, without its namespace, which differs among servers."""
        return "" if self.document is None else _local(self.document.tag)

    def text(self, name: str) -> str:
        """The text of the first element of that name; empty if there is none."""
        if self.document is None:
            return ""
        return next((element.text or "" for element in self.document.iter() if _local(element.tag) == name), "")

    @property
    def is_elsewhere(self) -> bool:
        """Whether the bucket is in another region."""
        return self.status in (301, 307) or self.text("Code") in _ELSEWHERE

    def refusal(self, operation: str) -> ClientError:
        """The error that botocore's own call would raise; an answer that is not what it should be is the server's."""
        succeeded = self.status < 300
        code = self.text("Code") or ("" if succeeded else str(self.status))
        metadata = {"HTTPStatusCode": 500 if succeeded else self.status, "RequestId": self.text("RequestId")}
        return ClientError({"Error": {"Code": code, "Message": ""}, "ResponseMetadata": metadata}, operation)


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


@dataclass(frozen=True, slots=True)
class _Road:
    """How requests about a bucket travel.

    Attributes:
        address: what stands before the key in the urls of the bucket, as botocore's own rules have it.
        host: as the header says it.
        path: of `address`.
        region: for signatures.
        pool: the client's connections to it (urllib3's); None to leave it to botocore's session.
        read_timeout_s: how long an answer may take.
    """

    address: str
    host: str
    path: str
    region: str
    pool: Any
    read_timeout_s: float | None


# A cache, by client and bucket; None for those that are left to botocore.
_roads: weakref.WeakKeyDictionary[Any, dict[str, _Road | None]] = weakref.WeakKeyDictionary()


def exchange(
    client: Any, bucket: str, method: str, key: str, query: str, headers: Mapping[str, str], body: bytes
) -> Answer | None:
    """Send a request about a key, once.

    Args:
        query: percent-encoded, its parameters in order.
        headers: names in lower case, values in ASCII.

    Returns:
        The answer; None if nothing happened, and botocore's own call has to do it: the bucket is in another region,
        where botocore follows it, or of a kind that has signatures of its own. That is remembered.

    Raises:
        BotoCoreError: as botocore's own session would: the request or its answer was lost.
    """
    known = _roads.setdefault(client, {})
    if bucket not in known:
        known[bucket] = None if bucket.endswith(_DIRECTORY_BUCKET) else _road(client, bucket)
    road = known[bucket]
    if road is None:
        return None
    answer = _answer(client, road, method, key, query, headers, body)
    if answer.is_elsewhere:
        known[bucket] = None
        return None
    return answer


def _answer(
    client: Any, road: _Road, method: str, key: str, query: str, headers: Mapping[str, str], body: bytes
) -> Answer:
    # Private to botocore's client and there since its first release; nothing public leads to it.
    credentials = client._request_signer._credentials
    target = f"{percent_encode(key, safe=_KEY_SAFE)}?{query}"
    user_agent = client.meta.config.user_agent
    if road.pool is None or credentials is None:
        request = AWSRequest(
            method=method, url=road.address + target, data=body, headers={**headers, "User-Agent": user_agent}
        )
        if credentials is not None:  # without any the server says what is wrong
            S3SigV4Auth(credentials.get_frozen_credentials(), "s3", road.region).add_auth(request)
        answer = client._endpoint.http_session.send(request.prepare())
        return Answer(answer.status_code, answer.headers, _parsed(answer.content))
    frozen = credentials.get_frozen_credentials()
    signer = Signer(frozen.access_key, frozen.secret_key, frozen.token, road.region)
    timestamp = get_current_datetime().strftime(SIGV4_TIMESTAMP)
    path, _, query = (road.path + target).partition("?")
    signed = signer.signed(method, path, query, {**headers, "host": road.host}, body, timestamp)
    return _sent(road, method, f"{path}?{query}", {**signed, "user-agent": user_agent}, body)


def _road(client: Any, bucket: str) -> _Road | None:
    """Where the client's own requests about the bucket go; None if this botocore does not tell.

    Not where its presigned urls go: for those it takes Amazon's global endpoint, whatever the region.
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
        return None  # another botocore; or it says itself what is wrong
    region = str(context.get("signing", {}).get("region") or client.meta.region_name)
    address = url.rstrip("/") + "/"
    place = urlsplit(address)
    host = place.netloc.rpartition("@")[2].lower()
    if place.port is not None and place.port == _DEFAULT_PORTS.get(place.scheme):
        host = host.rpartition(":")[0]
    region = "us-east-1" if region == "aws-global" else region
    return _Road(address, host, place.path, region, _pool(client, address), client.meta.config.read_timeout)


def _pool(client: Any, address: str) -> Any:
    try:
        session = client._endpoint.http_session
        if session._proxy_config.proxy_url_for(address) is not None:
            return None
        pool = session._manager.connection_from_url(address)
        session._setup_ssl_cert(pool, address, session._verify)
        pool._put_conn(pool._get_conn())  # how `_sent` asks for one
    except AttributeError:  # another botocore
        return None
    return pool


def _sent(road: _Road, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
    """Send a request over one of the pool's connections; urllib3 makes those that are missing, TLS included."""
    connection = road.pool._get_conn()
    if connection.sock is not None:
        return _sent_along(road, connection, method, target, headers, body)
    road.pool._put_conn(connection)
    try:
        answer = road.pool.urlopen(
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
        raise _as_botocore_says(error, road.address) from error
    return Answer(answer.status, answer.headers, _parsed(answer.data))


def _sent_along(
    road: _Road, connection: Any, method: str, target: str, headers: Mapping[str, str], body: bytes
) -> Answer:
    """The same over a connection that stands: what urllib3 does around a request costs as much as all the rest."""
    fields = {**headers, "content-length": str(len(body))}
    head = "\r\n".join([f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())])
    try:
        if head.count("\n") != len(fields) or head.count("\r") != len(fields):
            raise ValueError("a header holds a line end")
        connection.sock.settimeout(road.read_timeout_s)
        connection.sock.sendall(head.encode("ascii") + b"\r\n\r\n" + body)
        with HTTPResponse(connection.sock, method=method) as answer:
            answer.begin()
            content = answer.read()
            if answer.will_close:
                connection.close()
    except BaseException as error:
        connection.close()
        if isinstance(error, Exception):
            raise _as_botocore_says(error, road.address) from error
        raise
    finally:
        road.pool._put_conn(connection)
    return Answer(answer.status, answer.headers, _parsed(content))


_AS_BOTOCORE = (  # what its own session makes of urllib3's errors, in the order in which it asks
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
    """The error of botocore's own session, so that one table of errors serves."""
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
