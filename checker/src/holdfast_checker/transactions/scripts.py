"""Run scripted transactions on the shipped code, and define their sequential meaning, for serializability checks.

A script is a tuple of steps, and a step is a tuple: its kind, then its arguments. What a step does may depend on what
the transaction has read, so playing a script yields plain steps (such as "get" and "put"), and what the reads saw.
`apply_to_model` is the sequential meaning of plain steps: what one transaction alone does to a dictionary. Both decide
whether a history is strictly serializable: the whole database is one object, and each transaction is one operation on
it (`holdfast_checker.histories.linearizable`). This includes blind writes, deletes, adds, absent records and ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from holdfast.errors import InvalidRequestError
from holdfast.transactions.base import INTEGER, Record
from holdfast.transactions.transaction import Transaction
from holdfast_checker.histories.history import Operation

Step: TypeAlias = tuple[Any, ...]
Script: TypeAlias = Sequence[Step]

Content: TypeAlias = tuple[str, int]
"""The value and the number of a record."""

Contents: TypeAlias = tuple[tuple[str, Content], ...]
"""All records in the order of their keys."""

FAILED: Step = ("failed",)
"""The last step of a recorded transaction whose function raised an error, so that only its reads count."""

EVERYTHING: Step = ("everything",)
"""A step that reads all records of the database."""


def guard_key(name: str) -> str:
    """Return the key of the guard record of a name, which protects scans of its directory from inserts.

    Writers of the name and scans both access it. Each directory has its own; names without a directory share one."""
    directory, slash, _rest = name.partition("/")
    return f"guard of {directory}" if slash else "guard"


class InconsistentReadError(Exception):
    """Raised if a script reads different values of two records that are equal in every committed state."""


@dataclass(slots=True)
class ScriptLog:
    """A log of the steps that a script has run so far, and of the values that its reads returned.

    Attributes:
        steps: plain steps (such as "get" and "put"), in order.
        saw: the results of the reads among them, in order.
    """

    steps: list[Step] = field(default_factory=list)
    saw: list[object] = field(default_factory=list)

    def add_step(self, *step: object) -> None:
        self.steps.append(step)


class _TransactionScriptInterpreter:
    """Runs the steps of a script on a transaction."""

    def __init__(self, transaction: Transaction, played: ScriptLog, prefix: str, looks: bool) -> None:
        self.transaction = transaction
        self.played = played
        self._prefix = prefix
        self._looks = looks

    def key(self, name: str) -> bytes:
        return (self._prefix + name).encode()

    def _read_guard(self, name: str) -> None:
        if self._looks:
            read_guard_record(self.transaction, self.key(guard_key(name)))

    # --- reads --------------------------------------------------------------------------------------------------------
    def get(self, name: str) -> Content | None:
        found = _decode_record(self.transaction.get(self.key(name)))
        self.played.add_step("get", name)
        self.played.saw.append(found)
        return found

    def get_many(self, *names: str) -> None:
        found = self.transaction.get_many([self.key(name) for name in names])
        self.played.add_step("get_many", *names)
        self.played.saw.append(tuple(_decode_record(found.get(self.key(name))) for name in names))

    def scan(self, start: str, end: str, limit: int | None = None) -> Contents:
        page = self.transaction.scan(self.key(start), self.key(end), limit, guard=self.key(guard_key(start)))
        found = tuple((key.decode()[len(self._prefix) :], cast("Content", _decode_record(one))) for key, one in page)
        self.played.add_step("scan", start, end, limit)
        self.played.saw.append(found)
        return found

    def together(self, one: str, other: str) -> None:
        """Read two records, one after the other, that are always written together.

        Raises:
            InconsistentReadError: they differ.
        """
        if self.get(one) != self.get(other):
            raise InconsistentReadError(f"{one} and {other} differ")

    # --- writes -------------------------------------------------------------------------------------------------------
    def put(self, name: str, value: str) -> None:
        self._read_guard(name)
        self.transaction.put(self.key(name), encode_text(value))
        self.played.add_step("put", name, value)

    def insert(self, name: str, value: str) -> None:
        self._read_guard(name)
        try:
            self.transaction.insert(self.key(name), encode_text(value))
        except InvalidRequestError:
            return  # the transaction has seen or written the record
        self.played.add_step("insert", name, value)

    def delete(self, name: str) -> None:
        self.transaction.delete(self.key(name))
        self.played.add_step("delete", name)

    def add(self, name: str, delta: int) -> None:
        self._read_guard(name)
        try:
            self.transaction.add(self.key(name), delta)
        except InvalidRequestError:
            return  # the transaction has put or deleted the record
        self.played.add_step("add", name, delta)

    def bounded(self, name: str, delta: int, most: int) -> None:
        """Add to the number of a record, if the result does not exceed a bound."""
        self.add(name, delta)
        self.transaction.require_at_most(self.key(name), most)
        self.played.add_step("at_most", name, most)

    # --- writes that depend on reads ----------------------------------------------------------------------------------
    def append(self, name: str, mark: str) -> None:
        """Append `mark` to the text of a record."""
        found = self.get(name)
        self.put(name, (found[0] if found else "") + mark)

    def create(self, name: str, value: str) -> None:
        """Insert a record if it does not exist."""
        if self.get(name) is None:
            self.insert(name, value)

    def remove(self, name: str) -> None:
        """Delete a record if it exists."""
        if self.get(name) is not None:
            self.delete(name)

    def count(self, start: str, end: str, name: str) -> None:
        """Count the records in a range, and write the number to a record."""
        self.put(name, str(len(self.scan(start, end))))

    def claim(self, start: str, end: str, name: str) -> None:
        """Insert a record if a range is empty."""
        if not self.scan(start, end):
            self.insert(name, "")

    def remove_empty(self, start: str, end: str, name: str) -> None:
        """Delete a record if a range is empty, like a directory without files."""
        if self.get(name) is not None and not self.scan(start, end):
            self.delete(name)

    def create_below(self, name: str, new: str) -> None:
        """Insert a record if another one exists, like a file in a directory."""
        if self.get(name) is not None:
            self.insert(new, "")

    def swap_off(self, own: str, other: str) -> None:
        """Turn a record off if another one is on, so that one always stays on."""
        if self.get(other) == ("on", 0):
            self.put(own, "off")


def read_guard_record(transaction: Transaction, guard: bytes) -> None:
    """Read the record that protects scans of a range, as every transaction must before it creates a record there."""
    transaction.get(guard)


def run_script(
    transaction: Transaction,
    script: Script,
    played: ScriptLog,
    *,
    prefix: str = "",
    looks: bool = True,
    pause: Callable[[], object] = lambda: None,
) -> None:
    """Run the steps of a script on a transaction of the shipped code.

    A step ("unless", key) ends the script if the record exists. The other steps are calls of methods of
    `_TransactionScriptInterpreter`.

    Args:
        played: records the plain steps, also if one of them fails.
        prefix: prepended to the names in the script to get keys.
        looks: whether the transaction reads the guard record of a range before it creates records there; needed if any
            transaction counts ranges.
        pause: called after each step.

    Raises:
        InconsistentReadError: two records that are always written together differ.
    """
    interpreter = _TransactionScriptInterpreter(transaction, played, prefix, looks)
    for kind, *arguments in script:
        if kind == "unless":
            if interpreter.get(*arguments) is not None:
                return
        else:
            getattr(interpreter, kind)(*arguments)
        pause()


def encode_text(value: str) -> bytes:
    """Encode the text of a script's value as the bytes of an integer, so that `add` works on every record."""
    return INTEGER + value.encode()


