"""Run random operations, with clients that die, and compare the namespace with a model after each; fsck is content.

Two clients with hints of their own take turns, so that each works with what the other has changed behind its back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from holdfast.errors import HoldfastError
from holdfast.namespace.errors import LeaseLostError
from holdfast.namespace.file_writer import FileWriter
from holdfast.namespace.fsck.survey import CLOSING_S
from holdfast.namespace.inode import Inode, decode_inode
from holdfast.namespace.keys import ROOT_KEY, inode_key, usage_key
from holdfast.namespace.other_records import HARD_LIMIT_MS, SOFT_LIMIT_MS
from tests.namespace_world import HookedDatabase, World
from tests.property.namespace_model import Directory, File, Model, ModelWriter, RefusedError, split

_NAMES = ["a", "b", "c"]
clients = st.sampled_from([0, 1])
Spot = tuple[int, str]
spots = st.tuples(st.integers(0, 30), st.sampled_from(["", "", "a", "b", "c", "a/b"]))
"""Something that exists, or an entry below it: a path needs the present state, see `NamespaceMachine.path`."""
contents = st.sampled_from([b"", b"12", b"1234", b"123456", b"1234567890"])
limits = st.one_of(st.none(), st.integers(1, 12))
spaces = st.one_of(st.none(), st.integers(1, 60))


class _DeadError(BaseException):
    """The process of a client ends."""


def _refusal(model: Callable[[], object]) -> type[Exception] | None:
    """Do an operation of the model; return the class of the error that the namespace must raise."""
    try:
        model()
    except RefusedError as refused:
        return refused.kind
    return None


@dataclass
class _Slot:
    """A writer of the namespace, and that of the model."""

    real: FileWriter
    model: ModelWriter


class NamespaceMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World(safety_age_s=3600)
        self.clients = [self.world.client(), self.world.client()]
        self.model = Model(self._now_ms())
        self.slots: list[_Slot] = []
        self.turn = 0

    def _now_ms(self) -> int:
        return int(self.world.clock.now_s() * 1000)

    def path(self, spot: Spot) -> str:
        """Return the path of a spot."""
        existing = ["/", *sorted(path for path, _ in self.model.walk())]
        number, below = spot
        return (existing[number % len(existing)].rstrip("/") + "/" + below).rstrip("/") or "/"

    def _compare(self, real: Callable[[], object], model: Callable[[], object]) -> object:
        """Do the same to both; the results, or the classes of the errors, must agree."""
        self.model.now_ms = self._now_ms()
        try:
            expected = model()
        except RefusedError as refused:
            with pytest.raises(refused.kind):
                real()
            self._note_what_was_reclaimed()
            return refused
        found = real()
        self._note_what_was_reclaimed()
        return (found, expected)

    def _note_what_was_reclaimed(self) -> None:
        """An operation that needs room collects deleted trees, so they are not counted anymore."""
        for path, node in [("/", self.model.root), *self.model.walk()]:
            if isinstance(node, Directory) and node.has_quota:
                names, space = self._counters(path)
                used = self.model.used(node)
                left = (node.pending[0] + names - used[0], node.pending[1] + space - used[1])
                assert 0 <= left[0] <= node.pending[0] and 0 <= left[1] <= node.pending[1], (path, left)
                node.pending = left

    def _same(self, real: Callable[[], object], model: Callable[[], object]) -> None:
        result = self._compare(real, model)
        if isinstance(result, tuple):
            assert result[0] == result[1]

    @initialize(names=limits, space=st.integers(20, 60))
    def plant_a_tree(self, names: int | None, space: int) -> None:
        """Begin with something to work on, under a quota."""
        for path in ("/a/b", "/c"):
            self.clients[0].mkdirs(path)
            self.model.mkdirs(path, parents=True)
        for path in ("/a/x", "/a/b/a", "/a/b/b"):
            self.clients[0].write_file(path, b"123456")
            self.model.write_file(path, b"123456", overwrite=False, replication=1)
        self.clients[0].set_quota("/a", names=names, space=space)
        self.model.set_quota("/a", names, space)

    # --- operations ---------------------------------------------------------------------------------------------------
    @rule(client=clients, spot=spots, parents=st.booleans())
    def mkdirs(self, client: int, spot: Spot, parents: bool) -> None:
        path = self.path(spot)
        namespace = self.clients[client]
        self._same(lambda: namespace.mkdirs(path, parents=parents), lambda: self.model.mkdirs(path, parents=parents))

    @rule(client=clients, spot=spots, content=contents, overwrite=st.booleans(), replication=st.integers(1, 2))
    def write_file(self, client: int, spot: Spot, content: bytes, overwrite: bool, replication: int) -> None:
        path = self.path(spot)

        def real() -> None:
            with self.clients[client].create(path, overwrite=overwrite, replication=replication) as file:
                file.write(content)

        self._same(real, lambda: self.model.write_file(path, content, overwrite=overwrite, replication=replication))

    @rule(client=clients, spot=spots, overwrite=st.booleans())
    def create_with_lease(self, client: int, spot: Spot, overwrite: bool) -> None:
        path = self.path(spot)
        self._open(
            lambda: self.clients[client].create_with_lease(path, overwrite=overwrite),
            lambda: self.model.create_with_lease(path, overwrite=overwrite),
        )

    @rule(client=clients, spot=spots)
    def append(self, client: int, spot: Spot) -> None:
        path = self.path(spot)
        self._open(lambda: self.clients[client].append(path), lambda: self.model.append(path))

    def _open(self, real: Callable[[], FileWriter], model: Callable[[], ModelWriter]) -> None:
        result = self._compare(real, model)
        if isinstance(result, tuple):
            self.slots.append(_Slot(*result))

    @rule(number=st.integers(0, 5), content=contents, what=st.sampled_from(["write", "sync", "close", "die"]))
    def use_writer(self, number: int, content: bytes, what: str) -> None:
        if not self.slots:
            return
        slot = self.slots[number % len(self.slots)]
        if what == "die":
            self.slots.remove(slot)
            return
        is_in_tree = any(node is slot.model.file for _, node in self.model.walk())
        if what == "write" and not is_in_tree:
            # Its lease goes when its directory is collected.
            slot.real.discard()
            self.slots.remove(slot)
            return
        calls: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
            "write": (lambda: slot.real.write(content) and None, lambda: self.model.write(slot.model, content)),
            "sync": (slot.real.sync, lambda: self.model.publish(slot.model, closes=False)),
            "close": (lambda: slot.real.close() and None, lambda: self.model.publish(slot.model, closes=True)),
        }
        result = self._compare(*calls[what])
        is_lost = isinstance(result, RefusedError) and issubclass(result.kind, LeaseLostError)
        if is_lost or (what == "close" and isinstance(result, tuple)):
            slot.real.discard()
            self.slots.remove(slot)

    @rule(client=clients, spot=spots)
    def recover_lease(self, client: int, spot: Spot) -> None:
        path = self.path(spot)
        self._same(lambda: self.clients[client].recover_lease(path), lambda: self.model.recover_lease(path))

    @rule(client=clients, spot=spots, length=st.integers(0, 12))
    def truncate(self, client: int, spot: Spot, length: int) -> None:
        path = self.path(spot)
        self._same(lambda: self.clients[client].truncate(path, length), lambda: self.model.truncate(path, length))

    @rule(client=clients, spot=spots, sources=st.lists(st.sampled_from(_NAMES), max_size=2), other=spots)
    def concat(self, client: int, spot: Spot, sources: list[str], other: Spot) -> None:
        into = self.path(spot)
        directory = into.rpartition("/")[0]
        given = [f"{directory}/{name}" for name in sources] or [self.path(other)]
        self._same(lambda: self.clients[client].concat(into, given), lambda: self.model.concat(into, given))

    @rule(client=clients, spot=spots, replication=st.integers(1, 3))
    def set_replication(self, client: int, spot: Spot, replication: int) -> None:
        path = self.path(spot)
        self._same(
            lambda: self.clients[client].set_replication(path, replication),
            lambda: self.model.set_replication(path, replication),
        )

    @rule(client=clients, spot=spots, names=limits, space=spaces)
    def set_quota(self, client: int, spot: Spot, names: int | None, space: int | None) -> None:
        path = self.path(spot)
        self._same(
            lambda: self.clients[client].set_quota(path, names=names, space=space),
            lambda: self.model.set_quota(path, names, space),
        )

    @rule(client=clients, old=spots, new=spots, overwrite=st.booleans())
    def rename(self, client: int, old: Spot, new: Spot, overwrite: bool) -> None:
        source, goal = self.path(old), self.path(new)
        self._same(
            lambda: self.clients[client].rename(source, goal, overwrite=overwrite),
            lambda: self.model.rename(source, goal, overwrite=overwrite),
        )

    @rule(client=clients, old=spots, new=spots)
    def rename_into(self, client: int, old: Spot, new: Spot) -> None:
        source, goal = self.path(old), self.path(new)
        self._same(lambda: self.clients[client].rename_into(source, goal), lambda: self.model.rename_into(source, goal))

    @rule(client=clients, spot=spots, recursive=st.booleans())
    def delete(self, client: int, spot: Spot, recursive: bool) -> None:
        path = self.path(spot)
        self._same(
            lambda: self.clients[client].delete(path, recursive=recursive),
            lambda: self.model.delete(path, recursive=recursive),
        )

    # --- clients that die ---------------------------------------------------------------------------------------------
    @rule(spot=spots, goal_spot=spots, before=st.integers(1, 3), what=st.sampled_from(["quota", "rename", "file"]))
    def die(self, spot: Spot, goal_spot: Spot, before: int, what: str) -> None:
        """A client dies before one of its commits; it may leave a frozen tree, or a blob."""
        path, goal = self.path(spot), self.path(goal_spot)
        commits = 0

        def end(call: str, argument: object) -> None:
            nonlocal commits
            commits += call.startswith("commit")
            if commits >= before:
                raise _DeadError

        namespace = self.world.client(database=HookedDatabase(self.world.database, end))
        works: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
            "quota": (
                lambda: namespace.set_quota(path, names=8),
                lambda: self.model.set_quota(path, 8, None),
            ),
            "rename": (
                lambda: namespace.rename(path, goal),
                lambda: self.model.rename(path, goal, overwrite=False),
            ),
            "file": (
                lambda: namespace.write_file(path, b"1234567890"),
                lambda: self.model.write_file(path, b"1234567890", overwrite=False, replication=1),
            ),
        }
        real, model = works[what]
        self.model.now_ms = self._now_ms()
        found = None
        is_dead = False
        try:
            real()
        except _DeadError:
            is_dead = True
            node = self.model.find(path)
            if isinstance(node, Directory):
                node.frozen_until_ms = self._inode(path).moving_until_ms
        except HoldfastError as error:
            found = type(error)
        if not is_dead:
            expected = _refusal(model)
            assert found is expected or (found and expected and issubclass(found, expected))
        self._note_what_was_reclaimed()

    # --- background ---------------------------------------------------------------------------------------------------
    @rule(client=clients)
    def collect(self, client: int) -> None:
        self.model.now_ms = self._now_ms()
        self.clients[client].collect()
        self.model.collect()

    @rule(client=clients, steps=st.integers(1, 3))
    def collect_a_little(self, client: int, steps: int) -> None:
        """The collector dies after a few steps; what it has not done still counts for the quotas."""
        self.model.now_ms = self._now_ms()
        self.clients[client].collect(most_steps=steps)
        self._note_what_was_reclaimed()
        for path, node in [("/", self.model.root), *self.model.walk()]:
            if isinstance(node, File) and node.writer is not None and not self._inode(path).writer:
                assert self.model.now_ms - node.heard_ms > HARD_LIMIT_MS
                node.writer = None

    @rule(client=clients)
    def sweep(self, client: int) -> None:
        self.clients[client].sweep()

    @rule(
        seconds=st.sampled_from([1, SOFT_LIMIT_MS // 2000, SOFT_LIMIT_MS // 1000 + 1, 601, HARD_LIMIT_MS // 1000 + 1])
    )
    def wait(self, seconds: int) -> None:
        self.world.clock.at_s += seconds

    # --- what must hold after each step -------------------------------------------------------------------------------
    @invariant()
    def the_tree_is_that_of_the_model(self) -> None:
        self.turn += 1
        namespace = self.clients[self.turn % 2]
        found = {entry.path: entry for entry in namespace.walk("/")}
        expected = dict(self.model.walk())
        assert found.keys() == expected.keys()
        for path, node in expected.items():
            entry = found[path]
            assert entry.is_directory is isinstance(node, Directory), path
            if isinstance(node, File):
                assert namespace.open(path).read() == node.content, path
                assert (entry.size, entry.replication, entry.is_open) == (
                    len(node.content),
                    node.replication,
                    node.writer is not None,
                ), path

    @invariant()
    def quotas_count_what_they_should(self) -> None:
        for path, node in [("/", self.model.root), *self.model.walk()]:
            if isinstance(node, Directory) and node.has_quota:
                assert self._counters(path) == self.model.used(node), path

    @invariant()
    def the_namespace_is_whole(self) -> None:
        report = self.clients[0].check()
        assert report.is_healthy, report

    def teardown(self) -> None:
        """When all is over, and collected, nothing is left behind."""
        for slot in self.slots:
            slot.real.discard()
        for namespace in self.clients:
            namespace.flush()
        self.world.clock.at_s += HARD_LIMIT_MS / 1000 + 3600 + CLOSING_S
        namespace = self.world.client()
        namespace.collect()
        namespace.sweep()
        self.world.clock.at_s += 3601
        namespace.collect()
        report = namespace.repair()
        assert report.repaired == []
        assert {kind.name for kind in report.report.totals} <= {"expired-mark"}
        assert report.report.counts.deleted_trees == report.report.counts.garbage == 0
        assert report.report.counts.leases == report.report.counts.in_progress == 0

    # --- records ------------------------------------------------------------------------------------------------------
    def _inode(self, path: str) -> Inode:
        key = ROOT_KEY
        records = self.world.records(b"i")
        for name in split(path):
            key = inode_key(decode_inode(key, records[key].value).id, name.encode())
        return decode_inode(key, records[key].value)

    def _counters(self, path: str) -> tuple[int, int]:
        number = self._inode(path).quota_id
        records = self.world.records(b"u")
        names, space = (records.get(usage_key(number, what)) for what in (b"n", b"s"))
        return (0 if names is None else names.number), (0 if space is None else space.number)


class TestModel(NamespaceMachine.TestCase):  # type: ignore[name-defined,misc]  # made by Hypothesis
    """A few short histories."""

    settings = settings(max_examples=20, stateful_step_count=25, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.slow
class TestModelLong(NamespaceMachine.TestCase):  # type: ignore[name-defined,misc]  # made by Hypothesis
    """Many long histories."""

    settings = settings(max_examples=500, stateful_step_count=60, suppress_health_check=list(HealthCheck))
