"""The local filesystem as an object store with atomic renames."""
