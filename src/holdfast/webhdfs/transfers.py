"""Receive and send the bytes of files: CREATE, APPEND and OPEN.

Each takes two requests. The first is answered with the address of the second, which is this server again (307). That
address contains a token, so a second request that comes twice is recognized whatever else happens.

An upload is a file only when its last byte has come: the parser of HTTP says so, for a chunked body after its last
chunk. A body that is cut or damaged leaves nothing. At most a few pieces of each body are in memory: a client that
sends faster than they are stored has to wait.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from holdfast.namespace.errors import PathNotFoundError
from holdfast.namespace.file_reader import FileReader
from holdfast.namespace.file_writer import FileWriter
from holdfast.namespace.inode import FILE_MODE
from holdfast.webhdfs.calls import Call
from holdfast.webhdfs.failures import RequestRefusedError

R = TypeVar("R")

LEG = "leg"
"""The parameter with the token of the second request."""

PIECE_BYTES = 1024 * 1024
"""Of an upload: how much is written at once."""

_FRAME = 64 * 1024
SENT_BYTES = 4 * 1024 * 1024
"""Of a download: how much is read and sent at once. Hadoop's positional read, which is how Parquet is read, takes what
its socket has at one moment, and then asks again for what is missing: with smaller pieces there are more requests. This
is as much as Linux takes from one write."""

FEW_BYTES = _FRAME
"""The same, if many clients do not take what they have asked for."""

LEAVING_S = 0.002
"""How long after the first piece of a download nothing more is read: a client that has all that it wants goes now."""

_EOF = "java.io.EOFException"
"""HDFS names a plain `IOException`. The contract of Hadoop's streams asks for this one."""

Receive = Callable[[], Awaitable[Any]]
RunInThread = Callable[[Callable[[], R]], Awaitable[R]]


class UploadCutError(Exception):
    """The client has gone in the middle of its upload: nothing was written, and there is nobody to tell."""


# --- uploads ----------------------------------------------------------------------------------------------------------
def check_upload(call: Call) -> None:
    """Check what can be checked before the bytes of a file come.

    Raises:
        HoldfastError: the file cannot be written.
    """
    if call.operation == "CREATE":
        open_upload(call).discard()
    else:
        status = call.namespace.find(call.path)
        if status is None:
            raise PathNotFoundError(f"File {call.path} not found.")


def open_upload(call: Call) -> FileWriter:
    """Open the file of an upload: a new one, or one to append to, which then has a lease.

    Raises:
        HoldfastError: see `Namespace.create` and `Namespace.append`.
    """
    if call.operation == "APPEND":
        return call.namespace.append(call.path)
    parameters = call.parameters
    flags = parameters.choices("createflag", _CREATE_FLAGS)
    return call.namespace.create(
        call.path,
        overwrite=parameters.truth("overwrite", False) or "OVERWRITE" in flags,
        mode=parameters.mode("permission", FILE_MODE),
        parents=parameters.truth("createparent", True),
        replication=parameters.number("replication", None),
        block_size=parameters.number("blocksize", None),
    )


_CREATE_FLAGS = (
    "CREATE",
    "OVERWRITE",
    "APPEND",
    "SYNC_BLOCK",
    "LAZY_PERSIST",
    "NEW_BLOCK",
    "NO_LOCAL_WRITE",
    "SHOULD_REPLICATE",
    "IGNORE_CLIENT_LOCALITY",
    "NO_LOCAL_RACK",
)


async def discard_upload(receive: Receive) -> None:
    """Receive a body that is stored already.

    Raises:
        UploadCutError: the body has no end.
    """
    more = True
    while more:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise UploadCutError
        more = event.get("more_body", False)


async def receive_upload(
    writer: FileWriter, receive: Receive, run: RunInThread[Any], finish: Callable[[bytes], None]
) -> None:
    """Write a body into an open file, and close the file.

    Args:
        receive: returns the next event of the request.
        run: runs a function in a thread.
        finish: writes the last bytes, and closes the file.

    Raises:
        UploadCutError: the body has no end; nothing is left of it.
        HoldfastError: the file cannot be written; nothing is left of it.
    """
    try:
        pieces, size, more = list[bytes](), 0, True
        while more:
            event = await receive()
            if event["type"] == "http.disconnect":
                raise UploadCutError
            body, more = event.get("body", b""), event.get("more_body", False)
            pieces.append(body)
            size += len(body)
            if size >= PIECE_BYTES and more:
                data, pieces, size = b"".join(pieces), [], 0
                await run(functools.partial(writer.write, data))
        await run(functools.partial(finish, b"".join(pieces)))
    except BaseException:
        await run(writer.discard)
        raise


# --- downloads --------------------------------------------------------------------------------------------------------
def check_download(call: Call) -> None:
    """Check what can be checked before the second request for the bytes of a file.

    Raises:
        HoldfastError: the file cannot be read.
    """
    if call.operation == "OPEN":
        open_download(call)
    else:
        call.namespace.open(call.path)


def open_download(call: Call) -> tuple[FileReader, int, int]:
    """Open a file for reading; return it with the start and the number of the bytes that the client wants.

    Raises:
        RequestRefusedError: the file ends before the start.
        HoldfastError: see `Namespace.open`.
    """
    start = call.parameters.number("offset", 0, least=0) or 0
    wanted = call.parameters.number("length", None, least=0)
    file = call.namespace.open(call.path)
    if start > file.size:
        raise RequestRefusedError(f"Offset={start} out of the range [0, {file.size}); OPEN, path={call.path}", _EOF)
    left = file.size - start
    return file, start, left if wanted is None else min(wanted, left)


def read_piece(file: FileReader, start: int, end: int, most_bytes: int) -> bytes:
    """Read what is sent next of a range of a file.

    Raises:
        CorruptDataError: see `FileReader.read`.
    """
    # Pieces end where the frames of a blob do: each of them is read as a whole.
    stop = min(end, (start + most_bytes) // _FRAME * _FRAME)
    return file.read(start, stop - start)
