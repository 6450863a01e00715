"""Store objects in a SQLite file: ``sqlite:///data/lake.db/flights`` is the directory ``flights`` in ``lake.db``.

Every call is one transaction, so that it happens completely or not at all, even if the process dies in the middle.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from holdfast.errors import (
    CorruptDataError,
    InvalidRequestError,
    NotFoundError,
    PreconditionError,
    StorageFullError,
    UnavailableError,
)
from holdfast.runtime import Clock, Ids, SystemClock, SystemIds
from holdfast.stores import base, checks
from holdfast.stores.provider import Location, OptionSpec, StoreOptions, StoreProvider

__all__ = ["PROVIDER", "SqliteOptions", "SqliteStore"]

# Keys are stored as UTF-8 bytes, so that SQLite sorts them by bytes. The byte FF, which UTF-8 never uses, ends a range.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (
    key BLOB PRIMARY KEY, data BLOB, etag TEXT, modified_at_s REAL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS uploads (
    key BLOB, id TEXT, initiated_at_s REAL, PRIMARY KEY (key, id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS parts (id TEXT, number INTEGER, data BLOB, etag TEXT, PRIMARY KEY (id, number));
"""
_INFO = "SELECT key, length(data), etag, modified_at_s FROM objects"
_WRITE = "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?)"
_LIMITS = base.MultipartLimits(min_part_size_bytes=1, max_parts=10_000)
_PAGE = 1000
_MAX_BYTES = 1_000_000_000  # SQLite's default limit for the size of one value


# --- options ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteOptions(StoreOptions):
    """Options for opening the database file.

    Attributes:
        lock_timeout_s: seconds to wait while other processes write.
        durable: whether a call returns only after its data would survive a power failure; False makes calls faster.
    """

    lock_timeout_s: float = 30.0
    durable: bool = True


