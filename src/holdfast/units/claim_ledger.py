"""Keep the claim of a worker: the ledger of units from a work list."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from holdfast.errors import FencedError
from holdfast.transactions.base import ABSENT, Backend
from holdfast.units.claims import Claim, decode_claim, encode_claim
from holdfast.units.execution import Change
from holdfast.units.progress import LIST_DROPPED
from holdfast.units.unit import Unit
from holdfast.units.unit_loop import Standing
from holdfast.units.work_list import Item, WorkList


class ClaimLedger:
    """A claim, as its worker sees it. With its last item, the record of the claim goes.

    Args:
        counter: the record with the number of units that the worker has done.
    """

    def __init__(self, database: Backend, work: WorkList, key: bytes, counter: bytes) -> None:
        self._database = database
        self._work = work
        self._key = key
        self._counter = counter
        self._claim: Claim
        self._left: dict[bytes, Item]  # by the last `change`

    @property
    def keys(self) -> Collection[bytes]:
        """The record of the claim, and the definition of the list."""
        return self._key, self._work.definition_key

    def begin(self, claim: Claim) -> list[Unit]:
        """Take over a new claim; return its units."""
        self._claim = claim
        return [Unit.of(one.key, one.value, one.place) for one in claim.items.values()]

    def change(self, done: Sequence[Unit], put_off: Collection[bytes]) -> Change:
        """Return what takes units out of the claim."""
        ended = {unit.id for unit in done}
        left = {place: item for place, item in self._claim.items.items() if place not in ended}
        self._left = left
        return Change(
            reads={self._key: self._claim.version, self._work.definition_key: self._work.version},
            puts={self._key: encode_claim(left.values())} if left else {},
            deletes=() if left else (self._key,),
            adds={self._counter: len(done)},
        )

    def committed(self, version: int) -> None:
        """Note that the commit with the last change took effect."""
        self._claim = Claim(self._key, version, self._left)

    def load(self) -> None:
        """Read the claim again: perhaps others have dissolved it.

        Raises:
            FencedError: the list was dropped.
        """
        found = self._database.get_many([self._key, self._work.definition_key])
        definition = found.get(self._work.definition_key)
        if definition is None or definition.version != self._work.version:
            raise FencedError(LIST_DROPPED, list=self._work.name)
        record = found.get(self._key)
        self._claim = Claim(self._key, ABSENT, {}) if record is None else decode_claim(self._key, record)

    def standing(self, unit: Unit) -> Standing:
        """Return how a unit stands: to do as long as it is in the claim."""
        return Standing.TO_DO if unit.id in self._claim.items else Standing.DONE
