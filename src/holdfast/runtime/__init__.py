"""Provide time, randomness, waiting and threads as objects; no other package may get them from the system directly.

All other code receives these objects as arguments, so that the checker can run the production code in a simulated
world.
"""

from holdfast.runtime.alarm import Alarm, NoAlarm, SystemAlarm, TimeIsUp
from holdfast.runtime.background_executor import BackgroundExecutor, InlineExecutor, ThreadExecutor
from holdfast.runtime.chance import SeededRandom
from holdfast.runtime.clock import Clock, Moment, SystemClock
from holdfast.runtime.environment import Environment
from holdfast.runtime.ids import Ids, SystemIds
from holdfast.runtime.periodic import NeverPeriodic, Periodic, ThreadPeriodic
from holdfast.runtime.runner import Runner, SerialRunner, ThreadRunner

__all__ = [
    "Alarm",
    "BackgroundExecutor",
    "Clock",
    "Environment",
    "Ids",
    "InlineExecutor",
    "Moment",
    "NeverPeriodic",
    "NoAlarm",
    "Periodic",
    "Runner",
    "SeededRandom",
    "SerialRunner",
    "SystemAlarm",
    "SystemClock",
    "SystemIds",
    "ThreadExecutor",
    "ThreadPeriodic",
    "ThreadRunner",
    "TimeIsUp",
]
