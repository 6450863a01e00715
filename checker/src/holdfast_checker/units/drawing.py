"""Draw random scenes of computation units: what jobs do, who runs their tasks, and what can go wrong."""

from __future__ import annotations

from typing import Any

from holdfast.runtime import SeededRandom
from holdfast_checker.kernel.calls import Fault
from holdfast_checker.units.contents import Shards
from holdfast_checker.units.scene import LIST, Run, Scene
from holdfast_checker.units.scripts import Script

_ROWS = ("w1", "w2", "x", "y")
_FAULTS = (Fault.CRASH, Fault.LOST_REPLY, Fault.FAILURE)


def draw(seed: int, number: int) -> Scene:
    """Return the `number`-th random scene of a seed."""
    chance = SeededRandom(SeededRandom.derive(seed, number))
    locks = chance.happens(0.25)
    jobs: dict[str, Shards] = {
        "job": tuple(_units(chance, letter) for letter in "ab"[: chance.pick((1, 1, 2))]),
        "other": (_units(chance, "p"),),
    }
    runs = {f"task {shard}": _run(chance, "job", shard, locks) for shard in range(len(jobs["job"]))}
    runs["other"] = _run(chance, "other", 0, locks)
    if chance.happens(0.6):
        runs["twin"] = _run(chance, "job", 0, locks)
    work: dict[str, Script] = {}
    if chance.happens(0.4):
        work = {key: _script(chance) for key in ("u", "v", "z")}
        work["u"] = (*work["u"], ("emit", "z"))
        for slot in range(chance.pick((0, 1, 2))):
            runs[f"worker {slot}"] = _run(chance, LIST, slot, locks)
        if "worker 0" not in runs:  # whoever adds when workers are done is too late
            jobs["other"] = ({**jobs["other"][0], "q": (("emit", "v"),)},)
    faults = _FAULTS[1:] if locks else _FAULTS
    budgets = {fault: chance.pick((1, 2)) for fault in faults if chance.happens(0.5)}
    return Scene(
        name=f"drawn-{seed}-{number}",
        summary="random units",
        start={row: chance.pick((0, 5)) for row in _ROWS if chance.happens(0.5)},
        jobs=jobs,
        runs=runs,
        work=work,
        items=("u",) if work else (),
        mortal=not locks,
        budgets={**budgets, **({Fault.CLOCK: 2} if work else {})},
        reached=(),
    )


def _run(chance: SeededRandom, job: str, shard: int, locks: bool) -> Run:
    return Run(
        job=job,
        shard=shard,
        group=chance.pick((1, 2, 3)),
        rounds=chance.pick((1, 2)) if locks else 7,
        most_deferred=chance.pick((1, 2, 100)),
        is_locked=locks and chance.happens(0.5),
        reads_ahead=chance.happens(0.3),
    )


def _units(chance: SeededRandom, letter: str) -> dict[str, Script]:
    return {f"{letter}{at}": _script(chance) for at in range(chance.pick((1, 2, 2, 3, 4)))}


def _script(chance: SeededRandom) -> Script:
    steps: list[tuple[Any, ...]] = []
    for _ in range(chance.pick((1, 1, 2, 3))):
        row, other = chance.shuffled(_ROWS)[:2]
        steps.append(
            chance.pick(
                (
                    ("read", row),
                    ("put", row, 7),
                    ("add", row, chance.pick((1, 2))),
                    ("increment", row),
                    ("increment", row),
                    ("create", row, 3),
                    ("delete", row),
                    ("move", row, other),
                    ("count", "w", other),
                )
            )
        )
    return tuple(steps)
