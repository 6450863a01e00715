"""Tokens have one form and are unique, even across a fork."""

from __future__ import annotations

import re
import subprocess
import sys

from holdfast.runtime import SystemIds

_FORK = """
import os
from holdfast.runtime import SystemIds
ids = SystemIds()
ids.token()
if os.fork():
    os.wait()
print(ids.token(), flush=True)
"""


def test_a_token_is_twelve_hexadecimal_digits() -> None:
    assert re.fullmatch("[0-9a-f]{12}", SystemIds().token())


def test_tokens_do_not_repeat() -> None:
    ids = SystemIds()
    assert len({ids.token() for _ in range(10_000)}) == 10_000


def test_a_forked_process_draws_other_tokens() -> None:
    """Spark forks its Python workers from one daemon: they must not share a random state."""
    run = subprocess.run([sys.executable, "-c", _FORK], capture_output=True, text=True, timeout=60, check=True)
    tokens = run.stdout.split()
    assert len(tokens) == 2
    assert len(set(tokens)) == 2
