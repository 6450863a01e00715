"""Run computation units: functions over cells as optimistic transactions, each exactly once.

A *unit* is one call of a user's function with one key and its value: the computation unit of paper 003 (4.2). A task
runs many of them, several in one commit, and records in the same commit how far it is. So a task that dies, is
repeated, or runs twice at the same time does no unit twice, and leaves none out.

Nothing in here knows Spark: `holdfast.spark.units` runs these tasks.
"""
