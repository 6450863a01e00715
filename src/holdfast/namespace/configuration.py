"""Define a namespace's configuration, which is a record of its database."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field

from holdfast.errors import MALFORMED, CorruptDataError, InvalidRequestError, NotFoundError, PreconditionError
from holdfast.namespace.inode import (
    Inode,
    InodeKind,
    check_block_size,
    check_replication,
    encode_inode,
    is_integer_in_range,
)
from holdfast.namespace.keys import CONFIGURATION, ROOT_ID, ROOT_KEY, children_range
from holdfast.namespace.permissions import check_stored_name
from holdfast.namespace.view import another_namespace_error
from holdfast.stores.base import Create, ObjectStore, Overwrite, Support
from holdfast.transactions.base import Backend, Commit, Committed, RangeCount, Record

_MARK = "namespace.json"


@dataclass(slots=True)
class BlobPathClaim:
    """The claim of one namespace to the path of its blobs: an object beside them, so that no two namespaces share a
    path.

    A sweep treats as garbage every blob that its own database does not refer to, so at a shared path it would delete
    the files of the other namespace. So an object beside the blobs names the one namespace that may write and delete
    there. It is created only if it does not exist, by ``init``, or by the first client that writes a blob; every
    process reads it before its first blob. Claims never change, so a process makes its claim only once.

    Attributes:
        name: the namespace's name, for people.
        identity: the unique id of the namespace.
    """

    name: str
    identity: str
    _is_held: bool = False

    def hold(self, store: ObjectStore, root: str) -> None:
        """Claim the path of the blobs for this namespace, unless it has claimed it already.

        Raises:
            InvalidRequestError: another namespace has claimed the path; nothing was written.
            CorruptDataError: the present claim cannot be read: see the message.
        """
        if self._is_held:
            return
        if not self.check(store, root):
            heeds = store.capabilities.conditional_put is not Support.NO
            value = json.dumps({"namespace": self.name, "identity": self.identity}, indent=1).encode()
            with suppress(PreconditionError):  # another process, of this namespace or of another one, was first
                store.put(root + _MARK, value, Create() if heeds else Overwrite())
            self.check(store, root)
        self._is_held = True

    def check(self, store: ObjectStore, root: str) -> bool:
        """Return whether this namespace has claimed the path of the blobs; False if the path is free. For the errors,
        see `hold`.
        """
        try:
            mark = store.get(root + _MARK)
        except NotFoundError:
            return False
        try:
            fields = json.loads(mark)
            name, identity = str(fields["namespace"]), fields["identity"]
        except MALFORMED as error:
            raise CorruptDataError(
                "the mark beside the blobs of a namespace cannot be read: if no other namespace has its data there, "
                "delete it",
                object=root + _MARK,
            ) from error
        if identity != self.identity:
            raise InvalidRequestError(
                "the data of this namespace are at the place of another one, and cleaning up one would delete the "
                "files of the other: give each a data URL of its own; if the other one is gone, delete its mark",
                owner=name,
                mark=root + _MARK,
            )
        return True


LAYOUT_VERSION = 1
"""The version of the records' meaning (`keys`, `inode`). The database's schema has a version of its own."""

_MOST_INLINE = 1024 * 1024
_LONGEST_S = 10**11


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The settings of a namespace that all its clients share, stored in its database.

    Attributes:
        name: the name in URLs: ``holdfast://name/path``.
        data: the URL of the object store for file contents, without credentials.
        data_options: options of that store which all clients share, as text by their documented names: its endpoint and
            region. Options that a client gives itself take precedence. Never credentials.
        superuser, supergroup: who passes every permission check.
        inline_bytes: files up to this size live in the database.
        block_size, replication: what clients get if they do not ask for anything else.
        permissions: whether permissions are checked at all.
        safety_age_s: how long a blob that no file refers to is kept for readers and slow writers.
        longest_age_s: the longest safety age before this one: a running writer may still count on it.
        created_ms: when the namespace was created, milliseconds since the epoch.
        identity: a token that no other namespace has; `BlobPathClaim` needs it.
        layout: see `LAYOUT_VERSION`.
    """

    name: str
    data: str
    data_options: Mapping[str, str] = field(default_factory=dict)
    superuser: str
    supergroup: str = "supergroup"
    inline_bytes: int = 64 * 1024
    block_size: int = 128 * 1024 * 1024
    replication: int = 1
    permissions: bool = True
    safety_age_s: int = 24 * 3600
    longest_age_s: int = 0
    created_ms: int = 0
    identity: str = ""
    layout: int = LAYOUT_VERSION

    def __post_init__(self) -> None:
        if not self.name or not all(one.isascii() and (one.isalnum() or one in "-_") for one in self.name):
            raise InvalidRequestError(
                "the name of a namespace has letters, digits, '-' and '_' only: change it", name=self.name
            )
        if not _are_option_texts(self.data_options):
            raise InvalidRequestError("options of the object store are names and texts: change data_options")
        check_stored_name(self.superuser, "the superuser")
        check_stored_name(self.supergroup, "the supergroup")
        if not is_integer_in_range(self.inline_bytes, 0, _MOST_INLINE):
            raise InvalidRequestError(
                f"files in the database have at most {_MOST_INLINE} bytes: change inline_bytes", given=self.inline_bytes
            )
        check_replication(self.replication)
        check_block_size(self.block_size)
        if not is_integer_in_range(self.safety_age_s, 0, _LONGEST_S) or not is_integer_in_range(
            self.longest_age_s, 0, _LONGEST_S
        ):
            raise InvalidRequestError(
                f"a safety age is a number of whole seconds, at most {_LONGEST_S}: change safety_age_s",
                given=self.safety_age_s,
            )

    @property
    def sweep_age_s(self) -> int:
        """The age in seconds at which a sweep may delete a blob that no file refers to: younger ones may belong to a
        live writer.
        """
        return max(self.safety_age_s, self.longest_age_s)

    @property
    def claim(self) -> BlobPathClaim:
        """The claim of this namespace to the path of its blobs."""
        return BlobPathClaim(self.name, self.identity or f"{self.name}-{self.created_ms}")


