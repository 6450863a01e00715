"""Go on with the other paths of a command if something is wrong with one of them, and report all in the end."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable, Iterator

import click

from holdfast.cli.failures import PROBLEM, exit_code
from holdfast.cli.output import Output
from holdfast.errors import (
    AccessDeniedError,
    FencedError,
    HoldfastError,
    NotFoundError,
    OutcomeUnknownError,
    UnavailableError,
    UnsupportedError,
)
from holdfast.namespace.errors import PathNotFoundError, PermissionDeniedError, TreeMovingError, UncountedTreeError
from holdfast.wording import counted

_MOST_SHOWN = 20
_ABOUT_ONE_PATH = (PathNotFoundError, PermissionDeniedError, TreeMovingError, UncountedTreeError)
_ABOUT_EVERYTHING = (
    AccessDeniedError,
    FencedError,
    NotFoundError,
    OutcomeUnknownError,
    UnavailableError,
    UnsupportedError,
)


class Problems:
    """The problems of one run of a command, each with the path that has it.

    Args:
        lines: whether the command prints lines of JSON, so that each problem is such a line.
    """

    def __init__(self, out: Output, *, lines: bool = False) -> None:
        self._out = out
        self._lines = lines
        self._errors: list[HoldfastError] = []
        self.documents: list[dict[str, object]] = []

    def add(self, where: str, error: HoldfastError) -> None:
        """Report the problem of one path.

        Raises:
            HoldfastError: the error itself, if it does not concern this path alone: the other paths would have it too.
        """
        if isinstance(error, _ABOUT_EVERYTHING) and not isinstance(error, _ABOUT_ONE_PATH):
            raise error
        self._errors.append(error)
        document: dict[str, object] = {"url": where, "error": str(error), "kind": type(error).__name__}
        if self._lines:
            self._out.line(document)
        elif self._out.json:
            self.documents.append(document)
        if self._out.debug:
            traceback.print_exception(error)
        if len(self._errors) <= _MOST_SHOWN:
            self._out.note(f"error: {error}")

    def below(self, base: str) -> Callable[[str, HoldfastError], None]:
        """Return a function that reports the problem of a path in the namespace of this URL; see `add`."""
        return lambda path, error: self.add(base + path, error)

    @contextlib.contextmanager
    def noted(self, where: str) -> Iterator[None]:
        """Report an error of the block as the problem of one path; see `add`."""
        try:
            yield
        except HoldfastError as error:
            self.add(where, error)

    def end(self, succeeded: int) -> None:
        """End the command with an exit code that tells whether there were problems.

        Args:
            succeeded: number of paths without a problem.
        """
        if not self._errors:
            return
        if len(self._errors) > _MOST_SHOWN:
            self._out.note(f"error: and {counted(len(self._errors) - _MOST_SHOWN, 'more error')} like these")
        raise click.exceptions.Exit(PROBLEM if succeeded else exit_code(self._errors[0]) or PROBLEM)
