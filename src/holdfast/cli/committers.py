"""Run ``holdfast committers``: list the commit protocols, their guarantees, and which of them a store allows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from holdfast.cli.command import CommandRun, ResourceKind, argument, command, option
from holdfast.cli.output import Output, ResultColumn
from holdfast.errors import AccessDeniedError

if TYPE_CHECKING:
    from holdfast.commit import CommitContext, Committer
    from holdfast.guarantees import GuaranteeAnswer
    from holdfast.stores.base import Capabilities

_WHY = option("--why", "Show only this committer, with the reason for each answer.", metavar="COMMITTER")


@command(ResourceKind.STORES)
def committers(
    run: CommandRun, url: Annotated[str | None, argument(required=False)], why: Annotated[str | None, _WHY]
) -> None:
    """Show the commit protocols and their guarantees.

    With URL, show also which of them the store there allows.

    Examples:
      holdfast committers
      holdfast committers s3://bucket/flights
      holdfast committers --why magic

    Choose a committer with --committer in holdfast write, or with option("committer", NAME) in Spark. two_phase is
    right for most; --why COMMITTER shows the guarantees of another one, with reasons.
    """
    from holdfast.commit import TWO_PHASE, get_committer
    from holdfast.commit.registry import installed_committers
    from holdfast.guarantees import GUARANTEES

    chosen = [get_committer(why)] if why else list(installed_committers().values())
    out = run.out
    known = _probe_capabilities(run.store(url), out) if url else None
    here = {one.name: committer_support(one, known) if known is not None else (None, "") for one in chosen}
    at_once = {TWO_PHASE.name: _AT_ONCE} if known is not None and known.transactions else {}
    out.document(
        {
            "url": url,
            "transactions": None if known is None else known.transactions,
            "default": TWO_PHASE.name,
            "committers": [
                {
                    "name": one.name,
                    "summary": one.summary,
                    "source": one.source,
                    "needs": [need.what for need in one.needs],
                    "modes": sorted(mode.value for mode in one.modes),
                    "here": here[one.name][0],
                    "reason": here[one.name][1] or None,
                }
                for one in chosen
            ],
            "guarantees": [
                {
                    "name": row.name,
                    "title": row.title,
                    "meaning": row.meaning,
                    "wanted": row.wanted,
                    "answers": {one.name: _guarantee_answer_to_json(one.guarantees[row.name]) for one in chosen},
                }
                for row in GUARANTEES
            ],
        }
    )
    columns = (
        ResultColumn("", "committer", lambda one: one.name + (" (default)" if one is TWO_PHASE else "")),
        ResultColumn("", None if known is None else "here", lambda one: here[one.name][0]),
        ResultColumn("", "what it does", lambda one: here[one.name][1] or at_once.get(one.name) or one.summary),
        ResultColumn("", "needs" if known is None else None, lambda one: "; ".join(need.what for need in one.needs)),
    )
    out.show(columns, chosen)
    if why:
        answers = [(row.title, row.meaning, chosen[0].guarantees[row.name]) for row in GUARANTEES]
        out.table(
            ["guarantee", "meaning", "holds", "why"],
            [(title, meaning, _format_guarantee_answer(answer), answer.why) for title, meaning, answer in answers],
        )
    else:
        marks = {one.name: [_format_answer_mark(one.guarantees[row.name]) for row in GUARANTEES] for one in chosen}
        out.print_split_table("guarantee", [row.title for row in GUARANTEES], marks)
        out.say("* with an exception, which holdfast committers --why COMMITTER names")


# --- what a store allows ----------------------------------------------------------------------------------------------
_AT_ONCE = "one transaction decides and publishes a job: every reader sees all of it at one instant"


def _probe_capabilities(ctx: CommitContext, out: Output) -> Capabilities:
    """Return the store's capabilities; test conditional writes with a temporary key, like the start of a job."""
    from holdfast.stores.base import Support
    from holdfast.stores.probe import store_heeds_conditions

    ctx.store.list_page(ctx.prefix, max_keys=1)  # so that a mistyped bucket raises an error
    try:
        heeds = store_heeds_conditions(ctx.store, ctx.key("_holdfast/"), ctx.ids)
    except AccessDeniedError:
        out.note("cannot test whether the store supports conditional writes: these credentials may not write there")
        return ctx.store.capabilities
    return replace(ctx.store.capabilities, conditional_put=Support.YES if heeds else Support.NO)


def committer_support(committer: Committer, capabilities: Capabilities) -> tuple[str, str]:
    """Return, as a word, whether a committer runs on a store with these capabilities, and the reason if limited."""
    from holdfast.commit.committer import UNFENCED

    refused = committer.explain_misfit(capabilities)
    if not refused:
        return "runs", ""
    return "refused" if committer.explain_misfit(capabilities, UNFENCED) else "runs with allowUnfenced", refused


# --- guarantees -------------------------------------------------------------------------------------------------------
def _guarantee_answer_to_json(answer: GuaranteeAnswer) -> dict[str, object]:
    return {"holds": answer.holds, "unless": answer.unless or None, "why": answer.why}


def _format_guarantee_answer(answer: GuaranteeAnswer) -> str:
    word = "yes" if answer.holds else "no"
    return f"{word}, unless {answer.unless}" if answer.unless else word


def _format_answer_mark(answer: GuaranteeAnswer) -> str:
    return ("yes" if answer.holds else "no") + "*" * bool(answer.unless)
