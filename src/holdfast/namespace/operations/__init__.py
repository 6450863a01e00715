"""The operations on a namespace. Each is a value whose `execute` turns a snapshot into changes, and reads nothing else.

docs/reference/namespace.md has a table of what each of them requires and writes, and of HDFS's calls.
"""
