"""Run ``holdfast namespace list``: list the namespaces that this user knows."""

from __future__ import annotations

import os

import click

from holdfast.cli.arguments import reports
from holdfast.cli.output import Output

_EPILOG = """\b
Examples:
  holdfast namespace list
  holdfast namespace list --json

Namespaces come from the catalog, ~/.config/holdfast/namespaces.json or the file in HOLDFAST_NAMESPACES, and from the
variables HOLDFAST_NAMESPACE_<NAME>, which override it. The databases are not contacted, and passwords not shown."""


@click.command("list", epilog=_EPILOG)
@reports
def list_namespaces(out: Output) -> None:
    """List the namespaces in the catalog and in the environment, with their databases."""
    from holdfast.namespace.catalog import VARIABLE_PREFIX, catalog_file, known_namespaces, variable_of
    from holdfast.transactions.urls import public_url

    catalog = str(catalog_file())
    known = known_namespaces()
    variables = {name: url for name, url in os.environ.items() if name.startswith(VARIABLE_PREFIX) and url}
    found = [
        (name, variables.get(variable_of(name), url), variable_of(name) if variable_of(name) in variables else catalog)
        for name, url in known.items()
    ]
    in_catalog = {variable_of(name) for name in known}
    found += [
        (variable.removeprefix(VARIABLE_PREFIX).lower(), url, variable)
        for variable, url in variables.items()
        if variable not in in_catalog
    ]
    rows = [(name, public_url(url), source) for name, url, source in sorted(found)]
    out.document(
        {
            "catalog": catalog,
            "namespaces": [{"name": name, "database": url, "from": source} for name, url, source in rows],
        }
    )
    if rows:
        out.table(
            ["name", "database", "from"],
            [(name, url, "catalog" if source == catalog else source) for name, url, source in rows],
        )
        out.say(f"catalog: {catalog}")
    else:
        out.say("no namespace is known: create one with holdfast namespace init")
