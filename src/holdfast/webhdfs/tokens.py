"""Keep the tokens with which clients prove who they are: bearer tokens, which people issue, and delegation tokens, for
which Hadoop's clients ask.

The database has only a digest of a token's secret: who reads the database can make no token. A token lasts until it
expires, or until it is revoked; servers notice that within `CACHED_S`. With a bearer token, the delegation tokens go
that it has proved.
"""

from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from holdfast.errors import MALFORMED, InvalidRequestError, NotFoundError, UnavailableError
from holdfast.namespace.errors import PermissionDeniedError
from holdfast.namespace.keys import kind_range, token_key
from holdfast.namespace.permissions import check_stored_name
from holdfast.namespace.view import scan_pages
from holdfast.runtime import Environment
from holdfast.transactions.base import Backend, Commit, Committed
from holdfast.webhdfs.failures import ACCESS_DENIED, TOKEN_INVALID, RequestRefusedError

CACHED_S = 5.0
_MOST_CACHED = 10_000
_PAGE = 1000
_TRIES = 12
_SECRET_TOKENS = 4
"""How many random tokens of 48 bits make a secret."""

DELEGATION_S = 24 * 3600
DELEGATION_MOST_S = 7 * 24 * 3600
"""HDFS's ``dfs.namenode.delegation.token.renew-interval`` and ``…max-lifetime``."""


