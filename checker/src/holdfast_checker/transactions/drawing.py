"""Draw random scenes: who runs which scripts on which kind of database, and what can go wrong."""

from __future__ import annotations

from holdfast.runtime import SeededRandom
from holdfast_checker.kernel.calls import Fault
from holdfast_checker.transactions.actors import Work
from holdfast_checker.transactions.properties import UNIT
from holdfast_checker.transactions.scripts import Content, Script, Step
from holdfast_checker.transactions.worlds import Scene

_KEYS = ("w1", "w2", "x", "y", "left/1", "right/1")
_RANGES = (("w", "z"), ("w", "x"), ("left/", "left0"), ("right/", "right0"))
_FAULTS = (Fault.CRASH, Fault.LOST_REPLY, Fault.FAILURE)


def draw(seed: int, number: int) -> Scene:
    """Return the `number`-th random scene of a seed."""
    chance = SeededRandom(SeededRandom.derive(seed, number))
    names = ("ann", "bob", "eve", "dan")[: chance.pick((2, 3, 3, 4))]
    counting = chance.happens(0.6)  # then everybody looks at the guard, which those that commit in groups do not
    works = {
        who: tuple(_work(chance, f"{who}{at}", counting=counting) for at in range(chance.pick((1, 1, 2))))
        for who in names
    }
    groups: dict[str, tuple[Script, ...]] = {}
    if not counting:
        adds = (("add", "sum", 1), ("add", "sum", 2), ("bounded", "sum", 1, 2))
        groups["group"] = tuple(
            (*_script(chance, f"group{at}", counting=False)[:1], chance.pick(adds)) for at in range(chance.pick((2, 3)))
        )
    twins = chance.happens(0.3)
    if twins:
        units = tuple(_unit("owner", at) for at in range(1, chance.pick((2, 3, 4))))
        works |= {"twin 0": units, "twin 1": units}
    start: dict[str, Content] = {
        key: ("start" * chance.pick((0, 1)), chance.pick((0, 0, 2))) for key in _KEYS if chance.happens(0.5)
    }
    return Scene(
        name=f"drawn-{seed}-{number}",
        summary="random transactions",
        works=works,
        groups=groups,
        start=start,
        stepped=chance.happens(0.5),
        budgets={fault: chance.pick((1, 2)) for fault in _FAULTS if chance.happens(0.4)},
        reached=(),
    )


def _unit(owner: str, number: int) -> Work:
    return Work(script=(("add", f"{UNIT}{owner} {number}", 1),), progress=(owner, number), repeats=3, looks=True)


def _work(chance: SeededRandom, mark: str, *, counting: bool) -> Work:
    script = _script(chance, mark, counting=counting)
    return Work(script=script, attempts=chance.pick((1, 2, 3)), looks=True)


def _script(chance: SeededRandom, mark: str, *, counting: bool) -> Script:
    steps: list[Step] = []
    for at in range(chance.pick((1, 2, 2, 3, 4))):
        key, other = chance.shuffled(_KEYS)[:2]
        start, end = chance.pick(_RANGES)
        steps.append(
            chance.pick(
                (
                    ("get", key),
                    ("get_many", key, other),
                    ("put", key, f"{mark}{at}"),
                    ("append", key, f"{mark}{at}"),
                    ("create", key, f"{mark}{at}"),
                    ("delete", key),
                    ("remove", key),
                    ("add", key, chance.pick((1, 2))),
                    ("swap_off", key, other),
                    ("unless", key),
                    *((("scan", start, end, chance.pick((None, 1))), ("count", start, end, key)) if counting else ()),
                    *((("claim", start, end, key),) if counting else ()),
                )
            )
        )
    return tuple(steps)
