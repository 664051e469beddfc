"""`lmkbc train`: teaches models facts; no fact is about a subject of a val or test split."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from msgspec import Meta

from lmkbc.commands.keywords import chosen_edition
from lmkbc.commands.terminal import note, progress, show_json, show_table
from lmkbc.commands.typed import SHARED
from lmkbc.errors import InputError
from lmkbc.files.atomic import check_replaceable, write_bytes
from lmkbc.files.places import data_dirs
from lmkbc.files.writable import check_new
from lmkbc.recipe import read_recipe
from lmkbc.session.run import Run
from lmkbc.session.subset import Subset
from lmkbc.train.training import MODEL, TRAINING, Lora, Masking, Training, TrainingPlan
from lmkbc.workspace import Workspace

if TYPE_CHECKING:
    from lmkbc.train.corpus import Corpus
    from lmkbc.train.loop import Trained

HELP = "Teach models facts (none is about a subject of a val or test split), or find prompts in a text."
EXAMPLES = {
    "mlm": "lmkbc train mlm --backbone all-MiniLM-L6-v2 --out models/minilm-facts",
    "soft-prompt": "lmkbc train soft-prompt --backbone bert-base-cased --out models/prompts",
    "finetune": "lmkbc train finetune --backbone bert-base-cased --out models/tuned",
    "lora": "lmkbc train lora --edition 2023 --model ID --from texts.jsonl --out models/llm2kb",
    "mined-prompts": "lmkbc train mined-prompts -e 2022 --corpus wiki.txt --model bert-large-cased --out mined.toml",
}
HEAD = TrainingPlan(rate=1e-3, epochs=5, batch=256, patience=2, every=100)
ALL_WEIGHTS = TrainingPlan(rate=5e-6, epochs=10, batch=64, patience=2, every=100)  # Li T. et al. 2022
FINETUNE = TrainingPlan(rate=2e-6, epochs=10, batch=2, decay=0.01, patience=2, every=100)
SOFT_PROMPT = TrainingPlan(rate=3e-3, epochs=10, batch=16)


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusOptions:
    """Source of the facts to teach."""

    edition: Annotated[
        list[str] | None, typer.Option("--edition", "-e", help="Edition whose train split is learned. Repeatable.")
    ] = None
    data: Annotated[Path | None, SHARED["data"][1]] = None
    workspace: Annotated[Path | None, SHARED["workspace"][1]] = None
    trust: Annotated[bool, SHARED["trust"][1]] = False

    def training(self, given: Training) -> Training:
        """Return the training settings, with the relation's own name."""
        known = Workspace(self.workspace, self.data, trust=self.trust).relations.get(given.relation)
        return replace(given, relation=known.name) if known else given

    def corpus(self, text: Path | None = None) -> Corpus:
        """Return the facts that may be taught, or the sentences of a file; print where they come from."""
        space = Workspace(self.workspace, self.data, trust=self.trust)
        return _gathered(space, self.data, [space.edition(name).name for name in self.edition or ()], text)


def mlm(
    *,
    training: Training,
    head: Annotated[
        bool, typer.Option("--head/--all-weights", help="Train a new head and the top layer, or all weights.")
    ] = True,
    expand: Annotated[
        bool | None,
        typer.Option(
            "--expand/--words",
            help="Give each object a vector of its own, or use the vocabulary's words. Default with --head: --expand.",
        ),
    ] = None,
    mask: Annotated[
        str, typer.Option(help="With --all-weights: object, object+N (tokens around) or random.")
    ] = "object",
    apart: Annotated[bool, typer.Option(help="With --all-weights: one example per masked token.")] = False,
    text: Annotated[
        Path | None, typer.Option(help="With --all-weights: sentences to learn from in place of facts, one a line.")
    ] = None,
    rate: Annotated[
        float | None, Meta(description="Peak learning rate. Default: 1e-3; with --all-weights 5e-6.", extra=TRAINING)
    ] = None,
    epochs: Annotated[
        int | None, Meta(ge=1, description="Passes over the facts. Default: 5; with --all-weights 10.", extra=TRAINING)
    ] = None,
    batch: Annotated[
        int | None, Meta(ge=1, description="Facts per step. Default: 256; with --all-weights 64.", extra=TRAINING)
    ] = None,
    seed: Annotated[int, Meta(description="Seed of everything random.", extra=TRAINING)] = 0,
    facts: CorpusOptions,
    json: bool = False,
) -> None:
    """Masked-LM training on verbalised facts. For an encoder without a head, or for all weights of a masked LM."""
    from lmkbc.masked.heads import NOTHING
    from lmkbc.train import tasks
    from lmkbc.train.tasks import RATES, teach

    if head and (mask != "object" or apart or text):
        raise InputError("--mask, --apart and --text are of training all weights: add --all-weights, or leave them out")
    masking = Masking(policy=mask, apart=apart, nothing=NOTHING if expand else "")
    given: dict[str, Any] = {"rate": rate, "epochs": epochs, "batch": batch, "seed": seed}
    plan = replace(HEAD if head else ALL_WEIGHTS, **{name: value for name, value in given.items() if value is not None})
    corpus, training = facts.corpus(text), facts.training(training)
    with progress() as report:
        if head:
            plan = replace(plan, rates={name: share * plan.rate for name, share in RATES.items()})
            trained = teach(training, plan, corpus, expand=expand is not False, report=report)
        else:
            trained = tasks.mlm(training, plan, corpus, masking, expand=bool(expand), report=report)
    _show(trained, training.out, json)


