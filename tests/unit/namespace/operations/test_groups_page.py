"""The table of operations in docs/reference/namespace.md says what the operations really lock and write.

Each operation runs in several situations on a database that records its commits. The locks follow from the steps of a
commit (`holdfast.transactions.validation`): reads are shared, everything else is exclusive.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from holdfast.namespace import Namespace, operations
from holdfast.namespace.inode import decode_inode
from holdfast.namespace.keys import ROOT_KEY, entry_name_in_key, inode_key
from holdfast.namespace.other_records import SOFT_LIMIT_MS
from holdfast.transactions.base import ABSENT, Commit
from holdfast.transactions.validation import StepKind, steps_of_group
from tests.namespace_world import HookedDatabase, World, all_records

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "namespace.md"

_LARGE = b"0123456789"
_OTHER_KINDS = {
    b"l": "lease",
    b"u": "usage",
    b"s": "small bytes",
    b"g": "garbage notes",
    b"r": "deleted tree",
    b"t": "time",
    b"w": "place",
}
_VERBS = {StepKind.INSERT: "insert", StepKind.PUT: "put", StepKind.DELETE: "delete", StepKind.ADD: "add"}


@dataclass
class Locked:
    """What an operation locks and writes, in the words of the table."""

    shared: set[str] = field(default_factory=set)
    exclusive: set[str] = field(default_factory=set)
    absent: set[str] = field(default_factory=set)
    conditions: set[str] = field(default_factory=set)
    written: set[tuple[str, str]] = field(default_factory=set)

    def cells(self) -> list[str]:
        """Return the cells of the table."""
        by_verb = {verb: sorted(word for one, word in self.written if one == verb) for verb in _VERBS.values()}
        written = "; ".join(f"{verb} {', '.join(words)}" for verb, words in by_verb.items() if words)
        return [", ".join(sorted(self.conditions)) or "-", written or "-"]


@dataclass(frozen=True)
class Situation:
    """A call, with what is there before.

    Attributes:
        paths: what the operation's paths are called in the table.
        first, last: those commits of the call that belong to the operation, as in a slice.
    """

    call: Callable[[Namespace], object]
    paths: Mapping[str, str]
    prepare: Callable[[World, Namespace], object] = lambda world, namespace: None
    first: int = 0
    last: int | None = None


def _quota(world: World, namespace: Namespace) -> None:
    namespace.mkdirs("/d/e")
    namespace.write_file("/d/e/small", b"12")
    namespace.write_file("/d/e/large", _LARGE)
    namespace.set_quota("/d", names=100, space=10_000)


def _silent_writer(world: World, namespace: Namespace) -> None:
    if not namespace.exists("/d"):
        _quota(world, namespace)
    namespace.append("/d/e/large")
    world.clock.at_s += SOFT_LIMIT_MS / 1000 + 1


def _two_quotas(world: World, namespace: Namespace) -> None:
    _quota(world, namespace)
    namespace.mkdirs("/q/r")
    namespace.write_file("/q/r/small", b"34")
    namespace.write_file("/q/r/large", _LARGE)
    namespace.mkdirs("/q/r/empty")
    namespace.set_quota("/q", names=100, space=10_000)


_TARGET = {"/d/e/f": "target"}
_SMALL = {"/d/e/small": "target"}
_BIG = {"/d/e/large": "target"}


def _replaced_by(name: str, target: str) -> Situation:
    return Situation(
        lambda namespace: namespace.rename(f"/d/e/{name}", target, overwrite=True),
        {f"/d/e/{name}": "source", target: "target"},
        _two_quotas,
    )


def _write_under_lease(namespace: Namespace) -> None:
    writer = namespace.create_with_lease("/d/e/f")
    writer.write(b"12")
    writer.sync()
    writer.write(b"12")
    writer.close()


def _together(*paths: str, leased: str = "", data: bytes = b"12") -> Situation:
    """Publish several files in one step, one of them under a lease."""

    def publish(namespace: Namespace) -> None:
        files = [namespace.create_with_lease(leased)] if leased else []
        files += [namespace.create(path, overwrite=True) for path in paths]
        for file in files:
            file.write(data)
            file.prepare()
        namespace.publish_many(files)

    words = dict.fromkeys((*paths, *([leased] if leased else ())), "targets")
    return Situation(publish, words, _quota, first=1 if leased else 0)


SITUATIONS: Mapping[str, list[Situation]] = {
    "Mkdirs": [Situation(lambda namespace: namespace.mkdirs("/d/e/f/g"), {"/d/e/f/g": "target"}, _quota)],
    "Publish": [
        Situation(
            lambda namespace: namespace.write_file("/d/e/f/g", b"12"),
            {"/d/e/f/g": "target"},
            _quota,
        ),
        Situation(lambda namespace: namespace.write_file("/d/e/small", b"1234", overwrite=True), _SMALL, _quota),
        Situation(lambda namespace: namespace.write_file("/d/e/f", _LARGE), _TARGET, _quota),
        Situation(
            lambda namespace: namespace.write_file("/d/e/large", b"12", overwrite=True),
            _BIG,
            _silent_writer,
        ),
        Situation(lambda namespace: namespace.create_with_lease("/d/e/f"), _TARGET, _quota),
    ],
    "Append": [
        Situation(lambda namespace: namespace.append("/d/e/large"), _BIG, _quota),
        Situation(lambda namespace: namespace.append("/d/e/large"), _BIG, _silent_writer),
    ],
    "WriteUnderLease": [Situation(_write_under_lease, _TARGET, _quota, first=1)],
    "RecoverLease": [Situation(lambda namespace: namespace.recover_lease("/d/e/large"), _BIG, _silent_writer)],
    "Concat": [
        Situation(
            lambda namespace: namespace.concat("/d/e/large", ["/d/e/small"]),
            {"/d/e/large": "target", "/d/e/small": "sources"},
            _silent_writer,
        ),
        Situation(
            lambda namespace: namespace.concat("/d/e/large", ["/d/e/small"]),
            {"/d/e/large": "target", "/d/e/small": "sources"},
            lambda world, namespace: (_quota(world, namespace), namespace.set_replication("/d/e/large", 3)),
        ),
    ],
    "Truncate": [
        Situation(lambda namespace: namespace.truncate("/d/e/large", 0), _BIG, _silent_writer),
        Situation(lambda namespace: namespace.truncate("/d/e/small", 0), _SMALL, _quota),
    ],
    "Delete": [
        Situation(lambda namespace: namespace.delete("/d/e/small"), _SMALL, _quota),
        Situation(lambda namespace: namespace.delete("/d/e/large"), _BIG, _silent_writer),
        Situation(lambda namespace: namespace.delete("/d/e", recursive=True), {"/d/e": "target"}, _quota),
        Situation(
            lambda namespace: namespace.delete("/q"),
            {"/q": "target"},
            lambda world, namespace: (namespace.mkdirs("/q"), namespace.set_quota("/q", names=9)),
        ),
    ],
    "Rename": [
        Situation(
            lambda namespace: namespace.rename("/d/e/small", "/q/r/new"),
            {"/d/e/small": "source", "/q/r/new": "target"},
            _two_quotas,
        ),
        Situation(
            lambda namespace: namespace.rename("/d/e/large", "/d/new"),
            {"/d/e/large": "source", "/d/new": "target"},
            _silent_writer,
        ),
        _replaced_by("small", "/q/r/small"),
        _replaced_by("small", "/q/r/large"),
        Situation(
            lambda namespace: namespace.rename("/d/e", "/q/r/empty", overwrite=True),
            {"/d/e": "source", "/q/r/empty": "target"},
            _two_quotas,
            first=1,
        ),
        Situation(
            lambda namespace: namespace.rename("/q/r/small", "/d/e/large", overwrite=True),
            {"/q/r/small": "source", "/d/e/large": "target"},
            lambda world, namespace: (_two_quotas(world, namespace), _silent_writer(world, namespace)),
        ),
        Situation(
            lambda namespace: namespace.rename_into("/d/e/small", "/q/r"),
            {"/d/e/small": "source", "/q/r/small": "target"},
            lambda world, namespace: (_two_quotas(world, namespace), namespace.delete("/q/r/small")),
        ),
    ],
    "OpenForReading": [Situation(lambda namespace: namespace.open("/d/e/small"), _SMALL, _quota)],
    "several files": [
        _together("/d/e/f", "/d/e/g", data=_LARGE),
        _together("/d/e/f/g", "/d/e/h"),
        _together("/d/e/small", "/d/e/large"),
        _together("/d/e/f", leased="/d/e/g"),
    ],
    "GetStatus": [Situation(lambda namespace: namespace.status("/d/e"), {"/d/e": "target"}, _quota)],
    "SetAttributes": [
        Situation(lambda namespace: namespace.set_permission("/d/e", 0o700), {"/d/e": "target"}, _quota),
        Situation(lambda namespace: namespace.set_times("/d/e", mtime_ms=7), {"/d/e": "target"}, _quota),
    ],
    "SetReplication": [Situation(lambda namespace: namespace.set_replication("/d/e/large", 3), _BIG, _quota)],
    "SetXattr": [
        Situation(lambda namespace: namespace.set_xattr("/d/e/large", "user.a", b"1"), _BIG, _quota),
        Situation(
            lambda namespace: namespace.remove_xattr("/d/e/large", "user.a"),
            _BIG,
            lambda world, namespace: (_quota(world, namespace), namespace.set_xattr("/d/e/large", "user.a", b"1")),
        ),
    ],
    "Freeze": [Situation(lambda namespace: namespace.set_quota("/d/e", names=50), {"/d/e": "target"}, _quota, last=1)],
    "SetQuota": [
        Situation(lambda namespace: namespace.set_quota("/d/e", names=50), {"/d/e": "target"}, _quota, first=1),
        Situation(
            lambda namespace: namespace.set_quota("/d/e"),
            {"/d/e": "target"},
            lambda world, namespace: (_quota(world, namespace), namespace.set_quota("/d/e", names=50)),
        ),
    ],
}


def observed(name: str) -> Locked:
    """Return what an operation locks and writes in all its situations."""
    found = Locked()
    for situation in SITUATIONS[name]:
        _observe(situation, found)
    return found


def _observe(situation: Situation, found: Locked) -> None:
    world = World()
    situation.prepare(world, world.client())
    roles = _roles(world, situation.paths)
    commits: list[Commit] = []

    def note(call: str, argument: object) -> None:
        if isinstance(argument, Commit) and ROOT_KEY in argument.reads:
            commits.append(argument)

    situation.call(world.client(database=HookedDatabase(world.database, note)))
    for commit in commits[situation.first : situation.last]:
        guards = {one.guard for one in commit.ranges}
        for step in steps_of_group([commit]):
            words = roles.get(step.key) or _new_role(step.key, situation.paths)
            if step.kind is StepKind.READ and step.expected == ABSENT:
                found.absent |= words
            elif step.kind is StepKind.READ:
                found.shared |= words
            else:
                found.exclusive |= words
                found.written |= {(_VERBS[step.kind], word) for word in words if step.kind in _VERBS}
            if step.key in guards:
                found.conditions |= {f"{word} without children" for word in words}
        if commit.bounds:
            found.conditions.add("quotas")


def _roles(world: World, paths: Mapping[str, str]) -> dict[bytes, set[str]]:
    """Return what the keys of the existing inodes on the paths, and of the targets, are called in the table."""
    records = all_records(world.database)
    roles: dict[bytes, set[str]] = {}
    for path, word in paths.items():
        names = path.strip("/").split("/")
        key = ROOT_KEY
        for name in names:
            roles.setdefault(key, set()).add(f"path of the {word}" if word == "source" else "path")
            key = inode_key(decode_inode(key, records[key].value).id, name.encode())
            if key not in records:
                break
        if entry_name_in_key(key) == names[-1].encode():
            roles.setdefault(key, set()).add(word)
    return roles


def _new_role(key: bytes, paths: Mapping[str, str]) -> set[str]:
    if key[:1] != b"i":
        return {_OTHER_KINDS[key[:1]]}
    last = {path.rpartition("/")[2].encode(): word for path, word in paths.items()}
    return {last.get(entry_name_in_key(key), "new directories")}


def _rows() -> dict[str, list[str]]:
    """Return the rows of the table on the page by the name of the operation."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("| operation |"))
    rows = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        rows[cells[0].strip("`")] = cells[1:]
    return rows


