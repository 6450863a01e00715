"""Keep records in memory."""
