"""Run ``holdfast namespace init``: create a namespace."""

from __future__ import annotations

import os

import click

from holdfast.cli.arguments import Reach, age, byte_count, filled, on_store, reports
from holdfast.cli.output import Output
from holdfast.cli.session import refuse_password
from holdfast.errors import InvalidRequestError

_EPILOG = """\b
Examples:
  holdfast namespace init prod --database sqlite:///var/lib/prod.db \\
      --data s3://bucket/prod
  holdfast namespace init prod --data s3://bucket/prod \\
      --database postgresql://holdfast@db.example.org/holdfast
  HOLDFAST_NAMESPACE_PROD=... holdfast namespace init prod --data ./data

Creates the tables in the database, and the root directory. The database must exist, except for an SQLite file. The
namespace's name and the URL of the database are kept in your catalog, ~/.config/holdfast/namespaces.json, so that
holdfast://prod/ is all that you need from then on. A password does not belong on a command line: put the whole URL of
the database in the variable HOLDFAST_NAMESPACE_<NAME>, or the password in ~/.pgpass. If the namespace exists already,
nothing changes."""


@click.command(epilog=_EPILOG)
@click.argument("name")
@click.option(
    "--database", metavar="URL", type=filled, help="Where the tree is kept: sqlite:///file, postgresql://user@host/db."
)
@click.option(
    "--data",
    metavar="URL",
    type=filled,
    required=True,
    help="Where the bytes of files are kept: s3://bucket/key, a path.",
)
@click.option("--superuser", metavar="USER", type=filled, help="Who passes every permission check.  [default: you]")
@click.option("--supergroup", metavar="GROUP", type=filled, help="Its members too.  [default: supergroup]")
@click.option("--inline-bytes", metavar="SIZE", type=byte_count, help="Keep files up to this size in the database.")
@click.option("--block-size", metavar="SIZE", type=byte_count, help="Block size that Hadoop's clients are told.")
@click.option("--replication", metavar="N", type=click.IntRange(1, 512), help="Factor of space quotas.  [default: 1]")
@click.option("--safety-age", metavar="AGE", type=age, help="Keep deleted bytes for readers so long.  [default: 1d]")
@click.option("--no-permissions", is_flag=True, help="Let everybody do everything.")
@click.option("--no-register", is_flag=True, help="Do not write the name into your catalog.")
@on_store
@reports
def init(
    name: str,
    database: str | None,
    data: str,
    superuser: str | None,
    supergroup: str | None,
    inline_bytes: int | None,
    block_size: int | None,
    replication: int | None,
    safety_age: float | None,
    no_permissions: bool,
    no_register: bool,
    reach: Reach,
    out: Output,
) -> None:
    """Create the namespace NAME, with its tree in a database and its data in an object store."""
    from holdfast.namespace import Configuration, init_namespace
    from holdfast.namespace.catalog import known_namespaces, variable_of
    from holdfast.namespace.opening import user_of_process
    from holdfast.stores.registry import parse_store_options, providers_for, scheme_of, shared_options
    from holdfast.stores.url import absolute_url, locate
    from holdfast.transactions.urls import public_url

    given = {
        "supergroup": supergroup,
        "inline_bytes": inline_bytes,
        "block_size": block_size,
        "replication": replication,
        "safety_age_s": None if safety_age is None else int(safety_age),
    }
    configuration = Configuration(
        name=name,
        data=absolute_url(data),
        data_options=shared_options(locate(data)[0], reach.options(data)),
        superuser=user_of_process() if superuser is None else superuser,
        permissions=not no_permissions,
        **{field: value for field, value in given.items() if value is not None},  # type: ignore[arg-type]  # each fits its field
    )
    if database is not None:
        refuse_password(database, name)
    where = database or os.environ.get(variable_of(name)) or known_namespaces().get(name)
    if not where:
        raise InvalidRequestError(
            f"the namespace needs a database: give --database, or set {variable_of(name)} to its url"
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
        register=not no_register,
        store_options=parse_store_options(reach.options(data), providers_for([data])),
    )
    out.document({"name": name, "created": is_new, "database": public_url(where), "data": configuration.data})
    if is_new:
        out.say(f"created namespace {name}: list it with holdfast fs ls holdfast://{name}/")
    else:
        out.say(f"namespace {name} exists already, nothing was changed: see holdfast namespace status {name} and set")
