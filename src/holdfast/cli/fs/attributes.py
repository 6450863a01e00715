"""Run ``holdfast fs setfattr`` and ``holdfast fs getfattr``: extended attributes."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

import click

from holdfast.cli.arguments import Word
from holdfast.cli.fs.command import fs_command, with_urls
from holdfast.cli.output import Output
from holdfast.cli.session import Session, lists_from_namespaces, on_namespaces
from holdfast.errors import InvalidRequestError

if TYPE_CHECKING:
    from holdfast.cli.fs.items import Item

_SET_EPILOG = """\b
Examples:
  holdfast fs setfattr -n user.origin -v lab7 holdfast://prod/data
  holdfast fs setfattr -n user.hash -v 0xcafe holdfast://prod/data/one.csv
  holdfast fs setfattr -x user.origin holdfast://prod/data

A value that begins with 0x is hexadecimal, with 0s Base64; everything else is text, which may be in double quotes."""

_GET_EPILOG = """\b
Examples:
  holdfast fs getfattr holdfast://prod/data
  holdfast fs getfattr -n user.hash -e hex --glob 'holdfast://prod/data/*.csv'"""


@fs_command("setfattr", epilog=_SET_EPILOG)
@with_urls
@click.option("-n", "name", metavar="NAME", help="Set this attribute, such as user.origin.")
@click.option("-v", "value", metavar="VALUE", help="Its value.  [default: empty]")
@click.option("-x", "removed", metavar="NAME", help="Remove this attribute.")
@on_namespaces
def setfattr(
    urls: tuple[str, ...],
    glob: bool,
    name: str | None,
    value: str | None,
    removed: str | None,
    session: Session,
    out: Output,
) -> None:
    """Set or remove an extended attribute of files and directories."""
    from holdfast.cli.fs.changing import change_all
    from holdfast.cli.fs.items import find_items

    if (name is None) == (removed is None) or (removed is not None and value is not None):
        raise click.UsageError("give -n NAME with -v VALUE to set an attribute, or -x NAME to remove one")
    content = _decoded(value or "")

    def apply(item: Item) -> None:
        if name is not None:
            item.namespace.set_xattr(item.status.path, name, content)
        else:
            item.namespace.remove_xattr(item.status.path, removed or "")

    change_all(find_items(session, urls, glob=glob), apply, recursive=False, out=out)


@fs_command("getfattr", epilog=_GET_EPILOG)
@with_urls
@click.option("-n", "name", metavar="NAME", help="Show only this attribute.")
@click.option(
    "-e", "encoding", type=Word(["text", "hex", "base64"]), help="How to show values.  [default: text if it is text]"
)
@lists_from_namespaces
def getfattr(
    urls: tuple[str, ...], glob: bool, name: str | None, encoding: str | None, session: Session, out: Output
) -> None:
    """Show the extended attributes of files and directories."""
    from holdfast.cli.fs.items import find_items
    from holdfast.cli.fs.problems import Problems
    from holdfast.cli.fs.rows import titles

    problems = Problems(out, lines=True)
    found: list[tuple[Item, dict[str, bytes]]] = []
    for item in find_items(session, urls, glob=glob):
        with problems.noted(item.url):
            values = item.namespace.xattrs(item.status.path)
            if name is not None and name not in values:
                raise InvalidRequestError(
                    "there is no such extended attribute: check the name", name=name, url=item.url
                )
            found.append((item, values if name is None else {name: values[name]}))
    rows = []
    for (item, values), title in zip(found, titles([item for item, _ in found]), strict=True):
        for one, value in sorted(values.items()):
            text = _encoded(value, encoding)
            out.line({"url": item.url, "name": one, "value": text, "base64": base64.b64encode(value).decode()})
            rows.append((title, one, text))
    if rows:
        out.table(["path", "name", "value"], rows)
    elif found:
        out.say("no extended attributes")
    problems.end(len(found))


def _decoded(text: str) -> bytes:
    """Return the value that a text means, as in Hadoop's ``setfattr``.

    Raises:
        InvalidRequestError: it is not what its beginning promises.
    """
    try:
        if text[:2] in ("0x", "0X"):
            return bytes.fromhex(text[2:])
        if text[:2] in ("0s", "0S"):
            return base64.b64decode(text[2:], validate=True)
    except (ValueError, binascii.Error) as error:
        raise InvalidRequestError("the value is not hexadecimal (0x) or Base64 (0s): correct it", value=text) from error
    if len(text) >= 2 and text[0] == text[-1] == '"':
        text = text[1:-1]
    return text.encode("utf-8", "surrogateescape")


def _encoded(value: bytes, encoding: str | None) -> str:
    if encoding == "hex":
        return f"0x{value.hex()}"
    if encoding != "base64":
        try:
            return value.decode()
        except UnicodeDecodeError:
            if encoding == "text":
                return value.decode(errors="backslashreplace")
    return f"0s{base64.b64encode(value).decode()}"
