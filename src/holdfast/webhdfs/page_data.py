"""Answer what the page of a server shows beyond WebHDFS: servers, leader, waiting work, and what uses space.

Whoever proves a user may see the servers and the counts. Paths follow HDFS: only the superuser sees all open files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from holdfast.namespace.maintenance import current_leader
from holdfast.namespace.paths import NsPath
from holdfast.namespace.pending import OpenFile, count_pending_work, list_open_files
from holdfast.namespace.usage import EntryUsage, measure_entries
from holdfast.webhdfs.calls import Call
from holdfast.webhdfs.servers import SILENT_S, ServerRecord, list_servers

_MOST_OPEN_FILES = 100
_MOST_COUNTED = 10_000
_MOST_INODES = 100_000
_MOST_S = 3.0
"""What a picture may cost: the process answers others meanwhile, but more slowly."""

_MOST_ENTRIES = 200
"""How many entries of a directory a picture shows; the others are one."""


def describe_servers(call: Call) -> Mapping[str, object]:
    """Return who calls, the servers of the namespace, and which process leads."""
    namespace = call.namespace
    clock = namespace.environment.clock
    now_s = clock.now_s()
    servers = sorted(list_servers(namespace.database), key=lambda one: (one.host, one.port, one.since_s))
    leader = current_leader(namespace.database, clock)
    return {
        "namespace": namespace.configuration.name,
        "user": call.user,
        "isSuperuser": namespace.caller.is_superuser,
        "now": now_s,
        "servers": [_describe_server(one, now_s, "" if leader is None else leader.holder) for one in servers],
        "leader": None if leader is None else {"holder": leader.holder, "until": leader.until_s},
    }


def _describe_server(record: ServerRecord, now_s: float, leader: str) -> Mapping[str, object]:
    return {
        "id": record.token,
        "host": record.host,
        "port": record.port,
        "process": record.pid,
        "since": record.since_s,
        "at": record.at_s,
        "requests": record.requests,
        "isSilent": abs(now_s - record.at_s) > SILENT_S,
        "leads": record.token == leader,
        "done": record.duties or {},
    }


def describe_work(call: Call) -> Mapping[str, object]:
    """Return what waits to be removed, and the files that are being written."""
    namespace = call.namespace
    clock = namespace.environment.clock
    return {
        "pending": count_pending_work(namespace, clock, _MOST_COUNTED),
        "mostCounted": _MOST_COUNTED,
        "safetyAge": namespace.configuration.safety_age_s,
        "openFiles": [
            _describe_open_file(one, call) for one in list_open_files(namespace.database, clock, _MOST_OPEN_FILES)
        ],
    }


def _describe_open_file(file: OpenFile, call: Call) -> Mapping[str, object]:
    caller = call.namespace.caller
    is_visible = caller.is_superuser or file.owner == caller.user
    return {
        "path": file.path if is_visible else None,
        "isHidden": not is_visible,
        "owner": file.owner,
        "size": file.size,
        "holder": file.holder,
        "heard": file.renewed_ms / 1000,
        "isSilent": file.is_silent,
    }


def describe_usage(call: Call) -> Mapping[str, object]:
    """Return what is below each entry of a directory, the largest first; the smallest of many are one.

    Raises:
        PathNotFoundError, ParentNotDirectoryError, PermissionDeniedError: see the message.
    """
    namespace, path = call.namespace, NsPath.parse(call.path)
    found = measure_entries(namespace.operations, path, namespace.caller, most_inodes=_MOST_INODES, most_s=_MOST_S)
    entries = sorted(found.entries, key=lambda one: (-one.size, -one.files, one.name))
    shown, others = entries[:_MOST_ENTRIES], entries[_MOST_ENTRIES:]
    return {
        "path": str(path),
        "entries": [asdict(one) for one in shown],
        "others": {"number": len(others), **_sum(others)},
        "total": _sum(entries),
        "isComplete": found.is_complete,
        "measured": found.measured,
    }


def _sum(entries: list[EntryUsage]) -> dict[str, int]:
    return {
        "size": sum(one.size for one in entries),
        "files": sum(one.files for one in entries),
        "directories": sum(one.directories for one in entries),
        "unreadable": sum(one.unreadable for one in entries),
    }
