"""What an answer of S3, or the lack of one, means for the caller."""

from __future__ import annotations

import enum

from botocore import exceptions as boto
from botocore.exceptions import ClientError

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

__all__ = ["BULK_DELETE_REFUSED", "Effect", "code_of", "status_of", "translated"]


class Effect(enum.Enum):
    """What a request changes, if the server did it: decides what a missing reply means."""

    NONE = "reads, or changes only what no reader sees and may be repeated"
    VISIBLE = "changes what readers see"


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
"""How servers without (our kind of) bulk delete answer one."""

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
_NOT_SENT = (boto.ConnectionError,)  # botocore's own: no connection, a time-out while connecting, TLS, a proxy
_NOT_ANSWERED = (boto.HTTPClientError, boto.IncompleteReadError)  # a time-out or a closed connection after sending


def code_of(error: BaseException | None) -> str:
    """The error code of an answer, empty if there was none."""
    return str(error.response.get("Error", {}).get("Code", "")) if isinstance(error, ClientError) else ""


def status_of(error: BaseException | None) -> int:
    """The HTTP status of an answer, 0 if there was none."""
    if not isinstance(error, ClientError):
        return 0
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def translated(error: Exception, endpoint: str, bucket: str, key: str, effect: Effect) -> HoldfastError:
    """The error that says what to do next. Never holds a credential: of the answer, only the error code is shown."""
    if isinstance(error, ClientError):
        return _answered(error, bucket, key, effect)
    if isinstance(error, _NO_CREDENTIALS):
        return AccessDeniedError("no usable credentials: give an access key or set up the environment", bucket=bucket)
    if isinstance(error, _NOT_SENT):
        return UnavailableError(
            "the store cannot be reached: check the endpoint url and the network", endpoint=endpoint
        )
    if isinstance(error, _NOT_ANSWERED):
        return _unanswered(bucket, key, effect)
    return InvalidRequestError(
        "the request cannot be made: check endpoint, region and key",
        bucket=bucket,
        key=key,
        reason=type(error).__name__,
    )


def _unanswered(bucket: str, key: str, effect: Effect) -> HoldfastError:
    if effect is Effect.VISIBLE:
        return OutcomeUnknownError("the reply is lost: read before repeating", bucket=bucket, key=key)
    return UnavailableError("the store did not answer: repeat later", bucket=bucket, key=key)


def _answered(error: ClientError, bucket: str, key: str, effect: Effect) -> HoldfastError:
    code, status = code_of(error), status_of(error)
    if code == "NoSuchBucket":
        return NotFoundError("no such bucket: create it or check the url", bucket=bucket)
    if code == "NoSuchUpload":
        return NotFoundError("no such upload: completed, aborted or never there", bucket=bucket, key=key)
    if code in _MISSING or status == 404:
        return NotFoundError("no such object: check the bucket and the key", bucket=bucket, key=key)
    if code in _FULL or status == 507:  # before 403, with which quotas are refused
        return StorageFullError("the store is full: free some space and repeat", bucket=bucket, key=key)
    if code in _DENIED or status in (401, 403):
        return AccessDeniedError(
            "the store refuses the credentials: check them and the policy", bucket=bucket, code=code
        )
    if code in _PRECONDITION or status == 412:
        return PreconditionError("the object is not as expected: read it, then decide", bucket=bucket, key=key)
    if code in _BUSY or status in (429, 503):
        return UnavailableError("the store is overloaded: repeat later", bucket=bucket, key=key, code=code)
    if code in _UNSUPPORTED or status in (405, 501):
        return UnsupportedError("the store does not know this request", bucket=bucket, key=key, code=code)
    if status >= 500 or code == "InternalError":
        if effect is Effect.VISIBLE:
            return OutcomeUnknownError("the store failed: read before repeating", bucket=bucket, key=key, code=code)
        return UnavailableError("the store failed: repeat later", bucket=bucket, key=key, code=code)
    return InvalidRequestError("the store refuses the request: see the code", bucket=bucket, key=key, code=code)
