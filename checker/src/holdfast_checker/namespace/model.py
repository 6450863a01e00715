"""Define the sequential model of a namespace (a tree of files), for checks of linearizability.

A state is a map of paths, without inodes, versions or garbage, which are matters of the implementation. An operation
answers with a value, or with the name of the class of its error.
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
class ModelNode:
    """A directory or a file in the sequential model of a namespace.

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
    def permission_bits(self) -> int:
        if self.mode is not None:
            return self.mode
        return DIRECTORY_MODE if self.is_directory else FILE_MODE


@dataclass(frozen=True, slots=True)
class ModelTree:
    """An immutable state of the sequential model of a namespace: its files and directories, writers and uploads.

    Attributes:
        nodes: by path, sorted; the root is the empty path.
        silent: writers whose lease may have expired, since they have not renewed it.
        uploads: the paths of uploads that are not completed, by name, sorted.
        users: the actors that are ordinary users; all others are the superuser.
        mistaken: writers and uploads that have published bytes which a crash of the database has undone.
    """

    nodes: tuple[tuple[Path, ModelNode], ...]
    silent: frozenset[str] = frozenset()
    uploads: tuple[tuple[str, Path], ...] = ()
    users: frozenset[str] = frozenset()
    mistaken: frozenset[str] = frozenset()


class RefusedError(Exception):
    """Raised by the model if an operation must fail; the message is the name of the error's class."""


class MutableModelTree:
    """A mutable copy of a `ModelTree`, which one operation of the model changes.

    Attributes:
        user: name of the user that runs the operation; empty for the superuser.
    """

    def __init__(self, tree: ModelTree, who: str) -> None:
        self.user = who if who in tree.users else ""
        self._users = tree.users
        self.nodes = dict(tree.nodes)
        self.silent = tree.silent
        self.mistaken = tree.mistaken
        self.uploads = dict(tree.uploads)

    def to_tree(self) -> ModelTree:
        nodes = tuple(sorted(self.nodes.items(), key=lambda one: one[0]))
        return ModelTree(nodes, self.silent, tuple(sorted(self.uploads.items())), self._users, self.mistaken)

    def find(self, path: Path) -> ModelNode | None:
        """Return the node at a path; None if there is none.

        Raises:
            RefusedError: a parent of the path is a file, or the user may not search a parent directory.
        """
        for depth in range(len(path)):
            above = self.nodes.get(path[:depth])
            if above is None:
                return None
            if not above.is_directory:
                raise RefusedError("ParentNotDirectoryError")
            self.check_access(path[:depth], EXECUTE)
        return self.nodes.get(path)

    def check_access(self, path: Path, access: int) -> None:
        """Check that the user has the permission bits `access` on the node at a path, else raise `RefusedError`."""
        node = self.nodes.get(path)
        if self.user and node is not None:
            bits = node.permission_bits >> 6 if node.owner == self.user else node.permission_bits
            if bits & access != access:
                raise RefusedError("PermissionDeniedError")

    def check_removal(self, path: Path) -> None:
        """Check that the user may remove a path from its directory, else raise `RefusedError`."""
        parent, node = self.nodes.get(path[:-1]), self.nodes.get(path)
        self.check_access(path[:-1], WRITE)
        if self.user and parent is not None and node is not None and parent.permission_bits & STICKY:
            if self.user not in (parent.owner, node.owner):
                raise RefusedError("PermissionDeniedError")

    def deepest_directory(self, path: Path) -> Path:
        """Return the path of the deepest existing parent directory of a path."""
        return max((path[:depth] for depth in range(len(path)) if path[:depth] in self.nodes), key=len, default=())

    def children(self, path: Path) -> list[Path]:
        return [one for one in sorted(self.nodes) if len(one) == len(path) + 1 and one[: len(path)] == path]

    def subtree(self, path: Path) -> list[Path]:
        """Return the existing paths of a subtree: the given path and all paths below it, sorted."""
        return [one for one in sorted(self.nodes) if one[: len(path)] == path]

    def make_parents(self, path: Path) -> None:
        """Create the missing parent directories of a path, if the user may write to the deepest existing one."""
        self.check_access(self.deepest_directory(path), WRITE | EXECUTE)
        for depth in range(1, len(path)):
            self.nodes.setdefault(path[:depth], ModelNode(owner=self.user))

    def check_quotas(self, before: dict[Path, ModelNode]) -> None:
        """Raise `RefusedError` if the operation has made a directory exceed its quota of names."""
        for path, node in self.nodes.items():
            if node.quota and len(self.subtree(path)) > node.quota:
                was = len([one for one in before if one[: len(path)] == path])
                if len(self.subtree(path)) > was or path not in before:
                    raise RefusedError("NamesQuotaExceededError")

    def existing_node(self, path: Path) -> ModelNode:
        """Return the node at a path, which must exist.

        Raises:
            RefusedError: there is no such node, or `find` refuses the path.
        """
        found = self.find(path)
        if found is None:
            raise RefusedError("PathNotFoundError")
        return found

    def existing_file(self, path: Path, directory: str = "PathIsDirectoryError") -> ModelNode:
        """Return the file at a path, which must exist.

        Raises:
            RefusedError: the path does not exist, or is a directory (then `directory` is the error's name).
        """
        found = self.existing_node(path)
        if found.is_directory:
            raise RefusedError(directory)
        return found

    def refuse_file_with_writer(self, node: ModelNode) -> None:
        if node.writer and node.writer not in self.silent:
            raise RefusedError("BeingWrittenError")

    def leased_file(self, writer: str) -> Path:
        """Return the path of the file on which a writer holds the lease.

        Raises:
            RefusedError: the writer holds no lease, or a crash has undone bytes that it published.
        """
        for path, node in self.nodes.items():
            if node.writer == writer and writer not in self.mistaken:
                return path
        raise RefusedError("LeaseLostError")


