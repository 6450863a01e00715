"""The only places where time, chance, waiting and threads come in.

Everything else takes these as values, so that the checker can run the real code on a simulated world.
"""

from holdfast.seams.chance import SeededRandom
from holdfast.seams.clock import Clock, SystemClock
from holdfast.seams.ids import Ids, SystemIds
from holdfast.seams.lane import InlineLane, Lane, ThreadLane
from holdfast.seams.runner import Runner, SerialRunner, ThreadRunner

__all__ = [
    "Clock",
    "Ids",
    "InlineLane",
    "Lane",
    "Runner",
    "SeededRandom",
    "SerialRunner",
    "SystemClock",
    "SystemIds",
    "ThreadLane",
    "ThreadRunner",
]
