"""Declare ``holdfast check`` and its options, and refuse options that contradict each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from holdfast.cli.command import report_errors
from holdfast.cli.failures import PROBLEM
from holdfast.cli.output import Output
from holdfast_checker.cli.options import STATES, WALK_S, CheckOptions

_EPILOG = f"""\b
Examples:
  holdfast check file-v2
  holdfast check two_phase
  holdfast check magic --property C3 --details
  holdfast check two_phase --small
  holdfast check transactions --walk --seed 7 --seconds 600
  holdfast check manifest --save found
  holdfast check --replay found/manifest-speculation-C3.json
  holdfast check --list
  holdfast check --all

\b
Exit codes:
  0    no property was violated; with --replay: the history no longer violates
       its property; with --all: every result is as declared, or differs for a
       known reason
  1    a property was violated, even if that is declared, or no history of a
       scene reached a required goal; with --all: a result differs from the
       declaration for no known reason
  2    wrong usage, or a file that cannot be replayed
  130  interrupted; what was found so far is shown

The search of a scene stops after {STATES:,} states, unless you give --states or --seconds; the small worlds have no
such limit. A random walk stops after {WALK_S:.0f} s, unless you give --histories or --seconds. What is
simulated: holdfast check --list."""

_FILE = click.Path(path_type=Path)


@click.command(epilog=_EPILOG, short_help="Search for failures of a committer by simulation.")
@click.argument("name", required=False)
@click.option("--scene", "scenes", metavar="NAME", multiple=True, help="Only this scene; repeatable.")
@click.option("--property", "properties", metavar="NAME", multiple=True, help="Only this property; repeatable.")
@click.option("--small", is_flag=True, help="Explore larger worlds, such as 2 tasks x 2 attempts x 2 files; minutes.")
@click.option("--walk", is_flag=True, help="Explore random histories of a large world, drawn from a seed.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of --walk.  [default: 0]")
@click.option("--first", type=click.IntRange(min=0), help="Number of the first history of --walk, to continue a walk.")
@click.option("--histories", type=click.IntRange(min=1), help="Number of histories of --walk.")
@click.option(
    "--seconds", type=click.FloatRange(min=0, min_open=True), help="Time limit of each scene, or of the whole walk."
)
@click.option("--states", type=click.IntRange(min=1), help=f"Limit of states in each scene.  [default: {STATES}]")
@click.option("--save", metavar="DIR", type=_FILE, help="Save each counterexample in DIR, as JSON for --replay.")
@click.option("--replay", metavar="FILE", type=_FILE, help="Replay a saved counterexample with the installed code.")
@click.option("--details", is_flag=True, help="Show every call of the story.")
@click.option("--all", "every", is_flag=True, help="Compare every committer with the papers and with its declaration.")
@click.option(
    "--list", "listed", is_flag=True, help="List what can be checked, its scenes and properties; all, or of NAME."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document, for programs.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@report_errors
def check(out: Output, **given: Any) -> None:
    """Search for histories in which the committer NAME violates a property, and tell the worst one as a story.

    If NAME is `transactions`, check the transactions of databases: their callers, and the steps inside of a commit. If
    it is `namespace`, check the operations of a namespace on such a database, with its collectors. If it is `units`,
    check computation units: attempts at tasks that die, run twice and come late, and work lists.

    The search runs the production code in simulated worlds. There, any process may take the next step after each store
    call and each message to or from the driver, or a fault may occur: a process dies, the network is cut, a reply is
    lost. Needs no Spark, no Java, no store and no network.
    """
    options = CheckOptions(**given)
    _refuse_contradicting_options(options)
    from holdfast_checker.cli.run import run_check

    if not run_check(options, out):
        raise click.exceptions.Exit(PROBLEM)


def _refuse_contradicting_options(options: CheckOptions) -> None:
    """Refuse options that contradict each other, before any work starts.

    Raises:
        UsageError: two options contradict each other, or one is missing.
    """
    named = options.name is not None or options.listed  # --list alone lists all, with a name what is checked of it
    if sum([named, options.replay is not None, options.every]) != 1:
        raise click.UsageError(
            "give one of: the NAME of a committer, transactions, namespace, units, --replay FILE, --all, --list"
        )
    of_one = (options.scenes, options.properties, options.small, options.walk, options.save)
    if options.name is None and any(of_one):
        raise click.UsageError("--scene, --property, --small, --walk and --save need the NAME of what is checked")
    if (options.every or options.listed) and options.details:
        raise click.UsageError("--details shows one story: name a committer, or a file to --replay")
    if (options.replay or options.listed) and (options.states is not None or options.seconds is not None):
        raise click.UsageError("--states and --seconds limit a search: name a committer, or use --all")
    if not options.walk and any(value is not None for value in (options.seed, options.first, options.histories)):
        raise click.UsageError("--seed, --first and --histories need --walk")
    if options.walk and (options.states is not None or options.small or len(options.scenes) > 1):
        raise click.UsageError("--walk takes no --states, no --small, and at most one --scene")
    if options.small and options.scenes:
        raise click.UsageError("--small has its own scenes: leave out --scene")
