"""`lmkbc train lora`: an adapter for a causal model, trained on a recipe's prompts over the train split."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from lmkbc.api.opening import chosen_edition
from lmkbc.cli.options import (
    AsJson,
    Data,
    EditionName,
    Files,
    Model,
    Offline,
    Root,
)
from lmkbc.cli.screen import note, show_json
from lmkbc.cli.tables import show_table
from lmkbc.cli.terminal import progress
from lmkbc.files.atomic import check_replaceable
from lmkbc.files.places import data_dirs
from lmkbc.recipe import read_recipe
from lmkbc.run.base import Run
from lmkbc.train import MODEL
from lmkbc.workspace import Workspace

EXAMPLE = "Example: lmkbc train lora --edition 2023 --model ID --from texts.jsonl --out models/llm2kb"


def lora(
    out: Annotated[Path, typer.Option("--out", help="Directory of the adapter; predict takes it as --model.")],
    edition: EditionName = None,
    system: Annotated[str, typer.Option("--system", help="Recipe whose causal prompts are learnt.")] = "llm2kb23",
    model: Model = None,
    files: Files = None,
    rank: Annotated[int, typer.Option(min=1, help="Rank of the adapter.")] = 4,
    alpha: Annotated[int, typer.Option(min=1, help="Its scale, over the rank.")] = 16,
    dropout: Annotated[float, typer.Option(min=0, max=0.9)] = 0.05,
    target: Annotated[list[str] | None, typer.Option(help="Layer that gets one; repeatable; default all.")] = None,
    rate: Annotated[float, typer.Option(help="Learning rate, constant after the warm-up.")] = 2e-5,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the train split.")] = 3,
    batch: Annotated[int, typer.Option(min=1, help="Rows per step.")] = 2,
    facts: Annotated[
        int, typer.Option(min=0, help="KAMEL and silver facts of one relation to learn besides; 0: train alone.")
    ] = 0,
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 0,
    json: AsJson = False,
    data: Data = None,
    offline: Offline = False,
    workspace: Root = None,
) -> None:
    """A LoRA adapter for a causal model. Run again after a kill to go on."""
    from lmkbc.train.corpus import gather
    from lmkbc.train.lora import Lora, train

    check_replaceable(out, MODEL)
    space = Workspace(workspace, data)
    run = Run(
        workspace=space,
        edition=chosen_edition(space, edition),
        model=model,
        files=tuple(files or ()),
        offline=offline,
    )
    settings = Lora(
        rank=rank,
        alpha=alpha,
        dropout=dropout,
        targets=tuple(target or ()),
        rate=rate,
        epochs=epochs,
        batch=batch,
        seed=seed,
        facts=facts,
    )
    corpus = gather(space, data_dirs(data), [run.edition.name]) if facts else None
    for line in corpus.proof if corpus else ():
        note(line)
    with progress() as report:
        trained = train(run, read_recipe(space, system), out, settings, corpus=corpus, report=report)
    if json:
        show_json(asdict(trained))
    else:
        show_table(["epoch", "loss"], [[str(n), loss] for n, loss in enumerate(trained.losses, start=1)])
    note(f"wrote {out}")
