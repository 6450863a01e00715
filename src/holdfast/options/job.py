"""Parse the options of `holdfast.job`."""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.commit import CommitSettings
from holdfast.options.commit import COMMIT_KEYS, as_committer, parse_commit_settings
from holdfast.options.location import LOCATION_KEYS, LocationOptions, given_options, parse_location
from holdfast.options.unknown import refuse_unknown
from holdfast.stores.given import OptionSource

JOB_KEYS = (*LOCATION_KEYS, "committer", *COMMIT_KEYS)
"""Names of the options that `parse_job_options` takes."""


@dataclass(frozen=True, kw_only=True)
class JobOptions:
    """The parsed options of a job whose tasks write files of any kind; any process can carry the job out.

    Attributes:
        store: the destination.
        committer: name of the committer.
        settings: the settings of the commit.
    """

    store: LocationOptions
    committer: str = "two_phase"
    settings: CommitSettings = field(default_factory=CommitSettings)


def parse_job_options(options: OptionSource) -> JobOptions:
    """Parse the options of `holdfast.job`.

    Raises:
        InvalidRequestError: an option is unknown or invalid; the message says how to fix it.
    """
    given = given_options(options, JOB_KEYS)
    refuse_unknown(given.rest, given.known)
    return JobOptions(
        store=parse_location(given),
        committer=given.take("committer", as_committer) or "two_phase",
        settings=parse_commit_settings(given),
    )
