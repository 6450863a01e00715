"""Define the properties of jobs, one in each module: C1 to C10 (see ARCHITECTURE.md), and others that users rely on."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from holdfast_checker.committers.properties.c1_complete import complete
from holdfast_checker.committers.properties.c2_exclusive import exclusive
from holdfast_checker.committers.properties.c3_one_attempt import one_attempt
from holdfast_checker.committers.properties.c4_hidden import hidden
from holdfast_checker.committers.properties.c5_abortable import abortable
from holdfast_checker.committers.properties.c6_continuity import continuity
from holdfast_checker.committers.properties.c7_isolated import isolated
from holdfast_checker.committers.properties.c8_decided_once import decided_once
from holdfast_checker.committers.properties.c9_recoverable import recoverable
from holdfast_checker.committers.properties.c10_repeatable import repeatable
from holdfast_checker.committers.properties.log_order import log_order
from holdfast_checker.committers.properties.no_leftovers import no_leftovers
from holdfast_checker.committers.properties.plain_reads import plain_reads
from holdfast_checker.committers.properties.replaced_data import replaced_data
from holdfast_checker.committers.properties.whole_reads import whole_reads
from holdfast_checker.committers.sandbox import Sandbox
from holdfast_checker.kernel.world import Property

__all__ = ["PART_OF", "PROPERTIES"]

PROPERTIES: Mapping[str, Callable[[Sandbox], Property]] = {
    "C1": complete,
    "C2": exclusive,
    "C3": one_attempt,
    "C4": hidden,
    "C5": abortable,
    "C6": continuity,
    "C7": isolated,
    "C8": decided_once,
    "C9": recoverable,
    "C10": repeatable,
    "no-leftovers": no_leftovers,
    "whole-reads": whole_reads,
    "plain-reads": plain_reads,
    "replaced-data": replaced_data,
    "log-order": log_order,
}
"""The functions that create the properties of a world, by the property's name."""

PART_OF: Mapping[str, str] = {"no-leftovers": "C9", "whole-reads": "C4", "plain-reads": "C4"}
"""For properties without a row in `holdfast.guarantees`: the name of the row that covers the property."""
