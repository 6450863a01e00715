"""The operations on a namespace. Each is a value whose `execute` turns a snapshot into changes, and reads nothing else.

docs/reference/namespace.md has a table of what each of them requires and writes, and of HDFS's calls.

To add an attribute of inodes: a field of `inode.Inode` and its line in `inode._FIELDS`, with the same default (older
releases keep it); a field of `attributes.SetAttributes`, in which None leaves the attribute as it is: its check, its
`replace`, and its place in the condition of `check_owner` if only the owner may set it; a method of
`namespace.Namespace`, and of `holdfast.fs.namespace` for fsspec; a field of `listing.FileStatus` and its line in
`make_status`, and in `holdfast.fs.arguments.status_to_info`. For the command line: a `Column` of `cli.fs.items.ITEM`,
which ``fs stat`` prints; a command in `cli/fs/changing.py`, and its name in `cli.app`. What is inherited needs an
operation of its own, which reads ``chains[0].ancestors``, and a row in docs/reference/namespace.md. Tests: in
unit/namespace, test_values_of_records.py, test_records_of_newer_releases.py, operations/test_groups_page.py and
object_store/test_directories.py; unit/fs/test_listing.py, unit/cli/fs/test_listing.py. Docs: reference/namespace.md.
"""
