"""`lmkbc ask`: one question, its answer, and the evidence."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

from lmkbc.api.asking import Answer, quoted
from lmkbc.api.asking import ask as ask_one
from lmkbc.commands.terminal import note, progress, show_json, show_table
from lmkbc.commands.typed import made_from

SHOWN = 5
"""Maximum number of different replies that are shown."""

EXAMPLE = "Example: lmkbc ask Peru country-borders --edition mini"


@made_from(ask_one)
def ask(*, json: bool = False, **given: Any) -> None:
    """Ask one question. Shows the answer, its confidence, its links, and other proposed objects.

    The first question about an edition takes a minute or more, since the default recipe learns from its train split.
    Later ones take seconds.
    """
    with progress() as report:
        answer = ask_one(**given, progress=report)
    if json:
        show_json(asdict(answer))
    else:
        _show(answer)


def _show(answer: Answer) -> None:
    """Show the answer as a table, and its basis as sentences."""
    from lmkbc.select.calibration import confidence_text

    linked = any(one.link is not None for one in answer.objects)
    heads = ["", "object", *(["id"] if linked else []), "confidence", "sources", *(["link"] if linked else [])]
    rows = [
        [
            *("*" if one.kept else "", one.object),
            *([one.id or ""] if linked else []),
            *(
                confidence_text(one.confidence),
                ", ".join(dict.fromkeys(name.partition("#")[0] for name in one.sources)),
            ),
            *([one.link or ""] if linked else []),
        ]
        for one in answer.objects
    ]
    if rows:
        show_table(heads, rows)
    kept = ", ".join(answer) or "nothing"
    meaning = "probabilities" if answer.calibrated else "scores, not calibrated"
    nothing = "" if answer.nothing is None else f"; score of an empty answer {answer.nothing:.3f}"
    note(f"{answer.subject}, {answer.relation}: {kept}")
    note(
        f"{answer.system}, {answer.title}; {answer.selection}; confidences are {meaning}{nothing}; "
        f"{answer.seconds:.1f} s"
    )
    for one in answer.kept:
        if one.quote:
            place = one.quote.address or f"{one.quote.file}, characters {one.quote.start} to {one.quote.end}"
            note(f"{one.object}: {one.quote.text!r} ({place})")
    written = Counter(answer.replies)
    for text, count in written.most_common(SHOWN):
        of = f", in {count} of {len(answer.replies)} samples" if len(answer.replies) > 1 else ""
        note(f"the model wrote{of}: {quoted(text)}")
    if len(written) > SHOWN:
        note(f"{SHOWN} of {len(written)} different replies are shown, of {len(answer.replies)} samples; --json has all")
