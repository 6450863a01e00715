"""Compile patterns of names: ``*``, ``?``, ``[a-c]``, ``[!a]`` and ``{a,b}``, the syntax of Hadoop's globs.

A backslash makes the next character literal.
"""

from __future__ import annotations

import re

from holdfast.errors import InvalidRequestError

_SPECIAL = re.compile(r"[*?\[{]")

_MOST_BRACES = 50
"""How deep braces may be nested; `re` gives up at some hundred levels."""


def is_pattern(text: str) -> bool:
    """Check whether a name or a path contains a character that makes it a pattern."""
    return _SPECIAL.search(text) is not None


def compile_word(word: str) -> re.Pattern[str]:
    """Compile one path segment of a pattern; match the whole name with it.

    Raises:
        InvalidRequestError: the pattern is invalid; the message says why.
    """
    parts: list[str] = []
    depth = 0
    index = 0
    while index < len(word):
        letter = word[index]
        index += 1
        if letter == "*":
            parts += [".*"] if parts[-1:] != [".*"] else []
        elif letter == "?":
            parts.append(".")
        elif letter == "\\" and index < len(word):
            parts.append(re.escape(word[index]))
            index += 1
        elif letter == "[":
            start = index + (word[index : index + 1] in ("!", "^"))
            end = word.find("]", start + 1)
            if end < 0:
                raise InvalidRequestError(
                    "a [ in the pattern is not closed: write [abc], or \\[ for a literal [", name=word
                )
            parts.append(f"[{'^' if start > index else ''}{_set(word[start:end])}]")
            index = end + 1
        elif letter == "{":
            depth += 1
            if depth > _MOST_BRACES:
                raise InvalidRequestError(f"braces in the pattern are nested more than {_MOST_BRACES} deep: use fewer")
            parts.append("(?:")
        elif letter == "}" and depth:
            depth -= 1
            parts.append(")")
        elif letter == "," and depth:
            parts.append("|")
        else:
            parts.append(re.escape(letter))
    if depth:
        raise InvalidRequestError(
            "a { in the pattern is not closed before the next slash: write {a,b}, several urls, or \\{ for a literal {",
            name=word,
        )
    try:
        return re.compile("".join(parts), re.DOTALL)
    except re.error as error:
        raise InvalidRequestError("a range in the pattern is invalid: write it like [a-z]", name=word) from error


def _set(letters: str) -> str:
    """Return what is between the brackets of a set: letters, of which each but a dash between two others is literal."""
    return "".join(
        f"{re.escape(found[1])}-{re.escape(found[2])}" if found[1] else re.escape(found[0])
        for found in re.finditer(r"(.)-(.)|.", letters, re.DOTALL)
    )
