"""Define the command ``holdfast write``: request, input, Spark session, effect of Ctrl-C.

Start reading at `command`.
"""
