"""One client of botocore, boto3's core, per process, and which requests are sent again.

botocore's own retries are off: it repeats requests whose reply was lost, and then a conditional put is refused for its
own first success, and a completion answers that there is no such upload. Here only those requests are repeated of
which it is known that nothing happened, or that repeating does no harm.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit

import botocore.loaders
import botocore.session
from botocore.config import Config
from botocore.configprovider import ConfiguredEndpointProvider
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
from botocore.utils import determine_content_length

from holdfast.errors import (
    HoldfastError,
    InvalidRequestError,
    OutcomeUnknownError,
    StorageFullError,
    UnavailableError,
)
from holdfast.runtime.clock import Clock
from holdfast.runtime.ids import Ids
from holdfast.stores.s3.errors import Effect, Request, code_of, status_of, translated
from holdfast.stores.s3.options import S3Options
from holdfast.stores.s3.tls import speaks_tls, tls_mistake, tls_needed

__all__ = ["AWS", "Client", "S3Connection", "is_aws"]

T = TypeVar("T")
Client = Any  # botocore makes its classes at run time: there is no type to name

AWS = "AWS"
"""Stands for the endpoint of whoever names none."""

_UNREACHABLE_AFTER_S = 15.0  # no further try to connect starts after this, so that a wrong endpoint shows within 30 s
_BACKOFF_S = 0.2
_MAX_BACKOFF_S = 5.0
_EXPECT_FROM_BYTES = 1024 * 1024


_loader = botocore.loaders.create_loader()  # keeps S3's description: the next client takes 9 ms to make instead of 60
_build_lock = threading.Lock()


def _renew_build_lock() -> None:
    global _build_lock
    _build_lock = threading.Lock()  # a thread of the parent may have held it in the moment of the fork


os.register_at_fork(after_in_child=_renew_build_lock)


def _drop_needless_expect(params: dict[str, Any], **_: object) -> None:
    """Send small bodies at once, which saves a round trip.

    Large bodies still ask first: a server that refuses in mid-body closes the connection, and its answer is lost.
    """
    if "Expect" in params["headers"] and (determine_content_length(params["body"]) or 0) < _EXPECT_FROM_BYTES:
        del params["headers"]["Expect"]


def is_aws(endpoint: str) -> bool:
    """Whether an endpoint, as `S3Connection.endpoint` gives it, is one of Amazon's own."""
    host = urlsplit(endpoint).hostname or ""
    return not endpoint or host.endswith((".amazonaws.com", ".amazonaws.com.cn"))


