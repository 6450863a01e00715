"""The operations on a namespace. Each is a value whose `execute` turns a snapshot into changes, and reads nothing else.

docs/reference/namespace.md has a table of what each of them requires and writes, and of HDFS's calls.

To add an attribute of inodes: a field of `inode.Inode` and its line in `inode._FIELDS` (older releases keep it);
a field of `attributes.SetAttributes`, checked and replaced in its `execute`; a method of `namespace.Namespace`;
a field of `listing.FileStatus` and its line in `status_of`, and in `holdfast.fs.arguments.entry_of` for fsspec.
Tests: unit/namespace/test_values_of_records.py, test_records_of_newer_releases.py, test_like_hdfs.py, and unit/fs.
"""
