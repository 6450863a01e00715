"""Run ``holdfast namespace serve``: WebHDFS for Hadoop's and Spark's own clients."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import click

from holdfast.cli.arguments import parse_age
from holdfast.cli.command import CommandRun, Name, OutputForm, ResourceKind, command, option
from holdfast.cli.trying_out import show_demo
from holdfast.errors import UnsupportedError

_FILE = click.Path(path_type=Path, dir_okay=False)
_TRUST = "Believe user.name from everywhere: on a closed network only."


@command(ResourceKind.NAMESPACES, OutputForm.LINES)
def serve(
    run: CommandRun,
    name: Name,
    host: Annotated[str, option("--host", "Address to listen on.", default="127.0.0.1", show_default=True)],
    port: Annotated[int, option("--port", "Port; 0 takes a free one.", type=click.IntRange(0, 65535), default=9870)],
    workers: Annotated[int, option("--workers", "Processes.", type=click.IntRange(1, 64), default=1)],
    users: Annotated[Path | None, option("--users", "File of groups and proxies.", type=_FILE)],
    trust_user_name: Annotated[bool, option("--trust-user-name", _TRUST)],
    certificate: Annotated[Path | None, option("--tls-certificate", "For HTTPS: PEM file.", type=_FILE)],
    key: Annotated[Path | None, option("--tls-key", "Its key.", type=_FILE)],
    client_ca: Annotated[Path | None, option("--client-ca", "Its certificates prove users.", type=_FILE)],
    access_log: Annotated[str, option("--access-log", "File of requests; - for stdout.", default="")],
    trash: Annotated[float | None, option("--trash", "Delete what was in the trash so long.", type=parse_age)],
) -> None:
    """Serve a namespace to Spark, Hadoop and other clients of WebHDFS.

    Examples:
      holdfast namespace serve prod
      holdfast namespace serve prod --host 0.0.0.0 --workers 4 --users users.ini
      spark-submit job.py webhdfs://127.0.0.1:9870/data

    Any number of servers may serve one namespace. On loopback, user.name in a request is believed; elsewhere, a request
    needs a token (holdfast namespace token) or a client certificate. One of the servers also does what holdfast
    namespace gc does. SIGTERM lets requests end first.
    """
    try:
        from holdfast.webhdfs.server import serve as run_server
    except ModuleNotFoundError as error:
        raise UnsupportedError("a server needs further packages: pip install 'holdfast[server]'") from error
    from holdfast.webhdfs.settings import ServerSettings, is_loopback

    namespace = run.namespace(name)  # so that mistakes show here
    settings = ServerSettings(
        url=f"holdfast://{namespace.configuration.name}",
        database=run.find_namespace_database_url(namespace.configuration.name),
        store_options=tuple(run.reach.parse_options_for_all_store_kinds()),
        host=host,
        port=port,
        workers=workers,
        users_file=users,
        believes_names=True if trust_user_name else None,
        certificate=certificate,
        key=key,
        client_ca=client_ca,
        access_log=access_log,
        trash_s=trash,
    )
    namespace.close()

    def show_address(address: str) -> None:
        run.out.line({"address": address})
        for_clients = address.replace("https:", "swebhdfs:").replace("http:", "webhdfs:")
        run.out.say(f"serving {namespace.configuration.name} at {address}/: {for_clients}/")
        if trust_user_name and not is_loopback(host):
            run.out.note("everyone who reaches this address can be any user, the superuser too")

    run_server(settings, show_address)


@command()
def demo(
    run: CommandRun,
    keep: Annotated[bool, option("--keep", "Keep the namespace and the logs, and print where they are.")],
) -> None:
    """Watch a Spark job go on while one of two servers is killed.

    Stock Spark writes two million rows through WebHDFS, to two servers of one namespace, which is in an SQLite file and
    a directory. Takes half a minute. Requires pip install 'holdfast[server,spark]' and Java 17 or newer.

    Examples:
      holdfast namespace demo
      holdfast namespace demo --keep --json

    The exit code is 1 if a row is missing, duplicated or wrong, or the namespace is damaged.
    """
    from holdfast.demo.failover import run_failover_demo
    from holdfast.demo.folder import demo_folder

    with demo_folder(keep) as folder:
        show_demo(run.out, run_failover_demo, folder, keep=keep)
