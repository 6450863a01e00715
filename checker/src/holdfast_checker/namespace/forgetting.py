"""Let processes forget replies that can no longer matter, so that fewer histories differ.

A collector begins each list of what there is to do (deleted trees, leases, garbage) as if it had done nothing before:
which trees it has found, what it has counted, and which of its commits conflicted no longer matters. Without this
abstraction, every combination of such replies would be a history of its own up to the end, multiplied by those of the
other collectors. A client that has made its last call only has to say so. Every run asserts that what is forgotten does
not matter (see `kernel.process_tree`), and tests compare the results with full exploration.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from holdfast.namespace.keys import LEADER, kind_range
from holdfast_checker.histories.history import HISTORY
from holdfast_checker.kernel.calls import Call
from holdfast_checker.kernel.world import Past, Remembers
from holdfast_checker.namespace.actors import COLLECTS
from holdfast_checker.simulated.database import DATABASE
from holdfast_checker.simulated.server import CLOCK

_LISTS = {kind_range(kind)[0] for kind in (b"r", b"l", b"g")}
_LAST_LIST = kind_range(b"g")[0]


def remembering(calls: Mapping[str, int]) -> Remembers:
    """Return what processes remember.

    Args:
        calls: how many calls of the history each client makes, by its name; of a collector, they are not counted.
    """

    def remembers(call: Call, past: Sequence[Past]) -> Hashable | None:
        begun = [one.call for one in past if (one.call.resource, one.call.operation) == (HISTORY, "invoke")]
        if not begun:
            return None
        who, name = begun[0].args[:2]
        if name == COLLECTS:
            return _of_a_collector(call, past)
        is_last = len(begun) == calls.get(str(who))
        return "end" if is_last and (call.resource, call.operation) == (HISTORY, "end") else None

    return remembers


def _of_a_collector(call: Call, past: Sequence[Past]) -> Hashable | None:
    """Return how far a collector has come that is about to begin a list; None at other places.

    The number of its commits is in the versions of the next ones.
    """
    if call.operation != "scan" or call.args[0] not in _LISTS:
        return None
    lists = elections = commits = errors = 0
    time: object = None
    for one in past:
        if one.call.resource == CLOCK:
            time = one.reply.value
        elif one.call.resource == DATABASE:
            commits += one.call.operation == "commit_group"
            lists += one.call.operation == "scan" and one.call.args[0] == _LAST_LIST
            elections += one.call.operation == "get_many" and one.call.args[0] == (LEADER,)
        errors += one.reply.error is not None
    return (lists, elections, commits, errors, time)
