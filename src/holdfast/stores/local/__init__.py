"""Store objects in a directory of a local or mounted POSIX file system, with atomic renames: see `store`."""
