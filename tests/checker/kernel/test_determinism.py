"""The same choices give the same history byte for byte, in every process, for every iteration order of sets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast_checker.specimens import COMPARED
from tests.patience import PATIENCE_S

_ROOT = Path(__file__).parents[3]


def _in_two_processes(*arguments: str) -> list[Any]:
    command = [sys.executable, "-m", "tests.checker.kernel.trace_digest", *arguments]
    started = [
        subprocess.Popen(
            command,
            cwd=_ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in ("1", "2")
    ]
    found = []
    for process in started:
        out, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, err
        found.append(json.loads(out))
    return found


@pytest.mark.slow
def test_every_committer_is_the_same_in_every_process() -> None:
    """Compares all calls, replies and states of random histories, and all figures of an exploration."""
    one, other = _in_two_processes()
    assert set(one) == set(COMPARED)
    for name in COMPARED:
        assert one[name] == other[name], name
    assert len({digest for digest, _figures in one.values()}) == len(COMPARED), "digests of nothing are all the same"


def test_the_comparison_sees_the_order_of_a_set() -> None:
    one, other = _in_two_processes("--order-of-sets")
    assert one != other