def split_path(path: object) -> Path:
    """Split a path such as ``/a/b`` into its names."""
    return tuple(one for one in cast("str", path).split("/") if one)


def mkdirs(state: MutableModelTree, path: Path) -> object:
    """Create a directory and its missing parents in the model; return False if the directory exists already."""
    found = state.find(path)
    if found is not None:
        if not found.is_directory:
            raise RefusedError("PathExistsError")
        return False
    state.make_parents(path)
    state.nodes[path] = ModelNode(owner=state.user)
    return True


def delete(state: MutableModelTree, path: Path, recursive: bool = False) -> bool:
    """Delete a file or directory from the model; return False if the path does not exist."""
    found = state.find(path)
    state.check_removal(path)
    if found is None:
        return False
    if found.is_directory and not recursive and state.children(path):
        raise RefusedError("DirectoryNotEmptyError")
    for one in state.subtree(path):
        del state.nodes[one]
    return True


def rename(state: MutableModelTree, source: Path, target: Path, overwrite: bool = False) -> None:
    """Rename a file or a directory with its subtree in the model."""
    moved, found = state.find(source), state.find(target)
    state.check_removal(source)
    state.check_access(state.deepest_directory(target), WRITE)
    if moved is None:
        raise RefusedError("PathNotFoundError")
    if source == target:
        raise RefusedError("PathExistsError")
    if target[: len(source)] == source:
        raise RefusedError("RenameError")
    state.existing_node(target[:-1])
    if found is not None:
        if found.is_directory != moved.is_directory:
            raise RefusedError("RenameError")
        if not overwrite:
            raise RefusedError("PathExistsError")
        if state.children(target):
            raise RefusedError("DirectoryNotEmptyError")
        state.check_removal(target)
    tree = {one: state.nodes.pop(one) for one in state.subtree(source)}
    state.nodes.pop(target, None)
    state.nodes.update({target + one[len(source) :]: node for one, node in tree.items()})


