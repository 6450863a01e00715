"""Let every error of a run tell which job it was, how many units have taken effect, and how to go on."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from holdfast.errors import FencedError, HoldfastError, InputChangedError, InvalidRequestError, NotFoundError
from holdfast.transactions.base import Backend
from holdfast.units.jobs import find_job, other_rows
from holdfast.units.report import poll

_log = logging.getLogger(__name__)

JOB_GOES_ON = "then run the job again with its name, and it goes on"
BATCH_GOES_ON = "then start the query again, and it goes on with this batch"
"""What to do after an error."""

_VARIABLES = re.compile(r" (?=\w+=['\"\d\[(b])")
"""Where the variables begin in the message of a task, which Spark has carried here as one text."""


@contextmanager
def errors_of_rows(backend: Backend, job: str) -> Iterator[None]:
    """Raise another error than that of the first pass over the rows, if the job exists: it began with other rows.

    What else the first pass advises, another key or a function for all rows of a key, would be refused.
    """
    try:
        yield
    except InvalidRequestError as error:
        if type(error) is not InvalidRequestError:
            raise
        try:
            found = find_job(backend, job)
        except NotFoundError:
            raise error from None
        sentence, *shown = _VARIABLES.split(error.message, maxsplit=1)
        other = other_rows(found, error=sentence.partition(":")[0])
        raise InputChangedError(" ".join([other.message, *shown]), **other.variables) from None


@dataclass(slots=True)
class Begun:
    """The job of a block, from when the block has begun it.

    Attributes:
        job_id: None before that.
    """

    job_id: int | None = None


@contextmanager
def named_errors(backend: Backend, job: str, go_on: str = JOB_GOES_ON) -> Iterator[Begun]:
    """Add what is known about a job to each error of a block that runs it; to those of others as a note, or log it.

    Yields an object that the block tells which job it has begun. If that is forgotten meanwhile, nobody knows how many
    of its units have taken effect, whether another job has its name by now or none has.
    """
    own = Begun()
    try:
        yield own
    except HoldfastError as error:
        begun, figures = _figures(backend, job, own.job_id)
        if own.job_id is None and isinstance(error, FencedError):
            figures = {}  # the job was forgotten before this block could begin it
        sentence, *shown = _VARIABLES.split(error.message, maxsplit=1)
        if begun and "job" not in error.variables and not isinstance(error, FencedError):
            advice = "run the job again"
            if sentence.endswith(advice):
                sentence = sentence.removesuffix(advice) + go_on.removeprefix("then ")
            else:
                sentence = f"{sentence}; {go_on}"
        variables = {**error.variables, "job": job, **figures}
        raise type(error)(" ".join([sentence, *shown]), **variables) from error.__cause__
    except BaseException as error:
        begun, figures = _figures(backend, job, own.job_id)
        if begun:
            told = " ".join(f"{name}={value!r}" for name, value in {"job": job, **figures}.items())
            if hasattr(error, "add_note"):
                error.add_note(f"{go_on}: {told}")
            else:  # Python 3.10
                _log.warning("%s (%s): %s", go_on, type(error).__name__, told)
        raise


def _figures(backend: Backend, job: str, job_id: int | None) -> tuple[bool, dict[str, object]]:
    """Return whether a job can go on, and how many units are done, and of how many, as far as that is known."""
    try:
        state = poll(backend, job)
    except NotFoundError:
        return False, {"done": 0} if job_id is None else {}
    except HoldfastError:
        return True, {}
    if job_id not in (None, state.job.id):
        return False, {}
    return True, {"done": state.done} if state.job.units is None else {"done": state.done, "units": state.job.units}
