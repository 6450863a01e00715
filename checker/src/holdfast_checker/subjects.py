"""List what can be checked: each committer, the transactions of databases, the namespace, and computation units."""

from __future__ import annotations

from typing import Any

from holdfast_checker.committers.subject import CHECKED, committer_subject
from holdfast_checker.framework.subject import Subject, find_name
from holdfast_checker.namespace.worlds import NAMESPACE
from holdfast_checker.transactions.worlds import TRANSACTIONS
from holdfast_checker.units.worlds import UNITS

SUBJECTS = {one.name: one for one in (TRANSACTIONS, NAMESPACE, UNITS)}
"""All but the committers, by name."""


def find_subject(name: str) -> Subject[Any]:
    """Return the committer, or what else can be checked, with this name.

    Raises:
        InvalidRequestError: the name is unknown; the message suggests the most similar name.
    """
    found = find_name(name, (*CHECKED, *SUBJECTS), "committer")
    return SUBJECTS[found] if found in SUBJECTS else committer_subject(CHECKED[found])