def list_entries(state: MutableModelTree, path: Path) -> object:
    """Return the paths of a directory's entries in the model; for a file, its own path."""
    found = state.existing_node(path)
    if not found.is_directory:
        return ("/" + "/".join(path),)
    state.check_access(path, READ | EXECUTE)
    return tuple("/" + "/".join(one) for one in state.children(path))


def walk(state: MutableModelTree, path: Path) -> object:
    """Return all paths below a directory in the model; for a file, its own path."""
    found = state.existing_node(path)
    if not found.is_directory:
        return ("/" + "/".join(path),)
    return tuple("/" + "/".join(one) for one in state.subtree(path) if one != path)


def set_mode(state: MutableModelTree, path: Path, mode: int) -> None:
    """Change the permission bits of a file or directory in the model."""
    found = _require_owned_node(state, path)
    state.nodes[path] = replace(found, mode=mode)


def set_owner(state: MutableModelTree, path: Path, owner: str) -> None:
    """Change the owner of a file or directory in the model; only the superuser may."""
    found = _require_owned_node(state, path)
    if state.user:
        raise RefusedError("PermissionDeniedError")
    state.nodes[path] = replace(found, owner=owner)


def _require_owned_node(state: MutableModelTree, path: Path) -> ModelNode:
    """Return what has a path, if it belongs to the user."""
    found = state.existing_node(path)
    if state.user and found.owner != state.user:
        raise RefusedError("PermissionDeniedError")
    return found


def set_quota(state: MutableModelTree, path: Path, names: int) -> None:
    """Set the quota of a directory in the model: the maximum number of names in it."""
    found = state.existing_node(path)
    if not found.is_directory:
        raise RefusedError("ParentNotDirectoryError")
    state.nodes[path] = replace(found, quota=names)


def create(state: MutableModelTree, path: Path, mark: str, overwrite: bool = False, writer: str = "") -> None:
    """Create a file with the content `mark` in the model; with `overwrite`, replace an existing one."""
    found = state.find(path)
    if found is None:
        state.make_parents(path)
    else:
        state.check_access(path[:-1], WRITE)
        if found.is_directory:
            raise RefusedError("DirectoryInTheWayError")
        if not overwrite:
            state.refuse_file_with_writer(found)
            raise RefusedError("PathExistsError")
        state.check_access(path, WRITE)
        state.check_removal(path)
    state.nodes[path] = ModelNode(mark, writer, owner=state.user)


def read(state: MutableModelTree, path: Path) -> object:
    """Return the content of a file in the model."""
    found = state.existing_file(path)
    state.check_access(path, READ)
    return found.content


def publish_many(state: MutableModelTree, *files: tuple[str, str], overwrite: bool = False) -> None:
    """Create several files, given as (path, content), in one step of the model."""
    for path, mark in files:
        create(state, split_path(path), mark, overwrite)


def concat(state: MutableModelTree, target: Path, *sources: Path) -> None:
    """Append the contents of source files to a target file in the model, and delete the sources."""
    node = state.existing_file(target)
    state.refuse_file_with_writer(node)
    text = node.content or ""
    for source in sources:
        one = state.existing_file(source)
        state.refuse_file_with_writer(one)
        if not one.content:
            raise RefusedError("InvalidRequestError")
        text += one.content
    for source in sources:
        del state.nodes[source]
    state.nodes[target] = replace(node, content=text, writer="")


def append(state: MutableModelTree, path: Path, writer: str) -> None:
    """Open a file of the model for appending: give its lease to a writer."""
    node = state.existing_file(path, "DirectoryInTheWayError")
    state.refuse_file_with_writer(node)
    state.nodes[path] = replace(node, writer=writer)


def append_by_writer(state: MutableModelTree, writer: str, mark: str, closes: bool) -> None:
    """Append `mark` to the file whose lease the writer holds in the model; end the lease if `closes` is true."""
    path = state.leased_file(writer)
    node = state.nodes[path]
    state.nodes[path] = replace(node, content=(node.content or "") + mark, writer="" if closes else writer)
    state.silent -= {writer}


