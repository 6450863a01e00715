"""Run the suite on every backend of transactions; see `tests.transaction_backends` to add one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.conformance import Check
from holdfast.transactions.memory import MemoryBackend
from tests.conformance.backends.subject import Subject
from tests.conformance.backends.suite import checks_for, subject_of
from tests.transaction_backends import BACKENDS, Handles, opened

_CHECKS = checks_for(MemoryBackend)


@pytest.fixture(scope="module", params=[pytest.param(name, marks=marks) for name, (_open, marks) in BACKENDS.items()])
def handles(request: pytest.FixtureRequest) -> Iterator[Handles]:
    with opened(request.param, request) as found:
        yield found


@pytest.mark.parametrize("check", _CHECKS, ids=lambda check: check.name)
def test_conformance(handles: Handles, check: Check[Subject]) -> None:
    assert check in checks_for(type(handles.backend))
    check.run(subject_of(check, handles.backend, handles.other, rounds=10))


def test_every_check_has_a_name_of_its_own_and_says_what_it_checks() -> None:
    assert len({check.name for check in _CHECKS}) == len(_CHECKS) > 35
    assert all((check.run.__doc__ or "").startswith("Check ") for check in _CHECKS)
