"""Many changes in one transaction of an object store do what the single operations of the namespace do one by one."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.errors import HoldfastError, InvalidRequestError, NotFoundError, PreconditionError
from holdfast.namespace import phases
from holdfast.namespace.errors import (
    DirectoryNotEmptyError,
    ParentNotDirectoryError,
    PathNotFoundError,
    QuotaExceededError,
)
from holdfast.namespace.fsck.survey import CLOSING_S
from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.namespace.other_records import METADATA, SOFT_LIMIT_MS
from holdfast.stores.base import (
    Change,
    Complete,
    Create,
    Delete,
    Overwrite,
    Part,
    Put,
    PutMode,
    Require,
    RequireEmpty,
    Update,
)
from tests.namespace_world import World

_DIRECTORIES = {"free": 0o777, "sticky": 0o1777, "shut": 0o755, "hidden": 0o700, "counted": 0o777}
_USUAL = ["mine", "open", "silent", "new", "sub/g", "sub/new", "a/b/new", "a/b/other"]
_UNUSUAL = ["f", "f/below", "sub", "a"]
_METADATA = {"by": "upload"}

# One change that is refused refuses all, so most of them are possible.
usual_keys = st.builds("{}/{}".format, st.sampled_from(["free", "counted", "counted"]), st.sampled_from(_USUAL))
any_keys = st.builds("{}/{}".format, st.sampled_from(sorted(_DIRECTORIES)), st.sampled_from(_USUAL + _UNUSUAL))
keys = st.integers(0, 7).flatmap(lambda one: usual_keys if one else any_keys)
contents = st.sampled_from([b"", b"1", b"22", b"large content"])
conditions = st.sampled_from(["", "", "", "", "", "", "", "", "", "absent", "right", "wrong"])


@dataclass(frozen=True)
class Wish:
    """A change that does not know the etags and the upload of its world yet.

    Attributes:
        parts: of an upload. If there are several, the last one is uploaded and then not used.
    """

    kind: str
    key: str
    condition: str = ""
    parts: tuple[bytes, ...] = ()


def _wishes(kind: str, fewest: int, most: int) -> st.SearchStrategy[Wish]:
    return st.builds(
        Wish, st.just(kind), keys, conditions, st.lists(contents, min_size=fewest, max_size=most).map(tuple)
    )


wishes = st.one_of(_wishes("put", 1, 1), _wishes("complete", 1, 3), _wishes("delete", 0, 0))
requirements = st.one_of(
    st.builds(Wish, st.just("require"), any_keys),
    st.builds(
        Wish, st.just("empty"), st.builds("{}/".format, st.one_of(any_keys, st.sampled_from(sorted(_DIRECTORIES))))
    ),
)
limits = st.tuples(st.one_of(st.none(), st.integers(5, 12)), st.one_of(st.none(), st.integers(15, 60)))


class Side:
    """A world with files of several users, and the changes in its terms."""

    def __init__(self, wanted: Sequence[Wish], limit: tuple[int | None, int | None], locks: bool) -> None:
        self.world = World()
        self.root = NamespaceStore(self.world.client(), close_namespace=False)
        self.user = NamespaceStore(self.world.client("alice", locks=locks), close_namespace=False)
        uploads = [self._upload(wish) for wish in wanted]  # before there is anything in the way
        for name, bits in _DIRECTORIES.items():
            self._fill(name, bits)
        if limit != (None, None):
            self.root.namespace.set_quota("/counted", names=limit[0], space=limit[1])
        self.changes = [self._change(wish, *upload) for wish, upload in zip(wanted, uploads, strict=True)]

    def _upload(self, wish: Wish) -> tuple[str, list[Part]]:
        if wish.kind != "complete":
            return "", []
        token = self.root.create_upload(wish.key, _METADATA)
        return token, [self.root.upload_part(wish.key, token, *one) for one in enumerate(wish.parts, 1)]

    def _fill(self, name: str, bits: int) -> None:
        root, alice = self.root.namespace, self.user.namespace
        root.mkdirs(f"/{name}")
        root.set_permission(f"/{name}", 0o777)
        root.write_file(f"/{name}/f", b"large")
        root.mkdirs(f"/{name}/sub")
        root.set_permission(f"/{name}/sub", 0o777)
        alice.write_file(f"/{name}/sub/g", b"1")
        alice.write_file(f"/{name}/mine", b"large too")
        for file, age_ms in (("silent", SOFT_LIMIT_MS + 1), ("open", 0)):
            root.write_file(f"/{name}/{file}", b"large")
            root.set_permission(f"/{name}/{file}", 0o666)
            self.world.client("bob").append(f"/{name}/{file}")
            self.world.clock.at_s += age_ms / 1000
        root.set_permission(f"/{name}", bits)

    def _change(self, wish: Wish, token: str, parts: Sequence[Part]) -> Change:
        etag = self.etag_of(wish.key.rstrip("/")) if wish.condition == "right" else "another"
        mode: PutMode = Create() if wish.condition == "absent" else Update(etag) if wish.condition else Overwrite()
        match wish.kind:
            case "put":
                return Put(wish.key, wish.parts[0], mode)
            case "complete":
                return Complete(wish.key, token, tuple(parts[:-1] or parts), mode)
            case "delete":
                return Delete(wish.key, etag if wish.condition else "")
            case "require":
                return Require(wish.key)
        return RequireEmpty(wish.key)

    def etag_of(self, key: str) -> str:
        try:
            return self.root.head(key).etag
        except NotFoundError:
            return "missing"

    def seen(self) -> list[object]:
        """Return all there is, but for times and ids."""
        namespace = self.root.namespace
        found: list[object] = []
        for entry in namespace.walk("/"):
            rights = entry.path, entry.owner, entry.group, entry.mode
            if not entry.is_directory:
                content = namespace.open(entry.path).read()
                found.append((*rights, content, entry.is_open, namespace.xattrs(entry.path)))
            else:
                found.append(rights)
        return [*found, len(self.world.records(b"l"))]

    def used(self) -> tuple[int, int]:
        """Return what a quota would count: names and bytes."""
        found = self.root.namespace.content_summary("/counted")
        return found.files + found.directories, found.space

    def tidy(self) -> None:
        """Remove the directories that became empty: an object store does so later, and only where it may."""
        namespace = self.root.namespace
        below = [entry.path for entry in namespace.walk("/") if entry.is_directory and entry.path.count("/") > 1]
        for path in reversed(below):
            with suppress(DirectoryNotEmptyError):
                namespace.delete(path)

    def assert_healthy(self) -> None:
        """Check every record and blob: nothing is lost, miscounted or left behind."""
        self.world.clock.at_s += 2 * self.world.safety_age_s + CLOSING_S
        self.root.namespace.collect()
        assert self.root.namespace.check().totals == {}


def _one_by_one(side: Side, wanted: Sequence[Wish]) -> None:
    """Check all conditions, then make the changes by the single operations of the namespace."""
    namespace = side.user.namespace
    for change in side.changes:
        if isinstance(change, RequireEmpty):
            _require_empty(side, change.key.rstrip("/"))
        elif isinstance(change, Require):
            found = namespace.find(f"/{change.key}")
            if found is None or found.is_directory:
                raise PreconditionError("missing")
        elif isinstance(change, Put | Complete):
            _check_created(side, change)
    for change in side.changes:
        if isinstance(change, Delete):
            _delete(side, change)
    for wish, change in zip(wanted, side.changes, strict=True):
        if isinstance(change, Put):
            namespace.write_file(f"/{change.key}", change.data, overwrite=True)
        elif isinstance(change, Complete):
            namespace.write_file(f"/{change.key}", b"".join(wish.parts[:-1] or wish.parts), overwrite=True)
            side.root.namespace.set_xattr(f"/{change.key}", METADATA, json.dumps(_METADATA).encode())
            side.root.abort_upload(change.key, change.upload_id)


def _require_empty(side: Side, key: str) -> None:
    try:
        entries = list(side.user.namespace.list(f"/{key}"))
    except (PathNotFoundError, ParentNotDirectoryError):
        return
    if any(entry.path != f"/{key}" for entry in entries):
        raise PreconditionError("not empty")


def _check_created(side: Side, change: Put | Complete) -> None:
    found = side.root.namespace.find(f"/{change.key}")
    if isinstance(change.mode, Create) and found is not None:
        raise PreconditionError("there")
    if isinstance(change.mode, Update) and (found is None or change.mode.etag != side.etag_of(change.key)):
        raise PreconditionError("another")
    above = change.key.rpartition("/")[0]
    while above:
        found = side.root.namespace.find(f"/{above}")
        if found is not None and not found.is_directory:
            raise InvalidRequestError("a file above")  # even if the same changes remove it
        above = above.rpartition("/")[0]


def _delete(side: Side, change: Delete) -> None:
    found = side.user.namespace.find(f"/{change.key}")
    if found is not None and (found.is_directory or change.etag not in ("", side.etag_of(change.key))):
        return
    try:
        assert side.user.namespace.delete(f"/{change.key}") == (found is not None)
    except ParentNotDirectoryError:
        return


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(
    wanted=st.lists(wishes, max_size=6, unique_by=lambda wish: wish.key),
    required=st.sampled_from([0, 0, 0, 1]).flatmap(lambda most: st.lists(requirements, max_size=most)),
    limit=limits,
    part=st.sampled_from([1, 2, 1000]),
    locks=st.sampled_from([False, False, True]),
)
def test_a_change_set_is_the_same_as_its_changes_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
    wanted: Sequence[Wish],
    required: Sequence[Wish],
    limit: tuple[int | None, int | None],
    part: int,
    locks: bool,
) -> None:
    wanted = [*wanted, *required]
    whole, single = Side(wanted, limit, locks), Side(wanted, (None, None), False)
    before, used = whole.seen(), whole.used()
    with monkeypatch.context() as patch:
        patch.setattr(phases, "_PIECE", part)
        error = _error_of(lambda: whole.user.apply(whole.changes))
    wanted_error = _error_of(lambda: _one_by_one(single, wanted))
    if wanted_error is None and _is_exceeded(limit, used, single.used()):
        assert isinstance(error, QuotaExceededError)
    else:
        assert (error is None) == (wanted_error is None), (error, wanted_error)
    if error is not None:
        assert whole.seen() == before
    else:
        for side in (whole, single):
            side.tidy()
            side.assert_healthy()
        assert whole.seen() == single.seen()


def _error_of(call: Callable[[], None]) -> HoldfastError | None:
    try:
        call()
    except HoldfastError as error:
        return error
    return None


def _is_exceeded(limit: tuple[int | None, int | None], before: tuple[int, int], after: tuple[int, int]) -> bool:
    """Check whether changes should be refused: all of them together make something larger than its limit."""
    return any(most is not None and max(old, most) < new for most, old, new in zip(limit, before, after, strict=True))
