"""Describe the calls and states of namespace worlds in words, for counterexamples."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from holdfast.namespace.keys import ROOT_KEY, entry_name_in_key, id_in_key, parent_id_in_key
from holdfast.transactions.base import Record
from holdfast_checker.histories.history import HISTORY
from holdfast_checker.kernel.world import View
from holdfast_checker.namespace.actors import BLOBS
from holdfast_checker.namespace.contents import NamespaceContents, decode_namespace
from holdfast_checker.namespace.requests import WIRE
from holdfast_checker.narrative.sentences import CallImportance
from holdfast_checker.simulated.narration import DatabaseWords, SentenceTemplate

_KINDS = {
    b"s": "the bytes of {0}",
    b"t": "the time of directory {1}",
    b"w": "the place of directory {1}",
    b"p": "the upload {0}",
    b"u": "a counter of quota {1}",
    b"l": "the lease of file {1}",
    b"r": "the deleted tree {1}",
    b"g": "a note of garbage",
    b"q": "a receipt",
    b"x": "the record {0}",
}


def _record_name(key: bytes, known: Mapping[bytes, Record]) -> str:
    """Return the name of a namespace record for a story: the path of an inode, or the kind of the record."""
    if key == ROOT_KEY:
        return "/"
    if key.startswith(b"i"):
        above = _directory_paths_by_id(known).get(parent_id_in_key(key), f"[directory {parent_id_in_key(key)}]")
        return f"{above}/{entry_name_in_key(key).decode()}"
    try:
        number = str(id_in_key(key))
    except struct.error:
        number = ""
    return _KINDS.get(key[:1], "all records").format(key[1:].decode("ascii", "replace"), number)


def _directory_paths_by_id(known: Mapping[bytes, Record]) -> Mapping[int, str]:
    """Return the paths of a namespace's directories by the ids of their inodes."""
    contents = NamespaceContents(known)
    root = contents.inodes.get(ROOT_KEY)
    found = {} if root is None else {inode.id: "/".join(("", *path)) for path, inode in contents.paths(root)}
    return {**{tree.root.id: f"(deleted) {tree.path}" for tree in contents.deleted.values()}, **found}


def _describe_value(key: bytes, record: Record) -> str:
    if not key.startswith(b"i"):
        return ""
    inode = next(iter(NamespaceContents({key: record}).inodes.values()))
    words = "directory" if inode.is_directory else f"file of {inode.size} bytes"
    return f"{words}{', being written' * bool(inode.writer)}{', frozen' * bool(inode.moving)}"


def _describe_tree_state(view: View) -> Mapping[str, str]:
    """Describe the files, directories and deleted trees of a namespace in a state of its world."""
    contents = decode_namespace(view)
    root = contents.inodes.get(ROOT_KEY)
    paths = [] if root is None else sorted("/" + "/".join(path) for path, _inode in contents.paths(root) if path)
    return {
        "tree": ", ".join(paths) or "empty",
        "deleted": ", ".join(sorted(tree.path for tree in contents.deleted.values())) or "nothing",
    }


_SMALL = CallImportance.SMALL

NARRATOR = DatabaseWords(
    key=_record_name,
    value=_describe_value,
    holds=_describe_tree_state,
    calls={
        (HISTORY, "invoke"): SentenceTemplate("is asked to", 1, " {2}"),
        (BLOBS, "put"): SentenceTemplate("writes the blob", 0),
        (BLOBS, "get"): SentenceTemplate("reads the blob", 0, weight=CallImportance.SMALL),
        (BLOBS, "head"): SentenceTemplate("looks at the blob", 0, weight=CallImportance.SMALL),
        (BLOBS, "delete"): SentenceTemplate("deletes the blob", 0),
        (BLOBS, "delete_many"): SentenceTemplate("deletes the blobs", 0),
        (BLOBS, "list_page"): SentenceTemplate("lists all blobs", weight=CallImportance.SMALL),
        (BLOBS, "list_uploads_page"): SentenceTemplate("lists unfinished blobs", weight=CallImportance.SMALL),
        (BLOBS, "abort_upload"): SentenceTemplate("deletes the unfinished blob", 0),
        (WIRE, "send"): SentenceTemplate("sends its request to server", 3, ", attempt {2}"),
        (WIRE, "receive"): SentenceTemplate("gets", tail=" {reply}"),
        (WIRE, "take"): SentenceTemplate("takes the next request of", 1),
        (WIRE, "answer"): SentenceTemplate("answers", tail=" {3}"),
        (WIRE, "wanted"): SentenceTemplate("asks whether the client waits", tail=": {reply}", weight=_SMALL),
        (WIRE, "delivered"): SentenceTemplate(
            "asks whether its answer {1} was delivered", tail=": {reply}", weight=_SMALL
        ),
        (WIRE, "sleep"): SentenceTemplate("waits for word of an answer", weight=_SMALL),
        (WIRE, "news"): SentenceTemplate("looks which answers were delivered", weight=_SMALL),
        (WIRE, "published"): SentenceTemplate("has published it", weight=_SMALL),
    },
    say=lambda value: value.replace("_", " ") if isinstance(value, str) and "/" not in value else None,
).narrator()
"""The functions that describe worlds of a namespace in words."""
