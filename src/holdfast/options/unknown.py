"""Refuse options that are not valid in a call, and suggest what was probably meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from holdfast.errors import InvalidRequestError
from holdfast.formats import FORMATS
from holdfast.wording import nearest

_SHORTEST = 4
"""The least letters of a name that may stand for a longer one."""


def refuse_unknown(unknown: Iterable[str], known: Iterable[str]) -> None:
    """Refuse options that are not valid in this call.

    Args:
        unknown: the names of the invalid options, as given.
        known: the names that are valid in this call, including those of the chosen format.

    Raises:
        InvalidRequestError: there are unknown options; the message suggests the valid name that ends in this one or is
            nearest to it, or the format that has an option with this name.
    """
    unknown = tuple(unknown)
    if not unknown:
        return
    documented = {name.lower(): name for name in known}
    of_formats = {name for one in FORMATS.values() for name in one.parsers} - set(documented)
    for key in unknown:
        longer = [name for low, name in documented.items() if len(key) >= _SHORTEST and low.endswith(key.lower())]
        if longer:  # user for namespaceUser: nearer than any name that merely looks alike
            raise InvalidRequestError(f"unknown option: did you mean {' or '.join(longer)}", option=key)
        near = difflib.get_close_matches(key.lower(), [*documented, *sorted(of_formats)], n=1, cutoff=0.5)
        if near and near[0] in of_formats:
            owners = [one.name for one in FORMATS.values() if near[0] in one.parsers]
            raise InvalidRequestError(
                f"unknown option: {near[0]} is an option of {' and '.join(owners)} files: leave it out, or choose that "
                "format",
                option=key,
            )
        # Spark lower-cases what the user wrote; show the names as the documentation spells them.
        hint = re.sub(r"[\w.]+", lambda word: documented.get(word.group(), word.group()), nearest(key, documented))
        raise InvalidRequestError(f"unknown option: {hint}", option=key)
