"""The only places where time, chance, waiting and threads come in.

Everything else takes these as values, so that the checker can run the real code on a simulated world.
"""

from holdfast.runtime.background_executor import BackgroundExecutor, InlineExecutor, ThreadExecutor
from holdfast.runtime.chance import SeededRandom
from holdfast.runtime.clock import Clock, SystemClock
from holdfast.runtime.environment import Environment
from holdfast.runtime.ids import Ids, SystemIds
from holdfast.runtime.runner import Runner, SerialRunner, ThreadRunner

__all__ = [
    "BackgroundExecutor",
    "Clock",
    "Environment",
    "Ids",
    "InlineExecutor",
    "Runner",
    "SeededRandom",
    "SerialRunner",
    "SystemClock",
    "SystemIds",
    "ThreadExecutor",
    "ThreadRunner",
]
