"""Run ``holdfast namespace token …``: issue tokens for the clients of servers, list them and revoke them."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from holdfast.cli.arguments import parse_age, refuse_empty_value
from holdfast.cli.command import CommandRun, Name, OutputForm, ResourceKind, argument, command, option
from holdfast.cli.output import ResultColumn, time_text, to_document
from holdfast.errors import InvalidRequestError

if TYPE_CHECKING:
    from holdfast.cli.output import Output
    from holdfast.namespace import Namespace
    from holdfast.webhdfs.tokens import Token, TokenStore

_FILE = click.Path(path_type=Path, dir_okay=False)

_COLUMNS = (
    ResultColumn("id", "id", lambda token: token.id),
    ResultColumn("user", "user", lambda token: token.user),
    ResultColumn("kind", "kind", lambda token: token.kind.value),
    ResultColumn("groups", None, lambda token: None if token.groups is None else list(token.groups)),
    ResultColumn("issued", "issued", lambda token: time_text(token.issued_ms / 1000)),
    ResultColumn("expires", "expires", lambda token: time_text(token.expires_ms / 1000)),
    ResultColumn("note", "note", lambda token: token.note),
)


def _open_tokens(namespace: Namespace, what: str) -> TokenStore:
    """Return the tokens of a namespace, if the caller is its superuser."""
    from holdfast.webhdfs.tokens import TokenStore

    namespace.caller.check_superuser(what)
    return TokenStore(namespace.database, namespace.environment)


@command(ResourceKind.NAMESPACES)
def issue(
    run: CommandRun,
    name: Name,
    owner: Annotated[str, argument("USER")],
    lifetime: Annotated[float, option("--for", "How long it is valid.", type=parse_age, default="30d")],
    groups: Annotated[
        tuple[str, ...], option("--group", "Instead of those that servers know; repeatable.", type=refuse_empty_value)
    ],
    note: Annotated[str, option("--note", "Shown by list.", default="", show_default=False)],
    file: Annotated[Path | None, option("--file", "Write it into a new file.", type=_FILE)],
    hadoop_file: Annotated[Path | None, option("--hadoop-file", "Write a new file for Hadoop.", type=_FILE)],
    servers: Annotated[
        tuple[str, ...],
        option("--server", "HOST:PORT for Hadoop; repeatable.", type=refuse_empty_value, metavar="SERVER"),
    ],
) -> None:
    """Issue a token, which proves to servers that a client is USER.

    Only the superuser may.

    Examples:
      holdfast namespace token issue prod ann --for 90d --note laptop
      holdfast namespace token issue prod ann --hadoop-file ann.hdt \\
          --server files.example.org:9870
      HADOOP_TOKEN_FILE_LOCATION=ann.hdt spark-submit job.py

    The token is printed once, and kept nowhere: the database has only a digest of it. Clients send it in the header
    Authorization: Bearer. Files are new, and only you may read them. --hadoop-file writes a file in which Hadoop and
    Spark find the token for webhdfs://HOST:PORT; with --server alone, what is printed is the value of HADOOP_TOKEN for
    them. For servers with TLS, write swebhdfs://HOST:PORT. If clients find several servers by one name, write
    webhdfs://NAME.
    """
    from holdfast.webhdfs.hadoop_tokens import make_token_file, tokens_for_servers

    if hadoop_file is not None and not servers:
        raise InvalidRequestError("a file for Hadoop is for certain servers: give --server HOST:PORT")
    tokens_for_servers("", servers, owner)  # mistakes show before there is a token
    tokens = _open_tokens(run.namespace(name), "issue tokens")
    secret, token = tokens.issue(owner, lifetime, groups=groups or None, note=note)
    for_hadoop = tokens_for_servers(secret, servers, owner)
    with ExitStack() as undo:
        undo.callback(tokens.revoke, token.id)
        if file is not None:
            _write_new_file(file, f"{secret}\n".encode(), undo)
        if hadoop_file is not None:
            _write_new_file(hadoop_file, make_token_file(for_hadoop), undo)
        undo.pop_all()
    shown = ",".join(one.encode() for one in for_hadoop) or secret
    _show(run.out, token, shown if file is None and hadoop_file is None else None)


def _write_new_file(path: Path, data: bytes, undo: ExitStack) -> None:
    """Write a file that only its owner may read; `undo` removes it."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        undo.callback(path.unlink)
        with open(descriptor, "wb") as file:
            file.write(data)
    except FileExistsError as error:
        raise InvalidRequestError("the file exists: choose another one, or remove it", path=str(path)) from error
    except OSError as error:
        raise InvalidRequestError("the file cannot be written: choose another place", path=str(path)) from error


def _show(out: Output, token: Token, secret: str | None) -> None:
    """Show a new token: what says that it is one goes to stderr, so that a script can take the token from stdout."""
    out.document({**to_document(_COLUMNS, token), **({} if secret is None else {"token": secret})})
    if not out.json:
        out.note(f"token {token.id} for {token.user}, until {time_text(token.expires_ms / 1000)}")
    if secret is not None:
        out.say(secret)


@command(ResourceKind.NAMESPACES, OutputForm.LINES, name="list")
def list_tokens(run: CommandRun, name: Name) -> None:
    """List the tokens of clients, without their secrets.

    Only the superuser may.

    Examples:
      holdfast namespace token list prod
      holdfast namespace token list prod --json | jq -r .id

    Those of the kind bearer were issued by holdfast namespace token issue; those of the kind delegation by servers, to
    clients of Hadoop. Tokens that have expired are shown until a server removes them.
    """
    tokens = _open_tokens(run.namespace(name), "list tokens")
    found = sorted((token for _, token in tokens.iter_tokens()), key=lambda token: (token.user, token.issued_ms))
    run.out.lines(_COLUMNS, found, nothing="there is no token: see holdfast namespace token issue")


@command(ResourceKind.NAMESPACES)
def revoke(run: CommandRun, name: Name, token: Annotated[str, argument("ID")]) -> None:
    """Revoke the token with an id that list shows.

    Only the superuser may.

    Examples:
      holdfast namespace token revoke prod 5f0c9a7be214

    Servers notice it within 5 seconds. Delegation tokens that clients have got with it are revoked, too.
    """
    gone = _open_tokens(run.namespace(name), "revoke tokens").revoke(token)
    run.out.document(to_document(_COLUMNS, gone))
    run.out.say(f"revoked the token {gone.id} of {gone.user}: servers notice it within 5 seconds")
