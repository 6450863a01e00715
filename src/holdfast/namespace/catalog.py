"""Remember where the databases of namespaces are, so that a URL like ``holdfast://name/path`` is enough.

The catalog is a JSON file that maps names to database URLs: ``$HOLDFAST_NAMESPACES``, else
``$XDG_CONFIG_HOME/holdfast/namespaces.json`` or ``~/.config/holdfast/namespaces.json``. It may contain passwords, so
only its owner may read it. ``$HOLDFAST_NAMESPACE_<NAME>`` overrides it: for containers, and for the executors of a
cluster.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from holdfast.errors import AccessDeniedError, CorruptDataError, InvalidRequestError, NotFoundError
from holdfast.wording import nearest

__all__ = [
    "SCHEME",
    "VARIABLE_PREFIX",
    "catalog_file",
    "check_name_is_free",
    "database_of",
    "known_namespaces",
    "register_namespace",
    "split_url",
    "variable_of",
]

SCHEME = "holdfast"

VARIABLE_PREFIX = "HOLDFAST_NAMESPACE_"
"""How the environment variables that override the catalog begin; the namespace's name follows."""


def split_url(url: str) -> tuple[str, str]:
    """Return the name of the namespace and the path in a URL; the path is at least ``/``.

    Raises:
        InvalidRequestError: it is no URL of a namespace.
    """
    scheme, separator, rest = url.partition("://")
    name, slash, path = rest.partition("/")
    if scheme != SCHEME or not separator or not name:
        raise InvalidRequestError("the URL of a namespace has a name: write holdfast://name/path", url=url)
    return name, slash + path or "/"


def catalog_file() -> Path:
    """Return the path of the catalog, which need not exist."""
    given = os.environ.get("HOLDFAST_NAMESPACES")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "holdfast" / "namespaces.json"


def known_namespaces() -> dict[str, str]:
    """Return the database URLs in the catalog by name.

    Raises:
        CorruptDataError: the file is not a catalog.
    """
    file = catalog_file()
    try:
        found = json.loads(file.read_text("utf-8"))
        if not isinstance(found, dict) or not all(isinstance(one, str) for one in found.values()):
            raise ValueError("not a mapping of names to URLs")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise CorruptDataError(
            "the catalog of namespaces cannot be read: repair or remove it", file=str(file)
        ) from error
    return found


def variable_of(name: str) -> str:
    """Return the environment variable that overrides the catalog for a namespace."""
    return VARIABLE_PREFIX + name.upper().replace("-", "_")


def database_of(name: str) -> str:
    """Return the URL of a namespace's database.

    Raises:
        NotFoundError: neither the environment nor the catalog knows the name.
    """
    given = os.environ.get(variable_of(name))
    if given:
        return given
    known = known_namespaces()
    if name in known:
        return known[name]
    raise NotFoundError(
        "no such namespace: "
        + (nearest(name, known) if known else "create one with holdfast namespace init, or name its database"),
        name=name,
        catalog=str(catalog_file()),
    )


def check_name_is_free(name: str, database: str) -> None:
    """Refuse a name that the catalog cannot take.

    Raises:
        InvalidRequestError: the name stands for another database already.
        CorruptDataError: the file is not a catalog.
    """
    if known_namespaces().get(name, database) != database:
        raise InvalidRequestError(
            "the catalog has another database under this name: choose another name, or edit the catalog",
            name=name,
            catalog=str(catalog_file()),
        )


def register_namespace(name: str, database: str) -> None:
    """Write a name into the catalog.

    Raises:
        InvalidRequestError: the name stands for another database already.
        AccessDeniedError: the file cannot be written.

    Crash: the catalog is the old one or the new one.
    """
    check_name_is_free(name, database)
    known = known_namespaces()
    if name in known:
        return
    file = catalog_file()
    fresh = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            json.dump({**known, name: database}, stream, indent=1, sort_keys=True)
        os.replace(fresh, file)
    except OSError as error:
        raise AccessDeniedError(
            f"the catalog of namespaces cannot be written: name another file in HOLDFAST_NAMESPACES, or set "
            f"{variable_of(name)} to the url of the database",
            file=str(file),
        ) from error
