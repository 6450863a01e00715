"""Define every error that Holdfast raises, sorted by what the caller should do next.

    HoldfastError
    ├── InvalidRequestError(ValueError)   fix the call; nothing happened
    │   ├── NotFoundError                 the named bucket, object or upload does not exist
    │   ├── AccessDeniedError             the credentials do not allow it
    │   └── InputChangedError             a job of units was called with other rows, keys, kind or tasks
    ├── UnsupportedError                  the store or the platform lacks the capability
    ├── ConflictError                     another writer was first: start over
    │   ├── PreconditionError             the condition of a write or a read does not hold
    │   ├── DestinationExistsError        the destination contains data and the job may not add to it
    │   ├── DeadlockError                 the database ended one of two transactions that waited for each other
    │   └── TransactionConflictError      others kept changing what a transaction read: repeat it later
    ├── UnavailableError                  nothing happened: repeat later
    │   └── StorageFullError              nothing happened: free some space, then repeat
    ├── OutcomeUnknownError               it may have happened: read before repeating
    ├── FencedError                       a newer owner exists: stop
    │   ├── LogRemovedError               a log was removed while a writer worked: start over
    │   └── LogTrimmedError               a log no longer reaches back to where a writer started: start over
    └── CorruptDataError                  a stored record or a response is invalid: keep the bytes and report it

Messages are in lower case and end with the variables (``key='a/b'``). Causes are chained, not copied into the message.
Spark sends errors from process to process, so every class can be pickled.
"""

from __future__ import annotations


def _rebuild_error(cls: type[HoldfastError], message: str, variables: dict[str, object]) -> HoldfastError:
    return cls(message, **variables)


class HoldfastError(Exception):
    """Root of all errors: one sentence and its variables.

    Args:
        message: one sentence in lower case that tells the caller what to do next, if anything.
        variables: named values, shown after the message as ``name='value'``. Never pass a secret.
    """

    def __init__(self, message: str, /, **variables: object) -> None:
        self.message = message
        self.variables = variables
        shown = " ".join(f"{name}={value!r}" for name, value in variables.items())
        super().__init__(f"{message} {shown}" if shown else message)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_error, (type(self), self.message, self.variables)


class InvalidRequestError(HoldfastError, ValueError):
    """The call is wrong; nothing happened. Fix the call."""


class NotFoundError(InvalidRequestError):
    """The named bucket, object or upload does not exist; nothing happened. Check the name."""


class AccessDeniedError(InvalidRequestError):
    """The store rejected the credentials; nothing happened. Fix the credentials or the policy."""


class InputChangedError(InvalidRequestError):
    """An existing job of `holdfast.units` was called with other rows, keys, kind or number of tasks; nothing has run.

    Repeat the job with its original input; run only the new rows under another job name.
    """


class UnsupportedError(HoldfastError):
    """The store or the platform lacks a required capability; nothing happened."""


class ConflictError(HoldfastError):
    """Another writer was first; this call changed nothing. Read again and start over."""


class PreconditionError(ConflictError):
    """A conditional write or read found a different object than expected. Read the object, then decide."""


class DestinationExistsError(ConflictError):
    """The destination already contains data, and the save mode does not allow this job to add to it."""


class DeadlockError(ConflictError):
    """Deadlock: transactions waited for each other's locks, and the database aborted this one. Start over."""


class TransactionConflictError(ConflictError):
    """Other transactions kept changing what this one read, so it was given up; nothing happened. Repeat it later."""


class UnavailableError(HoldfastError):
    """The store is unreachable or overloaded, and did nothing. Repeat later."""


class StorageFullError(UnavailableError):
    """The store has no space left; nothing became visible. Free some space, then repeat."""


class OutcomeUnknownError(HoldfastError):
    """The call may or may not have taken effect. Read the state before repeating it."""


class FencedError(HoldfastError):
    """A newer owner has decided this job. Stop: nothing that this owner does has any effect."""


class LogRemovedError(FencedError):
    """A log was removed while a writer worked. Start over."""


class LogTrimmedError(FencedError):
    """A log no longer contains the entries since a writer started. Let it keep more entries, and start over."""


class CorruptDataError(HoldfastError):
    """A stored record or a response is invalid. Keep the bytes and report them; do not delete them."""


MALFORMED = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
"""What Python raises when JSON from a store or a database does not parse, or has another form than it should have."""


def missing_spark_error(error: ModuleNotFoundError) -> UnsupportedError | None:
    """Return an error that says how to install PySpark, if that is the missing package; else None."""
    if (error.name or "").partition(".")[0] not in ("pyspark", "py4j"):
        return None
    return UnsupportedError("this needs PySpark, which is not installed: pip install 'holdfast[spark]'")
