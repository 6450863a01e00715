"""Define the options of ``holdfast check`` as a value, and the files that it writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from holdfast.errors import InvalidRequestError
from holdfast_checker.kernel.counterexample import Counterexample, encode
from holdfast_checker.narrative.story import Story, page

STATES = 100_000
"""Default limit of states in a scene; exploring them takes a minute or less, and 500 MB."""

WALK_S = 60.0
"""Default time limit of a random walk."""


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """The options as the user gave them; None or empty if not given.

    Attributes:
        seconds: time limit of each scene, or of the whole walk through random histories.
        states: limit of states in each scene.
        save: directory for counterexamples.
        html: HTML file to write the story to.
    """

    name: str | None
    scenes: tuple[str, ...]
    properties: tuple[str, ...]
    small: bool
    walk: bool
    seed: int | None
    first: int | None
    histories: int | None
    seconds: float | None
    states: int | None
    save: Path | None
    replay: Path | None
    details: bool
    html: Path | None
    every: bool
    listed: bool


class StoryFiles:
    """The files for a story and its counterexamples, if the user asked for them.

    Whether they can be written is tested before the search starts.

    Args:
        html: the file for the story; it must not exist yet, since it could be an unrelated file.
        directory: the directory for counterexamples, created if missing; existing files of the same name are replaced.

    Raises:
        InvalidRequestError: the file or the directory cannot be written.
    """

    def __init__(self, *, html: Path | None, directory: Path | None) -> None:
        self._html = html
        self._directory = directory
        if html is not None:
            self._write(html, "")
            html.unlink()
        if directory is not None:
            try:
                directory.mkdir(parents=True, exist_ok=True)
                probe = directory / ".holdfast"
                probe.touch()
                probe.unlink()
            except OSError as error:
                raise InvalidRequestError(
                    "the directory cannot be written: name another",
                    directory=str(directory),
                    reason=error.strerror,
                ) from error

    def save(self, counterexample: Counterexample) -> Path | None:
        """Save a counterexample if the user asked for it, and return its file; None if the user did not."""
        if self._directory is None:
            return None
        file = self._directory / f"{counterexample.world.replace('/', '-')}-{counterexample.property}.json"
        file.write_bytes(encode(counterexample))
        return file

    def write_page(self, story: Story) -> Path | None:
        """Write the story as a page if the user asked for it, and return its file; None if the user did not."""
        if self._html is not None:
            self._write(self._html, page(story))
        return self._html

    def _write(self, file: Path, text: str) -> None:
        try:
            with file.open("x", encoding="utf-8") as opened:
                opened.write(text)
        except FileExistsError as error:
            raise InvalidRequestError("the file already exists: remove it, or name another", file=str(file)) from error
        except OSError as error:
            raise InvalidRequestError(
                "the file cannot be written: name another", file=str(file), reason=error.strerror
            ) from error
