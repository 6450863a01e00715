"""The command `holdfast check`: options, run, report."""
