"""Provide time, randomness, waiting and threads as objects; no other package may get them from the system directly.

All other code receives these objects as arguments, so that the checker can run the production code in a simulated
world.
"""

from holdfast.runtime.alarm import Alarm, TimeIsUp
from holdfast.runtime.environment import Clock, Environment, Ids, Moment, SeededRandom, SystemClock, SystemIds
from holdfast.runtime.threads import (
    BackgroundExecutor,
    InlineExecutor,
    NeverPeriodic,
    Periodic,
    Runner,
    SerialRunner,
    ThreadExecutor,
    ThreadPeriodic,
    ThreadRunner,
)

__all__ = [
    "Alarm",
    "BackgroundExecutor",
    "Clock",
    "Environment",
    "Ids",
    "InlineExecutor",
    "Moment",
    "NeverPeriodic",
    "Periodic",
    "Runner",
    "SeededRandom",
    "SerialRunner",
    "SystemClock",
    "SystemIds",
    "ThreadExecutor",
    "ThreadPeriodic",
    "ThreadRunner",
    "TimeIsUp",
]
