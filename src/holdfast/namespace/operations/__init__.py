"""The operations on a namespace. Each is a value whose `execute` turns a snapshot into changes, and reads nothing else.

The table of their semantic related groups is in docs/reference/namespace.md; paths, `also` and `peek` of each class are
its rows.
"""
