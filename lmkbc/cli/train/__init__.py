"""`lmkbc train`: teach a masked language model facts, none of which is about a subject of a val or test split."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lmkbc.cli.options import (
    AsJson,
    Data,
    Offline,
    Root,
)
from lmkbc.cli.screen import note, show_json
from lmkbc.cli.spread import spread
from lmkbc.cli.tables import show_table
from lmkbc.cli.terminal import progress
from lmkbc.cli.train import lora as train_lora
from lmkbc.files.places import data_dirs
from lmkbc.workspace import Workspace

if TYPE_CHECKING:
    from lmkbc.train.corpus import Corpus
    from lmkbc.train.loop import Plan, Trained
    from lmkbc.train.tasks import Task

EXAMPLE = "Example: lmkbc train mlm --backbone all-MiniLM-L6-v2 --out models/minilm-facts"
HELP = "Teach models facts. None of them is about a subject of a val or test split."
Backbone = Annotated[str, typer.Option("--backbone", help="Masked LM or encoder: an id, or a directory.")]
Out = Annotated[
    Path, typer.Option("--out", help="Directory of the trained model; an older one there is replaced at the end.")
]
Rate = Annotated[float, typer.Option("--rate", help="Peak learning rate.")]
Epochs = Annotated[int, typer.Option("--epochs", min=1, help="Passes over the facts.")]
Batch = Annotated[int, typer.Option("--batch", min=1, help="Facts per step.")]
Seed = Annotated[int, typer.Option("--seed", help="Of everything random.")]
Random = Annotated[str, typer.Option("--random", help="A control: draw 'all' weights or the 'embeddings' anew.")]
OneRelation = Annotated[str, typer.Option("--relation", help="Only this relation, by any of its names, or a property.")]
Editions = Annotated[list[str] | None, typer.Option("--edition", "-e", help="Whose train splits; repeatable.")]
Device = Annotated[str | None, typer.Option("--device", help="cpu or cuda; default: cuda where it is usable.")]
Most = Annotated[int, typer.Option("--most", min=0, help="KAMEL and silver facts of one relation.")]
PATIENCE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What all kinds of training are told."""

    most: Most = 1000
    relation: OneRelation = ""
    edition: Editions = None
    random: Random = ""
    seed: Seed = 0
    device: Device = None
    json: AsJson = False
    data: Data = None
    offline: Offline = False
    workspace: Root = None

    def corpus(self, text: Path | None = None) -> Corpus:
        """The facts that may be taught, or the sentences of a file; where each comes from is noted."""
        from lmkbc.train.corpus import gather

        space = Workspace(self.workspace, self.data)
        names = [space.edition(name).name for name in self.edition or ()]
        corpus = gather(space, data_dirs(self.data), names, text)
        for line in corpus.proof:
            note(line)
        return corpus

    def task(self, backbone: str, out: Path, plan: Plan) -> Task:
        """One training."""
        from lmkbc.train.tasks import Task

        known = Workspace(self.workspace, self.data).relations.get(self.relation)
        return Task(
            backbone=backbone,
            out=out,
            plan=plan,
            random=self.random,
            most=self.most,
            relation=known.name if known else self.relation,
            offline=self.offline,
            device=self.device,
        )


