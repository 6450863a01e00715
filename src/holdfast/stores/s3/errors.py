"""Convert error responses and lost responses of S3 into errors that tell the caller what to do next.

Mistakes in certificates and URL schemes are told apart from network failures, because no retry fixes them: botocore
raises the same `SSLError` for all of them and for a connection that broke in the middle of a response, and only the
causes of the error distinguish them. Source: OpenSSL reasons and verify codes (openssl-verification-options(1)), as the
module `ssl` reports them.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from dataclasses import dataclass

from botocore import exceptions as boto
from botocore.exceptions import ClientError, SSLError
from urllib3.util.ssl_match_hostname import CertificateError

from holdfast.errors import (
    AccessDeniedError,
    HoldfastError,
    InvalidRequestError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    StorageFullError,
    UnavailableError,
    UnsupportedError,
)

_DENIED = frozenset(
    (
        *("AccessDenied", "AccountProblem", "AllAccessDisabled", "AuthorizationHeaderMalformed", "Forbidden", "403"),
        *("InvalidAccessKeyId", "InvalidSecurity", "SignatureDoesNotMatch", "UnauthorizedAccess", "401"),
        *("ExpiredToken", "InvalidToken", "RequestExpired", "RequestTimeTooSkewed", "TokenRefreshRequired"),
    )
)
_MISSING = frozenset(("NoSuchBucket", "NoSuchKey", "NoSuchUpload", "NotFound", "404"))
_PRECONDITION = frozenset(("PreconditionFailed", "ConditionalRequestConflict", "412"))
_FULL = frozenset(("QuotaExceeded", "StorageFull", "XMinioStorageFull", "InsufficientStorage", "507"))
_BUSY = frozenset(
    (
        *("SlowDown", "ServiceUnavailable", "Throttling", "ThrottlingException", "TooManyRequests", "429", "503"),
        *("RequestLimitExceeded", "BandwidthLimitExceeded", "OperationAborted", "RequestTimeout"),
    )
)
_UNSUPPORTED = frozenset(("NotImplemented", "MethodNotAllowed", "501", "405"))
BULK_DELETE_REFUSED = frozenset(
    ("MissingContentMD5", "InvalidRequest", "InvalidDigest", "MalformedXML", "MissingRequestBodyError", *_UNSUPPORTED)
)
"""Error codes of servers that do not support bulk deletes, or do not support this form of them."""

_NO_CREDENTIALS = (
    boto.NoCredentialsError,
    boto.PartialCredentialsError,
    boto.CredentialRetrievalError,
    boto.NoAuthTokenError,
    boto.TokenRetrievalError,
    boto.SSOError,
    boto.LoginError,
    boto.MetadataRetrievalError,
)
_BROKEN_OFF = (boto.SSLError,)  # TLS ended unexpectedly, maybe after the request was sent; for mistakes see `tls`
_NOT_SENT = (boto.ConnectionError,)  # no connection, a timeout while connecting, a proxy
_NOT_ANSWERED = (boto.HTTPClientError, boto.IncompleteReadError)  # a timeout or a closed connection after sending


def error_code_of(error: BaseException | None) -> str:
    """Return the error code in a response; empty if the error has no response."""
    return str(error.response.get("Error", {}).get("Code", "")) if isinstance(error, ClientError) else ""


def http_status_of(error: BaseException | None) -> int:
    """Return the HTTP status of a response; 0 if the error has no response."""
    if not isinstance(error, ClientError):
        return 0
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


@dataclass(frozen=True, slots=True)
class RequestDescription:
    """A request, as errors describe it.

    Attributes:
        operation: S3's name for the request, e.g. ``PutObject``.
        key: the key, or the prefix of a listing.
        visible: whether it changes what readers see, so that a lost reply leaves the outcome unknown.
    """

    operation: str
    bucket: str
    key: str
    visible: bool

    def named(self, error: Exception) -> dict[str, object]:
        """Return the variables of an error message: bucket, key, operation and, if known, S3's request id."""
        answer = error.response if isinstance(error, ClientError) else {}
        request_id = answer.get("ResponseMetadata", {}).get("RequestId")
        more = {"request_id": request_id} if request_id else {}
        return {"bucket": self.bucket, "key": self.key, "operation": self.operation, **more}


def translate_error(error: Exception, endpoint: str, request: RequestDescription) -> HoldfastError:
    """Convert a botocore error into the error that tells the caller what to do next.

    The error never contains a credential: it shows only the code and the request id of the response.
    """
    if isinstance(error, ClientError):
        return _convert_client_error(error, endpoint, request)
    if isinstance(error, _NO_CREDENTIALS):
        return AccessDeniedError(
            "no usable credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, name a profile of ~/.aws, or, in "
            "Python and Spark, give an access key as an option",
            **request.named(error),
        )
    if isinstance(error, _BROKEN_OFF):
        return _no_response_error(error, endpoint, request)
    if isinstance(error, _NOT_SENT):
        return UnavailableError(
            "the store cannot be reached: check the endpoint url and the network",
            endpoint=endpoint,
            **request.named(error),
        )
    if isinstance(error, _NOT_ANSWERED):
        return _no_response_error(error, endpoint, request)
    return InvalidRequestError(
        "the request cannot be sent: check endpoint, region and key",
        **request.named(error),
        reason=type(error).__name__,
    )


