"""Provide time, randomness, waiting and threads as objects; no other package may get them from the system directly.

All other code receives these objects as arguments, so that the checker can run the production code in a simulated
world.
"""

from holdfast.runtime.alarm import Alarm, TimeIsUp
from holdfast.runtime.environment import Backoff, Clock, Environment, Ids, Moment, SeededRandom, SystemClock, SystemIds
from holdfast.runtime.threads import (
    BackgroundExecutor,
    InlineExecutor,
    LoopThreads,
    Repeat,
    Runner,
    SerialRunner,
    ThreadExecutor,
    ThreadRunner,
    repeat_in_thread,
)

__all__ = [
    "Alarm",
    "BackgroundExecutor",
    "Backoff",
    "Clock",
    "Environment",
    "Ids",
    "InlineExecutor",
    "LoopThreads",
    "Moment",
    "Repeat",
    "Runner",
    "SeededRandom",
    "SerialRunner",
    "SystemClock",
    "SystemIds",
    "ThreadExecutor",
    "ThreadRunner",
    "TimeIsUp",
    "repeat_in_thread",
]
