"""A request that comes again because its answer was lost gets the same answer without another effect; others do not."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import pytest

from holdfast.errors import OutcomeUnknownError, StorageFullError, UnavailableError
from holdfast.namespace import Namespace
from holdfast.namespace.errors import PathExistsError, PathNotFoundError, RepeatUnclearError
from holdfast.namespace.operation import RequestAbandonedError
from holdfast.namespace.receipts import RequestRunner
from holdfast.transactions.base import Commit, Outcome
from holdfast.webhdfs.changing import DONE, TRUE
from holdfast.webhdfs.exchange import Exchange
from holdfast.webhdfs.operations import OPERATIONS
from holdfast.webhdfs.settings import Limits
from tests.clocks import SimulatedClock
from tests.namespace_world import HookedDatabase, World, lose_a_reply
from tests.unit.webhdfs.carried import CarryingServer


@pytest.fixture
def world() -> World:
    world = World()
    client = world.client()
    client.mkdirs("/d/e")
    for name in ("f", "g", "h"):
        client.write_file(f"/d/{name}", b"content of a file")
    client.set_xattr("/d/f", "user.a", b"1")
    client.flush()
    return world


def _write(path: str) -> Callable[[Namespace], object]:
    return lambda namespace: namespace.write_file(path, b"of somebody else", overwrite=True)


@dataclass(frozen=True)
class _Change:
    """A change, and what somebody else does after it so that there is something to do again."""

    method: str
    path: str
    query: str
    undo: Callable[[Namespace], object]


_CHANGES = (
    _Change("PUT", "/d/new", "op=MKDIRS", lambda namespace: namespace.delete("/d/new")),
    _Change("PUT", "/d/f", "op=RENAME&destination=/d/e", _write("/d/f")),
    _Change("PUT", "/d/f", "op=RENAME&destination=/d/new&renameoptions=NONE", _write("/d/f")),
    _Change("PUT", "/d/f", "op=RENAME&destination=/d/g&renameoptions=OVERWRITE", _write("/d/f")),
    _Change("DELETE", "/d/f", "op=DELETE", _write("/d/f")),
    _Change(
        "POST",
        "/d/f",
        "op=CONCAT&sources=/d/g,/d/h",
        lambda namespace: [_write(path)(namespace) for path in ("/d/g", "/d/h")],
    ),
    _Change("POST", "/d/f", "op=TRUNCATE&newlength=3", _write("/d/f")),
    _Change(
        "PUT", "/d/f", "op=SETPERMISSION&permission=600", lambda namespace: namespace.set_permission("/d/f", 0o640)
    ),
    _Change("PUT", "/d/f", "op=SETOWNER&owner=bob", lambda namespace: namespace.set_owner("/d/f", "eve")),
    _Change("PUT", "/d/f", "op=SETTIMES&modificationtime=5", lambda namespace: namespace.set_times("/d/f", 6, 7)),
    _Change("PUT", "/d/f", "op=SETREPLICATION&replication=2", lambda namespace: namespace.set_replication("/d/f", 4)),
    _Change("PUT", "/d", "op=SETQUOTA&namespacequota=50", lambda namespace: namespace.set_quota("/d", names=60)),
    _Change(
        "PUT",
        "/d/f",
        "op=SETXATTR&xattr.name=user.b&xattr.value=0x00&flag=CREATE",
        lambda namespace: namespace.remove_xattr("/d/f", "user.b"),
    ),
    _Change(
        "PUT",
        "/d/f",
        "op=REMOVEXATTR&xattr.name=user.a",
        lambda namespace: namespace.set_xattr("/d/f", "user.a", b"2"),
    ),
)


def _tree(world: World) -> dict[bytes, object]:
    return {key: one for kind in (b"i", b"r", b"u") for key, one in world.records(kind).items()}


def test_every_change_is_in_the_table() -> None:
    changes = {name for by_name in OPERATIONS.values() for name, one in by_name.items() if one.repeated is not None}
    assert {one.query.partition("&")[0] for one in _CHANGES} == {f"op={name}" for name in changes}


@pytest.mark.parametrize("change", _CHANGES, ids=lambda change: change.query)
@pytest.mark.parametrize("is_elsewhere", [False, True], ids=["here", "elsewhere"])
@pytest.mark.parametrize("is_cached", [False, True], ids=["alone", "together"])
@pytest.mark.parametrize("is_undone", [False, True], ids=["", "undone"])
def test_a_repeat_has_the_same_answer_and_no_effect(
    world: World, change: _Change, is_elsewhere: bool, is_cached: bool, is_undone: bool
) -> None:
    """Or it is refused, if somebody has undone it: it could be a new request."""
    first = CarryingServer(world)
    if is_cached:  # so that those which are tried together succeed
        for path in ("/d/e", "/d/f", "/d/g"):
            first.carrier.namespace.status(path)
    answer = first.answer_and_lose(first.receive(change.method, change.path, change.query))
    if is_undone:
        change.undo(world.client())
    world.client().flush()
    before = _tree(world)
    second = CarryingServer(world) if is_elsewhere else first
    query = f"{change.query}&namenoderpcaddress=other"  # which does not matter
    repeat = second.receive(change.method, change.path, query)
    if is_undone:
        with pytest.raises(RepeatUnclearError, match="look, and ask again"):
            second.answer(repeat)
        assert repeat.delivery is not None and not repeat.delivery.is_without_effect
    else:
        assert second.answer(repeat) == answer
    assert _tree(world) == before
    assert answer in (DONE, TRUE)


@pytest.mark.parametrize(
    "different",
    [{"client": "10.0.0.2"}, {"user": "ann"}, {"query": "op=DELETE&recursive=true"}, {"path": "/d/g"}],
    ids=str,
)
def test_what_differs_in_one_thing_is_another_request(world: World, different: dict[str, str]) -> None:
    world.client().set_permission("/d", 0o777)
    server = CarryingServer(world)
    same = {"path": "/d/f", "query": "op=DELETE&recursive=false"}
    assert server.answer_and_lose(server.receive("DELETE", **same)) == TRUE
    _write("/d/f")(world.client())
    assert server.answer(server.receive("DELETE", **(same | different))) == TRUE
    assert not world.client().exists({**same, **different}["path"])


@pytest.mark.parametrize("query", ["op=CREATE", "op=CREATE&overwrite=true", "op=CREATE&createflag=CREATE", "op=APPEND"])
def test_an_upload_that_comes_again_is_stored_once(world: World, query: str) -> None:
    """Defect: an append was refused and then done again, and a file was in the way of itself."""
    method, path = ("POST", "/d/f") if "APPEND" in query else ("PUT", "/d/new")
    servers = [CarryingServer(world), CarryingServer(world)]
    expected = b"content of a filenew" if "APPEND" in query else b"new"
    for server in (*servers, *servers):
        upload = server.receive(method, path, f"{query}&leg=1")
        server.upload(upload, b"new")
        assert world.client().open(path).read() == expected
        upload.connection.is_lost = True
        server.carrier.deliveries.publish()
    for other in (f"{query}&leg=2", f"{query}&leg=1"):  # another leg, or that of another file
        elsewhere = servers[1].receive(method, path if "leg=2" in other else "/d/g", other)
        if "APPEND" in query or "overwrite" in query:
            servers[1].upload(elsewhere, b"new")
        else:
            with pytest.raises(PathExistsError):
                servers[1].upload(elsewhere, b"new")
    assert world.client().open(path).read() == expected + (b"new" if "APPEND" in query else b"")


def test_an_upload_that_comes_again_is_recognized_by_its_leg(world: World) -> None:
    server = CarryingServer(world)
    first = server.receive("PUT", "/d/new", "op=CREATE&overwrite=true&leg=1")
    server.upload(first, b"new")
    first.connection.is_lost = True
    _write("/d/new")(world.client())
    server.upload(server.receive("PUT", "/d/new", "op=CREATE&overwrite=true&leg=1"), b"new")
    assert world.client().open("/d/new").read() == b"of somebody else"
    server.upload(server.receive("PUT", "/d/new", "op=CREATE&overwrite=true&leg=2"), b"new")
    assert world.client().open("/d/new").read() == b"new"


def test_a_change_for_which_nobody_waits_anymore_is_not_begun(world: World) -> None:
    server = CarryingServer(world)
    server.carrier.namespace.status("/d/f")
    late = server.receive("DELETE", "/d/f", "op=DELETE")
    world.clock.at_s += Limits().request_s
    with pytest.raises(RequestAbandonedError):
        server.answer(late)
    assert world.client().exists("/d/f")


def test_a_change_that_is_refused_owes_no_answer(world: World) -> None:
    server = CarryingServer(world)
    refused = server.receive("PUT", "/d/nothing", "op=SETPERMISSION&permission=600")
    with pytest.raises(PathNotFoundError):
        server.answer_and_lose(refused)
    assert refused.delivery is not None and refused.delivery.is_without_effect


def test_a_request_that_is_refused_hinders_none_that_is_tried_with_it(world: World) -> None:
    server = CarryingServer(world)
    for path in ("/d/e", "/d/f", "/d/g"):
        server.carrier.namespace.status(path)
    asked = [
        server.receive("PUT", "/d/f", "op=RENAME"),
        server.receive("PUT", "/d/new", "op=MKDIRS"),
        server.receive("DELETE", "/d/g", "op=DELETE&recursive=perhaps"),
        server.receive("PUT", "/d/e", "op=RENAME&destination=/d/new2&renameoptions=NONE"),
        server.receive("PUT", "/d/../f", "op=MKDIRS"),
        server.receive("DELETE", "/d/f", "op=DELETE"),
    ]
    assert server.carrier.change_together(asked) == [None, TRUE, None, None, None, TRUE]
    assert [one.name for one in world.client().list("/d")] == ["e", "g", "h", "new"]


class _Losing(HookedDatabase):
    """A database whose answer to a group is lost after the commit."""

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        self.inner.commit_group(commits)
        raise OutcomeUnknownError("the connection was lost: read before you repeat")


def test_a_change_whose_outcome_is_unknown_recognizes_itself_at_once() -> None:
    world = World(clock=SimulatedClock())  # type: ignore[arg-type]  # time passes where somebody waits
    world.client().write_file("/f", b"")
    server = CarryingServer(world, _Losing(world.database, lambda *_: None))
    server.carrier.namespace.status("/f")
    assert server.answer(server.receive("DELETE", "/f", "op=DELETE")) == TRUE
    assert not world.client().exists("/f")
    assert world.clock.waits == []


class _Full(HookedDatabase):
    """A database without space."""

    def commit(self, commit: Commit) -> Outcome:
        raise StorageFullError("the disk of the database is full: free space, then repeat")


def test_a_full_disk_is_not_waited_for() -> None:
    """Defect: each change kept a thread for 20 seconds, and those that read waited for a thread."""
    world = World(clock=SimulatedClock())  # type: ignore[arg-type]  # time passes where somebody waits
    server = CarryingServer(world, _Full(world.database, lambda *_: None))
    with pytest.raises(StorageFullError):
        server.carrier.carry_out(server.receive("PUT", "/d", "op=MKDIRS"))
    assert world.clock.waits == []


class _Failing(HookedDatabase):
    """A database whose first answers are lost: the commits have taken effect, and the client has gone meanwhile."""

    def __init__(self, world: World, replies: int = 1) -> None:
        super().__init__(world.database, lambda *_: None)
        self.replies = replies
        self.exchange: Exchange | None = None

    def _lose(self) -> None:
        if self.replies:
            self.replies -= 1
            if self.exchange is not None:
                self.exchange.connection.is_lost = True
            raise OutcomeUnknownError("the connection was lost: read before you repeat")

    def commit(self, commit: Commit) -> Outcome:
        outcome = self.inner.commit(commit)
        self._lose()
        return outcome

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        outcomes = self.inner.commit_group(commits)
        self._lose()
        return outcomes


@pytest.mark.parametrize("is_cached", [False, True], ids=["alone", "together"])
def test_a_change_whose_outcome_nobody_knew_owes_its_answer(world: World, is_cached: bool) -> None:
    """Defect: it counted as one without effect, and its repeat deleted what others had written since."""
    database = _Failing(world)
    server, other = CarryingServer(world, database), CarryingServer(world)
    if is_cached:
        server.carrier.namespace.status("/d/f")
    database.exchange = request = server.receive("DELETE", "/d/f", "op=DELETE")
    with pytest.raises((RequestAbandonedError, OutcomeUnknownError)):
        server.answer(request)
    server.carrier.deliveries.publish()
    _write("/d/f")(world.client())
    with pytest.raises(RepeatUnclearError):
        other.answer(other.receive("DELETE", "/d/f", "op=DELETE"))
    assert world.client().open("/d/f").read() == b"of somebody else"


@pytest.mark.parametrize("query", ["op=APPEND", "op=CREATE&overwrite=true"])
def test_an_upload_whose_outcome_nobody_knew_is_stored_once(world: World, query: str) -> None:
    method, path = ("POST", "/d/f") if "APPEND" in query else ("PUT", "/d/new")
    database = _Failing(world, replies=0)
    server, other = CarryingServer(world, database), CarryingServer(world)
    database.exchange = request = server.receive(method, path, f"{query}&leg=1")
    writer = server.carrier.open_upload(request)
    assert writer is not None
    request.received_bytes, request.checksum = 3, zlib.crc32(b"new")
    database.replies = 1
    with pytest.raises((RequestAbandonedError, OutcomeUnknownError)):
        server.carrier.finish_upload(request, writer, b"new")
    server.carrier.deliveries.publish()
    expected = world.client().open(path).read()
    assert expected.endswith(b"new")
    other.upload(other.receive(method, path, f"{query}&leg=1"), b"new")
    assert world.client().open(path).read() == expected


def test_a_refusal_whose_outcome_is_unknown_stays_a_refusal(world: World) -> None:
    """Defect: the answer was true, and the file was there."""
    first = CarryingServer(world)
    first.answer_and_lose(first.receive("DELETE", "/d/f", "op=DELETE"))
    _write("/d/f")(world.client())
    second = CarryingServer(world, _Failing(world))
    with pytest.raises(RepeatUnclearError):
        second.carrier.carry_out(second.receive("DELETE", "/d/f", "op=DELETE"))


def test_the_repeat_of_an_append_that_is_recognized_late_gives_its_lease_back(world: World) -> None:
    first, second = CarryingServer(world), CarryingServer(world)
    early = first.receive("POST", "/d/f", "op=APPEND&leg=1")
    writer = first.carrier.open_upload(early)
    assert writer is not None
    first.carrier.finish_upload(early, writer, b"new")
    early.connection.is_lost = True
    first.carrier.deliveries.publish()
    late = second.receive("POST", "/d/f", "op=APPEND&leg=1")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RequestRunner, "require_new", lambda *_: None)  # the first arrival ends after it was asked
        writer = second.carrier.open_upload(late)
    assert writer is not None
    second.carrier.finish_upload(late, writer, b"new")
    assert world.client().open("/d/f").read() == b"content of a filenew"
    assert world.records(b"l") == {}


def test_an_append_whose_lease_was_taken_without_an_answer_goes_on(world: World) -> None:
    """Defect: it was in its own way, and the file could not be appended to for a minute."""
    server = CarryingServer(world, _Failing(world))
    server.upload(server.receive("POST", "/d/f", "op=APPEND&leg=1"), b"new")
    assert world.client().open("/d/f").read() == b"content of a filenew"
    assert world.records(b"l") == {}


def test_an_append_that_cannot_be_tried_again_stays_unknown(world: World) -> None:
    """Defect (N2): it was said that nothing had happened, but its lease was taken."""
    with pytest.raises(OutcomeUnknownError):
        world.client(database=lose_a_reply(world, 10**9)).append("/d/f")
    assert world.records(b"l") != {}


def test_what_was_unknown_stays_so_while_the_database_is_away() -> None:
    """Else the repeat would delete what somebody else has written since."""
    world = World(clock=SimulatedClock())  # type: ignore[arg-type]  # time passes where somebody waits
    world.client().write_file("/f", b"content")
    server, other = CarryingServer(world, lose_a_reply(world, 10**9)), CarryingServer(world)
    request = server.receive("DELETE", "/f", "op=DELETE")
    with pytest.raises(UnavailableError):
        server.answer(request)
    request.connection.is_lost = True
    server.carrier.deliveries._database = world.database  # what is published is no change
    server.carrier.deliveries.publish()
    world.client().write_file("/f", b"of somebody else")
    with pytest.raises(RepeatUnclearError):
        other.answer(other.receive("DELETE", "/f", "op=DELETE"))
    assert world.client().open("/f").read() == b"of somebody else"


def test_a_change_tried_with_one_that_is_refused_owes_its_answer_if_its_outcome_is_unknown(world: World) -> None:
    database = _Failing(world)
    server, other = CarryingServer(world, database), CarryingServer(world)
    server.carrier.namespace.status("/d/f")
    refused = server.receive("DELETE", "/d/g", "op=DELETE&recursive=perhaps")
    database.exchange = request = server.receive("DELETE", "/d/f", "op=DELETE")
    assert server.carrier.change_together([refused, request]) == [None, None]
    with pytest.raises(RequestAbandonedError):
        server.carrier.carry_out(request)
    server.carrier.deliveries.publish()
    _write("/d/f")(world.client())
    with pytest.raises(RepeatUnclearError):
        other.answer(other.receive("DELETE", "/d/f", "op=DELETE"))


def test_a_change_that_is_tried_together_waits_for_the_database() -> None:
    world = World(clock=SimulatedClock())  # type: ignore[arg-type]  # time passes where somebody waits
    world.client().write_file("/f", b"")
    calls: list[str] = []

    def go_away(call: str, argument: object) -> None:
        calls.append(call)
        if call in ("commit", "commit_group") and calls.count("commit") < 2:
            raise UnavailableError("the database is away: repeat later")

    server = CarryingServer(world, HookedDatabase(world.database, go_away))
    server.carrier.namespace.status("/f")
    assert server.answer(server.receive("DELETE", "/f", "op=DELETE")) == TRUE
    assert "commit_group" in calls
    assert not world.client().exists("/f")


def _replace_by_directory(namespace: Namespace) -> None:
    namespace.delete("/d/new")
    namespace.mkdirs("/d/new")


@pytest.mark.parametrize(
    "undo",
    [lambda namespace: namespace.delete("/d", recursive=True), _replace_by_directory],
    ids=["no parent", "a directory"],
)
def test_an_upload_that_comes_again_is_recognized_whatever_is_in_its_way(
    world: World, undo: Callable[[Namespace], object]
) -> None:
    first, second = CarryingServer(world), CarryingServer(world)
    query = "op=CREATE&overwrite=true&createparent=false&leg=1"
    upload = first.receive("PUT", "/d/new", query)
    first.upload(upload, b"new")
    upload.connection.is_lost = True
    first.carrier.deliveries.publish()
    undo(world.client())
    assert second.carrier.open_upload(second.receive("PUT", "/d/new", query)) is None


def test_an_upload_that_comes_again_is_recognized_when_the_database_is_back() -> None:
    world = World(clock=SimulatedClock())  # type: ignore[arg-type]  # time passes where somebody waits
    first, tries = CarryingServer(world), list[object]()
    upload = first.receive("PUT", "/new", "op=CREATE&leg=1")
    first.upload(upload, b"new")
    upload.connection.is_lost = True
    first.carrier.deliveries.publish()

    def go_away(call: str, argument: object) -> None:
        if call == "get_many" and any(key[:1] == b"q" for key in cast("Sequence[bytes]", argument)):
            tries.append(argument)
            if len(tries) == 1:
                raise UnavailableError("the database is away: repeat later")

    second = CarryingServer(world, HookedDatabase(world.database, go_away))
    assert second.carrier.open_upload(second.receive("PUT", "/new", "op=CREATE&leg=1")) is None
    assert len(tries) > 1


def test_a_source_that_is_back_is_unclear_even_if_it_cannot_be_renamed(world: World) -> None:
    first, second = CarryingServer(world), CarryingServer(world)
    query = "op=RENAME&destination=/d/e/new&renameoptions=NONE"
    first.answer_and_lose(first.receive("PUT", "/d/f", query))
    _write("/d/f")(world.client())
    world.client().delete("/d/e", recursive=True)
    with pytest.raises(RepeatUnclearError):
        second.answer(second.receive("PUT", "/d/f", query))


def test_other_bytes_at_the_address_of_an_upload_are_no_repeat_of_it() -> None:
    """Defect: fsspec appends all pieces of a file at one address. If the process that had taken one of them died before
    it had said that its answer had arrived, the next one was taken for the repeat, and its bytes were lost.
    """
    world = World(clock=SimulatedClock())  # type: ignore[arg-type]  # time passes where somebody waits
    world.client().write_file("/f", b"")
    first, other = CarryingServer(world), CarryingServer(world)  # the first one dies
    first.upload(first.receive("POST", "/f", "op=APPEND&leg=1"), b"aaaa")
    with pytest.raises(RepeatUnclearError, match="write the file again"):
        other.upload(other.receive("POST", "/f", "op=APPEND&leg=1"), b"bbbb")
    assert world.client().open("/f").read() == b"aaaa"


@pytest.mark.parametrize("data", [b"aaaa", b""])
def test_the_same_bytes_at_the_address_of_an_upload_are_its_repeat(data: bytes) -> None:
    world = World(clock=SimulatedClock())  # type: ignore[arg-type]  # time passes where somebody waits
    world.client().write_file("/f", b"before")
    first, other = CarryingServer(world), CarryingServer(world)
    first.upload(first.receive("POST", "/f", "op=APPEND&leg=1"), data)
    other.upload(other.receive("POST", "/f", "op=APPEND&leg=1"), data)
    assert world.client().open("/f").read() == b"before" + data


def test_an_error_that_tells_of_no_outcome_is_no_answer_to_a_change() -> None:
    """Defect: the answer was that the database is away, although the commit had arrived. It was delivered, so what came
    next was new, and deleted what somebody else had written since.
    """
    world = World(clock=SimulatedClock())  # type: ignore[arg-type]  # time passes where somebody waits
    world.client().write_file("/f", b"content")
    server, other = CarryingServer(world), CarryingServer(world)
    request = server.receive("DELETE", "/f", "op=DELETE")
    server.answer(request)
    request.is_outcome_unknown = True
    server.answer_failure(request, UnavailableError("the database is away: repeat later"))
    request.connection.requests = 9  # so it has arrived
    server.carrier.deliveries.publish()
    world.client().write_file("/f", b"of somebody else")
    with pytest.raises(RepeatUnclearError):
        other.answer(other.receive("DELETE", "/f", "op=DELETE"))
    assert world.client().open("/f").read() == b"of somebody else"


def test_who_is_told_to_ask_again_may_do_so(world: World) -> None:
    """After an answer that it is unclear, the next request is new, even if an outcome was unknown before."""
    first, second = CarryingServer(world), CarryingServer(world)
    first.answer_and_lose(first.receive("DELETE", "/d/f", "op=DELETE"))
    _write("/d/f")(world.client())
    request = second.receive("DELETE", "/d/f", "op=DELETE")
    with pytest.raises(RepeatUnclearError) as caught:
        second.answer(request)
    request.is_outcome_unknown = True
    second.answer_failure(request, caught.value)
    request.connection.requests = 9
    second.carrier.deliveries.publish()
    assert first.answer(first.receive("DELETE", "/d/f", "op=DELETE")) == TRUE
    assert not world.client().exists("/d/f")


@pytest.mark.parametrize("replace", [True, False])
def test_an_attribute_is_what_its_request_has_left_only_if_it_has_the_value(world: World, replace: bool) -> None:
    """Defect: it was, if any other one had the value."""
    client = world.client()
    client.set_xattr("/d/f", "user.other", b"2")
    first, second = CarryingServer(world), CarryingServer(world)
    query = "op=SETXATTR&xattr.name=USER.b&xattr.value=0x32&flag=CREATE"
    first.answer_and_lose(first.receive("PUT", "/d/f", query))
    if replace:
        client.set_xattr("/d/f", "user.b", b"3")
        with pytest.raises(RepeatUnclearError):
            second.answer(second.receive("PUT", "/d/f", query))
    else:
        assert second.answer(second.receive("PUT", "/d/f", query)) == DONE
