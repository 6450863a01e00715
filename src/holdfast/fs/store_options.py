"""Parse the options of stores as they come to a filesystem: as keywords, for stores that are not known yet."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from holdfast.errors import InvalidRequestError
from holdfast.stores.provider import StoreOptions
from holdfast.stores.registry import BUILT_IN, installed_providers, parse_store_options
from holdfast.wording import nearest

OF_FSSPEC = ("asynchronous", "loop", "batch_size", "use_listings_cache", "listings_expiry_time", "max_paths")
"""Keywords that fsspec's own base class takes."""


def parse_keywords(
    given: Mapping[str, Any], others: Collection[str]
) -> tuple[tuple[StoreOptions, ...], frozenset[str]]:
    """Parse the keywords into options for each type of store; also return the keywords whose values are secret.

    Args:
        others: the keywords that the filesystem takes for itself; an unknown keyword may be a misspelled one of them.

    Raises:
        InvalidRequestError: an option is unknown or invalid.
    """
    providers = BUILT_IN
    if not given.keys() <= {spec.keyword for provider in providers for spec in provider.specs}:
        providers = installed_providers()
    specs = {spec.keyword: spec for provider in providers for spec in provider.specs}
    for name in given:
        if name not in specs:
            raise InvalidRequestError(f"unknown option: {nearest(name, (*specs, *others))}", option=name)
    texts = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in given.items()
        if value is not None
    }
    return parse_store_options(texts, providers), frozenset(name for name, spec in specs.items() if spec.secret)
