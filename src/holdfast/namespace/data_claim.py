"""Claim the place of a namespace's blobs, so that no two namespaces have the same one.

A sweep notes as garbage what its own database does not name: beside another namespace it would delete that one's files.
So an object beside the blobs names the one namespace that may write and delete there. It is created only if it does not
exist, by ``init``, or by the first client that writes a blob; every process reads it before its first blob.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass

from holdfast.errors import CorruptDataError, InvalidRequestError, NotFoundError, PreconditionError
from holdfast.stores.base import Create, ObjectStore, Overwrite, Support

_MARK = "namespace.json"


@dataclass(slots=True)
class DataClaim:
    """The claim of one namespace. It is held at most once in a process: claims never change.

    Attributes:
        name: of the namespace, for people.
        identity: what no other namespace has.
    """

    name: str
    identity: str
    _is_held: bool = False

    def hold(self, store: ObjectStore, root: str) -> None:
        """Make sure that the blobs below a path belong to this namespace; claim them if nobody has.

        Raises:
            InvalidRequestError: they belong to another namespace; nothing was written.
            CorruptDataError: the mark cannot be read: see the message.
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
        """Return whether this namespace has claimed the blobs below a path; False if nobody has. See `hold`."""
        try:
            mark = store.get(root + _MARK)
        except NotFoundError:
            return False
        try:
            fields = json.loads(mark)
            name, identity = str(fields["namespace"]), fields["identity"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
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
