"""Model-check database transactions: the code that callers use, and the statements inside a backend's commit."""
