"""Run ``holdfast namespace set``: change the configuration of a namespace."""

from __future__ import annotations

import click

from holdfast.cli.arguments import age, filled
from holdfast.cli.output import Output, duration
from holdfast.cli.session import Session, on_namespaces
from holdfast.errors import InvalidRequestError

_EPILOG = """\b
Examples:
  holdfast namespace set prod --safety-age 2d
  holdfast namespace set prod --superuser hdfs
  holdfast namespace set prod --endpoint-url https://s3.example.org

Options of the object store, such as --endpoint-url and --region, are kept for all clients, as by init; to forget them,
repeat --data with the URL that it has. Programs that run already go on with the old configuration: start them again,
also holdfast namespace gc --every."""


@click.command("set", epilog=_EPILOG)
@click.argument("name")
@click.option("--safety-age", metavar="AGE", type=age, help="Keep deleted bytes for readers so long.")
@click.option("--superuser", metavar="USER", type=filled, help="Who passes every permission check from now on.")
@click.option("--supergroup", metavar="GROUP", type=filled, help="Its members, too.")
@click.option("--data", metavar="URL", type=filled, help="Where the bytes of files are now: you have moved them there.")
@on_namespaces
def change(
    name: str,
    safety_age: float | None,
    superuser: str | None,
    supergroup: str | None,
    data: str | None,
    session: Session,
    out: Output,
) -> None:
    """Change the configuration of the namespace NAME. Only its superuser may."""
    from holdfast.namespace.reconfigure import reconfigure
    from holdfast.stores.registry import shared_options
    from holdfast.stores.url import absolute_url, locate

    namespace = session.open_named(name)
    place = None if data is None else absolute_url(data)
    url = place or namespace.configuration.data
    shared = shared_options(locate(url)[0], session.reach.options(url))
    if not shared and all(one is None for one in (safety_age, superuser, supergroup, data)):
        raise InvalidRequestError("nothing to change: give an option, and see holdfast namespace status")
    new = reconfigure(
        namespace,
        safety_age_s=None if safety_age is None else int(safety_age),
        superuser=superuser,
        supergroup=supergroup,
        data=place,
        data_options=shared,
        store_options=session.reach.options_of_any_store(),
    )
    out.document(
        {
            "name": new.name,
            "data": new.data,
            "data_options": dict(new.data_options),
            "superuser": new.superuser,
            "supergroup": new.supergroup,
            "safety_age_s": new.safety_age_s,
        }
    )
    out.say(f"changed namespace {new.name}: programs that run already keep the old configuration until they end")
    if new.safety_age_s < new.longest_age_s:
        out.note(
            f"deleted files go after {duration(new.safety_age_s)}; a sweep still spares blobs that no file refers to "
            f"for {duration(new.longest_age_s)}, which writers that run may count on"
        )
