"""`lmkbc probe optiprompt`: manual cloze, soft prompts and fine-tuning, on a masked model and its random controls."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from lmkbc.cli.options import AsJson, Offline, listed
from lmkbc.cli.screen import note, show_json
from lmkbc.cli.tables import show_table
from lmkbc.cli.terminal import progress
from lmkbc.errors import counted
from lmkbc.files.atomic import check_file

EXAMPLE = "Example: lmkbc probe optiprompt KAMEL.tar.xz --model bert-base-cased --lama --kept optiprompt.jsonl"


def optiprompt(
    source: Annotated[Path, typer.Argument(help="KAMEL; or LAMA's directory of relations.jsonl and TREx/ (--train).")],
    model: Annotated[str, typer.Option("--model", help="Masked model: id or directory.")],
    train: Annotated[
        Path | None, typer.Option(help="With LAMA: directory of P36/{train,dev}.jsonl, as AutoPrompt made them.")
    ] = None,
    properties: Annotated[str | None, typer.Option(help="Only these relations, comma-separated.")] = None,
    lama: Annotated[bool, typer.Option("--lama", help="Of KAMEL, only the properties of LAMA.")] = False,
    models: Annotated[
        str | None, typer.Option(help="Of pretrained,random,embeddings: the model and its controls; default: all.")
    ] = None,
    methods: Annotated[
        str | None, typer.Option(help="Of manual,soft-5,soft-10,soft-manual,finetune; default: all. soft-N: N vectors.")
    ] = None,
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
    """Compare ways of asking, and controls. P@1, averaged over relations, and on the facts that no control answers."""
    from lmkbc.models.masked.backbone import load
    from lmkbc.models.masked.words import Words
    from lmkbc.probe.optiprompt import dataset as benchmark
    from lmkbc.probe.optiprompt.run import Experiment, Runner
    from lmkbc.train.settings import TrainingPlan

    check_file(kept, source)
    how = Experiment(
        soft=TrainingPlan(rate=rate, epochs=epochs, batch=batch, patience=patience, seed=seed),
        finetune=TrainingPlan(
            rate=finetune_rate, epochs=epochs, batch=finetune_batch, decay=0.01, patience=patience, seed=seed
        ),
        models=tuple(listed(models) or benchmark.MODELS),
        methods=tuple(listed(methods) or benchmark.METHODS),
        seed=seed,
    )
    facts = benchmark.read(source, train, listed(properties), lama=lama)
    backbone = load(model, offline=offline)
    words = Words(backbone.tokenizer)
    lessons = benchmark.within(facts, lambda name: words.single(name) is not None, least=least, most=most)
    runner = Runner(backbone, lessons, how)
    with progress() as report:
        answers = runner.run(kept, report)
    table = benchmark.table(lessons, answers, runner.unhelped())
    if json:
        show_json({row: asdict(line) for row, line in table.items()})
        return
    show_table(*lines(table))
    note(
        f"{counted(len(lessons), 'relation')}, {counted(sum(len(one.test) for one in lessons), 'fact')}; paper: "
        "BERT-base on T-REx"
    )
    if lacking := [row for row in benchmark.EASY if row not in table]:
        note(f"easy is what the other controls answer, for want of {', '.join(lacking)}: no figure to compare")


def lines(table: Any) -> tuple[list[str], list[list[Any]]]:
    """Heads and rows of the table, in percent, with the paper's below them."""
    from lmkbc.probe.optiprompt.dataset import PUBLISHED

    kinds = list(next(iter(table.values())).types)
    heads = ["all", *kinds, "UHN", "easy", "hard"]
    rows: list[list[Any]] = []
    for name, row in table.items():
        shares = [row.overall, *(row.types[kind] for kind in kinds), row.uhn, row.easy, row.hard]
        rows.append([name, *(None if share is None else 100 * share for share in shares)])
    rows += [[f"paper: {name}", *(row.get(head) for head in heads)] for name, row in PUBLISHED.items()]
    return ["P@1 %", *heads], rows
