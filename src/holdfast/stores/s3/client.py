"""Send requests through one botocore client per process, and decide which of them to retry.

The retries of botocore (the core of boto3) are turned off here, because botocore also retries a request whose reply was
lost. The second attempt of a conditional put then fails because the first one succeeded, and the second attempt of a
completion reports that there is no such upload. This module retries a request only if nothing happened, or if repeating
it is harmless.
"""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit

import botocore.loaders
import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.utils import determine_content_length

from holdfast.errors import (
    HoldfastError,
    InvalidRequestError,
    OutcomeUnknownError,
    StorageFullError,
    UnavailableError,
)
from holdfast.runtime import Backoff, Clock, Ids, SeededRandom
from holdfast.runtime.process import keep_inherited_connections_alive
from holdfast.stores.s3.errors import RequestDescription, http_status_of, tls_error, translate_error
from holdfast.stores.s3.options import S3Options

T = TypeVar("T")
Client = Any  # botocore creates its classes at run time: there is no type to name

_UNREACHABLE_AFTER_S = 15.0  # no connection attempt starts later, so that a wrong endpoint is reported within 30 s
_BACKOFF = Backoff(0.4, 10.0)  # five waits take 6 s on average
_EXPECT_FROM_BYTES = 1024 * 1024


_loader = (
    botocore.loaders.create_loader()
)  # caches the description of S3: creating the next client takes 9 ms instead of 60
_build_lock = threading.Lock()


def _renew_build_lock() -> None:
    global _build_lock
    _build_lock = threading.Lock()  # a thread of the parent may have held it at the time of the fork


os.register_at_fork(after_in_child=_renew_build_lock)


def _keep_inherited_client(client: Client, pid: int) -> None:
    if os.getpid() != pid:
        keep_inherited_connections_alive(client)


def _remove_expect_header(params: dict[str, Any], **_: object) -> None:
    """Remove the Expect header from small requests, to save a round trip.

    Large requests keep the header: without it, a server that rejects a request in the middle of its body closes the
    connection, and its response is lost.
    """
    if "Expect" in params["headers"] and (determine_content_length(params["body"]) or 0) < _EXPECT_FROM_BYTES:
        del params["headers"]["Expect"]


def is_aws_endpoint(endpoint: str) -> bool:
    """Check whether an endpoint, as `S3Connection.endpoint` returns it, belongs to AWS."""
    host = urlsplit(endpoint).hostname or ""
    return host.endswith((".amazonaws.com", ".amazonaws.com.cn"))


class S3Connection:
    """Sends the requests for one bucket. Threads may share it; pickling and forking are safe.

    Args:
        bucket: the name of the bucket.
        options: how to reach S3.
        clock: used for waiting between attempts.
        ids: adds jitter to the waiting times, so that many clients do not retry at the same time.
    """

    def __init__(self, bucket: str, options: S3Options, clock: Clock, ids: Ids) -> None:
        self.bucket = bucket
        self.options = options
        self._clock = clock
        self._ids = ids
        self.retries = 0  # a statistic for people, so losing a count in a race between threads is harmless
        self._has_answered = False  # so the scheme of the endpoint is right
        self._clients: dict[int, Client] = {}  # by process: a child must not use or close its parent's client

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.bucket, self.options, self._clock, self._ids)

    def close(self) -> None:
        """Close this process's client; the next request creates another one."""
        client = self._clients.pop(os.getpid(), None)
        if client is not None:
            client.close()

    def endpoint(self) -> str:
        """Return the server's URL, without a request; empty if the AWS profile is invalid."""
        try:
            return str(self._get_client().meta.endpoint_url)
        except BotoCoreError:
            return ""

    def _get_client(self) -> Client:
        client = self._clients.get(os.getpid())
        if client is not None:
            return client
        with _build_lock:
            if os.getpid() not in self._clients:
                client = self._clients[os.getpid()] = self._build_client()
                weakref.finalize(self, _keep_inherited_client, client, os.getpid()).atexit = False
            return self._clients[os.getpid()]

    def _build_client(self) -> Client:
        options = self.options
        config = Config(
            connect_timeout=options.connect_timeout_s,
            read_timeout=options.read_timeout_s,
            max_pool_connections=options.max_connections,
            retries={"total_max_attempts": 1, "mode": "standard"},
            user_agent="holdfast",  # the default is built anew for every request: 5 % of its CPU time
            parameter_validation=False,  # the arguments are known to be valid: another 5 %
            s3={"addressing_style": options.addressing_style},
            request_checksum_calculation="when_required",  # older and compatible servers lack the new ones
            response_checksum_validation="when_required",
        )
        session = botocore.session.Session()  # not shared: sessions are not thread-safe
        session.register_component("data_loader", _loader)
        try:
            client = session.create_client(
                "s3",
                endpoint_url=options.endpoint_url,
                region_name=options.region,
                aws_access_key_id=options.access_key,
                aws_secret_access_key=options.secret_key,
                aws_session_token=options.session_token,
                verify=os.path.expanduser(options.ca_bundle) if options.ca_bundle else None,
                config=config,
            )
        except ValueError as error:
            raise InvalidRequestError("the endpoint url or the region is invalid: check both") from error
        if "@" in urlsplit(client.meta.endpoint_url).netloc:
            raise InvalidRequestError(
                "credentials do not belong in an endpoint url, but AWS_ENDPOINT_URL or the profile has some: give them "
                "as keys"
            )
        client.meta.events.register_last("before-call.s3", _remove_expect_header)
        return client

    def request(
        self,
        operation: str,
        key: str,
        send: Callable[[Client], T],
        *,
        visible: bool = False,
        repeatable: bool = True,
    ) -> T:
        """Send a request, and retry it while that is safe.

        Args:
            operation: S3's name for the request, for errors.
            key: the object's key, for errors.
            send: sends the request once.
            visible: whether the request changes what readers see, so that a lost reply leaves the outcome unknown.
            repeatable: whether to retry after a lost reply.
        """
        started_s = self._clock.elapsed_s()
        request = RequestDescription(operation, self.bucket, key, visible)
        for attempt in itertools.count(1):
            try:
                return self._send_request(request, send)
            except StorageFullError:
                raise  # waiting a few seconds would not free any space
            except (UnavailableError, OutcomeUnknownError) as error:
                elapsed_s = self._clock.elapsed_s() - started_s
                unanswered_too_long = http_status_of(error.__cause__) == 0 and elapsed_s > _UNREACHABLE_AFTER_S
                unsafe = isinstance(error, OutcomeUnknownError) and not repeatable
                if unsafe or unanswered_too_long or attempt >= self.options.max_attempts:
                    raise
            self.retries += 1
            _BACKOFF.wait(attempt, self._clock, SeededRandom(int(self._ids.token(), 16)))
        raise AssertionError("the loop ends by returning or raising")

    def _send_request(self, request: RequestDescription, send: Callable[[Client], T]) -> T:
        try:
            answer = send(self._get_client())
        except HoldfastError:
            raise  # already converted (some of these are ValueErrors)
        except (BotoCoreError, ClientError, ValueError) as error:
            endpoint = self.endpoint()
            self._has_answered = self._has_answered or isinstance(error, ClientError)
            mistake = tls_error(error, endpoint, self.options.ca_bundle, has_answered=self._has_answered)
            raise mistake or translate_error(error, endpoint, request) from error
        self._has_answered = True
        return answer
