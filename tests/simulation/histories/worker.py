"""Work in a process of its own: ``python -m tests.simulation.histories.worker KIND URL PREFIX WHO SEED COUNT``.

The process says that it is ready, waits for a line, works, and prints what it did.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

from holdfast.transactions.base import Backend
from holdfast.transactions.registry import open_backend
from tests.simulation.histories.lists import run_lists
from tests.simulation.histories.random_mixes import run_mixes
from tests.simulation.histories.registers import run_registers
from tests.simulation.histories.told import Told

__all__ = ["KINDS", "Work"]

Work = Callable[[Backend, str, str, int, int], list[Told]]

KINDS: Mapping[str, Work] = {"mixes": run_mixes, "lists": run_lists, "registers": run_registers}


def _main(kind: str, url: str, prefix: str, who: str, seed: str, count: str) -> None:
    backend = open_backend(url)
    backend.get_many([prefix.encode()])
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        for one in KINDS[kind](backend, prefix, who, int(seed), int(count)):
            print(one.encode())
    finally:
        backend.close()


if __name__ == "__main__":
    _main(*sys.argv[1:])
