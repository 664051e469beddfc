"""`lmkbc probe kmir run`: ask a masked or a causal model KMIR's questions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lmkbc.cli.options import AsJson, Offline, StorePlace
from lmkbc.cli.screen import note, show_json
from lmkbc.cli.terminal import progress
from lmkbc.errors import InputError
from lmkbc.files.atomic import check_directory, check_file, write_bytes
from lmkbc.models.store_place import Place

if TYPE_CHECKING:
    from lmkbc.probe.kmir.files import Question
    from lmkbc.probe.local import Local
    from lmkbc.progress import Report
    from lmkbc.train.settings import TrainingPlan

EXAMPLE = "Example: lmkbc probe kmir run kmir/test.jsonl --model bert-base-cased --train kmir/train.jsonl --out answers"


def run(
    questions: Annotated[list[Path], typer.Argument(help="Questions, as `kmir build` writes them; several files.")],
    model: Annotated[str, typer.Option("--model", help="Masked or causal model: id on the hub, or directory.")],
    out: Annotated[Path, typer.Option(help="Directory of the answers, one file per file of questions.")],
    train: Annotated[
        Path | None, typer.Option(help="Questions that a masked model is trained on first, a causal one is shown.")
    ] = None,
    dev: Annotated[Path | None, typer.Option(help="Questions to stop training early by.")] = None,
    tuned: Annotated[
        Path | None, typer.Option(help="Directory of the trained model; default: OUT-model, beside OUT.")
    ] = None,
    shots: Annotated[int, typer.Option(min=0, help="Examples of train that a causal model is shown.")] = 5,
    choose: Annotated[
        bool, typer.Option("--choose", help="A causal model's likeliest option, where a question leaves a choice.")
    ] = False,
    rate: Annotated[float, typer.Option(help="Peak learning rate.")] = 5e-5,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over train.")] = 3,
    batch: Annotated[int, typer.Option(min=1, help="Questions per step.")] = 32,
    seed: Annotated[int, typer.Option(help="Of training, of examples and of a sample.")] = 0,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many questions of each type, drawn.")] = None,
    json: AsJson = False,
    offline: Offline = False,
    store: StorePlace = None,
) -> None:
    """Ask a model. What was trained or answered before a kill is not done again."""
    import msgspec

    from lmkbc.models.kind import model_kind
    from lmkbc.probe.kmir.files import read_questions, sample
    from lmkbc.train.settings import TrainingPlan

    check_directory(out)
    if len({path.name for path in questions}) < len(questions):
        raise InputError("two files of questions have the same name, and so would their answers: rename one")
    for path in questions:
        check_file(out / path.name, *questions, train, dev)
    whole = [read_questions(path) for path in questions]
    per_file = whole if limit is None else [sample(part, limit, seed) for part in whole]
    lessons, others = ([] if path is None else read_questions(path) for path in (train, dev))
    every = [question for part in per_file for question in part]
    seen = {question.question for question in lessons}
    if repeated := sum(question.question in seen for question in every):
        note(f"{repeated} of {len(every)} questions are in {train} too: their answers are taught, not known")
    kind = model_kind(model, offline=offline)
    with progress() as report:
        if kind == "masked":
            plan = TrainingPlan(rate=rate, epochs=epochs, batch=batch, seed=seed, decay=0.01, patience=2, every=200)
            place = tuned or out.with_name(f"{out.name}-model")
            replies = _masked(model, every, lessons, others, plan, place, report, offline=offline)
        else:
            if dev or tuned:
                raise InputError(
                    f"{model} is a causal model, which is shown examples and not trained: leave out --dev "
                    "and --tuned, or train an adapter with 'lmkbc train lora'"
                )
            who = _local(model, shots if train else 0, store, offline=offline)
            replies = _causal(who, every, lessons, shots if train else 0, seed, report, choose=choose)
    rows = iter(zip(every, replies, strict=True))
    for path, part in zip(questions, per_file, strict=True):
        lines = (
            msgspec.json.encode({"id": question.id, "ret": text}) + b"\n"
            for question, text in (next(rows) for _ in part)
        )
        write_bytes(out / path.name, b"".join(lines))
        how = f"{path} {out / path.name}{'' if limit is None else ' --answered'}"
        note(f"wrote {out / path.name}: score it with 'lmkbc probe kmir score {how}'")
    if json:
        show_json({"model": model, "kind": kind, "questions": len(every), "answers": str(out)})


def _masked(
    model: str,
    every: list[Question],
    lessons: list[Question],
    others: list[Question],
    plan: TrainingPlan,
    place: Path,
    report: Report,
    *,
    offline: bool,
) -> list[str]:
    from lmkbc.models.causal.checkpoint import identity
    from lmkbc.models.masked.backbone import load
    from lmkbc.probe.kmir.masked import finetuned, guesses

    backbone = load(model, offline=offline)
    if lessons:
        mark = identity(model, backbone.model) or model
        backbone = finetuned(backbone, lessons, others, plan, place, mark, report)
    else:
        note("without --train the model was never taught to answer with eight masks: expect little")
    return guesses(backbone, every, report)


def _causal(
    who: Local,
    every: list[Question],
    lessons: list[Question],
    shots: int,
    seed: int,
    report: Report,
    *,
    choose: bool,
) -> list[str]:
    from lmkbc.probe.kmir.causal import chosen, guesses, prompts

    if not shots:
        note("without examples (--train, --shots) the model is not told how answers look: expect little")
    requests = list(prompts(every, lessons, shots, seed))
    replies = chosen(who, every, requests) if choose else {}
    free = [place for place in range(len(every)) if place not in replies]
    replies.update(zip(free, guesses(who, [requests[place] for place in free], report), strict=True))
    return [replies[place] for place in range(len(every))]


def _local(model: str, shots: int, store: Place | None, *, offline: bool) -> Local:
    from lmkbc.cli.probe.models import local
    from lmkbc.models.answers import open_store
    from lmkbc.probe.kmir.causal import decoding

    return local(model, open_store(store, offline=offline), decoding(shots), offline=offline)
