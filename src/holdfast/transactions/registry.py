"""Find the backend of a database by the scheme of its URL, take URLs apart, and show them without their secrets.

Other packages add a database by registering a function like `open_backend` of the packages here, which opens the
database of a URL, as an entry point, one per scheme::

    [project.entry-points."holdfast.databases"]
    cockroach = "holdfast_cockroach:open_backend"

Write every method of `base.Backend`, also `snapshot` and `begin_locking_transaction`, which namespaces, units and the
command line call. Copy `mysql/` if the database offers READ COMMITTED. With SERIALIZABLE, do what
`SqliteBackend._apply_group` does, and repeat serialization failures (`sql.iter_retries_until_timeout`), but not those
of a locked transaction that has returned what it read: it may only fail with `DeadlockError`, or it needs READ
COMMITTED. Look up lost replies (`sql.find_outcome`, table ``sessions``). The backend has to pass the acceptance suite
in tests/conformance/backends, which is not installed: its tests import it from a checkout, as
tests/conformance/test_backends.py does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from urllib.parse import SplitResult, unquote, urlsplit

from holdfast.errors import InvalidRequestError, UnsupportedError
from holdfast.runtime import Environment
from holdfast.transactions import memory
from holdfast.transactions.base import Backend
from holdfast.transactions.group_commit import GroupCommit
from holdfast.transactions.sql import load_schema
from holdfast.wording import is_unicode, parse_digits, suggest_nearest

ENTRY_POINT_GROUP = "holdfast.databases"

_BUILT_IN: Mapping[str, str] = {
    "sqlite": "sqlite",
    "postgresql": "postgres",
    "postgres": "postgres",
    "mysql": "mysql",
    "mariadb": "mysql",
}
"""By scheme: the package of `holdfast.transactions` whose `backend` opens it, and whose extra brings its driver."""

_MEMORY = "memory"


def open_backend(
    url: str, environment: Environment | None = None, *, create: bool = False, group_commits: bool = True
) -> Backend:
    """Open the database of a URL, and bring its schema to the present version.

    Args:
        url: ``sqlite:///directory/file.db``, ``postgresql://user:password@host:port/database?schema=holdfast``,
            ``mysql://…`` or, within one process, ``memory://name``. Options in the query: ``connections`` (servers),
            ``synchronous`` (SQLite); PostgreSQL's driver takes its own there too.
        create: whether to create the tables if the database has none.
        group_commits: whether threads share commits and reads (`GroupCommit`), except for ``memory://``.

    Raises:
        InvalidRequestError: the URL is wrong.
        UnsupportedError: the driver is not installed, or the schema is newer than this release.
        NotFoundError: the database does not exist or is empty, and `create` is False.
        AccessDeniedError, UnavailableError: see the message.
    """
    scheme, separator, _ = url.partition("://")
    opener = _find_opener(scheme) if separator else None
    if opener is None:
        raise InvalidRequestError(
            "a database needs a URL such as sqlite:///directory/file.db: "
            + suggest_nearest(scheme, (*_BUILT_IN, _MEMORY, *_find_entry_points())),
            given=scheme if separator else "no scheme",
        )
    split_url(url)  # or it is refused, before anything shows a part of it
    environment = environment or Environment()
    found = opener(url, environment, create=create)
    return GroupCommit(found, clock=environment.clock) if group_commits and scheme != _MEMORY else found


def _find_opener(scheme: str) -> Callable[..., Backend] | None:
    """Return the function that opens databases of a scheme; None for an unknown scheme."""
    found: Callable[..., Backend]
    if scheme == _MEMORY:
        return memory.open_backend
    if scheme in _BUILT_IN:
        package = _BUILT_IN[scheme]
        try:
            found = import_module(f"holdfast.transactions.{package}.backend").open_backend
            return found
        except ImportError as error:
            raise UnsupportedError(f"{scheme}:// needs its driver: pip install 'holdfast[{package}]'") from error
    load = _find_entry_points().get(scheme)
    try:
        return None if load is None else load()
    except Exception as error:  # importing another package's module may raise anything
        raise UnsupportedError(
            "the package that provides this url scheme cannot be imported: reinstall it", scheme=scheme
        ) from error


def _find_entry_points() -> Mapping[str, Callable[[], Callable[..., Backend]]]:
    """Return what loads the openers of other packages, by scheme: the search reads the metadata of all packages."""
    from importlib.metadata import entry_points  # deferred: it takes 7 ms, and built-in backends never need it

    return {entry.name: entry.load for entry in entry_points(group=ENTRY_POINT_GROUP)}


def schema_version_of(url: str) -> int:
    """Return the version of the tables' schema that this release creates and migrates to in a database.

    0 means that it is not known: for ``memory://``, which has no tables, and for backends of other packages.
    """
    package = _BUILT_IN.get(url.partition("://")[0])
    return 0 if package is None else len(load_schema(f"holdfast.transactions.{package}"))


# --- URLs -------------------------------------------------------------------------------------------------------------
_WITHOUT_LOGIN = ("sqlite", "memory")
_MOST_CONNECTIONS = 1000


def split_url(url: str) -> SplitResult:
    """Split the URL of a database into its parts.

    Raises:
        InvalidRequestError: it has no clear parts: percent-encode what is not meant to separate them. The message does
            not contain the URL, which may have a password in the wrong place.
    """
    if not (url.startswith("sqlite:") or is_unicode(url)):  # the name of a file may be any bytes
        raise InvalidRequestError("the url of a database must be valid Unicode: percent-encode other bytes")
    if "#" in url:
        raise InvalidRequestError("the url of a database has no fragment: write # as %23, also in a password")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise InvalidRequestError("the url of the database is not valid: check the host and its brackets") from None
    # An @ elsewhere means that a password contains one of @ / ?, so that the rest of it looks like a host or a path.
    if parts.scheme not in _WITHOUT_LOGIN and (url.count("@") > 1 or ("@" in url and "@" not in parts.netloc)):
        raise InvalidRequestError(
            "the url of the database has an @ in the wrong place: percent-encode special characters in user, password"
            " and options: @ as %40, / as %2F, ? as %3F"
        )
    return parts


def parse_query(query: str) -> list[tuple[str, str]]:
    """Parse the query of a database's URL into names and values.

    A plus sign stands for itself, as in libpq, not for a space, as in HTML forms.
    """
    pairs = [one.partition("=") for one in query.split("&") if one]
    return [(unquote(name), unquote(value)) for name, _, value in pairs]


def parse_known_options(query: str, known: Collection[str]) -> dict[str, str]:
    """Parse the query of a database's URL, and refuse options that its backend does not know.

    Args:
        query: the part of the URL after the question mark.
        known: the names of the options.

    Raises:
        InvalidRequestError: an option is unknown, or given twice.
    """
    found: dict[str, str] = {}
    for name, value in parse_query(query):
        if name not in known:
            hint = suggest_nearest(name, known)
            raise InvalidRequestError(f"the URL of the database has an unknown option: {hint}", option=name)
        if name in found:
            raise InvalidRequestError("the database url has an option twice: leave one of them out", option=name)
        found[name] = value
    return found


def parse_connections(text: str) -> int:
    """Parse the URL option ``connections``: how many connections a process opens at most.

    Raises:
        InvalidRequestError: it is no such number.
    """
    found = parse_digits(text)
    if found is None or not 1 <= found <= _MOST_CONNECTIONS:
        raise InvalidRequestError(f"connections is a number from 1 to {_MOST_CONNECTIONS}: change the URL", given=text)
    return found


def public_url(url: str) -> str:
    """Return the URL of a database without user, password and options, except the schema: it may be shown and logged.

    Guarantee: nothing before the last ``@`` is shown, even if the URL is not valid.
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        return "(not a url)"
    try:
        urlsplit(url)
    except ValueError:
        return "(not a url)"
    shown = rest if _is_at_sign_in_path(scheme, rest) else rest.rpartition("@")[2]
    place, _, query = shown.partition("?")
    schema = [value for name, value in parse_query(query) if name == "schema" and value.isidentifier()]
    return f"{scheme}://{place}" + (f"?schema={schema[0]}" if len(schema) == 1 else "")


def has_password(url: str) -> bool:
    """Return whether the URL of a database has a password; true in doubt, as if one contains ``@ / ? #``."""
    scheme, _, rest = url.partition("://")
    login = "" if _is_at_sign_in_path(scheme, rest) else rest.rpartition("@")[0]
    names = (name.lower() for name, _ in parse_query(rest.partition("?")[2]))
    return ":" in login or any(name.endswith(_SECRET_OPTIONS) for name in names)


def _is_at_sign_in_path(scheme: str, rest: str) -> bool:
    """Check whether an ``@`` in the URL is part of a path."""
    return scheme in _WITHOUT_LOGIN and rest.startswith("/")


_SECRET_OPTIONS = ("password", "passwd")
"""How the names of options end whose values are passwords, such as ``sslpassword``."""
