"""Check that a database of transactions keeps the promises of its interface: the acceptance test of every backend.

Worked composition::

    for check in checks_for(MyBackend):
        check.run(subject_of(check, MyBackend(), MyBackend()))
"""

from __future__ import annotations

from holdfast.conformance import Check, checks_in
from holdfast.transactions.base import Backend
from tests.conformance.backends import calls, locks, model, races
from tests.conformance.backends.subject import Subject

__all__ = ["checks_for", "subject_of"]


def checks_for(kind: type[Backend]) -> list[Check[Subject]]:
    """Return the checks that backends of a class must pass: those of `locks` if it has locked transactions."""
    has_locks = kind.begin_locking_transaction is not Backend.begin_locking_transaction
    modules = (calls, model, races, locks) if has_locks else (calls, model, races)
    return [check for module in modules for check in checks_in(module)]


def subject_of(check: Check[Subject], backend: Backend, other: Backend | None = None, *, rounds: int = 20) -> Subject:
    """Return what a check runs on.

    Args:
        other: another handle on the same data, with its own connections; None to use the same one.
        rounds: how often each race (a conflict of concurrent transactions) is repeated.
    """
    return Subject(backend, other or backend, b"conformance/" + check.name.encode() + b"/", rounds)
