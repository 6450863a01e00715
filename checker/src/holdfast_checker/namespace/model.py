"""A sequential model of a namespace, of which every history must be an example: `apply` says what each operation means.

A state is a table of paths. It knows nothing of inodes, versions, hints, deleted trees or garbage: those are how the
namespace does it. An operation answers with a value, or with the name of the class of its error.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import TypeAlias, cast

from holdfast.namespace.inode import DIRECTORY_MODE, FILE_MODE
from holdfast.namespace.permissions import EXECUTE, READ, STICKY, WRITE
from holdfast_checker.histories.history import Operation

Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """A directory or a file.

    Attributes:
        content: of a file; None for a directory.
        writer: who has the file's lease.
        quota: of a directory: the most names in it, itself included; 0 for no limit.
        mode: the permission bits; None for those of a new file or directory.
    """

    content: str | None = None
    writer: str = ""
    quota: int = 0
    owner: str = ""
    mode: int | None = None

    @property
    def is_directory(self) -> bool:
        return self.content is None

    @property
    def bits(self) -> int:
        if self.mode is not None:
            return self.mode
        return DIRECTORY_MODE if self.is_directory else FILE_MODE


@dataclass(frozen=True, slots=True)
class Tree:
    """The state of a namespace.

    Attributes:
        nodes: by path, sorted; the root is the empty path.
        silent: writers that have not been heard of since much time has passed.
        uploads: the paths of uploads that are not completed, by name, sorted.
        users: the actors that are ordinary users; all others are the superuser.
        mistaken: writers and uploads that lack something that they have published: a crash has undone it.
    """

    nodes: tuple[tuple[Path, Node], ...]
    silent: frozenset[str] = frozenset()
    uploads: tuple[tuple[str, Path], ...] = ()
    users: frozenset[str] = frozenset()
    mistaken: frozenset[str] = frozenset()


class RefusedError(Exception):
    """The operation is impossible; the message is the name of the class of the error."""


class State:
    """A tree that is being changed.

    Attributes:
        user: who changes it; empty for the superuser.
    """

    def __init__(self, tree: Tree, who: str) -> None:
        self.user = who if who in tree.users else ""
        self._users = tree.users
        self.nodes = dict(tree.nodes)
        self.silent = tree.silent
        self.mistaken = tree.mistaken
        self.uploads = dict(tree.uploads)

    def tree(self) -> Tree:
        nodes = tuple(sorted(self.nodes.items(), key=lambda one: one[0]))
        return Tree(nodes, self.silent, tuple(sorted(self.uploads.items())), self._users, self.mistaken)

    def find(self, path: Path) -> Node | None:
        """Return the node at a path.

        Raises:
            RefusedError: a file is above it, or the user may not search a directory above it.
        """
        for depth in range(len(path)):
            above = self.nodes.get(path[:depth])
            if above is None:
                return None
            if not above.is_directory:
                raise RefusedError("ParentNotDirectoryError")
            self.check(path[:depth], EXECUTE)
        return self.nodes.get(path)

    def check(self, path: Path, access: int) -> None:
        """Refuse a user who lacks permission bits on what has a path."""
        node = self.nodes.get(path)
        if self.user and node is not None:
            bits = node.bits >> 6 if node.owner == self.user else node.bits
            if bits & access != access:
                raise RefusedError("PermissionDeniedError")

    def check_removal(self, path: Path) -> None:
        """Refuse a user who may not remove a path from its directory."""
        parent, node = self.nodes.get(path[:-1]), self.nodes.get(path)
        self.check(path[:-1], WRITE)
        if self.user and parent is not None and node is not None and parent.bits & STICKY:
            if self.user not in (parent.owner, node.owner):
                raise RefusedError("PermissionDeniedError")

    def deepest(self, path: Path) -> Path:
        """Return the deepest existing directory above a path."""
        return max((path[:depth] for depth in range(len(path)) if path[:depth] in self.nodes), key=len, default=())

    def children(self, path: Path) -> list[Path]:
        return [one for one in sorted(self.nodes) if len(one) == len(path) + 1 and one[: len(path)] == path]

    def below(self, path: Path) -> list[Path]:
        """Return a path and all below it."""
        return [one for one in sorted(self.nodes) if one[: len(path)] == path]

    def make_parents(self, path: Path) -> None:
        """Make the missing directories above a path, if the user may create entries in the deepest existing one."""
        self.check(self.deepest(path), WRITE | EXECUTE)
        for depth in range(1, len(path)):
            self.nodes.setdefault(path[:depth], Node(owner=self.user))

    def check_quotas(self, before: dict[Path, Node]) -> None:
        """Refuse what has made a directory larger than its quota allows."""
        for path, node in self.nodes.items():
            if node.quota and len(self.below(path)) > node.quota:
                was = len([one for one in before if one[: len(path)] == path])
                if len(self.below(path)) > was or path not in before:
                    raise RefusedError("NamesQuotaExceededError")

    def file(self, path: Path, directory: str = "PathIsDirectoryError") -> Node:
        """Return the file at a path.

        Raises:
            RefusedError: there is none.
        """
        found = self.find(path)
        if found is None:
            raise RefusedError("PathNotFoundError")
        if found.is_directory:
            raise RefusedError(directory)
        return found

    def refuse_writer(self, node: Node) -> None:
        if node.writer and node.writer not in self.silent:
            raise RefusedError("BeingWrittenError")

    def held_by(self, writer: str) -> Path:
        """Return the path of the file whose lease a writer has.

        Raises:
            RefusedError: it has none, or the file lacks something that it has published.
        """
        for path, node in self.nodes.items():
            if node.writer == writer and writer not in self.mistaken:
                return path
        raise RefusedError("LeaseLostError")


def split(path: object) -> Path:
    """Return the names on a path."""
    return tuple(one for one in cast("str", path).split("/") if one)


def mkdirs(state: State, path: Path) -> object:
    """Make a directory and those above it; answer whether it is new."""
    found = state.find(path)
    if found is not None:
        if not found.is_directory:
            raise RefusedError("PathExistsError")
        return False
    state.make_parents(path)
    state.nodes[path] = Node(owner=state.user)
    return True


def delete(state: State, path: Path, recursive: bool) -> object:
    """Delete a path; answer whether there was anything."""
    found = state.find(path)
    state.check_removal(path)
    if found is None:
        return False
    if found.is_directory and not recursive and state.children(path):
        raise RefusedError("DirectoryNotEmptyError")
    for one in state.below(path):
        del state.nodes[one]
    return True


def rename(state: State, source: Path, target: Path, overwrite: bool) -> object:
    """Rename a path with everything below it."""
    moved, found = state.find(source), state.find(target)
    state.check_removal(source)
    state.check(state.deepest(target), WRITE)
    if moved is None:
        raise RefusedError("PathNotFoundError")
    if source == target:
        raise RefusedError("PathExistsError")
    if target[: len(source)] == source:
        raise RefusedError("RenameError")
    if state.find(target[:-1]) is None:
        raise RefusedError("PathNotFoundError")
    if found is not None:
        if found.is_directory != moved.is_directory:
            raise RefusedError("RenameError")
        if not overwrite:
            raise RefusedError("PathExistsError")
        if state.children(target):
            raise RefusedError("DirectoryNotEmptyError")
        state.check_removal(target)
    tree = {one: state.nodes.pop(one) for one in state.below(source)}
    state.nodes.pop(target, None)
    state.nodes.update({target + one[len(source) :]: node for one, node in tree.items()})
    return None


def list_entries(state: State, path: Path) -> object:
    """Answer with the entries of a directory, or with the file itself."""
    found = state.find(path)
    if found is None:
        raise RefusedError("PathNotFoundError")
    if not found.is_directory:
        return ("/" + "/".join(path),)
    state.check(path, READ | EXECUTE)
    return tuple("/" + "/".join(one) for one in state.children(path))


def walk(state: State, path: Path) -> object:
    """Answer with everything below a path."""
    found = state.find(path)
    if found is None:
        raise RefusedError("PathNotFoundError")
    if not found.is_directory:
        return ("/" + "/".join(path),)
    return tuple("/" + "/".join(one) for one in state.below(path) if one != path)


def set_mode(state: State, path: Path, mode: int) -> object:
    """Change the permission bits of a path."""
    found = _owned(state, path)
    state.nodes[path] = replace(found, mode=mode)
    return None


def set_owner(state: State, path: Path, owner: str) -> object:
    """Give a path to a user."""
    found = _owned(state, path)
    if state.user:
        raise RefusedError("PermissionDeniedError")
    state.nodes[path] = replace(found, owner=owner)
    return None


def _owned(state: State, path: Path) -> Node:
    """Return what has a path, if it belongs to the user."""
    found = state.find(path)
    if found is None:
        raise RefusedError("PathNotFoundError")
    if state.user and found.owner != state.user:
        raise RefusedError("PermissionDeniedError")
    return found


def set_quota(state: State, path: Path, names: int) -> object:
    """Limit the number of names in a directory."""
    found = state.find(path)
    if found is None:
        raise RefusedError("PathNotFoundError")
    if not found.is_directory:
        raise RefusedError("ParentNotDirectoryError")
    state.nodes[path] = replace(found, quota=names)
    return None


def create(state: State, path: Path, mark: str, overwrite: bool = False, writer: str = "") -> object:
    """Create a file, or replace one."""
    found = state.find(path)
    if found is None:
        state.make_parents(path)
    else:
        state.check(path[:-1], WRITE)
        if found.is_directory:
            raise RefusedError("DirectoryInTheWayError")
        if not overwrite:
            state.refuse_writer(found)
            raise RefusedError("PathExistsError")
        state.check(path, WRITE)
        state.check_removal(path)
    state.nodes[path] = Node(mark, writer, owner=state.user)
    return None


def read(state: State, path: Path) -> object:
    """Answer with the content of a file."""
    found = state.file(path)
    state.check(path, READ)
    return found.content


def publish_many(state: State, overwrite: bool, *files: tuple[str, str]) -> object:
    """Create several files."""
    for path, mark in files:
        create(state, split(path), mark, overwrite)
    return None


def concat(state: State, target: Path, *sources: Path) -> object:
    """Append files to another one, and remove them."""
    node = state.file(target)
    state.refuse_writer(node)
    text = node.content or ""
    for source in sources:
        one = state.file(source)
        state.refuse_writer(one)
        if not one.content:
            raise RefusedError("InvalidRequestError")
        text += one.content
    for source in sources:
        del state.nodes[source]
    state.nodes[target] = replace(node, content=text, writer="")
    return None


def append(state: State, path: Path, writer: str) -> object:
    """Give the lease of a file to a writer."""
    node = state.file(path, "DirectoryInTheWayError")
    state.refuse_writer(node)
    state.nodes[path] = replace(node, writer=writer)
    return None


def publish(state: State, writer: str, mark: str, closes: bool) -> object:
    """Add content to the file of a writer, and end the lease if wanted."""
    path = state.held_by(writer)
    node = state.nodes[path]
    state.nodes[path] = replace(node, content=(node.content or "") + mark, writer="" if closes else writer)
    state.silent -= {writer}
    return None


def renew(state: State, writer: str) -> object:
    """Note that a writer is alive."""
    if writer in state.silent:
        state.held_by(writer)
        state.silent -= {writer}
    return None


def believe(state: State, writer: str) -> object:
    """Note that a writer, or an upload, has published something that a crash of the database has undone."""
    state.mistaken |= {writer}
    return None


def recover(state: State, path: Path) -> object:
    """End the lease of a file."""
    state.nodes[path] = replace(state.file(path), writer="")
    return True


def collect(state: State) -> object:
    """End the leases of silent writers."""
    for path, node in state.nodes.items():
        if node.writer in state.silent:
            state.nodes[path] = replace(node, writer="")
    return None


def later(state: State) -> object:
    """Make all writers silent: much time passes."""
    state.silent |= {node.writer for node in state.nodes.values() if node.writer}
    return None


def start_upload(state: State, path: Path, name: str) -> object:
    """Begin an upload without content."""
    found = state.find(path)
    if found is not None and found.is_directory:
        raise RefusedError("PathIsDirectoryError")
    state.uploads[name] = path
    return None


def upload(state: State, name: str, mark: str) -> object:
    """Add a part to an upload. It counts only if it is named when the upload is completed."""
    _pending(state, name)
    return None


def complete(state: State, name: str, content: str) -> object:
    """Let an upload become a file with the content of the parts that the caller names."""
    path = _pending(state, name)
    if name in state.mistaken:
        raise RefusedError("InvalidRequestError")
    found = state.find(path)
    if found is not None and found.is_directory:
        raise RefusedError("PathIsDirectoryError")
    create(state, path, content, overwrite=True)
    del state.uploads[name]
    return None


def abort(state: State, name: str) -> object:
    """Forget an upload."""
    state.uploads.pop(name, None)
    return None


def _pending(state: State, name: str) -> Path:
    if name not in state.uploads:
        raise RefusedError("NotFoundError")
    return state.uploads[name]


_OPERATIONS: dict[str, Callable[..., object]] = {
    "mkdirs": lambda state, path: mkdirs(state, split(path)),
    "create": lambda state, path, mark: create(state, split(path), mark),
    "overwrite": lambda state, path, mark: create(state, split(path), mark, overwrite=True),
    "create_with_lease": lambda state, path, writer: create(state, split(path), "", writer=writer),
    "delete": lambda state, path: delete(state, split(path), recursive=False),
    "delete_tree": lambda state, path: delete(state, split(path), recursive=True),
    "rename": lambda state, source, target: rename(state, split(source), split(target), overwrite=False),
    "replace": lambda state, source, target: rename(state, split(source), split(target), overwrite=True),
    "list": lambda state, path: list_entries(state, split(path)),
    "walk": lambda state, path: walk(state, split(path)),
    "read": lambda state, path: read(state, split(path)),
    "concat": lambda state, *paths: concat(state, *map(split, paths)),
    "append": lambda state, path, writer: append(state, split(path), writer),
    "sync": lambda state, writer, mark: publish(state, writer, mark, closes=False),
    "close": lambda state, writer, mark: publish(state, writer, mark, closes=True),
    "sync_surely": lambda state, writer, mark: publish(state, writer, mark, closes=False),
    "close_surely": lambda state, writer, mark: publish(state, writer, mark, closes=True),
    "write": renew,
    "believe": believe,
    "recover": lambda state, path: recover(state, split(path)),
    "set_mode": lambda state, path, mode: set_mode(state, split(path), mode),
    "set_owner": lambda state, path, owner: set_owner(state, split(path), owner),
    "set_quota": lambda state, path, names: set_quota(state, split(path), names),
    "publish": lambda state, *files: publish_many(state, False, *files),
    "put_all": lambda state, *files: publish_many(state, True, *files),
    "start_upload": lambda state, path, name: start_upload(state, split(path), name),
    "upload": upload,
    "complete": complete,
    "abort": abort,
    "collect": collect,
    "later": later,
}


def apply(state: Hashable, operation: Operation) -> tuple[Hashable, object]:
    """Return the state after an operation, and its answer."""
    before = cast("Tree", state)
    after = State(before, operation.who)
    try:
        answer = _OPERATIONS[operation.name](after, *operation.args)
        if operation.name != "set_quota":
            after.check_quotas(dict(before.nodes))
    except RefusedError as error:
        return state, str(error)
    return after.tree(), answer
