"""Store objects in a directory of a local or mounted POSIX file system, with atomic renames.

- `provider`: the provider of ``file://`` URLs and plain paths; imports no other module of this package
- `store`: `LocalStore`
- `tree`: durable file operations: hidden files, publishing, creating and pruning directories
- `walk`: listings in key order, and listings of unfinished files
- `links`: symbolic links, and moves across file systems
"""
