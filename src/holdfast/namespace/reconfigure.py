"""Change a namespace's configuration while it is in use.

Clients read the configuration when they open the namespace, so those that run keep what they have read. Nothing depends
on their agreement, with one exception: a writer counts on its blobs being left alone for the safety age. So the
configuration also keeps the longest safety age that there ever was, for sweeps, which read it anew each time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace

from holdfast.errors import ConflictError, InvalidRequestError
from holdfast.namespace.configuration import Configuration, load_configuration
from holdfast.namespace.keys import CONFIGURATION
from holdfast.namespace.namespace import Namespace
from holdfast.namespace.root import another_namespace
from holdfast.stores.provider import StoreOptions
from holdfast.stores.registry import with_shared
from holdfast.stores.url import absolute_url, locate, open_destination
from holdfast.transactions.base import Backend, Commit, Committed

_TRIES = 12


def reconfigure(
    namespace: Namespace,
    *,
    safety_age_s: int | None = None,
    superuser: str | None = None,
    supergroup: str | None = None,
    data: str | None = None,
    data_options: Mapping[str, str] | None = None,
    store_options: Iterable[StoreOptions] = (),
) -> Configuration:
    """Change parts of the configuration; return the new one. Only the superuser may.

    Args:
        safety_age_s, superuser, supergroup: see `Configuration`; None leaves them as they are.
        data: where the bytes of files are now; they were moved there, while no client ran.
        data_options: options of that store for all clients, in addition to those that there are.
        store_options: how to reach the store of the data, beyond what all clients share.

    Raises:
        PermissionDeniedError: the caller is not the superuser.
        InvalidRequestError: a value is not valid, or the data of this namespace are not at their new place.
        ConflictError: others change the configuration all the time: repeat.
        FencedError: the database has another namespace by now.

    Crash: the configuration is the old one or the new one.
    """
    namespace.caller.check_superuser("change the configuration")
    store_options = tuple(store_options)
    place = None if data is None else absolute_url(data)
    given = {"safety_age_s": safety_age_s, "superuser": superuser, "supergroup": supergroup, "data": place}
    changes = {name: value for name, value in given.items() if value is not None}
    for _ in range(_TRIES):
        old, version = _load(namespace.database)
        if old.identity != namespace.configuration.identity:
            raise another_namespace()
        kept = {} if data is not None else old.data_options  # another store may take other options
        longest_s = max(old.longest_age_s, old.safety_age_s)
        new = replace(
            old,
            **changes,  # type: ignore[arg-type]  # each fits its field
            data_options={**kept, **(data_options or {})},
            longest_age_s=longest_s,
        )
        if (new.data, new.data_options) != (old.data, old.data_options):
            _check_place(new, store_options)
        value = json.dumps(asdict(new), indent=1).encode()
        outcome = namespace.database.commit(Commit(reads={CONFIGURATION: version}, puts={CONFIGURATION: value}))
        if isinstance(outcome, Committed):
            namespace.database.make_durable()  # clients that begin now rely on the place and on the age
            if _load(namespace.database)[1] == outcome.version:
                return new  # else a crash of the database has undone it, or others have changed it since
    raise ConflictError("others change the configuration of the namespace all the time: repeat", name=old.name)


def _load(database: Backend) -> tuple[Configuration, int]:
    """Return the configuration and its version, which is never newer than what is returned."""
    record = database.get_many([CONFIGURATION]).get(CONFIGURATION)
    return load_configuration(database), 0 if record is None else record.version


def _check_place(configuration: Configuration, store_options: Iterable[StoreOptions]) -> None:
    provider, _ = locate(configuration.data)
    options = with_shared(provider, store_options, configuration.data_options)
    destination = open_destination(configuration.data, options)
    try:
        if not configuration.claim.check(destination.store, destination.key("")):
            raise InvalidRequestError(
                "the data of the namespace are not at this place: move blobs/ and namespace.json there first",
                data=configuration.data,
            )
    finally:
        destination.store.close()
