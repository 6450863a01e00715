"""Wrappers that hold a store and see every call to it: faults, recordings, throttling."""
