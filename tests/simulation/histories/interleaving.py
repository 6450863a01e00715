"""Interleave transactions step by step in one thread, and record what each read and which versions it installed.

Since only one step happens at a time, the order of all versions is known, also of absence: each delete installs another
absence. So `find_anomalies` judges such a history exactly.

A range is represented by its guard, as `serializable` wants it: a scan reads the guard's present version, and whatever
creates or removes a record in the range installs another one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.transactions.base import Backend, Commit, Committed
from holdfast.transactions.transaction import Transaction
from holdfast_checker.histories.history import History, Outcome
from tests.simulation.histories.anomalies.serializable import find_anomalies
from tests.simulation.histories.anomalies.transactions import Read, Versions, Write, transactions_of

__all__ = ["Interleaving", "Session"]

_GUARD = "guard"
_START = "start"


@dataclass
class Session:
    """One transaction of an interleaving."""

    history: Interleaving
    who: str
    transaction: Transaction
    wrote: dict[str, str | None] = field(default_factory=dict)  # by key: the value, None for a delete
    has_scanned: bool = False
    range_changed: bool = False

    def get(self, name: str) -> str | None:
        """Read a record, and note its version."""
        record = self.transaction.get(self.history.key(name))
        if name not in self.wrote:
            self.history.note(self.who, Read(name, self.history.version_of(name, record.version if record else 0)))
        return None if record is None else record.value.decode()

    def scan(self) -> list[str]:
        """Read all records of the range ``in``, and note their versions and that of the range."""
        start, end = self.history.key("in"), self.history.key("io")
        page = self.transaction.scan(start, end, guard=self.history.key(_GUARD))
        if not self.has_scanned:
            self.history.note(self.who, Read(_GUARD, self.history.present(_GUARD)))
            self.has_scanned = True
        names = [key[len(self.history.prefix) :].decode() for key, _record in page]
        for name, (_key, record) in zip(names, page, strict=True):
            if name not in self.wrote:
                self.history.note(self.who, Read(name, self.history.version_of(name, record.version)))
        return names

    def put(self, name: str, value: str) -> None:
        self.transaction.put(self.history.key(name), value.encode())
        self._writes(name, value)

    def insert(self, name: str, value: str) -> None:
        """Create a record, after a look at the guard of its range."""
        self.transaction.get(self.history.key(_GUARD))
        self.transaction.insert(self.history.key(name), value.encode())
        self._writes(name, value)
        self.range_changed = True

    def delete(self, name: str) -> None:
        self.transaction.delete(self.history.key(name))
        self._writes(name, None)
        self.range_changed = True

    def _writes(self, name: str, value: str | None) -> None:
        self.history.note(self.who, Write(name, f"{self.who}:{name}:{value}"))
        self.wrote[name] = value

    def commit(self) -> bool:
        """Commit; return whether it took effect."""
        if self.range_changed:
            self.history.note(self.who, Write(_GUARD, f"{self.who}:range"))
        outcome = self.history.backend.commit(self.transaction.to_commit())
        self.history.end(self, isinstance(outcome, Committed))
        return isinstance(outcome, Committed)


class Interleaving:
    """Transactions that run at the same time, step by step.

    Args:
        values: the records at the start, by name.
    """

    def __init__(self, backend: Backend, prefix: str, values: dict[str, str]) -> None:
        self.backend = backend
        self.prefix = f"{prefix}/".encode()
        self.backend.commit(Commit(puts={self.key(name): value.encode() for name, value in values.items()}))
        self._history = History()
        self._orders: dict[str, list[str]] = {}
        self._ids: dict[tuple[str, int], str] = {}  # by name and the database's version: the version in the history
        found = self.backend.get_many([self.key(name) for name in values])
        for name in values:
            self._ids[name, found[self.key(name)].version] = _START

    def key(self, name: str) -> bytes:
        return self.prefix + name.encode()

    def begin(self, who: str) -> Session:
        """Begin a transaction."""
        self._history = self._history.invoke(who, "transaction")
        return Session(self, who, Transaction(self.backend))

    def note(self, who: str, action: Read | Write) -> None:
        self._history = self._history.add_notes(who, action)

    def present(self, name: str) -> str:
        """Return the version of a record, or of its absence, that was installed last."""
        return self._orders.get(name, [_START])[-1]

    def version_of(self, name: str, version: int) -> str:
        """Return the version in the history for a version of the database; an absence is the present one."""
        return self._ids[name, version] if version else self.present(name)

    def end(self, session: Session, took_effect: bool) -> None:
        """End a transaction, and note the versions that it installed."""
        self._history = self._history.end(session.who, Outcome.OK if took_effect else Outcome.FAILED)
        found = self.backend.get_many([self.key(name) for name in session.wrote])
        for name, value in session.wrote.items():
            identity = f"{session.who}:{name}:{value}"
            record = found.get(self.key(name))
            if record is not None and record.value.decode() == value:
                self._ids.setdefault((name, record.version), identity)
            if took_effect:
                self._orders.setdefault(name, [_START]).append(identity)
        if took_effect and session.range_changed:
            self._orders.setdefault(_GUARD, [_START]).append(f"{session.who}:range")

    def anomalies(self) -> list[str]:
        """Return the names of the anomalies of the history so far."""
        operations = self._history.operations
        names = {action.key for one in operations for action in one.notes if isinstance(action, Read | Write)}
        versions = {name: Versions(tuple(self._orders.get(name, [_START]))) for name in names}
        return [one.name for one in find_anomalies(transactions_of(operations), versions)]

    def value(self, name: str) -> str | None:
        """Return what a record is now."""
        record = self.backend.get_many([self.key(name)]).get(self.key(name))
        return None if record is None else record.value.decode()