def renew_lease(state: MutableModelTree, writer: str) -> None:
    """Renew the lease of a writer in the model."""
    if writer in state.silent:
        state.leased_file(writer)
        state.silent -= {writer}


def believe(state: MutableModelTree, writer: str) -> None:
    """Record in the model that a crash of the database has undone bytes which a writer or an upload had published."""
    state.mistaken |= {writer}


def recover(state: MutableModelTree, path: Path) -> object:
    """End the lease of a file in the model, regardless of its holder."""
    state.nodes[path] = replace(state.existing_file(path), writer="")
    return True


def collect(state: MutableModelTree) -> None:
    """End the expired leases in the model, as the garbage collector does."""
    for path, node in state.nodes.items():
        if node.writer in state.silent:
            state.nodes[path] = replace(node, writer="")


def expire_leases(state: MutableModelTree) -> None:
    """Let so much time pass in the model that every lease may expire."""
    state.silent |= {node.writer for node in state.nodes.values() if node.writer}


def start_upload(state: MutableModelTree, path: Path, name: str) -> None:
    """Start a multipart upload to a path in the model."""
    found = state.find(path)
    if found is not None and found.is_directory:
        raise RefusedError("PathIsDirectoryError")
    state.uploads[name] = path


def upload(state: MutableModelTree, name: str, mark: str) -> None:
    """Upload a part in the model: this changes nothing, since only `complete` names the parts of the file."""
    _path_of_pending_upload(state, name)


def complete(state: MutableModelTree, name: str, content: str) -> None:
    """Complete an upload in the model: it becomes a file with the given content."""
    path = _path_of_pending_upload(state, name)
    if name in state.mistaken:
        raise RefusedError("InvalidRequestError")
    found = state.find(path)
    if found is not None and found.is_directory:
        raise RefusedError("PathIsDirectoryError")
    create(state, path, content, overwrite=True)
    del state.uploads[name]


def abort(state: MutableModelTree, name: str) -> None:
    """Abort an upload in the model; do nothing if there is none."""
    state.uploads.pop(name, None)


def _path_of_pending_upload(state: MutableModelTree, name: str) -> Path:
    if name not in state.uploads:
        raise RefusedError("NotFoundError")
    return state.uploads[name]


_OPERATIONS: dict[str, Callable[..., object]] = {
    **{
        one.__name__: one
        for one in (mkdirs, create, delete, rename, walk, read, concat, append, set_mode, set_owner, set_quota)
    },
    **{one.__name__: one for one in (recover, believe, start_upload, upload, complete, abort, collect, expire_leases)},
    "overwrite": partial(create, overwrite=True),
    "create_with_lease": lambda state, path, writer: create(state, path, "", writer=writer),
    "delete_tree": partial(delete, recursive=True),
    "replace": partial(rename, overwrite=True),
    "list": list_entries,
    "sync": partial(append_by_writer, closes=False),
    "sync_with_retry": partial(append_by_writer, closes=False),
    "close": partial(append_by_writer, closes=True),
    "close_with_retry": partial(append_by_writer, closes=True),
    "write": renew_lease,
    "publish": publish_many,
    "put_all": partial(publish_many, overwrite=True),
}


def apply_to_model(state: Hashable, operation: Operation) -> tuple[Hashable, object]:
    """Apply an operation to a state (`ModelTree`) of the model; return the new state, and the operation's answer."""
    before = cast("ModelTree", state)
    after = MutableModelTree(before, operation.who)
    try:
        args = (split_path(one) if isinstance(one, str) and one.startswith("/") else one for one in operation.args)
        answer = _OPERATIONS[operation.name](after, *args)
        if operation.name != "set_quota":
            after.check_quotas(dict(before.nodes))
    except RefusedError as error:
        return state, str(error)
    return after.to_tree(), answer
