"""Hadoop's formats on disk, so that a person with Hadoop's tools reads ours, and the paths that mean an upload.

Pure functions between bytes and frozen values; nothing here talks to a store.
"""
