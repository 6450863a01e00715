"""Serializability: do transactions depend on each other in a circle?

Each key has its versions in the order in which they were installed. From it and from what was read follows who must
come before whom in any order of the transactions: **ww** who installed the version before; **wr** whose version one has
read; **rw** who has read what another overwrote; **rt** who had ended before another began. A circle is a proof that no
order explains the history, and which kinds of edges it takes says what went wrong:

    G0             ww alone: a dirty write
    G1a, G1b, G1c  reads what failed; reads what was overwritten in the same transaction; ww and wr
    lost update    two have read one version of a key and both have overwritten it
    G-single       one rw: read skew
    G-nonadjacent  several rw, no two of them in a row
    G2-item        two rw in a row: write skew; the only one that snapshot isolation allows
    internal       a transaction does not see its own writes, or sees two versions of a key

with ``-realtime`` where the circle needs an rt edge. Besides circles: "unwritten read", "missing write" (committed
and never installed), "aborted write" (failed and installed), "unwritten version" and "version twice" (installed by
nobody, or again), "incompatible order" (of a transaction's own writes).

A transaction whose outcome nobody knows may have committed or not, and who sees one of its writes knows: it has, and so
with all of its writes. What of them is not there comes after all that is, or is missing if nothing more can come.
Phantoms are found as far as a range has a guard that is read and
written as a key. Whoever has no look into the database has them from lists that only grow: `appends`.

Sources: Adya, Liskov, O'Neil, "Generalized isolation level definitions", ICDE 2000; Kingsbury, Alvaro, "Elle: inferring
isolation anomalies from experimental observations", VLDB 2020 (the order of versions from lists that only grow; circles
as explanations); Cerone, Gotsman, "Analysing snapshot isolation", PODC 2016, theorem 9 (two rw in a row).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

from holdfast.checker.histories.dependencies import Dependencies
from holdfast.checker.histories.history import Operation, history_of
from holdfast.checker.histories.transactions import Anomaly, Level, Transaction, Versions, transactions_of
from holdfast.checker.kernel.canonical import canonical
from holdfast.checker.kernel.world import Property, View

__all__ = ["find_anomalies", "serializable_property"]


def find_anomalies(
    transactions: Sequence[Transaction],
    versions: Mapping[str, Versions],
    *,
    level: Level = Level.SERIALIZABLE,
    real_time: bool = True,
    settled: bool = True,
) -> list[Anomaly]:
    """What is wrong with a history: of circles the shortest of each kind, the worst first; empty if nothing is.

    Guarantee: exact in both directions for histories whose orders of versions are known whole. With `Versions.rest` all
    that is found is wrong, and under snapshot isolation something may stay unseen.

    Args:
        real_time: whether the order has to respect real time: strict serializability, or strong snapshot isolation.
        settled: whether `versions` is all that there will ever be. False while transactions go on: what one of unknown
            outcome has not installed yet may still come, after all that is there.

    Raises:
        InvalidRequestError: two writes of a key have one version: nobody can tell which was read.
    """
    graph = Dependencies(list(transactions), versions, settled)
    graph.add_dependencies()
    found = [*graph.found, *graph.cycles(level, ())]
    if real_time:
        known = {anomaly.name for anomaly in found}
        graph.add_real_time()
        found += [one for one in graph.cycles(level, ("rt",)) if one.name not in known]
    return found


def serializable_property(
    *,
    name: str = "T1",
    versions_of: Callable[[View], Mapping[str, Versions]],
    history_of: Callable[[View], Sequence[Operation]] = history_of,
    level: Level = Level.SERIALIZABLE,
    real_time: bool = True,
) -> Property:
    """The transactions of a world are serializable at every time. Equal histories are judged once.

    At the end nothing more can come: a transaction that has installed a part of its writes has torn them apart then.

    Args:
        versions_of: the versions of all keys, as the world's database has installed them.
    """
    known: dict[Hashable, str | None] = {}

    def judge(view: View, settled: bool) -> str | None:
        transactions = transactions_of(history_of(view))
        versions = versions_of(view)
        key = (canonical(transactions), canonical(versions), settled)
        if key not in known:
            found = find_anomalies(transactions, versions, level=level, real_time=real_time, settled=settled)
            known[key] = found[0].words if found else None
        return known[key]

    return Property(
        name=name,
        title=f"{'strictly ' if real_time else ''}{level.value}",
        meaning="The transactions that commit could have run one after the other."
        if level is Level.SERIALIZABLE
        else "Each transaction reads one snapshot, and of two at a time that write one key only one commits.",
        step=lambda before, after, actor: judge(after, settled=False),
        end=lambda view: judge(view, settled=True),
    )
