"""Find anomalies of transactions on lists that only grow, in a database that the client cannot inspect.

Transactions append elements and read whole lists. A list that was read shows in which order its elements were appended.
So the longest list of each key gives the order of all elements that were read; elements that were acknowledged, but
never read, came later.

Source: Kingsbury, Alvaro, "Elle: inferring isolation anomalies from experimental observations", VLDB 2020.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace

from holdfast_checker.histories.history import Outcome
from tests.simulation.histories.anomalies.serializable import find_anomalies
from tests.simulation.histories.anomalies.transactions import Anomaly, Level, Read, Transaction, Versions, Write

_Elements = tuple[Hashable, ...]


def find_anomalies_of_appends(
    transactions: Sequence[Transaction], *, level: Level = Level.SERIALIZABLE, real_time: bool = True
) -> list[Anomaly]:
    """Return what is wrong with a history, like `find_anomalies`, without inspecting the database.

    This function also finds two more anomalies. "duplicate": an element occurs twice in a list. "incompatible order":
    two lists of a key were read, and neither is a prefix of the other, so one of them was dirty or has lost something.

    Args:
        transactions: each `Write.version` is the element that was appended to the list of its key: unique in that list
            and not None. Each `Read.version` is the list that was read, as a tuple.
    """
    writers = {
        (action.key, action.version): number
        for number, one in enumerate(transactions)
        for action in one.actions
        if isinstance(action, Write)
    }
    committed = _committed(transactions, writers)
    found: list[Anomaly] = []
    longest: dict[str, _Elements] = {}
    outer: list[Transaction] = []
    for number, transaction in enumerate(transactions):
        if number not in committed:
            outer.append(transaction)
            continue
        actions, inner = _outside(transaction)
        outer.append(replace(transaction, actions=actions))
        found += inner
        for read in _reads(transaction):
            found += _compare(transaction, read.key, _elements(read), longest)
            found += _ask_for_writers(transaction, read, writers, transactions)
    seen = {(key, element) for key, elements in longest.items() for element in elements}
    unseen: dict[str, list[Hashable]] = {key: [] for key in longest}
    for (key, element), writer in writers.items():
        unseen.setdefault(key, [])
        if writer in committed and (key, element) not in seen:
            unseen[key].append(element)
    versions = {key: Versions((None, *longest.get(key, ())), tuple(rest)) for key, rest in unseen.items()}
    return [*found, *find_anomalies(outer, versions, level=level, real_time=real_time)]


def _reads(transaction: Transaction) -> Iterable[Read]:
    return (action for action in transaction.actions if isinstance(action, Read))


def _elements(read: Read) -> _Elements:
    assert isinstance(read.version, tuple), "a list is read as a tuple"
    return read.version


def _committed(transactions: Sequence[Transaction], writers: Mapping[tuple[str, Hashable], int]) -> set[int]:
    """Return the transactions that committed.

    These are the acknowledged ones, and those of unknown outcome whose elements a committed transaction has read.
    """
    found = {number for number, one in enumerate(transactions) if one.operation.outcome is Outcome.OK}
    to_ask = list(found)
    while to_ask:
        for read in _reads(transactions[to_ask.pop()]):
            for element in _elements(read):
                writer = writers.get((read.key, element))
                if writer is not None and writer not in found:
                    if transactions[writer].operation.outcome is Outcome.UNKNOWN:
                        found.add(writer)
                        to_ask.append(writer)
    return found


def _outside(transaction: Transaction) -> tuple[tuple[Read | Write, ...], list[Anomaly]]:
    """Keep only the first read of each key, and cut its list after the last element that others had appended.

    Also return the reads that contradict the transaction's own earlier reads and appends.
    """
    before: dict[str, _Elements] = {}  # the lists before the transaction, as far as it has read them
    own: dict[str, _Elements] = {}
    actions: list[Read | Write] = []
    found: list[Anomaly] = []
    for action in transaction.actions:
        key = action.key
        if isinstance(action, Write):
            own[key] = (*own.get(key, ()), action.version)
            actions.append(action)
            continue
        elements, mine = _elements(action), own.get(key, ())
        outside = elements[: len(elements) - len(mine)]
        later = any(
            isinstance(each, Write) and each.key == key and each.version in outside for each in transaction.actions
        )
        if elements != outside + mine or before.get(key, outside) != outside or later:
            had = [*before.get(key, ("...",)), *mine]
            words = f"internal: {transaction} read {key}={list(elements)!r}, and had read or appended {had!r}"
            found.append(Anomaly("internal", words, (transaction,)))
        elif key not in before:
            before[key] = outside
            # The read precedes the transaction's own appends, because it shows what existed before them.
            actions.insert(0, Read(key, outside[-1] if outside else None))
    return tuple(actions), found


def _ask_for_writers(
    transaction: Transaction,
    read: Read,
    writers: Mapping[tuple[str, Hashable], int],
    transactions: Sequence[Transaction],
) -> Iterable[Anomaly]:
    for element in _elements(read):
        number = writers.get((read.key, element))
        words = f"{transaction} read {element!r} in {read.key}"
        if number is None:
            yield Anomaly("unwritten read", f"unwritten read: {words}, which no transaction appended", (transaction,))
        elif transactions[number].operation.outcome is Outcome.FAILED:
            writer = transactions[number]
            yield Anomaly("G1a", f"G1a: {words}, of {writer}, which did not commit", (transaction, writer))


def _compare(
    transaction: Transaction, key: str, elements: _Elements, longest: dict[str, _Elements]
) -> Iterable[Anomaly]:
    if len(set(elements)) < len(elements):
        words = f"duplicate: {transaction} read an element of {key} twice: {list(elements)!r}"
        yield Anomaly("duplicate", words, (transaction,))
    short, long = sorted((longest.get(key, ()), elements), key=len)
    if long[: len(short)] != short:
        words = f"incompatible order: {transaction} read {key}={list(elements)!r}, and another read {list(short)!r}"
        yield Anomaly("incompatible order", words, (transaction,))
    longest[key] = long
