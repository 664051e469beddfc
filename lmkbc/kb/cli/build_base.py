"""`lmkbc build`: from subjects to a knowledge base."""

from __future__ import annotations

import time
from typing import Any

from lmkbc.commands.dry_run import Show, check_show, show_estimate, show_prompts, taken_by
from lmkbc.commands.terminal import note, progress
from lmkbc.commands.typed import made_from
from lmkbc.errors import LmkbcError, counted
from lmkbc.kb.api.building import IN_PROCESS, KnowledgeBase, Workers, estimate_build, foreseen_in_build
from lmkbc.kb.api.building import build as make_base
from lmkbc.kb.audit.contradicted import worded

EXAMPLE = "Example: lmkbc build --subjects rivers.csv --edition 2023 --relation river-countries --out rivers"


@made_from(make_base)
def build(*, dry_run: bool = False, show: Show = None, engine: Workers = IN_PROCESS, **given: Any) -> None:
    """Build a knowledge base: facts of all subjects as Parquet, with confidences. A killed build can be resumed."""
    start = time.monotonic()
    check_show(show, dry_run=dry_run)
    if dry_run:
        if show:
            show_prompts(foreseen_in_build(**taken_by(foreseen_in_build, given), show=show))
        show_estimate(estimate_build, given)
        if given["grow"]:
            note("what --grow asks beyond the first level is not counted: it depends on what is found")
        return
    answering = engine.opened()
    with progress() as report:
        base = make_base(**given, engine=answering, progress=report)
    _show(base, time.monotonic() - start, of_files=bool(given.get("files")))


def _show(base: KnowledgeBase, seconds: float, *, of_files: bool) -> None:
    """Show the counts of a build, as the decisions of persons left them. LmkbcError if queries failed.

    of_files: whether recorded answers were read.
    """
    counts, selection, where = base.counts, base.manifest["inputs"]["selection"], base.directory
    note(
        f"{where}: {counts['facts']} facts of {counts['subjects']} subjects, {counts['linked']} of them "
        f"linked; {counts['nothing']} of {counts['queries']} queries answered with nothing; {selection['how']}; "
        f"{seconds:.0f} s"
    )
    if stated := counts.get("stated_by_labels"):
        note(
            f"{where}: facts that labelled rows state: {stated} of {counts['facts']}; they can be read there, so they "
            "are no knowledge of a model; --learn-from none leaves them out"
        )
    if quoted := counts.get("quoted"):
        note(f"{where}: facts with a quote from the documents: {quoted} of {counts['facts']}")
    if reviewed := counts.get("reviewed"):
        note(f"{where}: facts that a person decided: {reviewed} of {counts['facts']}")
    if unsure := counts.get("below_least"):
        inputs = base.manifest["inputs"]
        least = inputs["floor"] if inputs["least"] is None else inputs["least"]
        note(
            f"{where}: {counted(unsure, 'fact')} left out, since the confidence is below {least:g}; a build into a new "
            "directory with --least 0 has all of them"
        )
    if below := selection.get("below_precision"):
        note(
            f"nothing is kept of {counted(len(below), 'relation')}, since no confidence promises precision "
            f"{selection['precision']:g}: {', '.join(below)}"
        )
    elif idle := base.unsure:
        note(f"{where}: {counted(len(idle), 'relation')} without a fact that is sure enough: {', '.join(idle)}")
    if removed := base.manifest.get("removed"):
        reasons = ", ".join(f"{reason} {count}" for reason, count in removed.items())
        note(f"{where}: facts that repeat or contradict surer ones, removed by reason: {reasons}")
    if graph := base.manifest.get("graph"):
        counts_by_depth = graph.get("by_depth") or [level["subjects"] for level in graph["levels"]]
        levels = ", ".join(map(str, counts_by_depth))
        note(f"{where}: {graph['entities']} entities; subjects by depth {levels}; it ended by: {graph['stopped']}")
    for sentence in worded(base.contradicted):
        note(f"{where}: {sentence}")
    _show_failed(base, of_files=of_files)


def _show_failed(base: KnowledgeBase, *, of_files: bool) -> None:
    """Show the queries without an answer of a model or a person.

    LmkbcError if some have no reply, or none has one that can be read.
    """
    counts, where = base.counts, base.directory
    if limit := base.limit:
        note(
            f"{where}: {limit}: {base.failed} of {counts['queries']} queries were not asked; the same command with "
            "a higher limit asks them"
        )
    elif base.failed:
        unread = base.unread
        what = (
            f"{base.failed} of {counts['queries']} queries failed, which is no empty answer: {where / 'missing'} "
            "lists them with reasons"
        )
        if unread:
            each = ", ".join(f"{name} {count}" for name, count in unread.items())
            what += f"; replies to {sum(unread.values())} ({each}) cannot be read"
        what += (
            "; give answers to these with one more --from, and name a new directory"
            if of_files
            else ": they stay until the prompt, sampling.max_tokens or the model changes, in a new directory"
            * bool(unread)
        )
        if (lost := base.failed - sum(unread.values())) or base.failed == counts["queries"]:
            raise LmkbcError(
                what + (f"; the same command asks the other {lost} again" if lost and not of_files else "")
            )
        note(f"{where}: {what}")
