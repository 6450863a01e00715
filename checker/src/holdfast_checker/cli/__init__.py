"""Define the command ``holdfast check``: its options, the run, its report and its files.

Start reading at `command`.
"""
