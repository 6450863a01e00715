"""Say what must hold for computation units, U1 to U7, and for work lists, W1 and W2."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from holdfast_checker.kernel.world import Property
from holdfast_checker.units.contents import Setting
from holdfast_checker.units.properties.u1_exactly_once import exactly_once
from holdfast_checker.units.properties.u2_serializable import serializable
from holdfast_checker.units.properties.u3_reported_is_done import reported_is_done
from holdfast_checker.units.properties.u4_progress import progress_is_true
from holdfast_checker.units.properties.u5_true_errors import true_errors
from holdfast_checker.units.properties.u6_no_leftovers import no_leftovers
from holdfast_checker.units.properties.u7_ended_runs import ended_runs
from holdfast_checker.units.properties.w1_one_place import one_place
from holdfast_checker.units.properties.w2_end import true_end

__all__ = ["PROPERTIES"]

PROPERTIES: Mapping[str, Callable[[Setting], Property]] = {
    "U1": exactly_once,
    "U2": serializable,
    "U3": reported_is_done,
    "U4": progress_is_true,
    "U5": true_errors,
    "U6": no_leftovers,
    "U7": ended_runs,
    "W1": one_place,
    "W2": true_end,
}
