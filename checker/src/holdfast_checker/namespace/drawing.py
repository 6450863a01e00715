"""Draw random scenes of a namespace: what is there, who calls what, and what can go wrong."""

from __future__ import annotations

from typing import Any

from holdfast.runtime import SeededRandom
from holdfast_checker.kernel.calls import Fault
from holdfast_checker.namespace.scenes.scene import Scene

_STARTS: tuple[tuple[tuple[Any, ...], ...], ...] = (
    (("mkdirs", "/a/b"), ("create", "/c/f", "0")),
    (("create", "/a/b/f", "0"), ("mkdirs", "/b"), ("create", "/f", "1")),
    (("create", "/a/f", "0"), ("create", "/a/g", "1"), ("mkdirs", "/c"), ("set_quota", "/c", 4)),
    (("create", "/a/b/f", "0"), ("set_quota", "/a", 5), ("mkdirs", "/c/d")),
)
_PLACES = ("/a", "/a/b", "/c", "/a/f", "/a/b/f", "/c/f", "/c/a", "/f")
_FAULTS = (Fault.CRASH, Fault.LOST_REPLY, Fault.FAILURE)


def draw(seed: int, number: int) -> Scene:
    """Return the `number`-th random scene of a seed."""
    chance = SeededRandom(SeededRandom.derive(seed, number))
    names = ("ann", "bob", "eve", "dan")[: chance.pick((2, 3, 3, 4))]
    return Scene(
        name=f"drawn-{seed}-{number}",
        summary="random calls",
        start=chance.pick(_STARTS),
        scripts={who: _script(chance, who) for who in names},
        knows=None if chance.happens(0.7) else {},
        collectors=chance.pick(((), (1,), (2,), (1, 1))),
        inline=chance.happens(0.6),
        budgets={fault: chance.pick((1, 2)) for fault in _FAULTS if chance.happens(0.4)},
        reached=(),
    )


def _script(chance: SeededRandom, who: str) -> tuple[tuple[Any, ...], ...]:
    steps: list[tuple[Any, ...]] = []
    for at in range(chance.pick((1, 2, 2, 3))):
        place, other, third = chance.shuffled(_PLACES)[:3]
        mark = f"{who}{at}"
        steps += chance.pick(
            (
                [("mkdirs", place)],
                [("create", place, mark)],
                [("overwrite", place, mark)],
                [("delete", place)],
                [("delete_tree", place)],
                [("rename", place, other)],
                [("rename", place, other)],
                [("replace", place, other)],
                [("list", place)],
                [("walk", chance.pick(("/", "/a")))],
                [("read", place)],
                [("publish", (place, mark), (other, mark)), ("read", third)],
                [("append", place, mark), ("close", mark, mark)],
                [("append", place, mark), ("sync", mark, mark), ("close", mark, "end")],
                [("recover", place)],
                [("set_quota", chance.pick(("/a", "/c")), chance.pick((0, 3, 5)))],
            )
        )
    return tuple(steps)
