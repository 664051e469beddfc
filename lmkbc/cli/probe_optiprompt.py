"""`lmkbc probe optiprompt`: manual cloze, soft prompts and fine-tuning, on a masked model and its random controls."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from lmkbc.cli.options import AsJson, Offline
from lmkbc.cli.screen import note, progress, show_json, show_table

EXAMPLE = "Example: lmkbc probe optiprompt KAMEL.tar.xz --model bert-base-cased --lama --kept optiprompt.jsonl"


def optiprompt(
    source: Annotated[Path, typer.Argument(help="KAMEL; or LAMA's directory of relations.jsonl and TREx/ (--train).")],
    model: Annotated[str, typer.Option("--model", help="Masked model: id or directory.")],
    train: Annotated[
        Path | None, typer.Option(help="With LAMA: directory of P36/{train,dev}.jsonl, as AutoPrompt made them.")
    ] = None,
    properties: Annotated[str | None, typer.Option(help="Only these relations, comma-separated.")] = None,
    lama: Annotated[bool, typer.Option("--lama", help="Of KAMEL, only the properties of LAMA.")] = False,
    models: Annotated[str, typer.Option(help="The model and its controls, comma-separated.")] = "",
    methods: Annotated[str, typer.Option(help="Ways of asking, comma-separated; soft-N has N random vectors.")] = "",
    most: Annotated[int, typer.Option(min=1, help="Facts of a relation to learn, to stop by, and to test on.")] = 1000,
    least: Annotated[int, typer.Option(min=1, help="Facts to learn without which a relation is left out.")] = 150,
    rate: Annotated[float, typer.Option(help="Peak learning rate of soft prompts.")] = 3e-3,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the facts.")] = 10,
    batch: Annotated[int, typer.Option(min=1, help="Facts per step of soft prompts.")] = 16,
    finetune_rate: Annotated[float, typer.Option(help="Peak learning rate of fine-tuning.")] = 2e-6,
    finetune_batch: Annotated[int, typer.Option(min=1, help="Facts per step of fine-tuning.")] = 2,
    patience: Annotated[int, typer.Option(min=0, help="Epochs without a better loss before stopping; 0: all.")] = 0,
    seed: Annotated[int, typer.Option(help="Of random weights and vectors.")] = 0,
    kept: Annotated[Path | None, typer.Option(help="File of what is finished; a killed run goes on from it.")] = None,
    json: AsJson = False,
    offline: Offline = False,
) -> None:
    """P@1 of every way of asking, averaged over relations, and on the facts that no control answers."""
    from lmkbc.generate.masked.backbone import load
    from lmkbc.generate.masked.words import Words
    from lmkbc.probe import optiprompt as benchmark
    from lmkbc.probe.optiprompt_run import Experiment, Runner
    from lmkbc.train.loop import Plan

    backbone = load(model, offline=offline)
    words = Words(backbone.tokenizer)
    lessons = benchmark.within(
        benchmark.read(source, train, properties.split(",") if properties else None, lama=lama),
        lambda name: words.single(name) is not None, least=least, most=most,
    )  # fmt: skip
    how = Experiment(
        soft=Plan(rate=rate, epochs=epochs, batch=batch, patience=patience, seed=seed),
        finetune=Plan(
            rate=finetune_rate, epochs=epochs, batch=finetune_batch, decay=0.01, patience=patience, seed=seed
        ),
        models=tuple(models.split(",")) if models else benchmark.MODELS,
        methods=tuple(methods.split(",")) if methods else benchmark.METHODS,
        seed=seed,
    )  # fmt: skip
    with progress() as report:
        answers = Runner(backbone, lessons, how).run(kept, report)
    table = benchmark.table(lessons, answers)
    if json:
        show_json({row: asdict(line) for row, line in table.items()})
        return
    show_table(*lines(table))
    note(f"{len(lessons)} relations, {sum(len(one.test) for one in lessons)} facts; paper: BERT-base on T-REx")


def lines(table: Any) -> tuple[list[str], list[list[Any]]]:
    """Heads and rows of the table, in percent, with the paper's beside them."""
    from lmkbc.probe.optiprompt import PUBLISHED

    kinds = list(next(iter(table.values())).types)

    def percent(value: float | None) -> float | None:
        return None if value is None else 100 * value

    rows = [
        [
            name,
            percent(row.overall),
            *(percent(row.types[kind]) for kind in kinds),
            percent(row.easy),
            percent(row.hard),
            *PUBLISHED.get(name, (None, None, None)),
        ]
        for name, row in table.items()
    ]
    return ["P@1 %", "all", *kinds, "easy", "hard", "paper", "easy", "hard"], rows
