"""Compile patterns of names: ``*``, ``?``, ``[a-c]``, ``[!a]`` and ``{a,b}``, the syntax of Hadoop's globs.

A backslash makes the next character literal.
"""

from __future__ import annotations

import re

from holdfast.errors import InvalidRequestError

__all__ = ["compile_word", "is_pattern"]

_SPECIAL = re.compile(r"[*?\[{]")


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
            parts.append(".*")
        elif letter == "?":
            parts.append(".")
        elif letter == "\\" and index < len(word):
            parts.append(re.escape(word[index]))
            index += 1
        elif letter == "[":
            end = word.find("]", index + 1)
            if end < 0:
                raise InvalidRequestError(
                    "a [ in the pattern is not closed: write [abc], or \\[ for a literal [", name=word
                )
            inside = word[index:end].replace("\\", "\\\\").replace("[", "\\[")
            parts.append(f"[{'^' + inside[1:] if inside[0] in '!^' else inside}]")
            index = end + 1
        elif letter == "{":
            depth += 1
            parts.append("(?:")
        elif letter == "}" and depth:
            depth -= 1
            parts.append(")")
        elif letter == "," and depth:
            parts.append("|")
        else:
            parts.append(re.escape(letter))
    if depth:
        raise InvalidRequestError("a { in the pattern is not closed: write {a,b}, or \\{ for a literal {", name=word)
    try:
        return re.compile("".join(parts), re.DOTALL)
    except re.error as error:
        raise InvalidRequestError("a range in the pattern is invalid: write it like [a-z]", name=word) from error