def finetune(*, training: Training, plan: TrainingPlan = FINETUNE, facts: CorpusOptions, json: bool = False) -> None:
    """Full fine-tuning on clozes whose answer is one token."""
    from lmkbc.train import tasks

    corpus, training = facts.corpus(), facts.training(training)
    with progress() as report:
        trained = tasks.finetuned(training, plan, corpus, report)
    _show(trained, training.out, json)


def soft_prompt(
    *,
    training: Training,
    length: Annotated[int, typer.Option(min=0, help="Number of random vectors. 0: start from the manual cloze.")] = 0,
    loss: Annotated[
        Literal["likelihood", "ranking"], typer.Option(help="likelihood, or ranking: right objects before wrong ones.")
    ] = "likelihood",
    plan: TrainingPlan = SOFT_PROMPT,
    facts: CorpusOptions,
    json: bool = False,
) -> None:
    """OptiPrompt: train only the vectors of the prompts."""
    from lmkbc.train import tasks

    corpus, training = facts.corpus(), facts.training(training)
    with progress() as report:
        scores = tasks.soft_prompts(training, plan, corpus, length, loss=loss, report=report)
    if json:
        show_json({name: {"before": before, "after": after} for name, (before, after) in scores.items()})
    else:
        rows = [[name, before, after] for name, (before, after) in scores.items()]
        mean = [sum(row[place] for row in scores.values()) / len(scores) for place in (0, 1)]
        show_table(["relation", "P@1 before", "P@1 after"], [*rows, ["*** Average ***", *mean]])
    note(f"wrote {training.out}")


def lora(
    *,
    out: Annotated[Path, typer.Option("--out", help="Directory for the adapter; pass it to predict as --model.")],
    edition: str | None = None,
    system: Annotated[str, typer.Option("--system", help="Recipe whose prompts are learned.")] = "llm2kb23",
    model: str | None = None,
    files: list[Path] | None = None,
    target: Annotated[
        list[str] | None, typer.Option(help="Layer that gets an adapter. Repeatable. Default: all linear layers.")
    ] = None,
    settings: Lora = Lora(facts=0),  # noqa: B008 -- frozen
    json: bool = False,
    data: Path | None = None,
    offline: bool = False,
    workspace: Path | None = None,
    trust: bool = False,
) -> None:
    """Train a LoRA adapter for a causal model. A training that was killed can be resumed."""
    from lmkbc.train.lora import train

    check_replaceable(out, MODEL)
    space = Workspace(workspace, data, trust=trust)
    asked = chosen_edition(space, edition)
    run = Run(workspace=space, edition=asked, model=model, files=tuple(files or ()), offline=offline)
    settings = replace(settings, targets=tuple(target or ()))
    corpus = _gathered(space, data, [asked.name]) if settings.facts else None
    with progress() as report:
        trained = train(run, read_recipe(space, system), out, settings, corpus=corpus, report=report)
    _show(trained, out, json, ("epoch", "loss"))


def _gathered(space: Workspace, data: Path | None, editions: list[str], text: Path | None = None) -> Corpus:
    from lmkbc.train.corpus import gather

    corpus = gather(space, data_dirs(data), editions, text)
    for line in corpus.proof:
        note(line)
    return corpus


def _show(trained: Trained, out: Path, as_json: bool, heads: Sequence[str] = ("epoch", "loss", "held out")) -> None:
    if as_json:
        show_json(asdict(trained))
    else:
        held_out = trained.held_out[1:] or [None] * len(trained.losses)  # the first value is from before training
        rows = [[str(n), *both] for n, both in enumerate(zip(trained.losses, held_out, strict=True), start=1)]
        show_table(heads, [row[: len(heads)] for row in rows])
    note(f"wrote {out}")


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
    trust: bool = False,
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
    space = Workspace(workspace, data, trust=trust)
    run = Run(workspace=space, edition=chosen_edition(space, edition), model=model, offline=offline)
    subset = Subset.of(run.edition, relation, None)
    with progress() as report:
        prompts, about = mining.mined_prompts(run, model, corpus, subset, most=most, gain=gain, report=report)
    write_bytes(out, mining.written(prompts, about), new=True)
    if json:
        show_json({name: asdict(one) for name, one in prompts.items()})
    else:
        rows = [[name, one.pairs, len(one.ranked), len(one.clozes), one.best, one.own] for name, one in prompts.items()]
        show_table(["relation", "pairs", "ranked", "kept", "train F1", "own cloze"], rows)
    for line in about:
        note(line)
    note(f"wrote {out}")


app = typer.Typer(no_args_is_help=True, help=HELP, rich_markup_mode=None)
COMMANDS: tuple[Callable[..., None], ...] = (mlm, soft_prompt, finetune, lora, mined_prompts)
for command, (name, example) in zip(COMMANDS, EXAMPLES.items(), strict=True):
    app.command(name, epilog=f"Example: {example}")(command)
