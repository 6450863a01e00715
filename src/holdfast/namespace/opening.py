"""Create and open namespaces, and change their configuration."""

from __future__ import annotations

import getpass
import grp
import json
import os
import pwd
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, replace

from holdfast.errors import ConflictError, InvalidRequestError, NotFoundError
from holdfast.namespace.blobs import BlobStore
from holdfast.namespace.catalog import (
    check_catalog_can_be_written,
    check_name_is_free,
    find_database_url,
    register_namespace,
    split_url,
)
from holdfast.namespace.configuration import (
    Configuration,
    check_same_namespace,
    create_namespace,
    decode_configuration,
    load_configuration,
    remove_new_namespace,
)
from holdfast.namespace.keys import CONFIGURATION
from holdfast.namespace.namespace import Namespace
from holdfast.runtime import Environment
from holdfast.stores.provider import StoreOptions
from holdfast.stores.registry import absolute_url, fill_in_shared_options, locate_url, open_destination
from holdfast.transactions.base import Commit, Committed
from holdfast.transactions.registry import open_backend


def init_namespace(
    configuration: Configuration,
    database: str,
    *,
    register: bool = True,
    store_options: Iterable[StoreOptions] = (),
    environment: Environment | None = None,
) -> bool:
    """Create a namespace in a database; return False if it exists already, with the same name and data URL.

    Args:
        database: URL of the database, whose tables are created.
        register: whether to write the name into this user's catalog.

    Raises:
        InvalidRequestError: the database contains another namespace, the catalog has the name for another one, the data
            URL belongs to another one, or a URL is wrong. No namespace was created.
        NotFoundError, AccessDeniedError, UnavailableError: the database, the store of the data, or the catalog cannot
            be used; see the message. No namespace was created, or the database has crashed, and has lost it.

    Crash: the namespace exists or not; repeat the call.
    """
    environment = environment or Environment()
    configuration = replace(configuration, data=absolute_url(configuration.data), identity=environment.ids.token())
    store_options = tuple(store_options)
    if register:
        check_name_is_free(configuration.name, database)
    _data_store_options(configuration, store_options)  # a wrong URL is refused first
    with ExitStack() as stack:
        found = _find_existing_configuration(database, environment)
        known_options = {} if found is None else found.data_options
        kept = replace(configuration, data_options={**known_options, **configuration.data_options})
        destination = open_destination(configuration.data, _data_store_options(kept, store_options))
        stack.callback(destination.store.close)
        blobs = BlobStore(destination.store, destination.key(""), environment.ids)
        if found is None:
            _require_unused_data_directory(blobs, configuration)
        if register:
            check_catalog_can_be_written(configuration.name, database, environment.clock)
        if found is None:
            blobs.read_store_clock_s()  # it writes: refuse a place that cannot be written while there is no database
        store = open_backend(database, environment, create=True)  # last: a refused creation leaves no database
        stack.callback(store.close)
        is_new = create_namespace(store, configuration, max(int(environment.clock.now_s() * 1000), 0))
        # A mark beside the blobs must not name what a crash could lose. Its creator may not have come to this point.
        store.make_durable()
        try:
            found = load_configuration(store)
            check_same_namespace(found, configuration)  # the database may have lost a new one, and have another
            replace(blobs, claim=found.claim).hold()
        except InvalidRequestError:  # another one was created at the same moment, with the same data URL
            if is_new:
                remove_new_namespace(store, configuration.identity)
            raise
    if register:
        register_namespace(configuration.name, database, environment.clock)
    return is_new


def _find_existing_configuration(database: str, environment: Environment) -> Configuration | None:
    """Return the configuration of the namespace in a database; None if it does not exist.

    Makes no database: a creation that is refused leaves nothing.
    """
    try:
        with closing(open_backend(database, environment)) as store:
            return load_configuration(store)
    except NotFoundError:
        return None


def _require_unused_data_directory(blobs: BlobStore, configuration: Configuration) -> None:
    """Refuse a place where a namespace has its data already.

    Raises:
        InvalidRequestError: there is a mark of another namespace, or there are blobs without one.
    """
    configuration.claim.check(blobs.store, blobs.root)
    if blobs.store.list_page(blobs.key(""), max_keys=1).objects:
        raise InvalidRequestError(
            "there are files of a namespace at this place already: choose another data URL", data=configuration.data
        )


def _data_store_options(configuration: Configuration, given: Iterable[StoreOptions]) -> Iterable[StoreOptions]:
    """Return how to reach the data: as the caller says, and where nothing is said, as the namespace has it.

    Raises:
        InvalidRequestError: the URL of the data is wrong, or an option that the namespace has.
    """
    provider, _ = locate_url(configuration.data)
    return fill_in_shared_options(provider, given, configuration.data_options) if configuration.data_options else given


