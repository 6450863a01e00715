"""Keep phrases of an old private dialect out of the texts; each is listed with the standard term."""

from __future__ import annotations

import re

from tests.tidy.source_tree import text_files

# Files that are not checked.
UNCHECKED = ("tests/tidy/test_wording.py",)  # it quotes the phrases

BANNED = {
    r"\bthe ways? of the data\b": "data flow",
    r"\bgo(?:es)? (?:their|its) papers?'s? ways?\b": "follow the papers",
    r"\bhands off\b|\bkeeps? (?:his|its|their) hands off\b": "do not touch; do not clean up",
    r"\blooking and mending\b": "inspect and repair",
    r"\b(?:need not|should not have to) believe\b": "do not take this on trust",
    r"\bsleep well\b": "with the strongest guarantees",
    r"\bis no praise\b": "is a defect",
    r"\bways? from start to end\b": "complete executions",
    r"\bin vain\b": "failed, without effect",
    r"\bwhat (?:became|becomes) of\b": "the outcome of",
    r"\bmake it so\b": "carry it out",
    r"\bshall\b": "must, will",
    r"\bnowhere, neither waiting\b": "neither pending nor visible",
    r"\bcoordinates with nobody\b": "without coordination",
    r"\bnobody (?:looks|listens)\b": "a no-op callback",
    r"\bthe pleasant way\b": "the convenience API",
    r"\bthe person in front of\b": "the user",
    r"\blaid out otherwise\b": "uses another format or partitioning",
    r"\bnames no place\b": "expected a directory or URL",
    r"\bbelongs? into\b": "belongs in",
    r"\bwhat somebody wants\b": "the options",
    r"\bnone of ours\b": "unexpected",
    r"\bwhilst\b|\bhither\b|\bthither\b": "while, here, there",
    r"\bfor ever\b": "forever, permanently",
    r"\bnobody can (?:say|tell|know)\b": "it is unknown",
    r"\bas far as the \w+ lets\b": "best effort",
    r"\bwhat is not said\b|\bif nothing is said\b": "by default",
}


def _texts() -> list[tuple[str, str]]:
    suffixes = (".md", ".py", ".html")
    return [
        (name, _without_output(text) if name.endswith(".md") else text)
        for name, text in text_files()
        if name.endswith(suffixes) and not name.startswith(UNCHECKED)
    ]


_BLOCK = re.compile(r"^ *```(\S*)\n.*?^ *```$", re.DOTALL | re.MULTILINE)


def _without_output(text: str) -> str:
    """Blank out blocks of command output: the code that prints them is checked where it is defined."""
    return _BLOCK.sub(lambda block: "\n" * block[0].count("\n") if block[1] in ("", "text") else block[0], text)


_ANY = re.compile("|".join(BANNED), re.IGNORECASE)


def found_in(text: str) -> list[str]:
    """Return every banned phrase in a text, with its line and the words to use."""
    lines = text.splitlines() if _ANY.search(text) else []
    return [
        f"line {number}: {match[0]!r} (say: {better})"
        for pattern, better in BANNED.items()
        for number, line in enumerate(lines, start=1)
        for match in re.finditer(pattern, line, re.IGNORECASE)
    ]


def test_phrases_are_found() -> None:
    assert found_in("fine\nthis is what became of it") == ["line 2: 'what became of' (say: the outcome of)"]
    assert found_in("Two drivers shall not commit.") == ["line 1: 'shall' (say: must, will)"]


def test_there_is_something_to_check() -> None:
    names = [name for name, _ in _texts()]
    assert "README.md" in names and any(name.startswith("docs/how-to/") for name in names)


def test_texts_are_plain_english() -> None:
    assert {name: found for name, text in _texts() if (found := found_in(text))} == {}
