"""A store in the memory of one process: the reference for all others, and for tests."""
