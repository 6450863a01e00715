"""Parse the options that say where data is and how to reach it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.commit import CommitContext, CommitSettings, get_committer, open_context
from holdfast.errors import InvalidRequestError, UnsupportedError
from holdfast.formats import FORMATS
from holdfast.stores.provider import (
    GivenOptions,
    OptionSource,
    StoreOptions,
    StoreProvider,
    fold_name,
    make_number_parser,
)
from holdfast.stores.registry import BUILT_IN, build_store_options, find_providers_for_options

LOCATION_KEYS = ("path", "threads", *(spec.name for provider in BUILT_IN for spec in provider.specs))
"""Names of the options that `parse_location` takes, except those of stores from other packages."""


@dataclass(frozen=True, kw_only=True)
class LocationOptions:
    """The parsed options that say where data is and how to reach it.

    Attributes:
        url: the destination, as the user wrote it.
        store_options: how to reach the stores; the repr of these options shows no secret.
        threads: number of concurrent calls to the store from the driver; 32 threads send as many requests as one Python
            process can sign.
    """

    url: str
    store_options: tuple[StoreOptions, ...] = ()
    threads: int = 32

    def open(self, settings: CommitSettings | None = None, *, committer: str = "") -> CommitContext:
        """Open the destination in this process; the caller closes it.

        Args:
            settings: the settings of the commit; None for the defaults.
            committer: name of the committer that will run, because some committers need staging directories. Empty for
                a read.
        """
        return open_context(
            self.url,
            store_options=self.store_options,
            settings=settings,
            threads=self.threads,
            staging=bool(committer) and get_committer(committer).staging,
        )


def collect_options(options: OptionSource, known: Sequence[str]) -> GivenOptions:
    """Collect the options of a call.

    Valid options are those in `known`, and those of the stores that the call's URLs name.

    Raises:
        InvalidRequestError: see `GivenOptions`.
        UnsupportedError: a store from another package has an option with the name of one of Holdfast's or a format's.
    """
    given = GivenOptions(options, known)
    for provider in _find_providers(given):
        if provider not in BUILT_IN:
            _refuse_ambiguous_option_names(provider, known)
        given.add_known_names(spec.name for spec in provider.specs)
    return given


def _refuse_ambiguous_option_names(provider: StoreProvider, known: Sequence[str]) -> None:
    taken = {fold_name(name) for name in (*known, *(name for one in FORMATS.values() for name in one.parsers))}
    for spec in provider.specs:
        if fold_name(spec.name) in taken:
            raise UnsupportedError(
                "an option of this store has the name of another option, so it is unclear which is meant: ask the "
                "authors of the store's package to rename it",
                scheme=provider.schemes[0],
                option=spec.name,
            )


def _find_providers(given: GivenOptions) -> tuple[StoreProvider, ...]:
    return find_providers_for_options(given.texts("path", "sharedDir", "reportDir"))


def parse_location(given: GivenOptions) -> LocationOptions:
    """Parse the destination of a call and the options of the stores that it reaches.

    Raises:
        InvalidRequestError: no destination was given, or an option is invalid.
    """
    if "paths" in given.rest:
        raise InvalidRequestError("a read takes one path: read each path separately and union the results")
    url = given.take("path", str)
    if url is None:
        raise InvalidRequestError("no destination was given: pass it to save() or load(), or as the option path")
    if not url.strip():
        raise InvalidRequestError("no destination was given, because the path is empty: name a directory or a url")
    if url.strip().lower().startswith("memory:"):
        raise InvalidRequestError(
            "memory:// exists in one process only, and Spark's tasks run in others: use a directory or s3://", url=url
        )

    return LocationOptions(
        url=url,
        store_options=build_store_options(_find_providers(given), given),
        threads=given.take("threads", make_number_parser(1, 256)) or 32,
    )
