"""`lmkbc audit`: the precision of a knowledge base, by a labelled sample or by known facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, astuple
from typing import Any

from lmkbc.commands.terminal import note, progress, show_json, show_table
from lmkbc.commands.typed import made_from
from lmkbc.errors import counted
from lmkbc.kb.api.auditing import Audit
from lmkbc.kb.api.auditing import audit as audit_base
from lmkbc.kb.audit.precision import LABELS, MODEL, KnownPrecision, LabelledPrecision
from lmkbc.types import grouped

EXAMPLE = "Example: lmkbc audit rivers --sample 200 --out rivers-audit"
ALL = "*** All ***"
NAMED = 20
"""Most subjects that are named on the screen. With --json, all are."""
SMALL = 100
"""Facts of a base below which one table is printed, without bins and origins; --json has all."""
FACTS = {MODEL: ", without what labelled rows state", LABELS: ", what labelled rows state", None: ", all facts"}
"""Origin -> the facts of a table, as the end of its title."""


@made_from(audit_base)
def audit(*, json: bool = False, **given: Any) -> None:
    """Measure the precision of a knowledge base, by a sample that a person labels or by known facts."""
    with progress() as report:
        found = audit_base(**given, progress=report)
    if json:
        show_json(_plain(found))
    else:
        _show(found)


def _plain(found: Audit) -> dict[str, Any]:
    """Return a result as JSON. level, slope: of the recalibrated log-odds of confidence."""
    weights = [(None, found.recalibration.pooled), *found.recalibration.relations.items()]
    return {
        "base": str(found.directory),
        "page": found.page and str(found.page),
        "labels": found.labels and str(found.labels),
        "precision": [asdict(row) for row in found.precision],
        "known": [asdict(row) for row in found.known],
        "unstated": found.unstated,
        "uncovered": found.uncovered,
        "recalibration": [{"relation": name, "level": a, "slope": b} for name, (a, b) in weights],
        "written": found.written and str(found.written),
    }


def _show(found: Audit) -> None:
    if found.precision:
        _show_labelled(found.precision)
    if found.unstated:
        note(f"nothing is known of these relations, so their facts are not called new: {', '.join(found.unstated)}")
    if found.uncovered:
        more = f" and {len(found.uncovered) - NAMED} more" if len(found.uncovered) > NAMED else ""
        subjects = counted(len(found.uncovered), "subject")
        named = ", ".join(found.uncovered[:NAMED])
        note(f"what is known does not cover {subjects}, whose facts are therefore not called new: {named}{more}")
    if found.known:
        _show_known(found.known)
    if found.page and found.labels:
        note(f"{found.page}: open it in a browser, or fill in {found.labels.name} beside it with an editor; then run")
        note(f"lmkbc audit {found.directory} --labels {found.labels}")
    if found.written:
        note(f"{found.written}: all facts, the new ones first, by expected gain")


def _show_labelled(rows: Sequence[LabelledPrecision]) -> None:
    names = ["relation", "facts", "labelled", "right", "precision", "low", "high", "confidence", "recalibrated"]
    promise, overall = rows[-1].promised is not None, rows[-1]
    columns = [*names, *(["promised", "promise"] if promise else [])]
    for origin, own in grouped((row.origin, row) for row in rows).items():
        lines = [[row.relation or ALL, *astuple(row)[1:4], *astuple(row)[6 : 13 if promise else 11]] for row in own]
        show_table(columns, lines, title=f"Precision, 95 % interval{FACTS[origin]}")
    note(f"left out: {counted(overall.unknown, 'fact')} labelled unknown, {overall.unlabelled} without a label")


def _show_known(rows: Sequence[KnownPrecision]) -> None:
    """Print a table by relation and bin for each origin, or one table by relation for a small base."""
    names = ["facts", "known", "refining", "contradicting", "new", "not covered", "checked"]
    names = ["relation", "confidence", *names, "precision", "low", "high", "mean confidence"]
    is_small = rows[-1].facts < SMALL
    shown = [row for row in rows if not is_small or (row.at_least is None and row.origin is None)]
    for origin, own in grouped((row.origin, row) for row in shown).items():
        lines = [
            [row.relation or ALL, "all" if row.at_least is None else f"from {row.at_least:.1f}", *astuple(row)[2:-1]]
            for row in own
        ]
        title = f"Facts beside what is known; precision on known subjects, 95 % interval{FACTS[origin]}"
        show_table(names, lines, title=title)
    apart = [row for row in rows if is_small and row.origin == MODEL and row.relation is None and row.at_least is None]
    for row in apart:
        note(f"{row.known} of {counted(row.checked, 'checked fact')} are known{FACTS[MODEL]}")
    if not rows[-1].checked:
        note("nothing is known of the subjects of this base: give a file that has their facts")