class S3Connection:
    """Sends requests about one bucket. Threads may share it; pickling and forking are safe.

    Args:
        bucket: its name.
        options: how to reach it.
        clock: waits between tries.
        ids: spreads those waits, so that many clients do not return all at once.
    """

    def __init__(self, bucket: str, options: S3Options, clock: Clock, ids: Ids) -> None:
        self.bucket = bucket
        self.options = options
        self._clock = clock
        self._ids = ids
        self.retries = 0  # requests sent again; a count for people, so threads may lose one
        self._endpoint: str | None = options.endpoint_url
        self._scheme_is_right = False  # whether that is known
        self._clients: dict[int, Client] = {}  # by process: a child must not use, nor close, what its parent opened

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.bucket, self.options, self._clock, self._ids)

    def close(self) -> None:
        """Close this process's client; the next request makes another."""
        client = self._clients.pop(os.getpid(), None)
        if client is not None:
            client.close()

    def endpoint(self) -> str:
        """The url of a server that is not AWS, from the options, the environment or the profile; empty for AWS.

        Makes no request, and looks for no credentials.
        """
        if self._endpoint is None:
            session = botocore.session.Session()
            try:
                profile = session.get_scoped_config()
                chain = ConfiguredEndpointProvider(session.full_config, profile, "s3")
                ignored = session.get_config_variable("ignore_configured_endpoint_urls")
                self._endpoint = "" if ignored else str(chain.provide() or "")
            except BotoCoreError:
                return ""  # the first request says what is wrong with the profile
            if "@" in urlsplit(self._endpoint).netloc:
                self._endpoint = None
                raise InvalidRequestError(
                    "credentials do not belong in an endpoint url, AWS_ENDPOINT_URL or the profile has some: give "
                    "them as keys"
                )
        return self._endpoint

    def _client(self) -> Client:
        client = self._clients.get(os.getpid())
        if client is not None:
            return client
        with _build_lock:
            if os.getpid() not in self._clients:
                self._clients[os.getpid()] = self._built_client()
            return self._clients[os.getpid()]

    def _built_client(self) -> Client:
        options = self.options
        config = Config(
            connect_timeout=options.connect_timeout_s,
            read_timeout=options.read_timeout_s,
            max_pool_connections=options.max_connections,
            retries={"total_max_attempts": 1, "mode": "standard"},
            user_agent="holdfast",  # put together anew for every request otherwise: 5 % of its CPU time
            parameter_validation=False,  # the arguments are ours: another 5 %
            s3={"addressing_style": options.addressing_style},
            request_checksum_calculation="when_required",  # older and compatible servers do not know the new ones
            response_checksum_validation="when_required",
        )
        session = botocore.session.Session()  # one of its own: sessions are not safe to use from threads
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
            raise InvalidRequestError("the endpoint url or the region cannot be right: check them") from error
        client.meta.events.register_last("before-call.s3", _drop_needless_expect)
        return client

    def request(
        self, operation: str, key: str, effect: Effect, send: Callable[[Client], T], *, repeatable: bool = True
    ) -> T:
        """Send a request, and again while that is right.

        Args:
            operation: as S3 calls it, for errors.
            key: what the request is about, for errors.
            effect: whether a lost reply leaves the outcome unknown.
            send: makes one request.
            repeatable: whether the request may be sent again after a lost reply.
        """
        started_s = self._clock.elapsed_s()
        request = Request(operation, self.bucket, key, effect)
        for attempt in itertools.count(1):
            try:
                return self._sent(request, send)
            except StorageFullError:
                raise  # waiting a few seconds makes no room
            except (UnavailableError, OutcomeUnknownError) as error:
                elapsed_s = self._clock.elapsed_s() - started_s
                unanswered_too_long = status_of(error.__cause__) == 0 and elapsed_s > _UNREACHABLE_AFTER_S
                unsafe = isinstance(error, OutcomeUnknownError) and not repeatable
                if unsafe or unanswered_too_long or attempt >= self.options.max_attempts:
                    raise
            self.retries += 1
            self._clock.sleep(self._backoff_s(attempt))
        raise AssertionError("the loop ends by returning or raising")

    def _sent(self, request: Request, send: Callable[[Client], T]) -> T:
        try:
            answer = send(self._client())
        except HoldfastError:
            raise  # already said in our words (some of which are ValueErrors)
        except (BotoCoreError, ClientError, ValueError) as error:
            endpoint = self.endpoint() or AWS
            raise self._mistake(error, endpoint) or translated(error, endpoint, request) from error
        self._scheme_is_right = True
        return answer

    def _mistake(self, error: Exception, endpoint: str) -> HoldfastError | None:
        """What is wrong with certificates or the scheme of the url, which no repeating mends; None if neither is."""
        if isinstance(error, ClientError) and not code_of(error).isdigit():
            self._scheme_is_right = True  # an error of S3's own kind: the scheme is right
        mistake = tls_mistake(error, endpoint, self.options.ca_bundle, scheme_is_right=self._scheme_is_right)
        if mistake is not None or self._scheme_is_right:
            return mistake
        # A server that speaks TLS hangs up on a plain request, or answers 400 without a document of S3.
        if code_of(error) == "400" or isinstance(error, HTTPClientError):
            self._scheme_is_right = not speaks_tls(endpoint)  # asked once
            if not self._scheme_is_right:
                return tls_needed(endpoint)
        return None

    def _backoff_s(self, attempt: int) -> float:
        spread = 0.5 + int(self._ids.token(), 16) / 2**49  # 0.5 to 1
        return spread * min(_MAX_BACKOFF_S, _BACKOFF_S * 2.0 ** (attempt - 1))