def _boolean(text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise InvalidRequestError("not a boolean: write true or false")
    return text.strip().lower() == "true"


def _seconds(text: str) -> float:
    if not re.fullmatch(r"\d+(\.\d+)?", text.strip()):
        raise InvalidRequestError("not a number of seconds: write one such as 30 or 0.5")
    return float(text)


def _locate(rest: str) -> Location:
    found = re.fullmatch(r"(/.*?\.db)(?:/(.*))?", rest, re.DOTALL)
    if found is None:
        raise InvalidRequestError("the url names no database file: write sqlite:///path/to/file.db/directory")
    return Location(found[1], (found[2] or "").strip("/"))


def _open(location: Location, options: SqliteOptions) -> SqliteStore:
    return SqliteStore(location.root, options)


PROVIDER = StoreProvider(
    schemes=("sqlite",),
    locate=_locate,
    open=_open,
    options=SqliteOptions,
    specs=(
        OptionSpec(name="lockTimeout", field="lock_timeout_s", parse=_seconds),
        OptionSpec(name="durable", field="durable", parse=_boolean),
    ),
)


# --- store ------------------------------------------------------------------------------------------------------------
class SqliteStore:
    """A `MultipartStore` in a SQLite file. The first write creates the file, and threads may share the store."""

    def __init__(
        self, path: str, options: SqliteOptions = SqliteOptions(), clock: Clock | None = None, ids: Ids | None = None
    ) -> None:
        self._path, self._options = path, options
        self._clock, self._ids = clock or SystemClock(), ids or SystemIds()

    @property
    def capabilities(self) -> base.Capabilities:
        yes = base.Support.YES
        return base.Capabilities(conditional_put=yes, multipart=_LIMITS, lists_uploads=yes)

    @property
    def retries(self) -> int:
        return 0

    def close(self) -> None:
        """Do nothing: each call opens its own connection, which makes the store safe in any thread and after a fork."""

    @contextlib.contextmanager
    def _connection(self, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        if create and not os.path.isdir(os.path.dirname(self._path) or "."):
            raise InvalidRequestError("the database's directory does not exist: create it", path=self._path)
        path = self._path if create or os.path.exists(self._path) else ":memory:"  # a read creates no file
        try:
            db = sqlite3.connect(path, timeout=self._options.lock_timeout_s, isolation_level=None)
            with contextlib.closing(db):  # an open transaction is rolled back
                db.execute(f"PRAGMA synchronous = {'FULL' if self._options.durable else 'OFF'}")
                db.executescript(_SCHEMA)
                yield db
        except sqlite3.OperationalError as error:
            if "is full" in str(error):
                raise StorageFullError("the disk is full: free some space, then repeat", path=self._path) from error
            raise UnavailableError("the database cannot be used now: repeat later", path=self._path) from error
        except sqlite3.DataError as error:
            raise InvalidRequestError("a value is longer than SQLite allows: write less", path=self._path) from error
        except sqlite3.DatabaseError as error:
            raise CorruptDataError(
                "the file is not a SQLite database: keep it and check the url", path=self._path
            ) from error

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._connection(create=True) as db:
            db.execute("BEGIN IMMEDIATE")  # takes the lock of the only writer
            yield db
            db.execute("COMMIT")

    # --- objects ------------------------------------------------------------------------------------------------------
    def put(
        self,
        key: str,
        data: bytes,
        mode: base.PutMode = base.Overwrite(),
        metadata: Mapping[str, str] | None = None,
    ) -> base.ObjectInfo:
        checks.check_key(key)
        if len(data) > _MAX_BYTES:
            raise InvalidRequestError("an object is longer than SQLite allows: write less", key=key)
        with self._transaction() as db:
            found = db.execute("SELECT etag FROM objects WHERE key = ?", (key.encode(),)).fetchone()
            if isinstance(mode, base.Create) and found is not None:
                raise PreconditionError("the object exists: read it, then decide", key=key)
            if isinstance(mode, base.Update) and found != (mode.etag,):
                raise PreconditionError("the object is not the expected one: read it, then decide", key=key)
            db.execute(_WRITE, (key.encode(), data, _etag(data), self._clock.now_s()))
            return _head(db, key)

    def get(self, key: str, start: int = 0, length: int | None = None, etag: str = "") -> bytes:
        wanted = _MAX_BYTES if length is None else length
        with self._connection() as db:
            one = "SELECT etag, substr(data, ?, ?) FROM objects WHERE key = ?"
            found = db.execute(one, (start + 1, wanted, key.encode())).fetchone()
        if found is None:
            raise NotFoundError("no such object: check the key", key=key)
        if etag and found[0] != etag:
            raise base.replaced(key)
        return found[1] or b""

    def head(self, key: str) -> base.ObjectInfo:
        with self._connection() as db:
            return _head(db, key)

    def list_page(
        self, prefix: str, start_after: str = "", max_keys: int = 1000, token: str | None = None
    ) -> base.ObjectPage:
        first, after = prefix.encode(), (token or start_after).encode()
        where = f"{_INFO} WHERE key >= ? AND key < ? AND key > ? ORDER BY key LIMIT ?"
        with self._connection() as db:
            found = [_info(row) for row in db.execute(where, (first, first + b"\xff", after, max_keys + 1))]
        page = found[:max_keys]
        return base.ObjectPage(page, page[-1].key if len(found) > max_keys else None)

    def delete(self, key: str) -> None:
        self.delete_many([key])

    def delete_many(self, keys: Sequence[str]) -> None:
        checks.check_delete(keys)
        with self._transaction() as db:
            db.executemany("DELETE FROM objects WHERE key = ?", [(key.encode(),) for key in keys])

    # --- uploads ------------------------------------------------------------------------------------------------------
    def create_upload(self, key: str, metadata: Mapping[str, str] | None = None) -> str:
        checks.check_key(key)
        upload_id = self._ids.token()
        with self._transaction() as db:
            db.execute("INSERT INTO uploads VALUES (?, ?, ?)", (key.encode(), upload_id, self._clock.now_s()))
        return upload_id

    def upload_part(self, key: str, upload_id: str, number: int, data: bytes) -> base.Part:
        if not 1 <= number <= _LIMITS.max_parts:
            raise InvalidRequestError("a part number is out of range", key=key, number=number)
        part = base.Part(number, _etag(data), len(data))
        with self._transaction() as db:
            _pending(db, key, upload_id)
            others = "SELECT coalesce(sum(length(data)), 0) FROM parts WHERE id = ? AND number != ?"
            if db.execute(others, (upload_id, number)).fetchone()[0] + len(data) > _MAX_BYTES:  # not at the completion
                raise InvalidRequestError("a file is longer than SQLite allows: write smaller files", key=key)
            db.execute("INSERT OR REPLACE INTO parts VALUES (?, ?, ?, ?)", (upload_id, number, data, part.etag))
        return part

    def complete_upload(self, key: str, upload_id: str, parts: Sequence[base.Part]) -> base.ObjectInfo:
        checks.check_parts(key, parts)
        with self._transaction() as db:
            _pending(db, key, upload_id)
            rows = db.execute("SELECT number, etag, data FROM parts WHERE id = ?", (upload_id,))
            stored = {(number, etag): data for number, etag, data in rows}
            if missing := [part.number for part in parts if (part.number, part.etag) not in stored]:
                raise InvalidRequestError("a part is missing or has another etag", key=key, number=missing[0])
            data = b"".join(stored[part.number, part.etag] for part in parts)
            db.execute(_WRITE, (key.encode(), data, _etag(data), self._clock.now_s()))
            _drop(db, key, upload_id)
            return _head(db, key)

    def abort_upload(self, key: str, upload_id: str) -> None:
        with self._transaction() as db:
            _drop(db, key, upload_id)

    def list_uploads_page(self, prefix: str, marker: tuple[str, str] | None = None) -> base.UploadPage:
        first, (key, upload_id) = prefix.encode(), marker or ("", "")
        where = "SELECT key, id, initiated_at_s FROM uploads WHERE key >= ? AND key < ? AND (key, id) > (?, ?)"
        bounds = (first, first + b"\xff", key.encode(), upload_id)
        with self._connection() as db:
            rows = db.execute(f"{where} ORDER BY key, id LIMIT {_PAGE}", bounds)
            page = [base.UploadInfo(found.decode(), *more) for found, *more in rows]
        return base.UploadPage(page, (page[-1].key, page[-1].upload_id) if len(page) == _PAGE else None)


def _etag(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _info(row: tuple[bytes, int, str, float]) -> base.ObjectInfo:
    return base.ObjectInfo(row[0].decode(), *row[1:])


def _head(db: sqlite3.Connection, key: str) -> base.ObjectInfo:
    found = db.execute(f"{_INFO} WHERE key = ?", (key.encode(),)).fetchone()
    if found is None:
        raise NotFoundError("no such object: check the key", key=key)
    return _info(found)


def _pending(db: sqlite3.Connection, key: str, upload_id: str) -> None:
    if not db.execute("SELECT 1 FROM uploads WHERE key = ? AND id = ?", (key.encode(), upload_id)).fetchone():
        raise NotFoundError(
            "no such upload: it was completed or aborted, or never existed", key=key, upload_id=upload_id
        )


def _drop(db: sqlite3.Connection, key: str, upload_id: str) -> None:
    if db.execute("DELETE FROM uploads WHERE key = ? AND id = ?", (key.encode(), upload_id)).rowcount:
        db.execute("DELETE FROM parts WHERE id = ?", (upload_id,))
