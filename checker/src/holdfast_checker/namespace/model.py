"""A sequential model of a namespace, of which every history must be an example: `apply` says what each operation means.

A state is a table of paths. It knows nothing of inodes, versions, hints, deleted trees or garbage: those are how the
namespace does it. An operation answers with a value, or with the name of the class of its error.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias, cast

from holdfast.namespace.inode import DIRECTORY_MODE, FILE_MODE
from holdfast.namespace.permissions import EXECUTE, READ, STICKY, WRITE
from holdfast_checker.histories.history import Operation

Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """A directory or a file of the model.

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
    """Raised by the model if an operation must fail; the message is the name of the error's class."""


class State:
    """The state of a namespace's model while an operation changes it.

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
        """Check that the user has the permission bits `access` on the node at a path, else raise `RefusedError`."""
        node = self.nodes.get(path)
        if self.user and node is not None:
            bits = node.bits >> 6 if node.owner == self.user else node.bits
            if bits & access != access:
                raise RefusedError("PermissionDeniedError")

    def check_removal(self, path: Path) -> None:
        """Check that the user may remove a path from its directory, else raise `RefusedError`."""
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
        """Return a path and all paths below it."""
        return [one for one in sorted(self.nodes) if one[: len(path)] == path]

    def make_parents(self, path: Path) -> None:
        """Make the missing directories above a path, if the user may create entries in the deepest existing one."""
        self.check(self.deepest(path), WRITE | EXECUTE)
        for depth in range(1, len(path)):
            self.nodes.setdefault(path[:depth], Node(owner=self.user))

    def check_quotas(self, before: dict[Path, Node]) -> None:
        """Check that no directory has grown beyond its quota since `before`, else raise `RefusedError`."""
        for path, node in self.nodes.items():
            if node.quota and len(self.below(path)) > node.quota:
                was = len([one for one in before if one[: len(path)] == path])
                if len(self.below(path)) > was or path not in before:
                    raise RefusedError("NamesQuotaExceededError")

    def existing(self, path: Path) -> Node:
        """Return the node at a path.

        Raises:
            RefusedError: there is none, or `find` refuses the path.
        """
        found = self.find(path)
        if found is None:
            raise RefusedError("PathNotFoundError")
        return found

    def file(self, path: Path, directory: str = "PathIsDirectoryError") -> Node:
        """Return the file at a path.

        Raises:
            RefusedError: there is none.
        """
        found = self.existing(path)
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
    """Split a path such as ``/a/b`` into its names."""
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


def delete(state: State, path: Path, recursive: bool = False) -> bool:
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


def rename(state: State, source: Path, target: Path, overwrite: bool = False) -> None:
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
    state.existing(target[:-1])
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


def list_entries(state: State, path: Path) -> object:
    """Answer with the entries of a directory, or with the file itself."""
    found = state.existing(path)
    if not found.is_directory:
        return ("/" + "/".join(path),)
    state.check(path, READ | EXECUTE)
    return tuple("/" + "/".join(one) for one in state.children(path))


def walk(state: State, path: Path) -> object:
    """Answer with everything below a path."""
    found = state.existing(path)
    if not found.is_directory:
        return ("/" + "/".join(path),)
    return tuple("/" + "/".join(one) for one in state.below(path) if one != path)


def set_mode(state: State, path: Path, mode: int) -> None:
    """Change the permission bits of a path."""
    found = _owned(state, path)
    state.nodes[path] = replace(found, mode=mode)


def set_owner(state: State, path: Path, owner: str) -> None:
    """Give a path to a user."""
    found = _owned(state, path)
    if state.user:
        raise RefusedError("PermissionDeniedError")
    state.nodes[path] = replace(found, owner=owner)


def _owned(state: State, path: Path) -> Node:
    """Return what has a path, if it belongs to the user."""
    found = state.existing(path)
    if state.user and found.owner != state.user:
        raise RefusedError("PermissionDeniedError")
    return found


def set_quota(state: State, path: Path, names: int) -> None:
    """Limit the number of names in a directory."""
    found = state.existing(path)
    if not found.is_directory:
        raise RefusedError("ParentNotDirectoryError")
    state.nodes[path] = replace(found, quota=names)


def create(state: State, path: Path, mark: str, overwrite: bool = False, writer: str = "") -> None:
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


def read(state: State, path: Path) -> object:
    """Answer with the content of a file."""
    found = state.file(path)
    state.check(path, READ)
    return found.content


def publish_many(state: State, *files: tuple[str, str], overwrite: bool = False) -> None:
    """Create several files."""
    for path, mark in files:
        create(state, split(path), mark, overwrite)


def concat(state: State, target: Path, *sources: Path) -> None:
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


def append(state: State, path: Path, writer: str) -> None:
    """Give the lease of a file to a writer."""
    node = state.file(path, "DirectoryInTheWayError")
    state.refuse_writer(node)
    state.nodes[path] = replace(node, writer=writer)


def publish(state: State, writer: str, mark: str, closes: bool) -> None:
    """Add content to the file of a writer, and end the lease if wanted."""
    path = state.held_by(writer)
    node = state.nodes[path]
    state.nodes[path] = replace(node, content=(node.content or "") + mark, writer="" if closes else writer)
    state.silent -= {writer}


def renew(state: State, writer: str) -> None:
    """Note that a writer is alive."""
    if writer in state.silent:
        state.held_by(writer)
        state.silent -= {writer}


def believe(state: State, writer: str) -> None:
    """Note that a writer, or an upload, has published something that a crash of the database has undone."""
    state.mistaken |= {writer}


def recover(state: State, path: Path) -> object:
    """End the lease of a file."""
    state.nodes[path] = replace(state.file(path), writer="")
    return True


def collect(state: State) -> None:
    """End the leases of silent writers."""
    for path, node in state.nodes.items():
        if node.writer in state.silent:
            state.nodes[path] = replace(node, writer="")


def later(state: State) -> None:
    """Make all writers silent: much time passes."""
    state.silent |= {node.writer for node in state.nodes.values() if node.writer}


def start_upload(state: State, path: Path, name: str) -> None:
    """Begin an upload without content."""
    found = state.find(path)
    if found is not None and found.is_directory:
        raise RefusedError("PathIsDirectoryError")
    state.uploads[name] = path


def upload(state: State, name: str, mark: str) -> None:
    """Add a part to an upload. It counts only if it is named when the upload is completed."""
    _pending(state, name)


def complete(state: State, name: str, content: str) -> None:
    """Let an upload become a file with the content of the parts that the caller names."""
    path = _pending(state, name)
    if name in state.mistaken:
        raise RefusedError("InvalidRequestError")
    found = state.find(path)
    if found is not None and found.is_directory:
        raise RefusedError("PathIsDirectoryError")
    create(state, path, content, overwrite=True)
    del state.uploads[name]


def abort(state: State, name: str) -> None:
    """Forget an upload."""
    state.uploads.pop(name, None)


def _pending(state: State, name: str) -> Path:
    if name not in state.uploads:
        raise RefusedError("NotFoundError")
    return state.uploads[name]


_OPERATIONS: dict[str, Callable[..., object]] = {
    **{
        one.__name__: one
        for one in (mkdirs, create, delete, rename, walk, read, concat, append, set_mode, set_owner, set_quota)
    },
    **{one.__name__: one for one in (recover, believe, start_upload, upload, complete, abort, collect, later)},
    "overwrite": partial(create, overwrite=True),
    "create_with_lease": lambda state, path, writer: create(state, path, "", writer=writer),
    "delete_tree": partial(delete, recursive=True),
    "replace": partial(rename, overwrite=True),
    "list": list_entries,
    "sync": partial(publish, closes=False),
    "sync_surely": partial(publish, closes=False),
    "close": partial(publish, closes=True),
    "close_surely": partial(publish, closes=True),
    "write": renew,
    "publish": publish_many,
    "put_all": partial(publish_many, overwrite=True),
}


def apply(state: Hashable, operation: Operation) -> tuple[Hashable, object]:
    """Apply an operation to a state of the model; return the new state, and the operation's answer."""
    before = cast("Tree", state)
    after = State(before, operation.who)
    try:
        args = (split(one) if isinstance(one, str) and one.startswith("/") else one for one in operation.args)
        answer = _OPERATIONS[operation.name](after, *args)
        if operation.name != "set_quota":
            after.check_quotas(dict(before.nodes))
    except RefusedError as error:
        return state, str(error)
    return after.tree(), answer
