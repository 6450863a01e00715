"""The tokens of clients: what the database has of them, how long they last, and who may renew and cancel them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection

import pytest

from holdfast.errors import InvalidRequestError, NotFoundError, UnavailableError
from holdfast.namespace.errors import PermissionDeniedError
from holdfast.namespace.keys import kind_range, token_key
from holdfast.runtime import Environment, SerialRunner
from holdfast.transactions.base import Commit, Record
from holdfast.transactions.memory import MemoryBackend
from holdfast.webhdfs import tokens as module
from holdfast.webhdfs.failures import RequestRefusedError
from holdfast.webhdfs.tokens import (
    CACHED_S,
    DELEGATION_MOST_S,
    DELEGATION_S,
    Token,
    TokenKind,
    TokenStore,
)
from tests.clocks import CountingIds, StillClock
from tests.namespace_world import HookedDatabase, all_records


class _CountingDatabase(MemoryBackend):
    reads = 0

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        self.reads += 1
        return super().get_many(keys)


class _World:
    """A database with tokens, and two servers that use it."""

    def __init__(self) -> None:
        self.clock = StillClock(1_800_000_000.0)
        ids = CountingIds()
        self.database = _CountingDatabase(ids)
        self.environment = Environment(clock=self.clock, ids=ids, runner=SerialRunner())
        self.here, self.there = (TokenStore(self.database, self.environment) for _ in range(2))

    def delegation(self, user: str = "ann", renewer: str = "yarn", parent: Token | None = None) -> tuple[str, Token]:
        return self.here.issue(
            user,
            DELEGATION_S,
            kind=TokenKind.DELEGATION,
            renewer=renewer,
            most_s=DELEGATION_MOST_S,
            parent=parent,
        )

    def records(self) -> dict[bytes, Record]:
        return {key: one for key, one in all_records(self.database).items() if key[:1] == b"a"}


# --- what is stored ---------------------------------------------------------------------------------------------------
def test_the_database_has_no_secret() -> None:
    world = _World()
    for kind in TokenKind:
        secret, token = world.here.issue("ann", 60, kind=kind, groups=("g",), note="n")
        assert world.here.find(secret) == token
        assert len(secret) >= 48
        for key, record in world.records().items():
            assert secret.encode() not in key + record.value
            assert token.id not in secret
            assert secret[:12] not in json.dumps(list(map(repr, (record, token))))


def test_a_token_is_found_by_every_server() -> None:
    world = _World()
    secret, token = world.here.issue("ann", 60, groups=("g", "h"), note="é")
    assert world.there.find(secret) == token
    assert (token.user, token.groups, token.note, token.kind) == ("ann", ("g", "h"), "é", TokenKind.BEARER)


@pytest.mark.parametrize("secret", ["", "x", "\udcff", "é" * 5000])
def test_other_secrets_prove_nothing(secret: str) -> None:
    world = _World()
    world.here.issue("ann", 60)
    assert world.here.find(secret) is None


@pytest.mark.parametrize(
    ("user", "lifetime_s", "groups"),
    [
        ("", 60, None),
        ("\udcff", 60, None),
        ("a" * 2000, 60, None),
        ("ann", 60, ("",)),
        *(("ann", lifetime_s, None) for lifetime_s in (0, -1.0, 2.0**31, float("nan"))),
    ],
)
def test_a_token_without_user_or_time_is_refused(user: str, lifetime_s: float, groups: tuple[str, ...] | None) -> None:
    world = _World()
    with pytest.raises(InvalidRequestError):
        world.here.issue(user, lifetime_s, groups=groups)
    assert world.records() == {}


_GOOD = Token(id="1", kind=TokenKind.BEARER, user="ann", issued_ms=0, expires_ms=2**50, most_ms=2**50)


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\xff",
        b"null",
        b"[]",
        b"{}",
        b"[" * 100_000,
        *(
            json.dumps({**json.loads(_GOOD.encode()), **change}).encode()
            for change in (
                {"user": None},
                {"user": 5},
                {"user": ["root"]},
                {"kind": "root"},
                {"groups": 5},
                {"expires_ms": "soon"},
                {"expires_ms": None},
                {"id": None},
                {"rights": "of a newer release"},
            )
        ),
    ],
)
def test_a_damaged_record_proves_nothing_and_is_in_nobodys_way(value: bytes) -> None:
    world = _World()
    secret, _ = world.here.issue("ann", 60)
    other, kept = world.here.issue("bob", 60)
    world.database.commit(Commit(puts={token_key(hashlib.sha256(secret.encode()).digest()): value}))
    assert world.there.find(secret) is None
    assert world.there.find(other) == kept
    assert [token for _, token in world.there.iter_tokens()] == [kept]
    world.there.delete_expired()
    with pytest.raises(RequestRefusedError):
        world.there.renew(secret, "")


def test_a_record_keeps_all_that_a_token_says() -> None:
    token = Token(
        id="1",
        kind=TokenKind.DELEGATION,
        user="ann",
        groups=("g",),
        note="n",
        issued_ms=1,
        expires_ms=2,
        most_ms=3,
        renewer="yarn",
        parent="0",
    )
    assert Token.decode(token.encode()) == token
    assert Token.decode(_GOOD.encode()) == _GOOD


# --- how long they last -----------------------------------------------------------------------------------------------
def test_a_token_lasts_until_it_expires() -> None:
    world = _World()
    secret, token = world.here.issue("ann", 60)
    world.clock.at_s += 59.9
    assert world.here.find(secret) == token
    world.clock.at_s += 0.1
    assert world.here.find(secret) is None
    assert world.there.find(secret) is None


def test_a_revoked_token_is_valid_for_as_long_as_servers_remember_it() -> None:
    world = _World()
    secret, token = world.here.issue("ann", 600)
    assert world.there.find(secret) == token
    assert world.here.revoke(token.id) == token
    assert world.here.find(secret) is None
    assert world.there.find(secret) == token
    world.clock.at_s += CACHED_S + 0.1
    assert world.there.find(secret) is None


def test_a_token_is_read_once_in_a_while() -> None:
    world = _World()
    secret, _ = world.here.issue("ann", 600)
    for given in (secret, "wrong"):
        before = world.database.reads
        for _ in range(3):
            world.here.find(given)
        assert world.database.reads == before + 1
        world.clock.at_s += CACHED_S + 0.1
        world.here.find(given)
        assert world.database.reads == before + 2


def test_guessed_tokens_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_CACHED", 10)
    world = _World()
    for number in range(100):
        world.here.find(str(number))
        assert len(world.here._cache) <= 10


def test_what_is_not_there_cannot_be_revoked() -> None:
    world = _World()
    secret, _ = world.here.issue("ann", 60)
    for name in ("", "x", secret):
        with pytest.raises(NotFoundError):
            world.here.revoke(name)
    assert len(world.records()) == 1


def test_tokens_are_listed_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAGE", 2)
    world = _World()
    made = {world.here.issue(f"user{number}", 60)[1].id for number in range(5)}
    assert {token.id for _, token in world.there.iter_tokens()} == made
    start, end = kind_range(b"a")
    assert all(start <= key < end for key, _ in world.there.iter_tokens())


def test_only_what_has_expired_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAGE", 2)
    world = _World()
    for number in range(5):
        world.here.issue(f"user{number}", 60)
    secret, kept = world.here.issue("ann", 61)
    world.delegation()
    world.clock.at_s += 60.5
    assert world.there.delete_expired() == 5
    assert world.here.find(secret) == kept
    assert len(world.records()) == 2
    world.clock.at_s += DELEGATION_S
    assert world.there.delete_expired() == 2
    assert world.records() == {}


# --- delegation tokens ------------------------------------------------------------------------------------------------
def test_only_the_renewer_renews_a_token_up_to_its_longest_life() -> None:
    world = _World()
    secret, token = world.delegation()
    for user in ("ann", "root", ""):
        with pytest.raises(PermissionDeniedError):
            world.here.renew(secret, user)
    for day in range(1, 7):
        world.clock.at_s += DELEGATION_S - 1
        assert world.there.renew(secret, "yarn") == min(
            token.issued_ms + (day + 1) * DELEGATION_S * 1000 - day * 1000, token.most_ms
        )
    found = world.here.find(secret)
    assert found is not None
    world.clock.at_s += DELEGATION_S - 1
    assert world.there.renew(secret, "yarn") == token.most_ms
    world.clock.at_s += 7
    for store in (world.here, world.there):
        assert store.find(secret) is None
        with pytest.raises(RequestRefusedError):
            store.renew(secret, "yarn")


def test_a_token_that_has_expired_is_not_renewed() -> None:
    world = _World()
    secret, _ = world.delegation()
    world.clock.at_s += DELEGATION_S
    with pytest.raises(RequestRefusedError):
        world.here.renew(secret, "yarn")
    assert world.here.find(secret) is None


def test_a_renewed_token_is_renewed_for_the_server_that_remembers_the_old_one() -> None:
    world = _World()
    secret, token = world.delegation()
    assert world.here.find(secret) == token
    world.clock.at_s += DELEGATION_S - 1
    assert world.here.find(secret) == token
    world.here.renew(secret, "yarn")
    world.clock.at_s += 1.5
    assert world.here.find(secret) is not None


def test_a_token_that_is_cancelled_while_it_is_renewed_is_gone() -> None:
    world = _World()
    secret, _ = world.delegation()

    def cancel(call: str, argument: object) -> None:
        if call == "commit" and world.records():
            world.there.cancel(secret, "ann")

    with pytest.raises(RequestRefusedError):
        TokenStore(HookedDatabase(world.database, cancel), world.environment).renew(secret, "yarn")
    assert world.records() == {}


def test_a_token_without_a_renewer_is_that_of_its_owner_alone() -> None:
    world = _World()
    secret, token = world.delegation(renewer="")
    for other in ("bob", "root"):
        for act in (world.here.cancel, world.here.renew):
            with pytest.raises(PermissionDeniedError):
                act(secret, other)
    assert world.here.find(secret) == token
    world.here.cancel(secret, "ann")
    assert world.here.find(secret) is None


@pytest.mark.parametrize("user", ["ann", "yarn"])
def test_the_owner_and_the_renewer_cancel_a_token(user: str) -> None:
    world = _World()
    secret, token = world.delegation()
    assert world.here.find(secret) == token
    for other in ("bob", "root", ""):
        with pytest.raises(PermissionDeniedError):
            world.here.cancel(secret, other)
    assert world.here.find(secret) == token
    world.here.cancel(secret, user)
    assert world.here.find(secret) is None
    for act in (world.here.cancel, world.here.renew):
        with pytest.raises(RequestRefusedError):
            act(secret, user)


def test_a_bearer_token_is_neither_renewed_nor_cancelled_by_its_user() -> None:
    """Only people issue and revoke it: Hadoop cancels the tokens of jobs that end."""
    world = _World()
    secret, token = world.here.issue("ann", 600)
    for act in (world.here.cancel, world.here.renew):
        with pytest.raises(RequestRefusedError):
            act(secret, "ann")
    assert world.there.find(secret) == token


def test_a_token_that_a_bearer_token_has_proved_ends_with_it() -> None:
    world = _World()
    _, parent = world.here.issue("ann", 3600)
    secret, child = world.delegation(parent=parent)
    assert (child.expires_ms, child.most_ms) == (parent.expires_ms, parent.expires_ms)
    assert world.here.renew(secret, "yarn") == parent.expires_ms
    other, _ = world.delegation()
    world.here.revoke(parent.id)
    assert world.here.find(secret) is None
    assert world.here.find(other) is not None
    assert len(world.records()) == 1


# --- revoked at the same time -----------------------------------------------------------------------------------------
def test_a_token_that_was_revoked_proves_no_other_one() -> None:
    """Defect: for five seconds, a server gave delegation tokens for it, which outlived it."""
    world = _World()
    secret, parent = world.here.issue("ann", 60)
    assert world.there.find(secret) == parent, "it is cached"
    world.here.revoke(parent.id)
    assert world.there.find(secret) == parent
    with pytest.raises(RequestRefusedError, match="was revoked"):
        world.there.issue("ann", 60, kind=TokenKind.DELEGATION, parent=parent)
    assert world.records() == {}


def test_a_token_that_is_made_while_its_parent_is_revoked_goes_with_it() -> None:
    world = _World()
    _, parent = world.here.issue("ann", 60)
    made = []

    def make_another(call: str, argument: object) -> None:
        if call == "commit" and not made:  # the revocation has found what it deletes
            made.append(world.here.issue("ann", 60, kind=TokenKind.DELEGATION, parent=parent))

    TokenStore(HookedDatabase(world.database, make_another), world.environment).revoke(parent.id)
    assert made
    assert world.records() == {}


def test_a_revocation_that_was_cut_short_can_be_repeated() -> None:
    world = _World()
    _, parent = world.here.issue("ann", 60)
    world.here.issue("ann", 60, kind=TokenKind.DELEGATION, parent=parent)
    calls = []

    def go_away(call: str, argument: object) -> None:
        if call == "commit":
            calls.append(argument)
            if len(calls) == 2:
                raise UnavailableError("the database is away: repeat later")

    store = TokenStore(HookedDatabase(world.database, go_away), world.environment)
    with pytest.raises(UnavailableError):
        store.revoke(parent.id)
    assert len(world.records()) == 1
    store.revoke(parent.id)
    assert world.records() == {}


def test_a_token_that_is_used_while_it_is_cancelled_is_not_remembered() -> None:
    world = _World()
    secret, _ = world.delegation()

    def use(call: str, argument: object) -> None:
        if call == "commit":
            assert store.find(secret) is not None

    store = TokenStore(HookedDatabase(world.database, use), world.environment)
    store.cancel(secret, "ann")
    assert store.find(secret) is None
