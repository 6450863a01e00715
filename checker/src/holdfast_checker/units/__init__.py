"""Check computation units: attempts at tasks of shipped code, on a database whose calls are steps."""