class TokenKind(str, enum.Enum):
    """Who has asked for a token, and how it is sent."""

    BEARER = "bearer"
    DELEGATION = "delegation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """What the database has of a token.

    Attributes:
        id: names it in lists; says nothing about the secret.
        user, groups: for whom it speaks; None for the groups that the server knows of the user.
        note: what its issuer has written about it.
        issued_ms, expires_ms: milliseconds since the epoch.
        most_ms: until when it may be renewed.
        renewer: who may renew it; empty for nobody.
        parent: the id of the bearer token that has proved who asked for it; empty for none.
    """

    id: str
    kind: TokenKind
    user: str
    groups: tuple[str, ...] | None = None
    note: str = ""
    issued_ms: int
    expires_ms: int
    most_ms: int
    renewer: str = ""
    parent: str = ""

    def encode(self) -> bytes:
        """Return the value of the record, as JSON."""
        return json.dumps(asdict(self), ensure_ascii=False).encode()

    @staticmethod
    def decode(value: bytes) -> Token | None:
        """Decode the token in a record; None if it is damaged, or of a newer release: it proves nothing."""
        try:
            found = json.loads(value)
            groups = found["groups"]
            if not all(isinstance(found[name], str) for name in ("id", "user", "note", "renewer")):
                return None
            return Token(
                **{
                    **found,
                    "kind": TokenKind(found["kind"]),
                    "groups": None if groups is None else tuple(map(str, groups)),
                    **{name: int(found[name]) for name in ("issued_ms", "expires_ms", "most_ms")},
                }
            )
        except MALFORMED:
            return None


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).digest()


class TokenStore:
    """The tokens of a namespace, in its database. All methods may be called from several threads."""

    def __init__(self, database: Backend, environment: Environment) -> None:
        self._database = database
        self._environment = environment
        self._cache: dict[bytes, tuple[float, Token | None]] = {}

    def _now_ms(self) -> int:
        return int(self._environment.clock.now_s() * 1000)

    def issue(
        self,
        user: str,
        lifetime_s: float,
        *,
        kind: TokenKind = TokenKind.BEARER,
        groups: tuple[str, ...] | None = None,
        note: str = "",
        renewer: str = "",
        most_s: float | None = None,
        parent: Token | None = None,
    ) -> tuple[str, Token]:
        """Make a token; return its secret, which is known to nobody else, and what is stored.

        Args:
            lifetime_s, most_s: how long it is valid, at first and with all renewals.
            parent: the bearer token of who asks for it: it ends when that one does.

        Raises:
            InvalidRequestError: no user can have the name, or the lifetime is not positive.
            RequestRefusedError: the parent was revoked.
        """
        check_stored_name(user, "a user")
        for group in groups or ():
            check_stored_name(group, "a group")
        if not 0 < lifetime_s < 2**31:
            raise InvalidRequestError("a token lasts for a positive time: change it", seconds=lifetime_s)
        ids, now_ms = self._environment.ids, self._now_ms()
        secret = "".join(ids.token() for _ in range(_SECRET_TOKENS))
        last_ms = now_ms + int((lifetime_s if most_s is None else most_s) * 1000)
        most_ms = last_ms if parent is None else min(last_ms, parent.expires_ms)
        token = Token(
            id=ids.token(),
            kind=kind,
            user=user,
            groups=groups,
            note=note,
            issued_ms=now_ms,
            expires_ms=min(now_ms + int(lifetime_s * 1000), most_ms),
            most_ms=most_ms,
            renewer=renewer,
            parent="" if parent is None else parent.id,
        )
        reads = {} if parent is None else self._find_version(parent)
        commit = Commit(reads=reads, inserts={token_key(_digest(secret)): token.encode()})
        if not isinstance(self._database.commit(commit), Committed):
            raise UnavailableError("the token could not be stored: repeat")
        return secret, token

    def _find_version(self, token: Token) -> dict[bytes, int]:
        """Return key and version of a token's record: what `find` has returned may be gone."""
        for page in scan_pages(self._database, *kind_range(b"a"), _PAGE):
            for key, record in page.records:
                found = Token.decode(record.value)
                if found is not None and found.id == token.id:
                    return {key: record.version}
        raise RequestRefusedError("the bearer token was revoked: get another one", ACCESS_DENIED, is_anonymous=True)

    def find(self, secret: str) -> Token | None:
        """Return the token of a secret, if it is valid now."""
        key, now_s = token_key(_digest(secret)), self._environment.clock.elapsed_s()
        cached = self._cache.get(key)
        if cached is None or now_s - cached[0] > CACHED_S:
            record = self._database.get_many([key]).get(key)
            if len(self._cache) >= _MOST_CACHED:
                self._cache.clear()
            cached = self._cache[key] = (now_s, None if record is None else Token.decode(record.value))
        token = cached[1]
        return token if token is not None and self._now_ms() < token.expires_ms else None

    def iter_tokens(self) -> Iterator[tuple[bytes, Token]]:
        """Yield keys and tokens, also those that have expired."""
        for page in scan_pages(self._database, *kind_range(b"a"), _PAGE):
            for key, record in page.records:
                token = Token.decode(record.value)
                if token is not None:
                    yield key, token

    def revoke(self, token_id: str) -> Token:
        """Delete a token by its id, with the delegation tokens that it has proved; return it.

        Raises:
            NotFoundError: there is no such token.
        """
        found = next(((key, token) for key, token in self.iter_tokens() if token.id == token_id), None)
        if found is not None:
            self._delete([found[0]])  # from now on, it proves no others
        children = [(key, token) for key, token in self.iter_tokens() if token_id and token.parent == token_id]
        self._delete([key for key, _ in children])
        if found is None and not children:
            raise NotFoundError("there is no such token: see holdfast namespace token list", id=token_id)
        return (found or children[0])[1]  # a child, if an earlier call has deleted the token alone

    def delete_expired(self) -> int:
        """Delete the tokens that have expired; return how many."""
        now_ms = self._now_ms()
        gone = [key for key, token in self.iter_tokens() if token.expires_ms < now_ms]
        self._delete(gone)
        return len(gone)

    def _delete(self, keys: Sequence[bytes]) -> None:
        for start in range(0, len(keys), _PAGE):
            self._database.commit(Commit(deletes=keys[start : start + _PAGE]))
        for key in keys:
            self._cache.pop(key, None)

    # --- delegation tokens --------------------------------------------------------------------------------------------
    def renew(self, secret: str, user: str) -> int:
        """Renew a delegation token; return until when it is valid, milliseconds since the epoch.

        Raises:
            RequestRefusedError: there is no such token, or it has expired.
            PermissionDeniedError: the user is not its renewer.
        """
        key = token_key(_digest(secret))
        for _ in range(_TRIES):
            token, version = self._read(key)
            if user != token.renewer:
                raise PermissionDeniedError("another user has to renew the token", user=user)
            renewed = replace(token, expires_ms=min(self._now_ms() + DELEGATION_S * 1000, token.most_ms))
            commit = Commit(reads={key: version}, puts={key: renewed.encode()})
            if isinstance(self._database.commit(commit), Committed):
                self._cache.pop(key, None)
                return renewed.expires_ms
        raise UnavailableError("others change the token all the time: repeat")

    def cancel(self, secret: str, user: str) -> None:
        """Delete a delegation token.

        Raises:
            RequestRefusedError: there is no such token, or it has expired.
            PermissionDeniedError: the user is neither its owner nor its renewer.
        """
        key = token_key(_digest(secret))
        token, _ = self._read(key)
        if user not in (token.user, token.renewer):
            raise PermissionDeniedError("another user has to cancel the token", user=user)
        self._delete([key])

    def _read(self, key: bytes) -> tuple[Token, int]:
        """Return a delegation token that is valid now, and the version of its record."""
        record = self._database.get_many([key]).get(key)
        token = None if record is None else Token.decode(record.value)
        if (
            record is None
            or token is None
            or token.kind is not TokenKind.DELEGATION
            or token.expires_ms <= self._now_ms()
        ):
            raise RequestRefusedError(
                "the delegation token does not exist, or has expired: get another one", TOKEN_INVALID
            )
        return token, record.version
