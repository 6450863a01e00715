"""Mistakes that a developer might have made in the transaction that commits a job, and the worlds that show them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from holdfast.commit import SaveMode
from holdfast.commit.two_phase.decision_log import append_entry
from holdfast.commit.two_phase.replacement import iter_deletions
from holdfast.commit.two_phase.roll_forward import plan_files
from holdfast.stores.base import Overwrite
from holdfast.versioned_log import RecordStore
from holdfast_checker.committers.actors import CommitterScene
from holdfast_checker.committers.features import combine_features, parse_features
from holdfast_checker.committers.output import DESTINATION, HOME, make_chosen_file_name, parse_origin, visible_files
from holdfast_checker.committers.scenes import TRANSACTIONAL
from holdfast_checker.kernel.calls import Call
from holdfast_checker.kernel.world import Actor, Port, Property, View, World
from tests.checker.committers import transaction_mistakes as mistakes
from tests.checker.committers.mutants import Mutant
from tests.checker.committers.planting import swap

__all__ = ["REDUNDANT_IN_TRANSACTIONS", "TRANSACTION_MUTANTS"]

_TOOLS = b"another tool's"


# --- another tool -----------------------------------------------------------------------------------------------------
class _Interrupted(Port):
    """A driver's port: just before the driver's first transaction, another tool writes a file."""

    def __init__(self, port: Port, key: str) -> None:
        super().__init__(port.name, 0, lambda index, call: None)
        self._port = port
        self._key = key

    def call(self, call: Call) -> object:
        if call.operation == "apply" and self._key:
            key, self._key = self._key, ""
            self._port.call(Call(DESTINATION, "put", (key, _TOOLS, Overwrite(), None)))
        return self._port.call(call)

    def token(self) -> str:
        return self._port.token()


def _with_a_tool(path: str) -> Callable[[World], World]:
    """Let another tool write this file at the last moment; nobody may touch it afterwards."""
    tools = parse_origin(_TOOLS)

    def interrupted(actor: Actor) -> Actor:
        return replace(actor, program=lambda port: actor.program(_Interrupted(port, HOME + path)))

    def step(before: View, after: View, actor: str) -> str | None:
        if visible_files(before).get(path) == tools and visible_files(after).get(path) != tools:
            return f"{actor} destroys what another tool wrote"
        return None

    spared = Property(name="other-tools", title="other tools", meaning="another tool's file stays", step=step)

    def change(world: World) -> World:
        actors = tuple(interrupted(one) if one.name == "driver" else one for one in world.actors)
        return replace(world, actors=actors, properties=(*world.properties, spared))

    return change


# --- scenes -----------------------------------------------------------------------------------------------------------
def _scene(name: str) -> CommitterScene:
    return combine_features(parse_features(f"transactions+{name}") or ())


_LONE = _scene("one-task+two-files")
_OVERWRITE = TRANSACTIONAL["transactional-overwrite"]
_JUDGED = ("C1", "C4", "C6", "C8")
_REWRITTEN = replace(
    _scene("one-task+overwrite"), name="rewritten", summary="a tool rewrites a file", properties=_JUDGED
)
_TAKEN = replace(
    _scene("one-task+chosen"), name="taken", summary="a tool takes the job's name", mode=SaveMode.APPEND, properties=()
)

TRANSACTION_MUTANTS = (
    Mutant(
        name="publishes-in-two-transactions",
        slip="One transaction decides, and a second one publishes, as the two phases do elsewhere.",
        swaps=(swap(append_entry, mistakes.publish_in_two),),
        scene=_LONE,
        breaks=("plain-reads",),
    ),
    Mutant(
        name="decides-after-its-transaction",
        slip="The transaction publishes everything, and the decision follows as its report.",
        swaps=(swap(append_entry, mistakes.publish_first),),
        scene=_LONE,
        breaks=("plain-reads", "log-order"),
    ),
    Mutant(
        name="replaced-before-the-transaction",
        slip="Replaced files are deleted first, to make room.",
        swaps=(swap(append_entry, mistakes.delete_first),),
        scene=_OVERWRITE,
        breaks=("plain-reads", "replaced-data"),
    ),
    Mutant(
        name="report-after-the-transaction",
        slip="The report is written afterwards, when the duration of the transaction is known.",
        swaps=(swap(append_entry, mistakes.report_afterwards),),
        scene=_LONE,
        breaks=("plain-reads", "log-order"),
    ),
    Mutant(
        name="marks-after-the-transaction",
        slip="The marks are written afterwards: they are only for recovery.",
        swaps=(swap(append_entry, mistakes.mark_afterwards),),
        scene=_OVERWRITE,
        breaks=("log-order",),
    ),
    Mutant(
        name="order-is-not-required",
        slip="The transaction requires only that its number is free, and not that the entry before it exists.",
        swaps=(swap(RecordStore.create_with_changes, mistakes.forget_the_order),),
        scene=_scene("one-task+busy+at-once+short-log"),
        breaks=("plain-reads", "log-order"),
    ),
    Mutant(
        name="unknown-transaction-is-a-commit",
        slip="A transaction that was not answered is considered made.",
        swaps=(swap(RecordStore.create_with_changes, mistakes.take_silence_for_commit),),
        scene=TRANSACTIONAL["transactional-failure"],
        breaks=("C1", "C8"),
    ),
    Mutant(
        name="deletes-by-name-alone",
        slip="What the job replaces is deleted even if another tool has replaced it since.",
        swaps=(swap(iter_deletions, mistakes.delete_whatever_is_there),),
        scene=_REWRITTEN,
        breaks=("other-tools",),
        change=_with_a_tool("day=0/old-0.txt"),
    ),
    Mutant(
        name="completes-over-anything",
        slip="A file is completed even if its name has been taken since.",
        swaps=(swap(plan_files, mistakes.complete_over_anything),),
        scene=_TAKEN,
        breaks=("other-tools",),
        change=_with_a_tool(f"day=0/{make_chosen_file_name(0, 0)}"),
    ),
)

REDUNDANT_IN_TRANSACTIONS = (
    Mutant(
        name="keeps-the-records",
        slip="The transaction leaves the records of its job.",
        swaps=(swap(append_entry, mistakes.keep_the_records),),
        scene=_scene("one-task+two-files+crash+recovery"),
        reason="cleanup deletes them, and recovery ends every job that has a record: it finds the decision in the log",
    ),
)