def _are_option_texts(options: object) -> bool:
    return isinstance(options, Mapping) and all(isinstance(one, str) for one in (*options, *options.values()))


def create_namespace(store: Backend, configuration: Configuration, now_ms: int) -> bool:
    """Write the configuration and the root of a new namespace; return False if the database has a namespace already."""
    root = Inode(
        id=ROOT_ID,
        kind=InodeKind.DIRECTORY,
        mode=0o755,
        owner=configuration.superuser,
        group=configuration.supergroup,
        mtime_ms=now_ms,
        namespace=configuration.identity,
    )
    value = json.dumps(asdict(configuration) | {"created_ms": now_ms}, indent=1).encode()
    outcome = store.commit(Commit(inserts={CONFIGURATION: value, ROOT_KEY: encode_inode(root)}))
    return isinstance(outcome, Committed)


def check_same_namespace(found: Configuration, configuration: Configuration) -> None:
    """Check that the namespace in a database has the wanted name and data URL.

    Raises:
        InvalidRequestError: the name or data URL differs.
    """
    if (found.name, found.data) != (configuration.name, configuration.data):
        if found.name == configuration.name:
            raise InvalidRequestError(
                "the namespace exists already, with its data at another place: leave that as it is, or create another "
                "namespace in another database; data that were moved are told to holdfast namespace set",
                name=found.name,
                data=found.data,
            )
        raise InvalidRequestError(
            "the database contains another namespace already: choose another database, or on PostgreSQL another schema "
            "of this one, with ?schema= in its url",
            name=found.name,
            data=found.data,
        )


def remove_new_namespace(store: Backend, identity: str) -> None:
    """Remove a namespace that was just created and is still empty; do nothing if it was used, or if the database
    contains another one.

    Args:
        identity: of the namespace; after a crash, the database may contain another one that is as new.
    """
    found = store.get_many([CONFIGURATION, ROOT_KEY])
    if CONFIGURATION not in found or decode_configuration(found[CONFIGURATION]).identity != identity:
        return
    seen = {key: record.version for key, record in found.items()}
    unused = RangeCount(ROOT_KEY, *children_range(ROOT_ID), 0)
    store.commit(Commit(reads=seen, deletes=list(found), ranges=[unused]))


def load_configuration(store: Backend, identity: str | None = None) -> Configuration:
    """Read the configuration of the namespace in a database. For `identity` and the errors, see
    `decode_configuration`.
    """
    return decode_configuration(store.get_many([CONFIGURATION]).get(CONFIGURATION), identity)


def decode_configuration(record: Record | None, identity: str | None = None) -> Configuration:
    """Decode the configuration in its record; None stands for a missing record.

    Args:
        identity: of the namespace that this process has opened; None for any.

    Raises:
        NotFoundError: the database contains no namespace: create one.
        CorruptDataError: the configuration is damaged, or of a newer release.
        FencedError: the database has another namespace by now.
    """
    if record is None:
        raise NotFoundError("the database contains no namespace: create one with holdfast namespace init")
    try:
        fields = json.loads(record.value)
        layout = int(fields["layout"])
        if layout > LAYOUT_VERSION:
            raise CorruptDataError(
                f"the namespace has layout {layout}, and this release of Holdfast knows {LAYOUT_VERSION}: upgrade "
                "Holdfast"
            )
        unknown = sorted(fields.keys() - Configuration.__dataclass_fields__.keys())
        if unknown:
            raise CorruptDataError(
                "the configuration of the namespace has entries that this release of Holdfast does not know: upgrade "
                "Holdfast",
                entries=unknown,
            )
        found = Configuration(**fields)
    except MALFORMED as error:
        raise CorruptDataError("the configuration of the namespace is damaged: restore the database") from error
    if identity not in (None, found.identity):
        raise another_namespace_error()
    return found
