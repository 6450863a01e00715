"""Define what the clients of a measurement do: operation number n of a workload, under a directory of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from holdfast.namespace import Namespace

__all__ = ["DIRECTORIES", "KNOWN", "WORKLOADS", "Act", "directory_of", "file_name", "known_name", "tree_directories"]

Act = Callable[[Namespace, int], object]

DIRECTORIES = 4
"""Over so many directories paper 004 spreads the operations of its Table 3."""

KNOWN = 100
"""How many directories exist for those who only look."""


def known_name(number: int) -> str:
    """Return the name of a directory that exists before the measurement."""
    return f"known{number % KNOWN}"


def directory_of(number: int) -> int:
    """Return one of `DIRECTORIES` for an operation. Each process has every eighth number, and works in all of them."""
    return (number ^ number >> 3) % DIRECTORIES


def file_name(number: int) -> str:
    """Return the path of a file below the directory of a workload, spread over `DIRECTORIES`."""
    return f"{directory_of(number)}/file{number}"


def _mkdirs(root: str, options: Mapping[str, int]) -> Act:
    return lambda namespace, number: namespace.mkdirs(f"{root}/d{number}")


def _status(root: str, options: Mapping[str, int]) -> Act:
    return lambda namespace, number: namespace.status(root)


def _mixed(root: str, options: Mapping[str, int]) -> Act:
    def act(namespace: Namespace, number: int) -> object:
        if number.bit_count() % 2:  # each process does both, whatever its share of the numbers
            return namespace.mkdirs(f"{root}/d{number}")
        return namespace.status(f"{root}/{known_name(number)}")

    return act


def _same_names(root: str, options: Mapping[str, int]) -> Act:
    """Let those who come at the same time want the same name: that makes the most conflicts."""
    sharing = options["sharing"]
    return lambda namespace, number: namespace.mkdirs(f"{root}/d{number // sharing}")


def _mkdirs_spread(root: str, options: Mapping[str, int]) -> Act:
    return lambda namespace, number: namespace.mkdirs(f"{root}/{directory_of(number)}/d{number}")


def _create(root: str, options: Mapping[str, int]) -> Act:
    def act(namespace: Namespace, number: int) -> None:
        namespace.write_file(f"{root}/{file_name(number)}", b"")

    return act


def _create_with_lease(root: str, options: Mapping[str, int]) -> Act:
    def act(namespace: Namespace, number: int) -> object:
        return namespace.create_with_lease(f"{root}/{file_name(number)}").close()

    return act


def _rename(root: str, options: Mapping[str, int]) -> Act:
    return lambda namespace, number: namespace.rename(f"{root}/{file_name(number)}", f"{root}/{file_name(number)}.new")


def _delete(root: str, options: Mapping[str, int]) -> Act:
    return lambda namespace, number: namespace.delete(f"{root}/{file_name(number)}")


def tree_directories(root: str, depth: int, width: int) -> list[str]:
    """Return the directories that ``juicefs mdtest`` makes, each after its parent."""
    found = [root]
    if depth:
        for number in range(width):
            found += tree_directories(f"{root}/mdtest_tree.{number}", depth - 1, width)
    return found


def _tree_files(root: str, options: Mapping[str, int]) -> Act:
    """Create the files of ``juicefs mdtest``: each client goes through all directories, in an order of its own."""
    directories = tree_directories(f"{root}/mdtest_tree.0", options["depth"], options["width"])
    clients, files = options["clients"], options["files"]

    def act(namespace: Namespace, number: int) -> None:
        step, client = divmod(number, clients)
        turn, file = divmod(step, files)
        directory = directories[(turn + 5 * client) % len(directories)]
        namespace.write_file(f"{directory}/file.mdtest.{client}.{file}", b"")

    return act


WORKLOADS: Mapping[str, Callable[[str, Mapping[str, int]], Act]] = {
    "status": _status,
    "mkdirs": _mkdirs,
    "mixed": _mixed,
    "same-names": _same_names,
    "mkdirs-spread": _mkdirs_spread,
    "create": _create,
    "create-with-lease": _create_with_lease,
    "rename": _rename,
    "delete": _delete,
    "tree-files": _tree_files,
}
"""By name: a function that gets the directory of the measurement and options, and returns what a client does."""
