"""Hold the command ``holdfast write``: its request, its input, its Spark, and what Ctrl-C does. Start at `command`."""
