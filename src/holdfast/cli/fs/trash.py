"""Move files and directories to the trash of the user, where they keep their path."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.cli.fs.items import Item
from holdfast.errors import InvalidRequestError
from holdfast.namespace import Namespace
from holdfast.namespace.errors import PathExistsError, PermissionDeniedError
from holdfast.namespace.paths import MAX_COMPONENT_BYTES, NsPath

_MODE = 0o700
"""The mode of a home and of all that is in a trash, as in HDFS. All homes are below one directory, which is open."""

_MOST_NUMBERS = 1000


def check_trashable(item: Item) -> None:
    """Refuse what cannot go to the trash.

    Raises:
        InvalidRequestError: it is in the trash already, or contains the trash, or is the root.
    """
    path, root = NsPath.parse(item.status.path), NsPath.parse(item.namespace.trash_root())
    if path.is_below(root):
        raise InvalidRequestError("this is in the trash already: remove it without --trash", path=str(path))
    if root.is_below(path):
        raise InvalidRequestError("this contains the trash: remove what is in it instead", path=str(path))


def move_to_trash(item: Item) -> str:
    """Move a file or a directory to the trash, in one step; return its URL there.

    A name that is taken gets a number: ``one.csv.1``.

    Raises:
        PermissionDeniedError: the trash cannot be made, or the path may not be removed.
        PathNotFoundError: it is gone.
    """
    home = item.namespace.trash_root().rpartition("/")[0]
    namespace = item.namespace
    place = f"{namespace.trash_root()}/Current"
    *above, own = (name.decode() for name in NsPath.parse(item.status.path).names)
    for name in above:
        place = _beside_files(namespace, f"{place}/{name}")
    try:
        if namespace.find(home) is None:
            namespace.mkdirs(home.rpartition("/")[0])
        namespace.mkdirs(place, mode=_MODE)
    except PermissionDeniedError as error:
        raise PermissionDeniedError(
            f"the trash cannot be made: let the superuser make {home} and give it to the user, or leave out --trash",
            path=place,
        ) from error
    target = f"{place}/{own}"
    for free in _numbered(target):
        try:
            namespace.rename(item.status.path, free)
        except PathExistsError:
            continue
        return item.base + free
    raise InvalidRequestError("the trash is full of this name: empty it", path=target)


def _beside_files(namespace: Namespace, directory: str) -> str:
    """Return the path of a directory, with a number if a file has it."""
    for path in _numbered(directory):
        found = namespace.find(path)
        if found is None or found.is_directory:
            return path
    raise InvalidRequestError("the trash is full of this name: empty it", path=directory)


def _numbered(path: str) -> Iterator[str]:
    """Yield the path, and then with numbers, for which the longest names are cut."""
    yield path
    directory, _, name = path.rpartition("/")
    for number in range(1, _MOST_NUMBERS):
        end = f".{number}"
        yield f"{directory}/{name.encode()[: MAX_COMPONENT_BYTES - len(end)].decode(errors='ignore')}{end}"
