"""Check transactions in simulated worlds: the code that callers use, and what backends do inside of a commit."""
