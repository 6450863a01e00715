"""Define the groups of commands: ``holdfast fs``, ``namespace``, ``database`` and ``uploads``."""

from __future__ import annotations

from holdfast.cli.command import group


@group({"Commands": {"recovery": "list abort"}})
def uploads() -> None:
    """List or abort pending multipart uploads.

    They are stored parts that you pay for and that belong to no file.
    """


@group(
    {
        "Look": {"fs.listing": "ls tree find stat test", "fs.contents": "cat head"},
        "Copy": {"fs.copying": "put get cp"},
        "Change": {"fs.moving": "mv rm", "fs.changing": "mkdir touch chmod chown getfattr setfattr"},
        "Measure": {"fs.sizes": "du count", "groups": "quota"},
    }
)
def fs() -> None:
    """Work with the files of a namespace, as with hadoop fs.

    Examples:
      holdfast fs ls -l holdfast://prod/data
      holdfast fs put ./flights holdfast://prod/data
      holdfast fs mv holdfast://prod/data holdfast://prod/archive
      holdfast fs rm -r --trash --glob 'holdfast://prod/archive/2013-*'

    A path is holdfast://NAME/path, where holdfast namespace init has created NAME. Every character of a path is
    literal. With --glob, paths are patterns: *, ?, [a-c], [!a], {a,b}, and ** for any number of directories. Put them
    in quotes, so that the shell does not expand them. Options, such as --user, follow the command: holdfast fs ls
    --user ann URL.
    """


@group({"Commands": {"fs.sizes": "set clear show"}})
def quota() -> None:
    """Limit the names and the bytes in a directory.

    A quota of names counts everything below the directory, and the directory itself. A quota of space counts bytes
    times replication. What was deleted counts until holdfast namespace gc has removed it.
    """


@group({"Commands": {"namespace.configuration": "init list status set", "namespace.upkeep": "fsck gc"}})
def namespace() -> None:
    """Create, inspect and clean up namespaces.

    A namespace is a tree of directories and files, as in HDFS, over any object store.

    Examples:
      holdfast namespace init prod --database sqlite:///var/lib/prod.db \\
          --data s3://bucket/prod
      holdfast namespace status prod
      holdfast namespace gc prod --every 3600
    """


@group(
    {
        "Tables": {"database.tables": "create export stats drop gc", "database.cells": "ls scan"},
        "Cells": {"database.cells": "get put delete history"},
        "Jobs of computation units": {"database.jobs": "jobs watch forget"},
    }
)
def database() -> None:
    """Work with tables of cells, which computation units share.

    Examples:
      holdfast database create sqlite:///var/lib/shop.db stock
      holdfast database put sqlite:///var/lib/shop.db stock apples 5 --type int
      holdfast database scan sqlite:///var/lib/shop.db stock

    A URL is that of a database: sqlite:///file, postgresql://user@host/database or mysql://user@host/database. A
    password does not belong on a command line: set the variable HOLDFAST_DATABASE_<NAME> to the whole URL, and give
    NAME in its place.
    """
