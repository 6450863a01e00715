"""Files that ``holdfast check`` writes. That they can be written is found out before the work, not after it."""

from __future__ import annotations

from pathlib import Path

from holdfast.checker.kernel.counterexample import Counterexample, encode
from holdfast.checker.narrative.story import Story
from holdfast.checker.narrative.timeline import page
from holdfast.errors import InvalidRequestError

__all__ = ["StoryFiles"]


class StoryFiles:
    """Where a story and counterexamples go, if anywhere.

    Args:
        html: a file that must not be there: it could be anything.
        directory: made if it is not there; files in it whose names are those of counterexamples are replaced.

    Raises:
        InvalidRequestError: nothing can be written there.
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
                    "nothing can be saved there: name another directory",
                    directory=str(directory),
                    reason=error.strerror,
                ) from error

    def save(self, counterexample: Counterexample) -> Path | None:
        """Save a counterexample; where."""
        if self._directory is None:
            return None
        file = self._directory / f"{counterexample.world.replace('/', '-')}-{counterexample.property}.json"
        file.write_bytes(encode(counterexample))
        return file

    def write_page(self, story: Story) -> Path | None:
        """Write the page; where."""
        if self._html is not None:
            self._write(self._html, page(story))
        return self._html

    def _write(self, file: Path, text: str) -> None:
        try:
            with file.open("x", encoding="utf-8") as opened:
                opened.write(text)
        except FileExistsError as error:
            raise InvalidRequestError(
                "the file is there already: remove it, or name another", file=str(file)
            ) from error
        except OSError as error:
            raise InvalidRequestError(
                "the file cannot be written: name another", file=str(file), reason=error.strerror
            ) from error
