"""Define the command ``holdfast check-store``: run the conformance suite and report on it. Start at `command`."""
