"""Which answers have reached their clients: what is known of each, and what other servers read of it."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from holdfast.errors import UnavailableError
from holdfast.namespace.keys import answers_key, receipt_key
from holdfast.namespace.receipts import KEPT_MS, LONGEST_REPEAT_MS, AnswerBook, Receipt
from holdfast.transactions.base import Commit
from holdfast.webhdfs.calls import Answer
from holdfast.webhdfs.changing import DONE, TRUE
from holdfast.webhdfs.connection import Connection
from holdfast.webhdfs.deliveries import Deliveries, SentAnswer
from holdfast.webhdfs.settings import Limits
from tests.namespace_world import HookedDatabase, World
from tests.patience import PATIENCE_S
from tests.unit.webhdfs.carried import CarryingServer, KnownConnection

_KEY = receipt_key("ann", "/x")


@pytest.mark.parametrize(
    ("sent_s", "now_s", "fate", "was_delivered"),
    [
        (None, 9.0, {}, None),
        (None, 9.0, {"unacknowledged": 0}, None),
        (None, 9.0, {"is_lost": True}, False),
        (None, 9.0, {"requests": 2}, None),  # pipelined: the next request came before the answer
        (None, 9.0, {"is_ended": True}, None),
        (5.0, 9.0, {}, None),
        (5.0, 9.0, {"unacknowledged": 0}, True),
        (5.0, 5.1, {"unacknowledged": 0}, None),  # the client may give up just now
        (5.0, 5.1, {"requests": 2}, True),
        (5.0, 5.1, {"is_ended": True}, True),
        (5.0, 9.0, {"is_lost": True, "unacknowledged": 0}, False),
        (5.0, 9.0, {"is_lost": True, "requests": 2}, True),  # what is lost is the answer to a later request
        (None, 9.0, {"is_lost": True, "requests": 2}, False),
    ],
)
def test_what_is_known_of_an_answer(
    sent_s: float | None, now_s: float, fate: Mapping[str, int], was_delivered: bool | None
) -> None:
    connection = KnownConnection(**fate)  # type: ignore[arg-type]  # each fits its field
    assert SentAnswer(1, _KEY, connection, 1, sent_s).observe(now_s) is was_delivered
    assert SentAnswer(1, _KEY, connection, 1, sent_s, is_without_effect=True).observe(now_s) is True


def test_requests_that_were_there_before_the_answer_do_not_prove_that_it_has_arrived() -> None:
    """Defect: a pipelined request did, although it had begun before."""
    connection = KnownConnection(requests=2)
    answer = SentAnswer(1, _KEY, connection)
    answer.note_sent(5.0)
    assert answer.observe(5.1) is None
    connection.requests = 3
    assert answer.observe(5.1) is True


@pytest.mark.parametrize("fate", ["is_lost", "is_ended"])
@pytest.mark.parametrize("is_without_effect", [False, True])
def test_what_is_sent_to_nobody_is_lost(fate: str, is_without_effect: bool) -> None:
    answer = SentAnswer(1, _KEY, KnownConnection(**{fate: True}), is_without_effect=is_without_effect)
    answer.note_sent(5.0)
    assert answer.observe(5.1) is is_without_effect


def test_what_is_known_once_stays() -> None:
    connection = KnownConnection(requests=2)
    answer = SentAnswer(1, _KEY, connection, 1, 5.0)
    assert answer.observe(9.0) is True
    connection.is_lost, connection.requests = True, 1
    assert answer.observe(9.0) is True


@pytest.mark.parametrize("answer", [DONE, TRUE, Answer(status=201)], ids=["nothing", "a document", "created"])
def test_every_answer_counts_as_sent_from_its_last_byte_on(answer: Answer) -> None:
    world = World()
    exchange = CarryingServer(world).receive("PUT", "/d", "op=MKDIRS")
    exchange.delivery = SentAnswer(1, _KEY, exchange.connection, 1)
    sent: list[tuple[str, float | None]] = []

    async def send(event: dict[str, object]) -> None:
        world.clock.at_s += 1
        sent.append((str(event["type"]), exchange.delivery.sent_s if exchange.delivery else None))

    exchange.send = send
    asyncio.run(exchange.answer(answer))
    assert sent == [("http.response.start", None), ("http.response.body", None)]
    assert exchange.delivery.sent_s == world.clock.at_s


class _Transport(asyncio.Transport):
    is_closed = False

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True


class _EndedByClient(Connection):
    """A connection that says how much of its answers was acknowledged."""

    def __init__(self, unacknowledged: int) -> None:
        self.is_lost, self.transport, self._unacknowledged = False, _Transport(), unacknowledged
        self.cycle = None

    def unacknowledged_bytes(self) -> int:
        return self._unacknowledged


@pytest.mark.parametrize("unacknowledged", [0, 1])
@pytest.mark.parametrize("end", ["eof_received", "timeout_keep_alive_handler", "_end_slow_head", "_close_if_idle"])
def test_a_client_that_sends_no_more_has_lost_what_it_has_not_acknowledged(unacknowledged: int, end: str) -> None:
    """Defect: what an idle connection owed when the server closed it counted as delivered."""
    connection = _EndedByClient(unacknowledged)
    getattr(connection, end)()
    assert connection.is_lost == bool(unacknowledged)
    assert isinstance(connection.transport, _Transport)
    assert connection.transport.is_closed


class _Server:
    """A process of a server, and what others read of its answers."""

    def __init__(self) -> None:
        self.world = World()
        self.deliveries = Deliveries(self.world.database, self.world.clock, "one")

    def expect(self, connection: KnownConnection, key: bytes = _KEY) -> SentAnswer:
        """Return an answer that was sent, to a change whose receipt was written."""
        answer = self.deliveries.expect(key, connection)
        answer.requests, answer.sent_s = 1, self.world.clock.at_s
        receipt = Receipt("one", answer.number, int(self.world.clock.at_s * 1000))
        self.world.database.commit(Commit(puts={key: receipt.encode()}))
        return answer

    def publish(self) -> AnswerBook:
        """Publish what is known, and return what others read."""
        self.deliveries.publish()
        return AnswerBook.decode(self.world.database.get_many([answers_key("one")])[answers_key("one")].value)


def test_servers_tell_each_other_of_every_answer() -> None:
    server = _Server()
    fates = [KnownConnection(), KnownConnection(is_lost=True), KnownConnection(requests=2)]
    numbers = [server.expect(one).number for one in fates]
    known = [None, False, True]
    for _ in range(2):  # before and after it was published
        assert [server.deliveries.was_delivered(number) for number in numbers] == known
        book = server.publish()
        assert [book.was_delivered(number) for number in numbers] == known
    fates[0].is_ended = True
    assert [server.publish().was_delivered(number) for number in numbers] == [True, False, True]


def test_a_lost_answer_is_remembered_as_long_as_its_request_may_come_again() -> None:
    server = _Server()
    number = server.expect(KnownConnection(is_lost=True)).number
    assert server.publish().was_delivered(number) is False
    server.world.clock.at_s += LONGEST_REPEAT_MS / 1000
    assert server.publish().was_delivered(number) is False
    server.world.clock.at_s += 1
    assert server.publish().lost == frozenset()


def test_a_server_that_has_nothing_new_to_tell_shows_once_a_minute_that_it_lives() -> None:
    server = _Server()
    first = server.publish()
    server.world.clock.at_s += 59
    assert server.publish() == first
    server.world.clock.at_s += 1
    assert server.publish().at_ms == first.at_ms + 60_000


def test_a_receipt_is_kept_for_late_arrivals_and_deleted_once_its_answer_was_delivered() -> None:
    server = _Server()
    keys = [receipt_key("ann", name) for name in ("delivered", "lost", "unknown")]
    for key, connection in zip(
        keys, (KnownConnection(is_ended=True), KnownConnection(is_lost=True), KnownConnection()), strict=True
    ):
        server.expect(connection, key)
    server.publish()
    server.world.clock.at_s += KEPT_MS / 1000
    server.publish()
    assert set(server.world.records(b"q")) == set(keys)
    server.world.clock.at_s += 1
    server.publish()
    assert set(server.world.records(b"q")) == set(keys[1:])


def test_a_lost_answer_is_lost_at_every_moment() -> None:
    """A thread that asks meanwhile would take it for delivered."""
    server, seen = _Server(), list[bool | None]()

    class Answers(dict[int, Any]):
        def __delitem__(self, number: int) -> None:
            super().__delitem__(number)
            seen.append(server.deliveries.was_delivered(number))

    server.expect(KnownConnection(is_lost=True))
    server.deliveries._answers = Answers(server.deliveries._answers)
    server.publish()
    assert seen == [False]


def test_what_could_not_be_published_is_published_later() -> None:
    server, tries = _Server(), list[str]()

    def go_away(call: str, argument: object) -> None:
        tries.append(call)
        if len(tries) == 1:
            raise UnavailableError("the database is away: repeat later")

    server.deliveries._database = HookedDatabase(server.world.database, go_away)
    number = server.expect(KnownConnection(is_lost=True)).number
    with pytest.raises(UnavailableError):
        server.deliveries.publish()
    assert server.publish().was_delivered(number) is False


def test_an_older_book_does_not_replace_a_newer_one() -> None:
    """A server that stops publishes while its loop still does."""
    server, threads = _Server(), list[threading.Thread]()
    number = server.expect(connection := KnownConnection()).number

    def publish_meanwhile(call: str, argument: object) -> None:
        if call == "commit" and not threads:
            connection.is_ended = True
            threads.append(threading.Thread(target=server.deliveries.publish))
            threads[0].start()
            threads[0].join(0.1)  # it waits for this one

    server.deliveries._database = HookedDatabase(server.world.database, publish_meanwhile)
    server.deliveries.publish()
    threads[0].join(PATIENCE_S)
    book = AnswerBook.decode(server.world.database.get_many([answers_key("one")])[answers_key("one")].value)
    assert book.was_delivered(number) is True


class _Reset(_Transport):
    """A connection that was reset before it was accepted."""

    def get_extra_info(self, name: str, default: object = None) -> object:
        return default

    def abort(self) -> None:
        self.is_closed = True


def test_a_request_of_nobody_knows_whom_is_not_carried_out() -> None:
    """Defect: the client of a connection that was reset at once had no address, so its repeat was a new request."""

    class Unaccepted(Connection):
        def __init__(self) -> None:
            self.is_lost, self.connections, self._running = False, set(), None
            self.logger = logging.getLogger("holdfast.webhdfs")
            self.loop, self.app = cast("Any", None), SimpleNamespace(limits=Limits(), connections=0)

    connection, transport = Unaccepted(), _Reset()
    connection.connection_made(transport)
    assert transport.is_closed
    assert connection.is_lost