def open_namespace(
    url: str,
    *,
    database: str | None = None,
    user: str | None = None,
    groups: Sequence[str] | None = None,
    store_options: Iterable[StoreOptions] = (),
    environment: Environment | None = None,
) -> Namespace:
    """Open an existing namespace as one user.

    Args:
        url: ``holdfast://name``, with or without a path; or the URL of the database itself.
        database: URL of the database, if neither the catalog nor the environment knows the name.
        user, groups: who calls; by default, the user of this process and the groups of that user on this machine.
        store_options: how to reach the object store of the data, beyond what the namespace keeps itself
            (`Configuration.data_options`).

    Raises:
        NotFoundError: the name is unknown, or the database contains no namespace.
        InvalidRequestError: the database contains a namespace of another name, or a URL is wrong.
        AccessDeniedError, UnavailableError, UnsupportedError: the database cannot be used; see the message.
    """
    environment = environment or Environment()
    if user == "" or database == "":  # a setting that is missing must not mean another user, or another database
        raise InvalidRequestError("the user or the database is empty: give one, or leave it out")
    name = ""
    if url.startswith("holdfast:"):
        name, _ = split_url(url)
        database = database or find_database_url(name)
    store = open_backend(database or url, environment)
    try:
        configuration = load_configuration(store)
        if name not in ("", configuration.name):
            raise InvalidRequestError(
                "the database contains a namespace of another name: check the URL", name=name, found=configuration.name
            )
        destination = open_destination(configuration.data, _data_store_options(configuration, store_options))
        blobs = BlobStore(destination.store, destination.key(""), environment.ids, configuration.claim)
        user = user_of_process() if user is None else user  # an empty name is refused
        groups = groups_of_user(user) if groups is None else groups
        return Namespace(store, blobs, configuration, environment, user=user, groups=groups)
    except BaseException:
        store.close()
        raise


def user_of_process() -> str:
    """Return the name of the operating system's user that runs this process.

    Raises:
        InvalidRequestError: this machine has no name for the user, as in containers with arbitrary user numbers.
    """
    try:
        return getpass.getuser()
    except (KeyError, OSError) as error:  # KeyError before Python 3.13
        raise InvalidRequestError(
            "this machine has no name for the user of this process: name a user", number=os.getuid()
        ) from error


def groups_of_user(user: str) -> list[str]:
    """Return the groups of a user on this machine; none if it does not know the user."""
    try:
        found = pwd.getpwnam(user)
    except KeyError:
        return []
    names = []
    for number in os.getgrouplist(user, found.pw_gid):
        try:
            names.append(grp.getgrgid(number).gr_name)
        except KeyError:
            continue  # a group without a name
    return names


# --- changes of the configuration -------------------------------------------------------------------------------------
_TRIES = 12


def reconfigure_namespace(
    namespace: Namespace,
    *,
    safety_age_s: int | None = None,
    superuser: str | None = None,
    supergroup: str | None = None,
    data: str | None = None,
    data_options: Mapping[str, str] | None = None,
    store_options: Iterable[StoreOptions] = (),
) -> Configuration:
    """Change parts of a namespace's configuration; return the new configuration. Only the superuser may.

    Clients read the configuration when they open the namespace, so running clients keep the old one. That does
    no harm, with one exception: a writer counts on its blobs being left alone for the safety age. So
    the configuration also keeps the longest safety age that there ever was, for sweeps, which read it anew each time.

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
        old, version = _load_configuration(namespace)
        kept = {} if data is not None else old.data_options  # another store may take other options
        longest_s = max(old.longest_age_s, old.safety_age_s)
        new = replace(
            old,
            **changes,  # type: ignore[arg-type]  # each fits its field
            data_options={**kept, **(data_options or {})},
            longest_age_s=longest_s,
        )
        if (new.data, new.data_options) != (old.data, old.data_options):
            _check_data_directory_owner(new, store_options)
        value = json.dumps(asdict(new), indent=1).encode()
        outcome = namespace.database.commit(Commit(reads={CONFIGURATION: version}, puts={CONFIGURATION: value}))
        if isinstance(outcome, Committed):
            namespace.database.make_durable()  # clients that begin now rely on the place and on the age
            if _load_configuration(namespace)[1] == outcome.version:
                return new  # else a crash of the database has undone it, or others have changed it since
    raise ConflictError("others change the configuration of the namespace all the time: repeat", name=old.name)


def _load_configuration(namespace: Namespace) -> tuple[Configuration, int]:
    """Return the configuration and its version."""
    record = namespace.database.get_many([CONFIGURATION]).get(CONFIGURATION)
    found = decode_configuration(record, namespace.configuration.identity)
    return found, 0 if record is None else record.version


def _check_data_directory_owner(configuration: Configuration, store_options: Iterable[StoreOptions]) -> None:
    destination = open_destination(configuration.data, _data_store_options(configuration, store_options))
    with closing(destination.store):
        if not configuration.claim.check(destination.store, destination.key("")):
            raise InvalidRequestError(
                "the data of the namespace are not at this place: move blobs/ and namespace.json there first",
                data=configuration.data,
            )