def _operations() -> Iterable[str]:
    """Return the names of all classes of operations."""
    for module in pkgutil.iter_modules(operations.__path__):
        if module.name != "base":
            found = importlib.import_module(f"holdfast.namespace.operations.{module.name}")
            yield from (
                name
                for name in vars(found)
                if getattr(vars(found)[name], "__module__", "") == found.__name__
                and hasattr(vars(found)[name], "execute")
            )


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_row_says_what_the_operation_does(name: str) -> None:
    assert _rows()[name][:2] == observed(name).cells(), "the cells on the page, and what was observed"


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_path_is_locked_shared(name: str) -> None:
    """As the page says for all rows: what writes locks its paths, and only what is inserted must be absent."""
    found = observed(name)
    paths = {word for one in SITUATIONS[name] for word in one.paths.values()}
    expected = {"path", "path of the source"} if "source" in paths else {"path"}
    assert found.shared == (expected if found.written else set())
    assert found.absent <= {word for verb, word in found.written if verb == "insert"}


def test_every_operation_has_a_row_and_situations() -> None:
    names = {*_operations(), "Freeze", "SetQuota", "several files"}
    assert set(SITUATIONS) == names
    assert set(_rows()) == names


def test_modified_records_only_are_locked_exclusively() -> None:
    """Source: paper 004 (3.4): rows that are only related are fetched under a shared lock."""
    for name in SITUATIONS:
        found = observed(name)
        written = {word for _, word in found.written}
        assert found.exclusive == written, name