def mlm(
    *,
    backbone: Backbone,
    out: Out,
    head: Annotated[bool, typer.Option("--head/--all-weights", help="A new head and the top layers only.")] = True,
    expand: Annotated[
        bool | None, typer.Option("--expand/--words", help="A vector of its own per object; with --head the default.")
    ] = None,
    top: Annotated[int | None, typer.Option(min=1, help="With --head: how many top layers learn; default 1.")] = None,
    mask: Annotated[
        str, typer.Option(help="With --all-weights: object, object+N (tokens around) or random.")
    ] = "object",
    apart: Annotated[bool, typer.Option(help="With --all-weights: one example per masked token.")] = False,
    text: Annotated[
        Path | None, typer.Option(help="With --all-weights: sentences to learn from in place of facts, one a line.")
    ] = None,
    rate: Annotated[float | None, typer.Option(help="Peak learning rate; default 1e-3, of all weights 5e-6.")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Passes; default 5, with all weights 10.")] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Facts a step; default 256, with all weights 64.")] = None,
    shared: Shared,
) -> None:
    """Masked-LM training on verbalised facts. For an encoder without a head, or all weights of a masked LM."""
    from lmkbc.errors import InputError
    from lmkbc.models.masked.entities import NOTHING
    from lmkbc.train import tasks
    from lmkbc.train.loop import Plan
    from lmkbc.train.mlm import Masking
    from lmkbc.train.teach import RATES, teach

    if head and (mask != "object" or apart or text):
        raise InputError("--mask, --apart and --text are of training all weights: add --all-weights, or leave them out")
    if not head and top:
        raise InputError("--top is of training a head: leave out --all-weights, or --top")
    usual = Plan(rate=1e-3, epochs=5, batch=256) if head else Plan(rate=5e-6, epochs=10, batch=64)  # Li T. et al. 2022
    masking = Masking.of(mask, apart=apart, nothing=NOTHING if expand else "")
    corpus = shared.corpus(text)
    given: dict[str, Any] = {"rate": rate, "epochs": epochs, "batch": batch}
    chosen = {name: value for name, value in given.items() if value is not None}
    rates = {name: share * chosen.get("rate", usual.rate) for name, share in RATES.items()} if head else {}
    plan = replace(usual, seed=shared.seed, patience=PATIENCE, every=100, **chosen, rates=rates)
    task = shared.task(backbone, out, plan)
    with progress() as report:
        if head:
            trained = teach(task, corpus, expand=expand is not False, top=top or 1, report=report)
        else:
            trained = tasks.mlm(task, corpus, masking, expand=bool(expand), report=report)
    _show(trained, out, shared.json)


def finetune(
    *,
    backbone: Backbone,
    out: Out,
    rate: Rate = 2e-6,
    epochs: Epochs = 10,
    batch: Batch = 2,
    shared: Shared,
) -> None:
    """Full fine-tuning on clozes whose answer is one token."""
    from lmkbc.train import tasks
    from lmkbc.train.loop import Plan

    corpus = shared.corpus()
    plan = Plan(rate=rate, epochs=epochs, batch=batch, seed=shared.seed, decay=0.01, patience=PATIENCE, every=100)
    task = shared.task(backbone, out, plan)
    with progress() as report:
        trained = tasks.finetuned(task, corpus, report)
    _show(trained, out, shared.json)


def soft_prompt(
    *,
    backbone: Backbone,
    out: Out,
    length: Annotated[int, typer.Option(min=0, help="Random vectors; 0: start from the manual cloze.")] = 0,
    loss: Annotated[str, typer.Option(help="likelihood, or ranking: right objects before wrong ones.")] = "likelihood",
    rate: Rate = 3e-3,
    epochs: Epochs = 10,
    batch: Batch = 16,
    shared: Shared,
) -> None:
    """OptiPrompt: per relation, only the prompt's vectors learn."""
    from lmkbc.train import tasks
    from lmkbc.train.loop import Plan

    corpus = shared.corpus()
    plan = Plan(rate=rate, epochs=epochs, batch=batch, seed=shared.seed)
    task = shared.task(backbone, out, plan)
    with progress() as report:
        scores = tasks.soft_prompts(task, corpus, length, loss=loss, report=report)
    if shared.json:
        show_json({name: {"before": before, "after": after} for name, (before, after) in scores.items()})
    else:
        rows = [[name, before, after] for name, (before, after) in scores.items()]
        mean = [sum(row[place] for row in scores.values()) / len(scores) for place in (0, 1)]
        show_table(["relation", "P@1 before", "P@1 after"], [*rows, ["*** Average ***", *mean]])
    note(f"wrote {out}")


def _show(trained: Trained, out: Path, as_json: bool) -> None:
    if as_json:
        show_json(asdict(trained))
    else:
        held_out = trained.held_out[1:] or [None] * len(trained.losses)  # the first is before training
        rows = [[str(n), *both] for n, both in enumerate(zip(trained.losses, held_out, strict=True), start=1)]
        show_table(["epoch", "loss", "held out"], rows)
    note(f"wrote {out}")


app = typer.Typer(no_args_is_help=True, help=HELP, rich_markup_mode=None)
app.command("mlm", epilog=EXAMPLE)(spread(mlm))
app.command("soft-prompt", epilog="Example: lmkbc train soft-prompt --backbone bert-base-cased --out models/prompts")(
    spread(soft_prompt)
)
app.command("finetune", epilog="Example: lmkbc train finetune --backbone bert-base-cased --out models/tuned")(
    spread(finetune)
)
app.command("lora", epilog=train_lora.EXAMPLE)(train_lora.lora)
