"""How long requests wait for a database that is away."""

from __future__ import annotations

import pytest

from holdfast.errors import UnavailableError
from holdfast.webhdfs.calls import Answer
from holdfast.webhdfs.exchange import Exchange
from holdfast.webhdfs.pages import Pages
from holdfast.webhdfs.settings import ServerSettings
from holdfast.webhdfs.tokens import TokenStore
from tests.clocks import SimulatedClock
from tests.namespace_world import HookedDatabase, World, lose_a_reply
from tests.unit.webhdfs.carried import CarryingServer


class _Absence:
    """A server whose database is away for a number of calls, and a clock that counts how long somebody waits.

    Attributes:
        calls: for how many more calls the database is away.
    """

    def __init__(self) -> None:
        self.world = World(clock=SimulatedClock())  # type: ignore[arg-type]  # time passes where somebody waits
        self.calls = 0
        self.server = CarryingServer(self.world, HookedDatabase(self.world.database, self._fail))

    def _fail(self, call: str, argument: object) -> None:
        if self.calls:
            self.calls -= 1
            raise UnavailableError("the database is away: repeat later")

    def receive(self, user: str) -> Exchange:
        """Return a request that proves its user by a token, for which the database must be asked."""
        secret, _ = TokenStore(self.world.database, self.world.environment).issue(user, 3600.0)
        request = self.server.receive("GET", "/", "op=GETFILESTATUS")
        request.headers = {**request.headers, b"authorization": f"Bearer {secret}".encode()}
        return request

    @property
    def waited_s(self) -> float:
        """How long the server has waited."""
        return sum(self.world.clock.waits)


@pytest.fixture
def absence() -> _Absence:
    return _Absence()


def test_who_calls_is_found_out_when_the_database_is_back(absence: _Absence) -> None:
    """Defect: an upload that waited for its turn was refused at once."""
    request = absence.receive("ann")
    absence.calls = 3
    assert absence.server.carrier.make_call_patiently(request).user == "ann"
    assert 0 < absence.waited_s < 2


def test_requests_that_are_answered_together_wait_together(absence: _Absence) -> None:
    """Defect: each of a batch waited in turn until it was known who sends it: 64 of them for 20 minutes."""
    requests = list(map(absence.receive, ("ann", "bob", "eve")))
    absence.calls = 10**9
    answers = absence.server.carrier.find_statuses(requests)
    assert [type(one) for one in answers] == [UnavailableError] * 3
    assert 20 <= absence.waited_s < 21


def test_a_request_whose_client_has_gone_does_not_end_the_patience_with_others(absence: _Absence) -> None:
    gone, other = map(absence.receive, ("ann", "bob"))
    gone.connection.is_lost = True
    absence.calls = 3
    answers = absence.server.carrier.find_statuses([gone, other])
    assert isinstance(answers[1], Answer)
    absence.calls = 10**9
    other.connection.is_lost = True
    before_s = absence.waited_s
    assert isinstance(absence.server.carrier.find_statuses([gone, other])[1], UnavailableError)
    assert absence.waited_s == before_s


def test_the_page_says_at_once_that_the_database_is_away(absence: _Absence) -> None:
    request = absence.receive("ann")
    request.scope["raw_path"] = b"/page/servers"  # type: ignore[index]  # it is a dictionary
    absence.calls = 1
    with pytest.raises(UnavailableError, match="away"):
        Pages(absence.server.carrier, ServerSettings(url="")).find(request)
    assert absence.waited_s == 0


def test_what_is_tried_together_is_not_waited_for(absence: _Absence) -> None:
    """Each is tried again alone, and waits then: else each would wait for the others' time, too."""
    secret, _ = TokenStore(absence.world.database, absence.world.environment).issue("ann", 3600.0)
    asked = [absence.server.receive("PUT", f"/{number}", "op=MKDIRS") for number in range(3)]
    for one in asked:
        one.headers = {**one.headers, b"authorization": f"Bearer {secret}".encode()}
    absence.calls = 10**9
    assert absence.server.carrier.change_together(asked) == [None] * 3
    assert absence.waited_s == 0


def test_patience_begins_when_a_request_comes(absence: _Absence) -> None:
    """Defect: each began to wait when it got a thread: hundreds of them waited for each other's time."""
    request = absence.receive("ann")
    absence.world.clock.at_s += 21
    absence.calls = 10**9
    with pytest.raises(UnavailableError):
        absence.server.carrier.carry_out(request)
    assert absence.waited_s == 0


def test_an_upload_that_came_long_ago_waits_at_its_end(absence: _Absence) -> None:
    request = absence.server.receive("PUT", "/f", "op=CREATE&leg=1")
    writer = absence.server.carrier.open_upload(request)
    assert writer is not None
    absence.world.clock.at_s += 3600
    absence.calls = 4
    absence.server.carrier.finish_upload(request, writer, b"bytes")
    assert absence.world.client().open("/f").read() == b"bytes"
    assert absence.waited_s > 0


@pytest.mark.parametrize("then_away", [0, 1, 7])
def test_a_tree_is_not_in_the_way_of_who_has_frozen_it(then_away: int) -> None:
    """Defect: the second try had another mark, so the tree was frozen for ten minutes."""
    world = World(clock=SimulatedClock())  # type: ignore[arg-type]  # time passes where somebody waits
    world.client().mkdirs("/d/e")
    world.client(database=lose_a_reply(world, then_away)).set_quota("/d", names=100)
    world.client().mkdirs("/d/e/f")
    assert world.client().quota_usage("/d").names == 3


@pytest.mark.parametrize("then_away", [0, 1, 7])
def test_a_lease_is_not_in_the_way_of_who_has_taken_it(then_away: int) -> None:
    """Defect: the file could not be appended to for a minute."""
    world = World(clock=SimulatedClock())  # type: ignore[arg-type]  # time passes where somebody waits
    world.client().write_file("/f", b"1")
    with world.client(database=lose_a_reply(world, then_away)).append("/f") as file:
        file.write(b"2")
    assert world.client().open("/f").read() == b"12"
