"""What a person types: one module per command. Start reading at `app`; docs/cli.md is the user's page."""

from holdfast.cli.app import cli, main

__all__ = ["cli", "main"]
