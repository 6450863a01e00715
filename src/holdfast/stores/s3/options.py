"""Define the options that say how to reach S3."""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.errors import InvalidRequestError
from holdfast.stores.provider import StoreOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Options(StoreOptions):
    """How to reach S3. Without keys, boto3 finds credentials itself: environment, profile, instance role.

    Attributes:
        endpoint_url: URL of a server other than AWS; None for the URL in AWS_ENDPOINT_URL or the profile, or, if
            neither has one, for AWS.
        region: None for boto3's choice.
        access_key: requires `secret_key`. Neither of them nor `session_token` is ever shown.
        secret_key: requires `access_key`.
        session_token: the token of temporary credentials.
        ca_bundle: path of a PEM file with the certificates of trusted authorities. Read on every machine that uses the
            store. None for AWS_CA_BUNDLE, the profile's ``ca_bundle``, or botocore's own file.
        addressing_style: ``auto``, ``path`` or ``virtual``: where in the URL the bucket name appears.
        connect_timeout_s: seconds to wait for a connection; a reachable server needs far less.
        read_timeout_s: seconds to wait for data from the server; large copies and completions respond slowly.
        max_attempts: number of attempts of a retryable request; between six attempts, the waits add up to about 6 s,
            enough for a short SlowDown.
        max_connections: connections of one process; at least the number of threads that use the store.
    """

    endpoint_url: str | None = None
    region: str | None = None
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    ca_bundle: str | None = None
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
        given = (self.access_key, self.secret_key, self.session_token)
        if any(one is not None and not one.isprintable() for one in given):
            raise InvalidRequestError("a key or a token contains a line break or a control character: remove it")
        if self.addressing_style not in ("auto", "path", "virtual"):
            raise InvalidRequestError("use auto, path or virtual", addressing_style=self.addressing_style)
        if self.ca_bundle is not None and not self.ca_bundle.strip():
            raise InvalidRequestError("a CA bundle is a file of PEM certificates: give its path, or leave it out")
        if self.max_attempts < 1 or self.max_connections < 1:
            raise InvalidRequestError("attempts and connections must be at least 1: raise them")
        url = self.endpoint_url
        if url is not None and not url.startswith(("http://", "https://")):
            raise InvalidRequestError("an endpoint url must start with http:// or https://")
        if url is not None and "@" in url:
            raise InvalidRequestError("credentials do not belong in an endpoint url: give them as keys")
