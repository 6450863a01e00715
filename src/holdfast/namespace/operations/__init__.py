"""The operations on a namespace. Each is a value whose `execute` turns a snapshot into changes, and reads nothing else.

docs/reference/namespace.md has a table of what each of them requires and writes, and of HDFS's calls.

To add an attribute of inodes: a field of `inode.Inode` and its line in `inode._FIELDS` (older releases keep it);
a field of `attributes.SetAttributes`, checked and replaced in its `execute`; a method of `namespace.Namespace`;
a field of `listing.FileStatus` and its line in `make_status`, and in `holdfast.fs.arguments.status_to_info` for fsspec.
For the command line: a `Column` of `cli.fs.items.ITEM`, which ``fs stat`` prints; a command in `cli/fs/changing.py`,
and its name in `cli.app`. What is inherited needs an operation of its own, which reads ``chains[0].ancestors``, and a
row in docs/reference/namespace.md and its test, test_groups_page.py. Tests: unit/namespace/test_values_of_records.py,
test_records_of_newer_releases.py and test_like_hdfs.py, unit/fs/test_listing.py, unit/cli/fs/test_changing.py.
"""
