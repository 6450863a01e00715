"""The places between which files are copied: this machine, namespaces, and object stores.

`base` says what a place can do. Each place publishes a file at once and complete, or not at all.
"""
