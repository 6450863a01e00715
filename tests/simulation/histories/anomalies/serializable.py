"""Check serializability: do transactions depend on each other in a cycle?

Each key has a list of versions, in the order in which they were installed. The versions and the reads determine which
transaction must precede which in any order. A transaction precedes another one if it installed the previous version
(**ww**), wrote the version that the other one read (**wr**), read the version that the other one overwrote (**rw**), or
had ended before the other one began (**rt**). A cycle proves that no order explains the history, and the kinds of its
edges say what went wrong:

    G0             only ww: a dirty write
    G1a, G1b, G1c  reads a failed write; reads a version overwritten in the same transaction; ww and wr
    lost update    two transactions read the same version of a key, and both overwrote it
    G-single       one rw: read skew
    G-nonadjacent  several rw, no two of them adjacent
    G2-item        two adjacent rw: write skew; the only one that snapshot isolation allows
    internal       a transaction does not see its own writes, or sees two versions of a key

with ``-realtime`` if the cycle needs an rt edge. Other anomalies than cycles: "unwritten read", "missing write"
(committed and never installed), "aborted write" (failed and installed), "unwritten version" and "version twice"
(installed by no transaction, or again), "incompatible order" (of a transaction's own writes).

A transaction of unknown outcome may have committed or not. If another transaction sees one of its writes, the
transaction has committed, with all of its writes. Its writes that are not installed yet come after all installed
versions, or are missing if nothing more can be installed. Phantoms are found if each range has a key that guards it,
and transactions read and write that key. For a database that cannot be inspected, `appends` derives the versions from
lists that only grow.

Sources: Adya, Liskov, O'Neil, "Generalized isolation level definitions", ICDE 2000; Kingsbury, Alvaro, "Elle: inferring
isolation anomalies from experimental observations", VLDB 2020 (the order of versions from lists that only grow; cycles
as explanations); Cerone, Gotsman, "Analysing snapshot isolation", PODC 2016, theorem 9 (two adjacent rw).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.simulation.histories.anomalies.dependencies import Dependencies
from tests.simulation.histories.anomalies.transactions import Anomaly, Level, Transaction, Versions


def find_anomalies(
    transactions: Sequence[Transaction],
    versions: Mapping[str, Versions],
    *,
    level: Level = Level.SERIALIZABLE,
    real_time: bool = True,
    settled: bool = True,
) -> list[Anomaly]:
    """Return the anomalies of a history, the worst first, with the shortest cycle of each kind; empty if it has none.

    Guarantee: if the order of all versions is known, all reported anomalies exist, and none is missed. With
    `Versions.rest`, all reported anomalies exist, but some may be missed under snapshot isolation.

    Args:
        real_time: whether the order has to respect real time: strict serializability, or strong snapshot isolation.
        settled: whether `versions` is final; False while transactions are still running, because the writes of a
            transaction of unknown outcome may still be installed, after all other versions.

    Raises:
        InvalidRequestError: two writes of a key have the same version, so that reads are ambiguous.
    """
    graph = Dependencies(list(transactions), versions, settled)
    graph.add_dependencies()
    found = [*graph.found, *graph.cycles(level, ())]
    if real_time:
        known = {anomaly.name for anomaly in found}
        graph.add_real_time()
        found += [one for one in graph.cycles(level, ("rt",)) if one.name not in known]
    return found
