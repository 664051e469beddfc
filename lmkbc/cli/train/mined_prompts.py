"""`lmkbc train mined-prompts`: finds clozes in a text, and ranks them by a masked model's answers."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from lmkbc.api.options import chosen_edition
from lmkbc.cli.terminal import note, progress, show_json, show_table
from lmkbc.files.atomic import write_bytes
from lmkbc.files.writable import check_new
from lmkbc.run.base import Run
from lmkbc.run.subset import Subset
from lmkbc.workspace import Workspace


def mined_prompts(
    *,
    corpus: Annotated[
        Path, typer.Option(help="Text: a sentence a line, or JSONL with a field text. Plain or packed.", metavar="FILE")
    ],
    out: Annotated[Path, typer.Option("--out", help="TOML file for the clozes, which is not there yet.")],
    model: Annotated[str, typer.Option(help="Masked LM that ranks the clozes: an id, or a directory.")],
    edition: str | None = None,
    relation: list[str] | None = None,
    most: Annotated[int, typer.Option(min=1, help="Most frequent spans of a relation that are ranked.")] = 20,
    gain: Annotated[float, typer.Option(min=0, help="Least gain in train F1 for which one more cloze joins.")] = 0.01,
    json: bool = False,
    data: Path | None = None,
    offline: bool = False,
    workspace: Path | None = None,
) -> None:
    """Find clozes in a text, between subjects and objects.

    1. Mine: "Ada lives in Rome" holds a train subject and its object, and gives "{subject} lives in {mask}.".

    2. Filter: "of the" has only stop words, and is dropped. A span of more than 10 words is dropped too.

    3. Rank: with --most 20, the model answers the 20 most frequent clozes of a relation for all train subjects.

    4. Average: with --gain 0.01, a second cloze that raises train F1 from .40 to .42 joins the first.

    5. Use: in a recipe, under [[generate]] of a masked model, write frames = "mined.toml".
    """
    from lmkbc.train import mined_prompts as mining

    check_new(out, corpus)
    space = Workspace(workspace, data)
    run = Run(workspace=space, edition=chosen_edition(space, edition), model=model, offline=offline)
    subset, how = Subset.of(space, run.edition, relation, None), mining.Mining(most, gain)
    with progress() as report:
        prompts, about = mining.mined_prompts(run, model, corpus, how, subset, report)
    write_bytes(out, mining.written(prompts, about))
    if json:
        show_json({name: asdict(one) for name, one in prompts.items()})
    else:
        rows = [[name, one.pairs, len(one.ranked), len(one.clozes), one.best, one.own] for name, one in prompts.items()]
        show_table(["relation", "pairs", "ranked", "kept", "train F1", "own cloze"], rows)
    for line in about:
        note(line)
    note(f"wrote {out}")
