"""One boto3 client per process, and which requests are sent again.

botocore's own retries are off: it repeats requests whose reply was lost, and then a conditional put is refused for its
own first success, and a completion answers that there is no such upload. Here only those requests are repeated of
which it is known that nothing happened, or that repeating does no harm.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from holdfast.errors import (
    HoldfastError,
    InvalidRequestError,
    OutcomeUnknownError,
    StorageFullError,
    UnavailableError,
)
from holdfast.seams.clock import Clock
from holdfast.seams.ids import Ids
from holdfast.stores.s3_errors import Effect, status_of, translated

__all__ = ["Client", "S3Connection", "S3Options"]

T = TypeVar("T")
Client = Any  # boto3 makes its classes at run time: there is no type to name

_UNREACHABLE_AFTER_S = 15.0  # no further try to connect starts after this, so that a wrong endpoint shows within 30 s
_BACKOFF_S = 0.2
_MAX_BACKOFF_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Options:
    """How to reach S3. Without keys, boto3 looks for credentials itself: environment, profile, instance role.

    Attributes:
        endpoint_url: of a server that is not AWS; None for AWS, or for the environment's AWS_ENDPOINT_URL.
        region: None for boto3's choice.
        access_key: together with `secret_key`, else None. Never shown, like the other two.
        secret_key: see `access_key`.
        session_token: of temporary credentials.
        addressing_style: ``auto``, ``path`` or ``virtual``: where the bucket's name goes in the url.
        connect_timeout_s: seconds for one connection; a reachable server needs far less.
        read_timeout_s: seconds without a byte from the server; large copies and completions are slow to answer.
        max_attempts: tries of a request that may be repeated; six wait about 6 s in all, enough for a short SlowDown.
        max_connections: connections of one process; at least the number of threads that use the store.
    """

    endpoint_url: str | None = None
    region: str | None = None
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    addressing_style: str = "auto"
    connect_timeout_s: float = 5.0
    read_timeout_s: float = 60.0
    max_attempts: int = 6
    max_connections: int = 64

    def __post_init__(self) -> None:
        if (self.access_key is None) != (self.secret_key is None):
            raise InvalidRequestError("an access key and a secret key go together: give both or none")
        if self.session_token is not None and self.access_key is None:
            raise InvalidRequestError("a session token needs its access key and secret key: give all three")
        if self.addressing_style not in ("auto", "path", "virtual"):
            raise InvalidRequestError("use auto, path or virtual", addressing_style=self.addressing_style)
        if self.max_attempts < 1 or self.max_connections < 1:
            raise InvalidRequestError("attempts and connections are at least 1")
        url = self.endpoint_url
        if url is not None and not url.startswith(("http://", "https://")):
            raise InvalidRequestError("an endpoint url starts with http:// or https://")
        if url is not None and "@" in url:
            raise InvalidRequestError("credentials do not belong into an endpoint url: give them as keys")


_build_lock = threading.Lock()


def _renew_build_lock() -> None:
    global _build_lock
    _build_lock = threading.Lock()  # a thread of the parent may have held it in the moment of the fork


os.register_at_fork(after_in_child=_renew_build_lock)


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
        self._clients: dict[int, Client] = {}  # by process: a child must not use, nor close, what its parent opened

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.bucket, self.options, self._clock, self._ids)

    def close(self) -> None:
        """Close this process's client; the next request makes another."""
        client = self._clients.pop(os.getpid(), None)
        if client is not None:
            client.close()

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
            s3={"addressing_style": options.addressing_style},
            request_checksum_calculation="when_required",  # older and compatible servers do not know the new ones
            response_checksum_validation="when_required",
        )
        session = boto3.session.Session()  # the default session is shared and not safe to use from threads
        try:
            return session.client(
                "s3",
                endpoint_url=options.endpoint_url,
                region_name=options.region,
                aws_access_key_id=options.access_key,
                aws_secret_access_key=options.secret_key,
                aws_session_token=options.session_token,
                config=config,
            )
        except ValueError as error:
            raise InvalidRequestError("the endpoint url or the region cannot be right: check them") from error

    def request(self, key: str, effect: Effect, send: Callable[[Client], T], *, repeatable: bool = True) -> T:
        """Send a request, and again while that is right.

        Args:
            key: what the request is about, for errors.
            effect: whether a lost reply leaves the outcome unknown.
            send: makes one request.
            repeatable: whether the request may be sent again after a lost reply.
        """
        started_s = self._clock.elapsed_s()
        for attempt in itertools.count(1):
            try:
                return self._sent(key, effect, send)
            except StorageFullError:
                raise  # waiting a few seconds makes no room
            except (UnavailableError, OutcomeUnknownError) as error:
                elapsed_s = self._clock.elapsed_s() - started_s
                unanswered_too_long = status_of(error.__cause__) == 0 and elapsed_s > _UNREACHABLE_AFTER_S
                unsafe = isinstance(error, OutcomeUnknownError) and not repeatable
                if unsafe or unanswered_too_long or attempt >= self.options.max_attempts:
                    raise
            self._clock.sleep(self._backoff_s(attempt))
        raise AssertionError("the loop ends by returning or raising")

    def _sent(self, key: str, effect: Effect, send: Callable[[Client], T]) -> T:
        try:
            return send(self._client())
        except HoldfastError:
            raise  # already said in our words (some of which are ValueErrors)
        except (BotoCoreError, ClientError, ValueError) as error:
            endpoint = self.options.endpoint_url or "of the environment"
            raise translated(error, endpoint, self.bucket, key, effect) from error

    def _backoff_s(self, attempt: int) -> float:
        spread = 0.5 + int(self._ids.token(), 16) / 2**49  # 0.5 to 1
        return spread * min(_MAX_BACKOFF_S, _BACKOFF_S * 2.0 ** (attempt - 1))
