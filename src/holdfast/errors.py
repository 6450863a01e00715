"""Every error that Holdfast raises, sorted by what the caller does next.

    HoldfastError
    ├── InvalidRequestError(ValueError)   fix the call; nothing happened
    │   ├── NotFoundError                 the named bucket, object or upload does not exist
    │   └── AccessDeniedError             the credentials do not allow it
    ├── UnsupportedError                  the store or the platform lacks the capability
    ├── ConflictError                     somebody moved first: start again
    │   ├── PreconditionError             a conditional write found another object (or none)
    │   └── DestinationExistsError        the destination holds data and the job may not add to it
    ├── UnavailableError                  nothing happened: repeat later
    │   └── StorageFullError              free some space, then repeat
    ├── OutcomeUnknownError               it may have happened: read before repeating
    ├── FencedError                       a newer owner exists: stop
    │   ├── LogRemovedError               somebody removed a log while a writer worked: start over
    │   └── LogTrimmedError               a log no longer reaches back to where a writer started: start over
    └── CorruptDataError                  a stored record cannot be read: keep the bytes and report

Messages are lower case with the variables last (``key='a/b'``); causes are chained, never pasted in.
Spark carries errors between processes, so every class survives pickling.
"""

from __future__ import annotations

__all__ = [
    "AccessDeniedError",
    "ConflictError",
    "CorruptDataError",
    "DestinationExistsError",
    "FencedError",
    "HoldfastError",
    "InvalidRequestError",
    "LogRemovedError",
    "LogTrimmedError",
    "NotFoundError",
    "OutcomeUnknownError",
    "PreconditionError",
    "StorageFullError",
    "UnavailableError",
    "UnsupportedError",
]


def _rebuild(cls: type[HoldfastError], message: str, variables: dict[str, object]) -> HoldfastError:
    return cls(message, **variables)


class HoldfastError(Exception):
    """Root of all errors: a sentence and the variables that it is about.

    Args:
        message: one lower-case sentence that ends in the caller's next act where there is one.
        variables: named values, shown last as ``name='value'``. Never pass a secret.
    """

    def __init__(self, message: str, /, **variables: object) -> None:
        self.message = message
        self.variables = variables
        shown = " ".join(f"{name}={value!r}" for name, value in variables.items())
        super().__init__(f"{message} {shown}" if shown else message)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.message, self.variables)


class InvalidRequestError(HoldfastError, ValueError):
    """The call cannot be right as it stands; nothing happened. Fix the call."""


class NotFoundError(InvalidRequestError):
    """The named bucket, object or upload does not exist; nothing happened. Check the name."""


class AccessDeniedError(InvalidRequestError):
    """The store refused the credentials; nothing happened. Fix credentials or policy."""


class UnsupportedError(HoldfastError):
    """The store or platform lacks a capability that was asked for; nothing happened."""


class ConflictError(HoldfastError):
    """Somebody else moved first; nothing of this call happened. Read again and start over."""


class PreconditionError(ConflictError):
    """A conditional write met another object than it expected. Read the object, then decide."""


class DestinationExistsError(ConflictError):
    """The destination holds data already and this job was told not to add to it."""


class UnavailableError(HoldfastError):
    """The store cannot be reached or is overloaded and did nothing. Repeat later."""


class StorageFullError(UnavailableError):
    """The store has no room left; nothing became visible. Free some space and repeat."""


class OutcomeUnknownError(HoldfastError):
    """The call may or may not have happened. Read the state before repeating it."""


class FencedError(HoldfastError):
    """A newer owner has decided this job. Stop; nothing that this owner does counts any more."""


class LogRemovedError(FencedError):
    """Somebody removed a log while a writer worked. Start over."""


class LogTrimmedError(FencedError):
    """A log no longer reaches back to where a writer started. Keep more entries and start over."""


class CorruptDataError(HoldfastError):
    """A stored record cannot be read. Its bytes are kept; report them, do not delete them."""
