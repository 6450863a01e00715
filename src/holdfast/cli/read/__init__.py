"""Define the command ``holdfast read``: find the files, their columns and their first rows.

Start reading at `command`.
"""
