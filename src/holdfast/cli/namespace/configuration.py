"""Run ``holdfast namespace init``, ``list``, ``status`` and ``set``."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import click

from holdfast.cli.arguments import parse_age, parse_byte_count, refuse_empty_value, refuse_password
from holdfast.cli.command import CommandRun, Name, ResourceKind, command, option
from holdfast.cli.failures import exit_code
from holdfast.cli.output import (
    ResultColumn,
    duration_text,
    format_with_commas,
    size_text,
    time_text,
    to_documents,
)
from holdfast.errors import HoldfastError, InvalidRequestError

if TYPE_CHECKING:
    from holdfast.namespace import Configuration, Namespace

_DATABASE = "Where the tree is kept: sqlite:///file, postgresql://user@host/db."
_DATA = "Where the bytes of files are kept: s3://bucket/key, a path."
_MOVED = "Where the bytes of files are now: you have moved them there."
_SAFETY = "Keep deleted bytes for readers so long; at first 1d."
_COPIES = option("--replication", "Factor of space quotas.  [default: 1]", type=click.IntRange(1, 512))
Superuser = Annotated[
    str | None, option("--superuser", "Passes every permission check; at first you.", type=refuse_empty_value)
]
Supergroup = Annotated[
    str | None, option("--supergroup", "Its members, too; at first supergroup.", type=refuse_empty_value)
]
SafetyAge = Annotated[float | None, option("--safety-age", _SAFETY, type=parse_age)]


@command(ResourceKind.STORES)
def init(
    run: CommandRun,
    name: Name,
    database: Annotated[str | None, option("--database", _DATABASE, metavar="URL", type=refuse_empty_value)],
    data: Annotated[str, option("--data", _DATA, metavar="URL", type=refuse_empty_value, required=True)],
    superuser: Superuser,
    supergroup: Supergroup,
    inline_bytes: Annotated[
        int | None, option("--inline-bytes", "Keep files up to it in the database.", type=parse_byte_count)
    ],
    block_size: Annotated[int | None, option("--block-size", "Block size for Hadoop clients.", type=parse_byte_count)],
    replication: Annotated[int | None, _COPIES],
    safety_age: SafetyAge,
    no_permissions: Annotated[bool, option("--no-permissions", "Check no permissions.")],
    no_register: Annotated[bool, option("--no-register", "Do not write the name into your catalog.")],
) -> None:
    """Create a namespace, with its tree in a database.

    Examples:
      holdfast namespace init prod --database sqlite:///var/lib/prod.db \\
          --data s3://bucket/prod
      holdfast namespace init prod --data s3://bucket/prod \\
          --database postgresql://holdfast@db.example.org/holdfast
      HOLDFAST_NAMESPACE_PROD=... holdfast namespace init prod --data ./data

    Creates the tables in the database, and the root directory. The database must exist, except for an SQLite file. The
    namespace's name and the URL of the database are kept in your catalog, ~/.config/holdfast/namespaces.json, so that
    holdfast://prod/ is all that you need from then on. Options of the object store, such as --endpoint-url, are kept
    for all clients. A password does not belong on a command line: put the whole URL of the database in the variable
    HOLDFAST_NAMESPACE_<NAME>, or the password in ~/.pgpass. If the namespace exists already, nothing changes.
    """
    from holdfast.namespace import Configuration
    from holdfast.namespace.opening import user_of_process
    from holdfast.stores.registry import absolute_url, locate_url, shared_options

    given: dict[str, Any] = {
        "supergroup": supergroup,
        "inline_bytes": inline_bytes,
        "block_size": block_size,
        "replication": replication,
        "safety_age_s": None if safety_age is None else int(safety_age),
    }
    configuration = Configuration(
        name=name,
        data=absolute_url(data),
        data_options=shared_options(locate_url(data)[0], run.reach.options(data)),
        superuser=user_of_process() if superuser is None else superuser,
        permissions=not no_permissions,
        **{field: value for field, value in given.items() if value is not None},
    )
    _create_namespace(run, configuration, database, data, register=not no_register)


def _create_namespace(
    run: CommandRun, configuration: Configuration, database: str | None, data: str, *, register: bool
) -> None:
    from holdfast.namespace import init_namespace
    from holdfast.namespace.catalog import namespace_variable, read_catalog
    from holdfast.stores.registry import find_providers_for_options, parse_store_options, scheme_of
    from holdfast.transactions.registry import public_url

    name = configuration.name
    if database is not None:
        refuse_password(database, namespace_variable(name))
    where = database or os.environ.get(namespace_variable(name)) or read_catalog().get(name)
    if not where:
        raise InvalidRequestError(
            f"the namespace needs a database: give --database, or set {namespace_variable(name)} to its url"
        )
    for url in (where, configuration.data):
        if scheme_of(url) == "memory":
            raise InvalidRequestError(
                "memory:// exists in one process only, and ends with this command: name a database and a store that "
                "last"
            )
    is_new = init_namespace(
        configuration,
        where,
        register=register,
        store_options=parse_store_options(run.reach.options(data), find_providers_for_options([data])),
    )
    run.out.document({"name": name, "created": is_new, "database": public_url(where), "data": configuration.data})
    if is_new:
        reach = f"--database {public_url(where)} " if database is not None and not register else ""
        run.out.say(f"created namespace {name}: list it with holdfast fs ls {reach}holdfast://{name}/")
    else:
        run.out.say(
            f"namespace {name} exists already, nothing was changed: see holdfast namespace status {name} and set"
        )


@command(name="list")
def list_namespaces(run: CommandRun) -> None:
    """List the namespaces that you know, with their databases.

    Examples:
      holdfast namespace list
      holdfast namespace list --json

    Namespaces come from the catalog, ~/.config/holdfast/namespaces.json or the file in HOLDFAST_NAMESPACES, and from
    the variables HOLDFAST_NAMESPACE_<NAME>, which override it. The databases are not contacted, and passwords not
    shown.
    """
    from holdfast.namespace.catalog import VARIABLE_PREFIX, catalog_file, namespace_variable, read_catalog
    from holdfast.transactions.registry import public_url

    catalog = str(catalog_file())
    found = {namespace_variable(name): (name, url, catalog) for name, url in read_catalog().items()}
    for variable, url in os.environ.items():
        if variable.startswith(VARIABLE_PREFIX) and url:
            name = found[variable][0] if variable in found else variable.removeprefix(VARIABLE_PREFIX).lower()
            found[variable] = (name, url, variable)
    rows = sorted(found.values())
    columns = (
        ResultColumn("name", "name", lambda one: one[0]),
        ResultColumn("database", "database", lambda one: public_url(one[1])),
        ResultColumn("from", None, lambda one: one[2]),
        ResultColumn("", "from", lambda one: "catalog" if one[2] == catalog else one[2]),
    )
    run.out.document({"catalog": catalog, "namespaces": to_documents(columns, rows)})
    if rows:
        run.out.show(columns, rows)
        run.out.say(f"catalog: {catalog}")
    else:
        run.out.say("no namespace is known: create one with holdfast namespace init")


# --- status -----------------------------------------------------------------------------------------------------------
_TEXTS: Mapping[str, Callable[[Any], str]] = {
    "data_options": lambda options: " ".join(f"{name}={value}" for name, value in options.items()) or "-",
    "permissions": lambda checked: "checked" if checked else "not checked",
    "inline_bytes": size_text,
    "block_size": size_text,
    "safety_age_s": duration_text,
    "leader": lambda leader: "none" if leader is None else f"{leader['holder']}, until {leader['until']}",
    "servers": lambda servers: str(len(servers)),
}
"""How a person sees the value of a field."""


@command(ResourceKind.NAMESPACES)
def status(run: CommandRun, name: Name) -> None:
    """Show a namespace's configuration and its pending work.

    Examples:
      holdfast namespace status prod
      holdfast namespace status prod --json

    Contacts the database and the object store. The exit code is 3 if one of them cannot be reached. At most 100,000
    files that are being written, deleted trees and garbage blobs are counted. Processes of servers are listed with what
    the one that leads has removed; one that is silent for a minute has probably died.
    """
    from holdfast.namespace.maintenance import current_leader
    from holdfast.namespace.pending import count_pending_work
    from holdfast.runtime import SystemClock
    from holdfast.transactions.registry import public_url, schema_version_of
    from holdfast.webhdfs.servers import list_servers

    out = run.out
    with out.show_spinner("contacting the database"):
        namespace = run.namespace(name)
        url = run.find_namespace_database_url(namespace.configuration.name)
        pending = count_pending_work(namespace, SystemClock())
        leader = current_leader(namespace.database, SystemClock())
        servers = list_servers(namespace.database)
    columns = _server_columns("" if leader is None else leader.holder, SystemClock().now_s())
    with out.show_spinner("contacting the object store"):
        problem = _find_store_problem(namespace)
    known = namespace.configuration
    found = {
        "name": known.name,
        "database": public_url(url),
        "schema": schema_version_of(url) or None,
        "layout": known.layout,
        "data": known.data,
        "data_options": dict(known.data_options),
        "created": time_text(known.created_ms / 1000),
        **{field: getattr(known, field) for field in ("superuser", "supergroup", "permissions", "inline_bytes")},
        **{field: getattr(known, field) for field in ("block_size", "replication", "safety_age_s")},
        "data_reachable": problem is None,
        **pending,
        "leader": None if leader is None else {"holder": leader.holder, "until": time_text(leader.until_s)},
        "servers": to_documents(columns, servers),
    }
    out.document(found)
    out.fields(found, _TEXTS)
    if servers:
        out.show(columns, servers)
    if pending["deleted_trees"] or pending["garbage_blobs_due"]:
        out.say(f"there is something to remove: run holdfast namespace gc {known.name}")
    if problem is not None:
        out.note(f"error: {problem}")
        raise click.exceptions.Exit(exit_code(problem))


def _server_columns(leader: str, now_s: float) -> Sequence[ResultColumn]:
    """Return what is shown of the processes of servers."""
    return (
        ResultColumn("host", "server", lambda server: server.host),
        ResultColumn("port", "port", lambda server: server.port, str),
        ResultColumn("pid", "pid", lambda server: server.pid, str),
        ResultColumn("started", "started", lambda server: time_text(server.since_s)),
        ResultColumn("silent_s", "silent", lambda server: round(max(now_s - server.at_s, 0.0), 1), duration_text),
        ResultColumn("requests", "requests", lambda server: server.requests, format_with_commas),
        ResultColumn("leads", "leads", lambda server: server.token == leader),
        ResultColumn("duties", "has removed", lambda server: server.duties, _duties_text),
    )


def _duties_text(duties: Mapping[str, int] | None) -> str:
    return ", ".join(f"{number:,} {kind}" for kind, number in (duties or {}).items() if number) or "-"


def _find_store_problem(namespace: Namespace) -> HoldfastError | None:
    """Return why the object store cannot be listed; None if it can."""
    try:
        namespace.blobs.store.list_page(namespace.blobs.key(""), max_keys=1)
    except HoldfastError as error:
        return error
    return None


# --- set --------------------------------------------------------------------------------------------------------------
@command(ResourceKind.NAMESPACES, name="set")
def change(
    run: CommandRun,
    name: Name,
    safety_age: SafetyAge,
    superuser: Superuser,
    supergroup: Supergroup,
    data: Annotated[str | None, option("--data", _MOVED, metavar="URL", type=refuse_empty_value)],
) -> None:
    """Change the configuration of a namespace.

    Only its superuser may.

    Examples:
      holdfast namespace set prod --safety-age 2d
      holdfast namespace set prod --superuser hdfs
      holdfast namespace set prod --endpoint-url https://s3.example.org

    Options of the object store, such as --endpoint-url and --region, are kept for all clients, as by init; to remove
    them, give --data with its present URL. Running programs keep the old configuration: restart them, including
    holdfast namespace gc --every.
    """
    from holdfast.namespace.opening import reconfigure_namespace
    from holdfast.stores.registry import absolute_url, locate_url, shared_options

    namespace = run.namespace(name)
    place = None if data is None else absolute_url(data)
    url = place or namespace.configuration.data
    shared = shared_options(locate_url(url)[0], run.reach.options(url))
    if not shared and all(one is None for one in (safety_age, superuser, supergroup, data)):
        raise InvalidRequestError("nothing to change: give an option, and see holdfast namespace status")
    new = reconfigure_namespace(
        namespace,
        safety_age_s=None if safety_age is None else int(safety_age),
        superuser=superuser,
        supergroup=supergroup,
        data=place,
        data_options=shared,
        store_options=run.reach.parse_options_for_all_store_kinds(),
    )
    kept = ("name", "data", "superuser", "supergroup", "safety_age_s")
    run.out.document({**{key: getattr(new, key) for key in kept}, "data_options": dict(new.data_options)})
    run.out.say(f"changed namespace {new.name}: programs that run already keep the old configuration until they end")
    if new.safety_age_s < new.longest_age_s:
        run.out.note(
            f"deleted files go after {duration_text(new.safety_age_s)}; a sweep still spares blobs that no file refers "
            f"to for {duration_text(new.longest_age_s)}, which writers that run may count on"
        )
