"""Define the command ``holdfast check-store``, which runs the conformance suite.

The suite is a set of checks that every store must pass. Start reading at `command`.
"""
