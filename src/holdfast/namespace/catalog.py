"""Map names of namespaces to database URLs, in a file of the user, for URLs like ``holdfast://name/path``.

The catalog is a JSON file that maps names to database URLs: ``$HOLDFAST_NAMESPACES``, else
``$XDG_CONFIG_HOME/holdfast/namespaces.json`` or ``~/.config/holdfast/namespaces.json``. It may contain passwords, so
only its owner may read it; writers lock a file beside it. ``$HOLDFAST_NAMESPACE_<NAME>`` overrides it: for containers,
and for the executors of a cluster.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.errors import MALFORMED, AccessDeniedError, CorruptDataError, InvalidRequestError, NotFoundError
from holdfast.runtime import Clock
from holdfast.stores.local.tree import lock_descriptor
from holdfast.wording import suggest_nearest

SCHEME = "holdfast"

VARIABLE_PREFIX = "HOLDFAST_NAMESPACE_"
"""How the environment variables that override the catalog begin; the namespace's name follows."""

_LOCK_S = 10.0


def split_url(url: str) -> tuple[str, str]:
    """Split the URL of a path in a namespace into the name of the namespace and the path, which is at least ``/``.

    Raises:
        InvalidRequestError: it is no URL of a namespace.
    """
    scheme, _, rest = url.partition("://")
    name, slash, path = rest.partition("/")
    if scheme != SCHEME:
        raise InvalidRequestError("this is no URL of a namespace: write holdfast://name/path", url=url)
    if not name:
        raise InvalidRequestError("the URL of a namespace has a name: write holdfast://name/path", url=url)
    return name, slash + path or "/"


def catalog_file() -> Path:
    """Return the path of the user's catalog file, which need not exist.

    Raises:
        InvalidRequestError: the user has no home directory, as in containers with arbitrary user numbers.
    """
    given = os.environ.get("HOLDFAST_NAMESPACES")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CONFIG_HOME")
    try:
        return (Path(base) if base else Path.home() / ".config") / "holdfast" / "namespaces.json"
    except RuntimeError as error:
        raise InvalidRequestError(
            "the user of this process has no home directory: name a catalog of namespaces in HOLDFAST_NAMESPACES",
            number=os.getuid(),
        ) from error


def read_catalog() -> dict[str, str]:
    """Read the catalog file; return the database URL of each namespace by name.

    Raises:
        CorruptDataError: the file is not a catalog.
        InvalidRequestError: see `catalog_file`.
    """
    file = catalog_file()
    try:
        found = json.loads(file.read_text("utf-8"))
        if not isinstance(found, dict) or not all(isinstance(one, str) for one in found.values()):
            raise ValueError("not a mapping of names to URLs")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InvalidRequestError(
            "the catalog of namespaces cannot be read: name another file in HOLDFAST_NAMESPACES", file=str(file)
        ) from error
    except MALFORMED as error:
        raise CorruptDataError(
            "the catalog of namespaces cannot be read: repair or remove it", file=str(file)
        ) from error
    return found


def namespace_variable(name: str) -> str:
    """Return the name of the environment variable that overrides the catalog for a namespace."""
    return VARIABLE_PREFIX + name.upper().replace("-", "_")


def find_database_url(name: str) -> str:
    """Return the database URL of a namespace, from the environment or the catalog.

    Raises:
        NotFoundError: neither the environment nor the catalog knows the name.
        InvalidRequestError: the environment does not know it, and there is no home directory for a catalog.
    """
    given = os.environ.get(namespace_variable(name))
    if given:
        return given
    known = read_catalog()
    if name in known:
        return known[name]
    raise NotFoundError(
        "no such namespace: "
        + (suggest_nearest(name, known) if known else "create one with holdfast namespace init, or name its database"),
        name=name,
        catalog=str(catalog_file()),
    )


def check_name_is_free(name: str, database: str) -> None:
    """Check that the catalog does not have another database under this name.

    Raises:
        InvalidRequestError: the name stands for another database already.
        CorruptDataError: the file is not a catalog.
    """
    _is_registered(read_catalog(), name, database)


def check_catalog_can_be_written(name: str, database: str, clock: Clock) -> None:
    """Check that `register_namespace` could write the name into the catalog now.

    Raises:
        AccessDeniedError, UnavailableError: see `register_namespace`.
    """
    if not _is_registered(read_catalog(), name, database):
        with _lock_catalog(name, clock):
            pass


def _is_registered(known: dict[str, str], name: str, database: str) -> bool:
    if known.get(name, database) != database:
        raise InvalidRequestError(
            "the catalog has another database under this name: choose another name, or edit the catalog",
            name=name,
            catalog=str(catalog_file()),
        )
    return name in known


def register_namespace(name: str, database: str, clock: Clock) -> None:
    """Write the name and the database URL of a namespace into the catalog.

    Guarantee: several processes may do so at the same time.

    Raises:
        InvalidRequestError: the name stands for another database already.
        AccessDeniedError: the file cannot be written.
        UnavailableError: another process keeps the catalog locked; nothing was written.

    Crash: the catalog is the old one or the new one.
    """
    if _is_registered(read_catalog(), name, database):
        return
    with _lock_catalog(name, clock):
        known = read_catalog()
        if not _is_registered(known, name, database):
            _write_catalog({**known, name: database})


def _write_catalog(known: dict[str, str]) -> None:
    file = _resolve_catalog_file()
    fresh = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            json.dump(known, stream, indent=1, sort_keys=True)
            stream.flush()
            os.fsync(descriptor)
        os.replace(fresh, file)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


@contextmanager
def _lock_catalog(name: str, clock: Clock) -> Iterator[None]:
    """Keep other processes from writing the catalog, by a lock on a file beside it, which stays."""
    file = _resolve_catalog_file()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file.with_name(f"{file.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            lock_descriptor(descriptor, str(catalog_file()), _LOCK_S, clock)
            yield
        finally:
            os.close(descriptor)
    except OSError as error:
        raise AccessDeniedError(
            f"the catalog of namespaces cannot be written: name another file in HOLDFAST_NAMESPACES, or set "
            f"{namespace_variable(name)} to the url of the database",
            file=str(file),
        ) from error


def _resolve_catalog_file() -> Path:
    """Return the file that the catalog is, if its path is a link, as in a directory of dotfiles."""
    return Path(os.path.realpath(catalog_file()))
