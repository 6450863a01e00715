"""Whatever an operation of a namespace accepts can be read back; the rest is refused before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidRequestError
from holdfast.namespace import Configuration, Namespace
from holdfast.namespace.configuration import create_namespace, load_configuration
from holdfast.namespace.errors import PathExistsError, QuotaExceededError
from holdfast.namespace.inode import decode_inode
from holdfast.transactions.memory import MemoryBackend
from tests.namespace_world import World, all_records

_EDGES = [2**power + step for power in (0, 9, 31, 53, 62, 63, 64, 77) for step in (-1, 0, 1)]
numbers = st.one_of(
    st.integers(-2, 600),
    st.sampled_from(_EDGES),
    st.integers().map(lambda number: number * 512),
    st.sampled_from([True, False, 1.0, 0.5, 1.8e12, float("inf"), "7"]),
)
maybe = st.one_of(st.none(), numbers)
integers = st.one_of(st.integers(-2, 0o2000), st.sampled_from(_EDGES), st.sampled_from([-1, -(2**70)]))
names = st.one_of(
    st.text(max_size=5),
    st.sampled_from(["", "\udcff", "a\0b", "\U0001f600", "x" * 1024, "x" * 1025, "\xe9" * 600, '"\\\n']),
)
values = st.one_of(st.binary(max_size=5), st.sampled_from([b"x" * 16380, b"x" * 16385, "text"]))
prefixes = st.sampled_from(["user.", "USER.", "trusted.", "", "system."])

Call = Callable[[Namespace], object]


def _call(method: str, *arguments: Any, **named: Any) -> Call:
    return lambda namespace: getattr(namespace, method)(*arguments, **named)


def _write(method: str, **named: Any) -> Call:
    def write(namespace: Namespace) -> None:
        with getattr(namespace, method)("/d/new", **named) as file:
            file.write(b"0123456789")

    return write


tops = st.sampled_from(["/", "/d"])
paths = st.sampled_from(["/d", "/d/f"])
calls: st.SearchStrategy[Call] = st.one_of(
    st.builds(lambda at, a, b: _call("set_quota", at, names=a, space=b), tops, maybe, maybe),
    st.builds(lambda at, a, b: _call("set_times", at, mtime_ms=a, atime_ms=b), paths, maybe, maybe),
    st.builds(lambda number: _call("set_replication", "/d/f", number), numbers),
    st.builds(lambda at, mode: _call("set_permission", at, mode), paths, numbers),
    st.builds(lambda at, a, b: _call("set_owner", at, a, b), paths, st.none() | names, st.none() | names),
    st.builds(lambda at, a, b, value: _call("set_xattr", at, a + b, value), paths, prefixes, names, values),
    st.builds(lambda number: _call("truncate", "/d/f", number), numbers),
    st.builds(lambda mode: _call("mkdirs", "/d/new/er", mode=mode), integers),
    st.builds(
        lambda kind, mode, replication, size: _write(kind, mode=mode, replication=replication, block_size=size),
        st.sampled_from(["create", "create_with_lease"]),
        integers,
        maybe,
        maybe,
    ),
)  # fmt: skip


@given(st.lists(calls, min_size=1, max_size=3))
def test_what_is_accepted_can_be_read_back(some: list[Call]) -> None:
    world = World()
    namespace = world.client()
    namespace.write_file("/d/f", b"0123456789")
    for call in some:
        before = {key: record.value for key, record in world.records(b"i").items()}
        try:
            call(namespace)
        except (PathExistsError, QuotaExceededError):
            pass  # another call has made the file; or: a file under a lease exists before it has bytes
        except InvalidRequestError:
            after = {key: record.value for key, record in world.records(b"i").items()}
            assert after == before, "nothing was written"
        for key, record in world.records(b"i").items():
            decode_inode(key, record.value)
    again = world.client()
    assert again.status("/d/f").path == "/d/f"
    again.content_summary("/")
    assert again.check().is_healthy
    if again.quota_usage("/d").names_quota is None and again.quota_usage("/").names_quota is None:
        if again.quota_usage("/d").space_quota is None and again.quota_usage("/").space_quota is None:
            again.write_file("/d/more", b"0123456789")
    assert again.delete("/d", recursive=True)
    again.collect()
    assert again.check().totals == {}


@given(st.fixed_dictionaries({}, optional={
    "superuser": names, "supergroup": names, "inline_bytes": numbers, "block_size": numbers, "replication": numbers,
    "safety_age_s": numbers,
}))  # fmt: skip
def test_a_configuration_that_is_accepted_can_be_used(given: dict[str, Any]) -> None:
    world = World()
    database = MemoryBackend(world.ids)
    try:
        configuration = Configuration(**{"name": "ns", "data": "memory://x", "superuser": "root", **given})
        create_namespace(database, configuration, 1000)
    except InvalidRequestError:
        assert all_records(database) == {}
        return
    found = load_configuration(database)
    assert (found.superuser, found.safety_age_s) == (configuration.superuser, configuration.safety_age_s)
    user = configuration.superuser
    namespace = Namespace(database, world.blobs, found, world.environment, user=user)
    namespace.write_file("/d/f", b"0123456789")
    namespace.delete("/d/f")
    namespace.collect()
    assert namespace.check().totals == {}
