"""`lmkbc predict`: from a split's queries to a finished submission."""

from __future__ import annotations

import json
import time
from typing import Annotated, Any

from msgspec import Meta

from lmkbc.api.predicting import PredictedRun, estimate, foreseen
from lmkbc.api.predicting import predict as make_run
from lmkbc.commands.dry_run import Show, check_show, show_estimate, show_prompts, taken_by
from lmkbc.commands.terminal import note, progress, show_table
from lmkbc.commands.typed import made_from
from lmkbc.errors import counted
from lmkbc.notes import unheard
from lmkbc.run import submission
from lmkbc.run.saved import SavedRun
from lmkbc.session.options import OUTPUT
from lmkbc.types import Query, State

EXAMPLE = "Example: lmkbc predict --split val --edition 2023 --from gpt4.jsonl.gz --search-table search.json"
LONGEST = 500
"""Most characters of an answer that --live prints."""


@made_from(make_run)
def predict(
    *,
    dry_run: bool = False,
    show: Show = None,
    live: Annotated[
        bool,
        Meta(
            description="Print each text that a model writes about a query as soon as it is read, on one line.",
            extra=OUTPUT,
        ),
    ] = False,
    **given: Any,
) -> None:
    """Make a checked submission for a split. It comes with candidates, links, and a manifest of all inputs."""
    start = time.monotonic()
    check_show(show, dry_run=dry_run)
    if dry_run:
        if show:
            show_prompts(foreseen(**taken_by(foreseen, given) | {"limit": min(show, given["limit"] or show)}))
        show_estimate(estimate, given)
        return
    with progress() as report:
        run = make_run(**given, progress=report, live=_print_answer if live else unheard)
    _show(run, time.monotonic() - start, can_search=not (given.get("index") or given.get("search_table")))
    if run.labelled:
        _show_scores(run)


def _print_answer(query: Query, text: str) -> None:
    """Print an answer on one line of stderr. A long one is cut."""
    note(f"{query.subject}, {query.relation}: {json.dumps(text[:LONGEST], ensure_ascii=False)}")


def _show(run: PredictedRun, seconds: float, *, can_search: bool) -> None:
    """Show the directory and the counts of a run. can_search: whether only the train split has linked names so far."""
    tally = run.tally
    if tally is None:
        return
    if tally.failed:
        missing = run.directory / submission.MISSING
        become = "count as wrong, so the run gets no zip" if tally.unreadable else "are submitted as empty answers"
        stays = "; a reply that cannot be read stays until the prompt or the model changes, or --fresh asks anew; "
        stays = "; " if run.sources.get("files") else stays  # recorded answers cannot be asked anew
        way = f"{stays}--failed-as-empty submits these queries as empty" if tally.unreadable else ""
        note(f"{tally.failures}; they {become}; {missing} lists them{way}")
    subset = SavedRun.at(run.directory).is_subset
    rows, whole = tally.queries - tally.failed * bool(tally.unreadable), run.whole if subset else tally.queries
    first = "the first " if subset and "relations" not in run.manifest else ""
    queries = f"{first}{rows} of {counted(whole, 'query')}" if rows < whole or first else counted(whole, "query")
    selection, where = run.manifest["selection"], run.directory
    empty = tally.empty + (tally.failed if tally.is_finished and not tally.unreadable else 0)  # as the file has them
    note(
        f"{where / (submission.PREDICTIONS if subset or tally.unreadable else submission.ARCHIVE)}: {queries}, "
        f"{counted(tally.objects, 'object')}, {counted(empty, 'empty answer')}; LM-KBC "
        f"{run.edition.name}, {run.split}; {selection['how']}; {seconds:.0f} s"
    )
    if run.learns and tally.stated_by_labels:
        note(
            f"{tally.stated_by_labels} of {counted(tally.objects, 'object')} can be read in the labelled rows of "
            f"{' and '.join(run.manifest['learn_from'])}, since the row of the object names the subject (if B borders "
            "A, then A borders B): a model need not know them"
        )
    if below := selection.get("below_precision"):
        named = f"{', '.join(below[:3])}{', ...' if len(below) > 3 else ''}"
        note(
            f"in {counted(len(below), 'relation')} no confidence promises precision {selection['precision']:g}, so "
            f"nothing is kept of them ({named}; {where / submission.MANIFEST} lists all)"
        )
    if tally.withheld:
        note(
            f"{counted(tally.withheld, 'empty answer does', 'empty answers do')} not say that there is "
            f"none: {where / submission.WITHHELD} lists what was withheld"
        )
    if len(draws := tally.counts["draws"]) > 1:
        counts = ", ".join(f"{count} {state}" for state, count in draws.items())
        meanings = {State.DROPPED: "dropped are those that name no possible object, such as the subject alone"}
        if run.sources.get("files"):
            meanings[State.MISSING] = "missing are those that are null, or have no row in a file"
        note("; ".join((f"replies of models: {counts}", *(text for state, text in meanings.items() if state in draws))))
    if rules := tally.rules:
        why = ", ".join(f"{count} {submission.REASONS.get(rule, rule)}" for rule, count in rules.items())
        left = f"; {counted(tally.dropped, 'query')} lost all named objects so" if tally.dropped else ""
        note(f"{counted(sum(rules.values()), 'object')} dropped ({why}){left}")
    if tally.none_kept:
        note(
            f"the rule left out {tally.left_out} of {counted(tally.left_out + tally.objects, 'object')}, and kept none "
            f"for {counted(tally.none_kept, 'query')} that had some ({selection['how']})"
            + ": 'lmkbc tune' learns another rule from labelled rows, and [select] of a recipe states one"
            * ("data_sha256" not in selection)  # not if the rule is tuned
        )
    if can_search and rules.get("link"):
        note("train has no QID for some names: --search-table or --index links more of them")


def _show_scores(run: PredictedRun) -> None:
    """Print the macro-F1 of a run with its 95 % interval, and that of answers without a model."""
    scores = run.evaluate()
    rows = [[run.directory.name, scores.f1, *(scores.interval or (None, None)), scores.overall.rows]]
    rows += [[f"floor: {name}", floor.overall.f1, None, None, floor.overall.rows] for name, floor in run.floors.items()]
    show_table(["run", "macro-F1", "95 % low", "95 % high", "rows"], rows, title=scores.heading)
    if beyond := scores.evaluation.table.beyond:
        note(beyond)
