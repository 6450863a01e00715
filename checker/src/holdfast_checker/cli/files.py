"""Write the files of ``holdfast check``; test that they can be written before the search starts."""

from __future__ import annotations

from pathlib import Path

from holdfast.errors import InvalidRequestError
from holdfast_checker.kernel.counterexample import Counterexample, encode
from holdfast_checker.narrative.story import Story
from holdfast_checker.narrative.timeline import page


class StoryFiles:
    """The files for a story and its counterexamples, if the user asked for them.

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