def decode_text(value: bytes) -> str:
    """Decode the bytes of a record to the text of its value: the inverse of `encode_text`."""
    return value.removeprefix(INTEGER).decode()


def _decode_record(record: Record | None) -> Content | None:
    return None if record is None else (decode_text(record.value), record.number)


# --- the meaning ------------------------------------------------------------------------------------------------------
def apply_to_model(state: Hashable, operation: Operation) -> tuple[Hashable, object]:
    """Apply a transaction to the contents of the sequential model; return the new contents, and the answer.

    Args:
        operation: its arguments are the plain steps of the transaction.

    The answer is ``("refused",)`` if a condition does not hold; else ``("saw", …)`` with the results of the reads.
    """
    before = dict(cast("Contents", state))
    records = dict(before)
    saw: list[object] = []
    for kind, *arguments in cast("Script", operation.args):
        if kind == "failed":
            records = before
        elif kind in _READS:
            saw.append(_READS[kind](records, *arguments))
        elif not _WRITES[kind](records, *arguments):
            return state, ("refused",)
    return tuple(sorted(records.items())), ("saw", tuple(saw))


_Records = dict[str, Content]


def _put_in_model(records: _Records, name: str, value: str) -> bool:
    records[name] = (value, 0)
    return True


def _insert_in_model(records: _Records, name: str, value: str) -> bool:
    return name not in records and _put_in_model(records, name, value)


def _delete_in_model(records: _Records, name: str) -> bool:
    records.pop(name, None)
    return True


def _add_in_model(records: _Records, name: str, delta: int) -> bool:
    value, number = records.get(name, ("", 0))
    records[name] = (value, number + delta)
    return True


def _check_limit_in_model(records: _Records, name: str, most: int) -> bool:
    return records[name][1] <= most


def _scan_in_model(records: _Records, start: str, end: str, limit: int | None) -> Contents:
    return tuple((name, records[name]) for name in sorted(records) if start <= name < end)[:limit]


_READS: dict[str, Callable[..., object]] = {
    "get": lambda records, name: records.get(name),
    "get_many": lambda records, *names: tuple(map(records.get, names)),
    "scan": _scan_in_model,
    "everything": lambda records: tuple(sorted(records.items())),
}
_WRITES: dict[str, Callable[..., bool]] = {
    "put": _put_in_model,
    "insert": _insert_in_model,
    "delete": _delete_in_model,
    "add": _add_in_model,
    "at_most": _check_limit_in_model,
}
