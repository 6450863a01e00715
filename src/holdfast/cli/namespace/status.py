"""Run ``holdfast namespace status``: show a namespace's configuration and its pending work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.failures import exit_code
from holdfast.cli.output import Output, duration, size, when
from holdfast.cli.session import Session, on_namespaces
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast.cli.namespace.pending import Pending
    from holdfast.namespace import Namespace

_EPILOG = """\b
Examples:
  holdfast namespace status prod
  holdfast namespace status prod --json

Contacts the database and the object store. The exit code is 3 if one of them cannot be reached."""


@click.command(epilog=_EPILOG)
@click.argument("name")
@on_namespaces
def status(name: str, session: Session, out: Output) -> None:
    """Show the configuration of the namespace NAME, and what waits for its garbage collection."""
    from holdfast.cli.namespace.pending import count_pending
    from holdfast.namespace.leader import current_leader
    from holdfast.runtime import SystemClock
    from holdfast.transactions.registry import schema_of
    from holdfast.transactions.urls import public_url

    with out.waiting("contacting the database"):
        namespace = session.open_named(name)
        url = session.database_of(namespace.configuration.name)
        clock = SystemClock()
        pending = count_pending(namespace, clock)
        leader = current_leader(namespace.database, clock)
    with out.waiting("contacting the object store"):
        problem = _problem_of_store(namespace)
    configuration = namespace.configuration
    found = {
        "name": configuration.name,
        "database": public_url(url),
        "schema": schema_of(url) or None,
        "layout": configuration.layout,
        "data": configuration.data,
        "data_options": dict(configuration.data_options),
        "data_reachable": problem is None,
        "created": when(configuration.created_ms / 1000),
        "superuser": configuration.superuser,
        "supergroup": configuration.supergroup,
        "permissions": configuration.permissions,
        "inline_bytes": configuration.inline_bytes,
        "block_size": configuration.block_size,
        "replication": configuration.replication,
        "safety_age_s": configuration.safety_age_s,
    }
    out.document(
        {
            **found,
            "leases": pending.leases.number,
            "deleted_trees": pending.trees.number,
            "garbage_blobs": pending.garbage.number,
            "garbage_blobs_due": pending.due.number,
            "leader": None if leader is None else {"holder": leader.holder, "until": when(leader.until_s)},
        }
    )
    shown = {
        **found,
        "data_options": " ".join(f"{name}={value}" for name, value in configuration.data_options.items()) or None,
        "data_reachable": "yes" if problem is None else f"no: {problem}",
        "permissions": "checked" if configuration.permissions else "not checked",
        "inline_bytes": size(configuration.inline_bytes),
        "block_size": size(configuration.block_size),
        "safety_age": duration(configuration.safety_age_s),
    }
    del shown["safety_age_s"]
    rows = [(key.replace("_", " "), "-" if value is None else str(value)) for key, value in shown.items()]
    holder = "none" if leader is None else f"{leader.holder}, until {when(leader.until_s)}"
    out.table(["field", "value"], [*rows, *_waiting(pending), ("leader", holder)])
    if pending.trees.number or pending.due.number:
        out.say(f"there is something to remove: run holdfast namespace gc {configuration.name}")
    if problem is not None:
        raise click.exceptions.Exit(exit_code(problem))


def _waiting(pending: Pending) -> list[tuple[str, str]]:
    return [
        ("files being written", str(pending.leases)),
        ("deleted trees waiting", str(pending.trees)),
        ("garbage blobs", f"{pending.garbage}, of which {pending.due} can be deleted"),
    ]


def _problem_of_store(namespace: Namespace) -> HoldfastError | None:
    """Return why the object store cannot be listed; None if it can."""
    try:
        namespace.blobs.store.list_page(namespace.blobs.key(""), max_keys=1)
    except HoldfastError as error:
        return error
    return None
