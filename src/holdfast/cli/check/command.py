"""``holdfast check``: what may be asked, and whether it makes sense; `check_run` does it, `check_report` shows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from holdfast.cli.arguments import reports
from holdfast.cli.check.options import STATES, WALK_S, CheckOptions
from holdfast.cli.failures import PROBLEM
from holdfast.cli.output import Output

__all__ = ["check"]

_EPILOG = f"""\b
Examples:
  holdfast check file-v2
  holdfast check two_phase
  holdfast check magic --property C3 --details
  holdfast check file-v2 --property C2 --html story.html
  holdfast check two_phase --small
  holdfast check two_phase --walk --seed 7 --seconds 600
  holdfast check manifest --save found
  holdfast check --replay found/manifest-speculation-C3.json
  holdfast check --list
  holdfast check --all

\b
Exit codes:
  0    nothing was found; of --replay: the history does not break its property any more;
       of --all: what was found is what is declared, or the reason why not is known
  1    something was found, also where it is declared, or no history of a scene gets where one should;
       of --all: something that is not declared, for no known reason
  2    wrong usage, or a file that cannot be replayed
  130  interrupted; what was found by then is shown

A scene is given up after {STATES:,} states unless --states or --seconds say otherwise; the small worlds never are.
Random walks end after {WALK_S:.0f} s unless --histories or --seconds say otherwise. What is simulated, and what is not:
docs/how-to/run-the-checker.md."""

_FILE = click.Path(path_type=Path)


@click.command(epilog=_EPILOG)
@click.argument("name", required=False)
@click.option("--scene", "scenes", metavar="NAME", multiple=True, help="Only this scene; repeatable.")
@click.option("--property", "properties", metavar="NAME", multiple=True, help="Only this property; repeatable.")
@click.option("--small", is_flag=True, help="The small worlds: up to 2 tasks x 2 attempts x 2 files; minutes.")
@click.option("--walk", is_flag=True, help="Random histories of a large world, each drawn from a seed.")
@click.option("--seed", type=click.IntRange(min=0), help="Of --walk.  [default: 0]")
@click.option("--first", type=click.IntRange(min=0), help="Number of the first history of --walk, to go on from there.")
@click.option("--histories", type=click.IntRange(min=1), help="So many histories of --walk.")
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True), help="For each scene, or for the whole walk.")
@click.option("--states", type=click.IntRange(min=1), help=f"For each scene.  [default: {STATES}]")
@click.option("--save", metavar="DIR", type=_FILE, help="Save what is found in DIR, as JSON that replays.")
@click.option("--replay", metavar="FILE", type=_FILE, help="Go through a saved history with the present code.")
@click.option("--details", is_flag=True, help="Show every call of the story.")
@click.option("--coverage", is_flag=True, help="Show which lines of commit/ no history has run.")
@click.option("--html", metavar="FILE", type=_FILE, help="Write the story as a page to step through.")
@click.option("--all", "every", is_flag=True, help="Compare every committer with the paper and with what is declared.")
@click.option("--list", "listed", is_flag=True, help="The committers, scenes and properties, and what they mean.")
@reports
def check(out: Output, **given: Any) -> None:
    """Look for histories in which the committer NAME goes wrong, and tell the worst one as a story.

    The code that ships runs in simulated worlds, where each call to a store and each message to or from the driver may
    be followed by anybody's next one, or by a fault: a process dies, a network is cut, a reply is lost. Needs no Spark,
    no Java, no store and no network.
    """
    options = CheckOptions(**given)
    _require_sense(options)
    from holdfast.cli.check.run import run_check

    if not run_check(options, out):
        raise click.exceptions.Exit(PROBLEM)


def _require_sense(options: CheckOptions) -> None:
    """Refuse what does not go together, before anything is looked at.

    Raises:
        UsageError: change the options.
    """
    if sum([options.name is not None, options.replay is not None, options.every, options.listed]) != 1:
        raise click.UsageError("give one of: the NAME of a committer, --replay FILE, --all, --list")
    of_one = (options.scenes, options.properties, options.small, options.walk, options.save, options.coverage)
    if options.name is None and any(of_one):
        raise click.UsageError(
            "--scene, --property, --small, --walk, --save, --coverage: these want the NAME of a committer"
        )
    if (options.every or options.listed) and (options.html or options.details):
        raise click.UsageError("--html and --details are about one story: name a committer, or a file to --replay")
    if (options.replay or options.listed) and (options.states is not None or options.seconds is not None):
        raise click.UsageError("--states and --seconds are for exploring: name a committer, or take --all")
    if not options.walk and any(value is not None for value in (options.seed, options.first, options.histories)):
        raise click.UsageError("--seed, --first and --histories are for --walk")
    if options.walk and (options.states is not None or options.small or len(options.scenes) > 1):
        raise click.UsageError("--walk takes no --states, no --small, and at most one --scene")
    if options.small and options.scenes:
        raise click.UsageError("--small has scenes of its own: leave --scene out")
