"""Find the files that a url names: those of a destination, a single file, or all files that match a pattern."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from holdfast.cli.destination_checks import require_anything
from holdfast.cli.patterns import compile_word, is_pattern
from holdfast.commit import CommitContext, Snapshot, VisibleFile, read_snapshot
from holdfast.commit.context import Place
from holdfast.commit.layout import HOME
from holdfast.commit.nesting import refuse_part
from holdfast.errors import InvalidRequestError, NotFoundError
from holdfast.stores.base import iter_objects
from holdfast.table.foreign import refuse_foreign_read


@dataclass(frozen=True)
class Source:
    """Files to read as one table.

    Attributes:
        ctx: the context of the directory to which the paths of the files, with their partition directories, are
            relative.
        snapshot: the files, and the table record of the log.
    """

    ctx: CommitContext
    snapshot: Snapshot


def find_source(ctx: CommitContext) -> Source:
    """Find the files at the url of `ctx`.

    The url is taken literally if something of that name exists; if not, as a pattern.

    Guarantee: the result contains only files of committed jobs, according to the log of the directory at which the
    pattern starts.

    Raises:
        NotFoundError: nothing exists at the url, or nothing matches the pattern.
        InvalidRequestError: the url is a directory inside a destination, or the pattern is invalid or reaches into
            other destinations.
    """
    refuse_foreign_read(ctx)
    snapshot = read_snapshot(ctx)
    if snapshot.files and not snapshot.head:
        refuse_part(ctx)
    if snapshot.files or snapshot.head:
        return Source(ctx, snapshot)
    own = ctx.prefix.rstrip("/")
    if own:
        try:
            info = ctx.store.head(own)
        except NotFoundError:
            pass
        else:
            parent, _, name = own.rpartition("/")
            return Source(_at(ctx, parent), replace(snapshot, files=(VisibleFile(name, info.size_bytes, info.etag),)))
    if is_pattern(own):
        return _match(ctx, own)
    require_anything(ctx)
    return Source(ctx, snapshot)


def _at(ctx: CommitContext, prefix: str) -> CommitContext:
    """Return a context for a parent directory in the same store."""
    root = ctx.url.removesuffix(ctx.prefix.rstrip("/")).rstrip("/")
    if ctx.url.startswith("file://"):
        root = "file://"
    return ctx.at(Place(store=ctx.store, prefix=f"{prefix}/" if prefix else "", url=f"{root}/{prefix}"))


def _match(ctx: CommitContext, path: str) -> Source:
    words = path.split("/")
    fixed = next(index for index, word in enumerate(words) if is_pattern(word))
    pattern = [compile_word(word) for word in words[fixed:]]
    base = _at(ctx, "/".join(words[:fixed]))
    refuse_foreign_read(base)
    snapshot = read_snapshot(base)
    files = tuple(file for file in snapshot.files if _matches(file.path, pattern))
    if not files:
        raise NotFoundError(
            "nothing matches the pattern: check it, and keep it in quotes so that no shell expands it", url=ctx.url
        )
    if not snapshot.head:
        refuse_part(base)
        _refuse_inner_destinations(base, files)
    return Source(base, replace(snapshot, files=files))


def _matches(path: str, pattern: Sequence[re.Pattern[str]]) -> bool:
    """Check whether the pattern matches the file, or a directory that contains the file."""
    words = path.split("/")
    return len(words) >= len(pattern) and all(
        one.fullmatch(word) for one, word in zip(pattern, words[: len(pattern)], strict=True)
    )


def _refuse_inner_destinations(base: CommitContext, files: Sequence[VisibleFile]) -> None:
    """Refuse a pattern that reaches into another destination, whose log is not read to see what is committed."""
    inner = {
        key.partition(f"/{HOME}log/")[0]
        for key in (info.key[len(base.prefix) :] for info in iter_objects(base.store, base.prefix))
        if f"/{HOME}log/" in key
    }
    for root in sorted(inner):
        if any(file.path.startswith(f"{root}/") for file in files):
            raise InvalidRequestError(
                "the pattern reaches into a destination that has its own log: read each destination separately",
                url=f"{base.url.rstrip('/')}/{root}",
            )