def _no_response_error(error: Exception, endpoint: str, request: RequestDescription) -> HoldfastError:
    if request.visible:
        return OutcomeUnknownError("the reply was lost: read before repeating", **request.named(error))
    return UnavailableError(
        "the store did not answer: repeat later, or check the scheme and the port of its endpoint",
        endpoint=endpoint,
        **request.named(error),
    )


def _convert_client_error(error: ClientError, endpoint: str, request: RequestDescription) -> HoldfastError:
    code, status, named = error_code_of(error), http_status_of(error), request.named(error)
    if code == "NoSuchBucket":
        bucket = {name: value for name, value in named.items() if name != "key"}  # which would be a record of ours
        return NotFoundError("no such bucket: create it or check the url", **bucket)
    if code == "NoSuchUpload":
        return NotFoundError("no such upload: it was completed or aborted, or never existed", **named)
    if code in _MISSING or status == 404:
        return NotFoundError("no such object: check the bucket and the key", **named)
    if code in _FULL or status == 507:  # before 403, which some servers send for exceeded quotas
        return StorageFullError("the store is full: free some space and repeat", **named)
    if code in _DENIED or status in (401, 403):
        return AccessDeniedError("the store rejects the credentials: check them and the policy", **named, code=code)
    if code in _PRECONDITION or status == 412:
        return PreconditionError("the object is not as expected: read it, then decide", **named)
    if code in _BUSY or status in (429, 503):
        return UnavailableError("the store is overloaded: repeat later", **named, code=code)
    if code in _UNSUPPORTED or status in (405, 501):
        return UnsupportedError("the store does not support this request: use another store", **named, code=code)
    if status >= 500 or code == "InternalError":
        if request.visible:
            return OutcomeUnknownError("the store failed: read before repeating", **named, code=code)
        return UnavailableError("the store failed: repeat later", **named, code=code)
    if code == "400" and endpoint.startswith("http:"):  # the answer to a plain request at a TLS port, or to any HEAD
        return InvalidRequestError(
            "the store rejects the request: write https:// if it speaks TLS at this port", endpoint=endpoint, **named
        )
    return InvalidRequestError("the store rejects the request: see the code", **named, code=code)


# --- TLS --------------------------------------------------------------------------------------------------------------
_READS_CERTIFICATES = frozenset(("PEM", "X509"))  # the parts of OpenSSL that read certificates
_NO_TLS = frozenset(("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"))
_NO_FILE = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)


def tls_error(
    error: Exception, endpoint: str, ca_bundle: str | None, *, has_answered: bool
) -> InvalidRequestError | None:
    """Return the error for a mistake in certificates or the URL scheme; None if `error` has another cause.

    Guarantee: returns an error only if the request was not sent, so that nothing happened.

    Args:
        endpoint: URL of the server, as the user gave it.
        ca_bundle: the value of the option; None if it was not given.
        has_answered: whether the server has responded before, so that the URL scheme must be right.
    """
    if not isinstance(error, SSLError):
        return None
    bundle = ca_bundle or os.environ.get("AWS_CA_BUNDLE") or "of this system"
    for cause in _iter_causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError | CertificateError):
            return InvalidRequestError(
                "the server's certificate is not accepted, see the reason: give the certificate of its authority as "
                "ca_bundle (--ca-bundle, caBundle, AWS_CA_BUNDLE), use a host name of the certificate, or renew it",
                endpoint=endpoint,
                ca_bundle=bundle,
                reason=getattr(cause, "verify_message", None) or str(cause),
            )
        if isinstance(cause, _NO_FILE) or getattr(cause, "library", None) in _READS_CERTIFICATES:
            return _unreadable_bundle_error(bundle, cause)
        if getattr(cause, "reason", None) in _NO_TLS and not has_answered:
            return InvalidRequestError(
                "the server does not speak TLS at this port: write http://, or give its TLS port", endpoint=endpoint
            )
    return None


def refuse_unreadable_ca_bundle(ca_bundle: str) -> None:
    """Reject a CA bundle that this machine cannot open.

    Raises:
        InvalidRequestError: the file cannot be opened.
    """
    try:
        with open(ca_bundle, "rb"):
            pass
    except OSError as error:
        raise _unreadable_bundle_error(ca_bundle, error) from error


def _unreadable_bundle_error(bundle: str, cause: BaseException) -> InvalidRequestError:
    return InvalidRequestError(
        "the CA bundle cannot be read: name a file of PEM certificates that exists on every machine",
        ca_bundle=bundle,
        reason=os.strerror(cause.errno).lower() if isinstance(cause, OSError) and cause.errno else "no PEM",
    )


def _iter_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes, down to OpenSSL's own."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__
