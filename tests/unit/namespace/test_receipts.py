"""Requests of a server's clients that come again have one effect (N6), whatever happens between two arrivals."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from holdfast.errors import HoldfastError, OutcomeUnknownError
from holdfast.namespace import Namespace
from holdfast.namespace.errors import DirectoryFrozenError, RepeatUnclearError
from holdfast.namespace.keys import answers_key, receipt_key
from holdfast.namespace.operation import RequestAbandonedError
from holdfast.namespace.receipts import (
    KEPT_MS,
    LONGEST_REPEAT_MS,
    AnswerBook,
    ClientRequest,
    Receipt,
    RequestRepeatedError,
    delete_old_receipts,
    delete_receipts,
)
from holdfast.transactions.base import Commit
from tests.clocks import SimulatedClock
from tests.namespace_world import HookedDatabase, World, all_records


@dataclass
class Server:
    """A process of a server.

    Attributes:
        known: what it knows of its answers, by their numbers.
    """

    world: World
    name: str
    database: HookedDatabase | None = None
    known: dict[int, bool | None] = field(default_factory=dict)
    last: int = 0

    def __post_init__(self) -> None:
        self.namespace = self.world.client(database=self.database)

    def request(
        self,
        path: str,
        *,
        asked: str = "it",
        client: str = "ann",
        has_id: bool = False,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> ClientRequest:
        """Return an arrival of a request."""
        self.last += 1
        key = receipt_key(client, path, asked)
        return ClientRequest(key, self.name, self.last, has_id, is_wanted, self.known.get)

    def receive(
        self,
        change: Callable[[Namespace], object],
        path: str = "/x",
        *,
        asked: str = "it",
        client: str = "ann",
        has_id: bool = False,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> str:
        """Carry out a change for a client; return whether it was new, was recognized as a repeat, or may be either."""
        request = self.request(path, asked=asked, client=client, has_id=has_id, is_wanted=is_wanted)
        try:
            change(self.namespace.for_request(request))
        except RequestRepeatedError:
            return "repeated"
        except RepeatUnclearError:
            return "unclear"
        return "new"

    def publish(self, **known: object) -> None:
        """Publish what this process knows of its answers."""
        book = AnswerBook(int(self.world.clock.now_s() * 1000), **known)  # type: ignore[arg-type]  # each fits its field
        self.world.database.commit(Commit(puts={answers_key(self.name): book.encode()}))


@pytest.fixture
def world() -> World:
    world = World(clock=SimulatedClock())  # type: ignore[arg-type]  # time passes where somebody waits
    client = world.client()
    client.mkdirs("/d/e")
    for name in ("f", "g", "h"):
        client.write_file(f"/d/{name}", b"content of a file")
    client.set_xattr("/d/f", "user.a", b"1")
    client.set_quota("/d", names=100)
    client.flush()
    return world


def _without_receipts(world: World) -> dict[bytes, tuple[bytes, int]]:
    found = all_records(world.database).items()
    return {key: (record.value, record.number) for key, record in found if key[:1] not in b"qx"}


def _append(namespace: Namespace) -> None:
    with namespace.append("/d/f") as file:
        file.write(b"more")


def _create(namespace: Namespace) -> None:
    with namespace.create("/x/new", overwrite=True) as file:
        file.write(b"new")


CHANGES: dict[str, Callable[[Namespace], object]] = {
    "mkdirs": lambda namespace: namespace.mkdirs("/x/y"),
    "create": _create,
    "append": _append,
    "delete a file": lambda namespace: namespace.delete("/d/f"),
    "delete a tree": lambda namespace: namespace.delete("/d", recursive=True),
    "rename": lambda namespace: namespace.rename("/d/f", "/d/z"),
    "rename over": lambda namespace: namespace.rename("/d/f", "/d/g", overwrite=True),
    "rename between quotas": lambda namespace: namespace.rename("/d/e", "/z"),
    "old rename": lambda namespace: namespace.rename_into("/d/f", "/d/e"),
    "concat": lambda namespace: namespace.concat("/d/f", ["/d/g", "/d/h"]),
    "truncate": lambda namespace: namespace.truncate("/d/f", 3),
    "set permission": lambda namespace: namespace.set_permission("/d/f", 0o600),
    "set owner": lambda namespace: namespace.set_owner("/d/f", "bob"),
    "set times": lambda namespace: namespace.set_times("/d/f", 1, 2),
    "set replication": lambda namespace: namespace.set_replication("/d/f", 3),
    "set quota": lambda namespace: namespace.set_quota("/d/e", names=7),
    "change quota": lambda namespace: namespace.set_quota("/d", names=50),
    "set xattr": lambda namespace: namespace.set_xattr("/d/f", "user.b", b"2", replace_existing=False),
    "remove xattr": lambda namespace: namespace.remove_xattr("/d/f", "user.a"),
}
every_change = pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())


@every_change
@pytest.mark.parametrize("at", ["the same server", "another server"])
def test_a_request_whose_answer_was_lost_has_one_effect(
    world: World, change: Callable[[Namespace], object], at: str
) -> None:
    first = Server(world, "one")
    second = first if at == "the same server" else Server(world, "two")
    has_id = change in (CHANGES["create"], CHANGES["append"])
    assert first.receive(change, has_id=has_id) == "new"
    first.known[1] = False
    first.publish(through=1, lost=[1])
    before = _without_receipts(world)
    for _ in range(3):
        assert second.receive(change, has_id=has_id) == "repeated"
        second.known[second.last] = False
        second.publish(through=second.last, lost=list(second.known))
    assert _without_receipts(world) == before
    assert world.client().check().is_healthy


@every_change
def test_a_request_that_comes_again_after_its_answer_is_a_new_one(
    world: World, change: Callable[[Namespace], object]
) -> None:
    first = Server(world, "one")
    first.receive(change)
    first.known[1] = True
    first.publish(through=1)
    for server in (first, Server(world, "two")):
        with suppress(HoldfastError):  # such as: the source of the rename is gone
            assert server.receive(change) == "new"
        server.known[server.last] = True
        server.publish(through=server.last)


def test_a_server_that_says_nothing_is_waited_for_and_then_taken_for_dead(world: World) -> None:
    Server(world, "one").receive(CHANGES["delete a file"])
    begun_s = world.clock.elapsed_s()
    assert Server(world, "two").receive(CHANGES["delete a file"]) == "repeated"
    assert 3 <= world.clock.elapsed_s() - begun_s < 4


def test_a_server_that_is_waited_for_may_say_that_the_answer_was_delivered(world: World) -> None:
    first = Server(world, "one")
    first.receive(CHANGES["delete a file"])
    second = Server(world, "two")
    waits = []

    def sleep(duration_s: float) -> None:
        waits.append(duration_s)
        first.publish(through=1)

    world.clock.sleep = sleep  # type: ignore[method-assign]  # the test's own
    assert second.receive(CHANGES["delete a file"]) == "new"
    assert len(waits) == 1


def test_an_answer_of_this_process_is_waited_for(world: World) -> None:
    server = Server(world, "one")
    server.receive(CHANGES["delete a file"])
    world.clock.sleep = lambda duration_s: server.known.update({1: True})  # type: ignore[method-assign]  # the test's own
    assert server.receive(CHANGES["delete a file"]) == "new"


@pytest.mark.parametrize(
    ("name", "different"),
    [("client", {"client": "bob"}), ("path", {"path": "/y"}), ("request", {"asked": "something else"})],
)
def test_other_requests_are_no_repeats(world: World, name: str, different: dict[str, str]) -> None:
    server = Server(world, "one")
    server.receive(CHANGES["delete a file"])
    server.known[1] = False
    given = {"path": "/x", "asked": "it", "client": "ann"} | different
    assert server.receive(CHANGES["delete a file"], **given) == "new"  # type: ignore[arg-type]  # each fits its field


def test_one_of_two_arrivals_gets_the_answer_that_is_owed(world: World) -> None:
    """There are never more answers of success than effects: the other one finds nothing to delete."""
    Server(world, "dead").receive(CHANGES["delete a file"])
    first, second = Server(world, "one"), Server(world, "two")
    assert first.receive(CHANGES["delete a file"]) == "repeated"
    first.publish(through=1)
    seen = []
    assert second.receive(lambda namespace: seen.append(namespace.delete("/d/f"))) == "new"
    assert seen == [False]


def test_of_two_who_take_an_owed_answer_at_the_same_time_one_waits_for_the_other(world: World) -> None:
    dead = Server(world, "dead")
    dead.receive(CHANGES["delete a file"])
    dead.publish(through=1, lost=[1])
    second = Server(world, "two")

    def let_the_other_go_first(call: str, argument: object) -> None:
        if call == "commit" and not second.last:
            assert second.receive(CHANGES["delete a file"]) == "repeated"
            second.publish(through=1)

    first = Server(world, "one", HookedDatabase(world.database, let_the_other_go_first))
    seen = []
    assert first.receive(lambda namespace: seen.append(namespace.delete("/d/f"))) == "new"
    assert seen == [False]


def test_that_an_answer_was_delivered_says_nothing_of_one_that_has_replaced_it(world: World) -> None:
    first, third = Server(world, "one"), Server(world, "three")
    first.receive(CHANGES["mkdirs"])
    first.publish(through=1)

    def be_faster(call: str, argument: object) -> None:
        if call == "get_many" and argument == [answers_key("one")]:
            world.client().delete("/x", recursive=True)
            assert third.receive(CHANGES["mkdirs"]) == "new"
            third.publish(through=1, lost=[1])

    second = Server(world, "two", HookedDatabase(world.database, be_faster))
    assert second.receive(CHANGES["mkdirs"]) == "repeated"


# --- what has changed since the first arrival -------------------------------------------------------------------------
UNDOING: dict[str, Callable[[Namespace], object]] = {
    "mkdirs": lambda namespace: namespace.delete("/x", recursive=True),
    "create": lambda namespace: namespace.delete("/x", recursive=True),
    "delete a file": lambda namespace: namespace.write_file("/d/f", b"another"),
    "delete a tree": lambda namespace: namespace.mkdirs("/d"),
    "rename": lambda namespace: namespace.rename("/d/z", "/d/f"),
    "rename over": lambda namespace: namespace.rename("/d/g", "/d/f"),
    "rename between quotas": lambda namespace: namespace.rename("/z", "/d/e"),
    "old rename": lambda namespace: namespace.rename("/d/e/f", "/d/f"),
    "truncate": lambda namespace: namespace.write_file("/d/f", b"another", overwrite=True),
    "set permission": lambda namespace: namespace.set_permission("/d/f", 0o777),
    "set owner": lambda namespace: namespace.set_owner("/d/f", "carl"),
    "set times": lambda namespace: namespace.set_times("/d/f", 3, 4),
    "set replication": lambda namespace: namespace.set_replication("/d/f", 2),
    "set quota": lambda namespace: namespace.set_quota("/d/e"),
    "set xattr": lambda namespace: namespace.remove_xattr("/d/f", "user.b"),
    "remove xattr": lambda namespace: namespace.set_xattr("/d/f", "user.a", b"2"),
}


@pytest.mark.parametrize("name", UNDOING)
def test_what_was_undone_is_neither_done_again_nor_said_to_be_done(world: World, name: str) -> None:
    """Defect: a repeat deleted what others had written since, or was told that what others had undone is done."""
    first, second = Server(world, "one"), Server(world, "two")
    assert first.receive(CHANGES[name]) == "new"
    first.publish(through=1, lost=[1])
    UNDOING[name](world.client())
    before = _without_receipts(world)
    assert second.receive(CHANGES[name]) == "unclear"
    assert _without_receipts(world) == before
    second.known[1] = False  # the refusal was lost
    assert second.receive(CHANGES[name]) == "unclear"
    assert _without_receipts(world) == before
    second.known[2] = True
    assert second.receive(CHANGES[name]) == "new"
    assert _without_receipts(world) != before


@pytest.mark.parametrize(
    ("change", "undo"),
    [
        (lambda one: one.rename("/d/f", "/d/z"), lambda one: one.write_file("/d/f", b"another")),
        (lambda one: one.rename_into("/d/f", "/d/z"), lambda one: one.write_file("/d/f", b"another")),
        (lambda one: one.mkdirs("/d/n"), lambda one: [one.delete("/d/n"), one.write_file("/d/n", b"a file")]),
        (lambda one: one.delete("/d/e"), lambda one: one.mkdirs("/d/e/x")),
        (CHANGES["set xattr"], lambda one: one.set_xattr("/d/f", "user.b", b"another")),
    ],
    ids=["rename", "old rename", "mkdirs", "delete", "xattr"],
)
def test_what_is_impossible_now_is_not_said_to_be_done(
    world: World, change: Callable[[Namespace], object], undo: Callable[[Namespace], object]
) -> None:
    """Defect: an error of the operation counted as nothing to do, although the opposite was there."""
    first = Server(world, "one")
    assert first.receive(change) == "new"
    first.publish(through=1, lost=[1])
    undo(world.client())
    before = _without_receipts(world)
    assert Server(world, "two").receive(change) == "unclear"
    assert _without_receipts(world) == before


def test_the_time_of_a_directory_is_set_once(world: World) -> None:
    """Defect: its repeat was refused, although nobody had changed anything."""
    first = Server(world, "one")
    for time_ms in (1, 2):
        assert first.receive(lambda one, time_ms=time_ms: one.set_times("/d", time_ms, 2), asked=str(time_ms)) == "new"
    first.publish(through=2, lost=[2])
    assert Server(world, "two").receive(lambda one: one.set_times("/d", 2, 2), asked="2") == "repeated"


@pytest.mark.parametrize("name", ["mkdirs", "create", "append", "delete a tree"])
def test_a_request_with_an_id_is_a_repeat_whatever_was_undone(world: World, name: str) -> None:
    first, second = Server(world, "one"), Server(world, "two")
    assert first.receive(CHANGES[name], has_id=True) == "new"
    first.publish(through=1, lost=[1])
    UNDOING.get(name, lambda namespace: None)(world.client())
    before = _without_receipts(world)
    for _ in range(2):
        assert second.receive(CHANGES[name], has_id=True) == "repeated"
        second.known[second.last] = False
    assert _without_receipts(world) == before
    second.known[second.last] = True
    assert second.receive(CHANGES[name], has_id=True) == "new", "some clients send all pieces of a file so"


def test_a_change_by_another_program_of_the_client_does_not_hide_that_an_answer_was_lost(world: World) -> None:
    """Defect: the repeat of a deletion deleted what another program of the same user had written meanwhile."""
    first, second = Server(world, "one"), Server(world, "two")
    first.receive(CHANGES["delete a tree"])
    first.publish(through=1, lost=[1])
    second.receive(lambda namespace: namespace.mkdirs("/d"), asked="mkdirs")
    second.namespace.write_file("/d/data", b"data")
    second.known[1] = True
    assert second.receive(CHANGES["delete a tree"]) == "unclear"
    assert second.namespace.exists("/d/data")


@dataclass
class LateArrival:
    """A change that a server carries out so slowly that its client gives it up, repeats it elsewhere, and goes on.

    Attributes:
        change: its name in `CHANGES`.
        undo: what the client does then.
        at: at which of the server's calls of the database all this happens.
        is_over: whether it has happened.
    """

    change: str
    undo: Callable[[Namespace], object]
    at: int
    calls: int = 0
    is_over: bool = False

    def __post_init__(self) -> None:
        self.world = _small_world()

    def run(self) -> None:
        """Let the slow server carry it out."""
        server = Server(self.world, "late", HookedDatabase(self.world.database, self._count))
        self.calls = -100
        server.namespace.find("/d/f")  # it guesses from what it has seen
        self.calls = 0
        with suppress(RequestAbandonedError):
            server.receive(CHANGES[self.change], is_wanted=lambda: not self.is_over)

    def _count(self, call: str, argument: object) -> None:
        self.calls += 1
        if self.calls == self.at + 1:
            other = Server(self.world, "other")
            with suppress(DirectoryFrozenError):  # the late arrival counts the tree: the client has to wait
                other.receive(CHANGES[self.change])  # it is a repeat if the late arrival has taken effect in time
                other.publish(through=1)
                self.undo(self.world.client())
                self.is_over = True


def _small_world() -> World:
    world = World(clock=SimulatedClock())  # type: ignore[arg-type]  # time passes where somebody waits
    client = world.client()
    client.mkdirs("/d/e")
    client.write_file("/d/f", b"content of a file")
    client.set_quota("/d", names=100)
    return world


def _tree(world: World) -> list[tuple[str, int, int]]:
    return [(one.path, one.mode, one.size) for one in world.client().walk("/")]


@pytest.mark.parametrize(
    ("change", "undo"),
    [
        ("mkdirs", lambda namespace: namespace.delete("/x", recursive=True)),
        ("create", lambda namespace: namespace.delete("/x", recursive=True)),
        ("delete a file", lambda namespace: namespace.write_file("/d/f", b"another")),
        ("delete a tree", lambda namespace: namespace.mkdirs("/d")),
        ("rename", lambda namespace: namespace.rename("/d/z", "/d/f")),
        ("rename between quotas", lambda namespace: namespace.rename("/z", "/d/e")),
        ("set permission", lambda namespace: namespace.set_permission("/d/f", 0o644)),
        ("set quota", lambda namespace: namespace.set_quota("/d/e")),
        ("truncate", lambda namespace: namespace.write_file("/d/f", b"another", overwrite=True)),
    ],
)
def test_a_late_arrival_does_not_take_effect(change: str, undo: Callable[[Namespace], object]) -> None:
    """Whatever the server has done by then, the tree is as the client has left it."""
    expected, done = _small_world(), _small_world()
    for world in (expected, done):
        CHANGES[change](world.client())
    undo(expected.client())
    for at in range(100):
        late = LateArrival(change, undo, at)
        late.run()
        if late.calls <= at:
            break
        assert _tree(late.world) == _tree(expected if late.is_over else done), f"call {at}"
    assert 1 <= at < 99


def test_nothing_is_done_for_a_client_that_does_not_wait(world: World) -> None:
    before = all_records(world.database)
    with pytest.raises(RequestAbandonedError):
        Server(world, "one").receive(CHANGES["delete a file"], is_wanted=lambda: False)
    assert all_records(world.database) == before


def test_what_changes_nothing_writes_no_receipt(world: World) -> None:
    server = Server(world, "one")
    server.receive(lambda namespace: namespace.mkdirs("/d"))
    server.receive(lambda namespace: namespace.delete("/nothing"))
    server.receive(lambda namespace: namespace.rename_into("/nothing", "/d"))
    assert not world.records(b"q")


def test_an_upload_that_is_given_up_writes_no_receipt(world: World) -> None:
    server = Server(world, "one")
    for open_file in (lambda one: one.append("/d/f"), lambda one: one.create("/x")):
        file = open_file(server.namespace.for_request(server.request("/x")))
        file.write(b"some")
        file.discard()
    assert not world.records(b"q")
    assert not world.records(b"l")


def test_a_try_whose_outcome_was_unknown_is_recognized_as_ones_own(world: World) -> None:
    lost = [True]

    def lose_the_reply(call: str, argument: object) -> None:
        if call == "commit" and lost.pop() if lost else False:
            assert isinstance(argument, Commit)
            world.database.commit(argument)
            raise OutcomeUnknownError("the connection was lost")

    server = Server(world, "one", HookedDatabase(world.database, lose_the_reply))
    request = server.request("/x")
    with pytest.raises(OutcomeUnknownError):
        server.namespace.for_request(request).delete("/d/f")
    with pytest.raises(RequestRepeatedError):
        server.namespace.for_request(request).delete("/d/f")


def test_a_receipt_counts_for_a_time(world: World) -> None:
    server = Server(world, "one")
    server.receive(CHANGES["set permission"])
    world.clock.sleep(LONGEST_REPEAT_MS / 1000 + 1)
    assert Server(world, "two").receive(CHANGES["set owner"]) == "new"


@pytest.mark.parametrize("value", [b"", b"\xff", b"2 2", b"1 1 1 s it", b"2 a 1 s"])
def test_a_damaged_receipt_counts_as_none_and_is_replaced(world: World, value: bytes) -> None:
    key = receipt_key("ann", "/x", "it")
    world.database.commit(Commit(puts={key: value}))
    server = Server(world, "one")
    assert server.receive(CHANGES["set permission"]) == "new"
    found = Receipt.decode(world.records(b"q")[key].value)
    assert found is not None and found.server == "one"


@pytest.mark.parametrize("value", [b"", b"{}", b"[2, 0, 9, [], []]", b'[1, 0, "x", [], []]', b"\xff"])
def test_a_damaged_book_says_nothing(value: bytes) -> None:
    assert AnswerBook.decode(value) == AnswerBook()


def test_a_book_tells_of_each_answer() -> None:
    book = AnswerBook.decode(AnswerBook(5, through=7, unknown=[3], lost=[4]).encode())
    assert [book.was_delivered(number) for number in (1, 3, 4, 7, 8)] == [True, None, False, True, None]


def test_a_process_deletes_its_own_receipts_only(world: World) -> None:
    first, second = Server(world, "one"), Server(world, "two")
    first.receive(CHANGES["set permission"], "/x")
    first.receive(CHANGES["set owner"], "/y")
    first.publish(through=2, lost=[2])
    assert second.receive(CHANGES["set owner"], "/y") == "repeated"
    keys = {receipt_key("ann", path, "it"): number for number, path in enumerate(("/x", "/y", "/z"), 1)}
    delete_receipts(world.database, "one", keys)
    assert set(world.records(b"q")) == {receipt_key("ann", "/y", "it")}


def test_a_receipt_that_was_replaced_is_not_deleted(world: World) -> None:
    """The newer answer of the same process may still be lost."""
    server = Server(world, "one")
    server.receive(CHANGES["set permission"])
    server.known[1] = True
    server.receive(CHANGES["set owner"])
    delete_receipts(world.database, "one", {receipt_key("ann", "/x", "it"): 1})
    assert set(world.records(b"q")) == {receipt_key("ann", "/x", "it")}
    delete_receipts(world.database, "one", {receipt_key("ann", "/x", "it"): 2})
    assert not world.records(b"q")


def test_an_old_receipt_that_is_replaced_meanwhile_is_not_deleted(world: World) -> None:
    Server(world, "one").receive(CHANGES["set permission"])
    world.clock.sleep(LONGEST_REPEAT_MS / 1000 + 1)

    def replace_it(call: str, argument: object) -> None:
        if call == "commit":
            Server(world, "two").receive(CHANGES["set owner"])

    delete_old_receipts(HookedDatabase(world.database, replace_it), int(world.clock.now_s() * 1000))
    assert Server(world, "three").receive(CHANGES["set owner"]) == "repeated"


def test_old_receipts_and_books_of_the_dead_are_deleted(world: World) -> None:
    Server(world, "dead").receive(CHANGES["set permission"], "/x")
    Server(world, "dead").publish(through=1)
    world.clock.sleep(LONGEST_REPEAT_MS / 1000 + 1)
    Server(world, "live").receive(CHANGES["set owner"], "/y")
    delete_old_receipts(world.database, int(world.clock.now_s() * 1000))
    assert set(world.records(b"q")) == {receipt_key("ann", "/y", "it")}
    assert answers_key("dead") in all_records(world.database), "a receipt may still name it"
    world.clock.sleep(LONGEST_REPEAT_MS / 1000 + 1)
    delete_old_receipts(world.database, int(world.clock.now_s() * 1000))
    assert not world.records(b"q")
    assert answers_key("dead") not in all_records(world.database)


def test_receipts_outlast_late_arrivals() -> None:
    assert KEPT_MS < LONGEST_REPEAT_MS


def test_keys_of_receipts_differ_however_their_parts_are_cut() -> None:
    assert len({receipt_key("a", "bc"), receipt_key("ab", "c"), receipt_key("abc"), receipt_key("abc", "")}) == 4


def test_one_arrival_takes_an_answer_over(world: World) -> None:
    """Else two answers of success told of one effect."""
    answers = list[str]()
    first, other = Server(world, "one"), Server(world, "other")
    assert first.receive(CHANGES["set permission"]) == "new"
    first.publish(through=1, lost=[1])

    def let_other_be_first(call: str, argument: object) -> None:
        if call == "get_many" and argument == [receipt_key("ann", "/x", "it")] and not answers:
            answers.append(other.receive(CHANGES["set permission"]))
            other.publish(through=1)  # it was delivered

    second = Server(world, "two", HookedDatabase(world.database, let_other_be_first))
    assert second.receive(CHANGES["set permission"]) == "new"
    assert answers == ["repeated"]
