"""Hadoop's protocols and file formats. To remove a protocol, delete its folder and its lines in `registry`."""
