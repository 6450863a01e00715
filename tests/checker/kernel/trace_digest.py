"""Print digests of histories as JSON; they must be the same in several processes.

python -m tests.checker.kernel.trace_digest [--order-of-sets]
"""

from __future__ import annotations

import hashlib
import json
import logging
import sys
from collections.abc import Hashable

from holdfast_checker.committers.actors import CommitterScene
from holdfast_checker.committers.worlds import build_world
from holdfast_checker.kernel.calls import Fault, canonical_key
from holdfast_checker.kernel.counterexample import replay_choices
from holdfast_checker.kernel.explore import explore_world
from holdfast_checker.kernel.world import World
from holdfast_checker.specimens import COMPARED
from tests.checker.kernel.toys import Handle, draw_history, toy_world

WALKS = 3
BUDGETS = {Fault.CRASH: 1, Fault.PARTITION: 1, Fault.LOST_REPLY: 1, Fault.FAILURE: 1, Fault.STALE_LISTING: 1}


def text_of(key: Hashable) -> str:
    """Return a key in words that do not depend on the iteration order of sets."""
    if isinstance(key, tuple):
        return "(" + ",".join(map(text_of, key)) + ")"
    if isinstance(key, frozenset):
        return "{" + ",".join(sorted(map(text_of, key))) + "}"
    return repr(key)


def digest_of(world: World) -> str:
    """Return a digest of all calls, replies and states along several histories."""
    digest = hashlib.sha256()
    for seed in range(WALKS):
        found = replay_choices(world, draw_history(world, seed))
        for step, state in zip(found.steps, found.states[1:], strict=True):
            reply = None if step.alternative is None else step.alternative.reply
            record = (
                step.actor,
                step.label,
                canonical_key(step.call),
                canonical_key(reply),
                found.space.compute_resource_state_keys(state),
            )
            digest.update(text_of(record).encode())
        digest.update(repr(found.broken).encode())
    return digest.hexdigest()


def _figures(world: World) -> list[object]:
    found = explore_world(world)
    broken = sorted((one.property, one.broke, repr(one.choices)) for one in found.findings.values())
    return [found.states, found.steps, found.ends, found.reduced, broken]


def _digests() -> dict[str, object]:
    record: dict[str, object] = {}
    for name, committer in COMPARED.items():
        large = CommitterScene(name="large", summary="", files=1, recovery=1, second_driver=True, budgets=BUDGETS)
        small = CommitterScene(name="small", summary="", tasks=1, attempts=1, files=1, budgets={Fault.CRASH: 1})
        record[name] = [digest_of(build_world(committer, large)), _figures(build_world(committer, small))]
    return record


def _by_order_of_a_set(handle: Handle) -> None:
    for name in {f"cell {number}" for number in range(20)}:
        handle.put(name, 1)


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    odd = "--order-of-sets" in sys.argv
    print(json.dumps(digest_of(toy_world({"odd": _by_order_of_a_set})) if odd else _digests()))
