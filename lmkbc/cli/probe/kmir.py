"""`lmkbc probe kmir`: build questions from triples, ask them of a model, and score the answers."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

import typer

from lmkbc.cli.options import AsJson
from lmkbc.cli.probe import kmir_run as probe_kmir_run
from lmkbc.cli.screen import note, show_json
from lmkbc.cli.tables import show_table
from lmkbc.errors import counted
from lmkbc.files.atomic import check_replaceable, with_record, write_directory

app = typer.Typer(no_args_is_help=True, help="KMIR: memorisation, identification, reasoning.", rich_markup_mode=None)
app.command("run", epilog=probe_kmir_run.EXAMPLE)(probe_kmir_run.run)


@app.command("build", epilog="Example: lmkbc probe kmir build KAMEL.tar.xz --out kmir --seed 1")
def build(
    triples: Annotated[Path, typer.Argument(help="JSONL or TSV of subject, relation, object (and types); or KAMEL.")],
    out: Annotated[Path, typer.Option(help="Directory for train.jsonl, dev.jsonl and test.jsonl.")],
    schema: Annotated[Path | None, typer.Option(help="TOML schema of the relations; default: one for KAMEL.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed writes the same bytes.")] = 0,
    json: AsJson = False,
) -> None:
    """Build questions of the four types."""
    from lmkbc.probe.kmir.build import Builder
    from lmkbc.probe.kmir.files import (
        QUESTIONS,
        TYPES,
        question_lines,
        read_triples,
        split,
    )
    from lmkbc.probe.kmir.schema import read_schema

    with as_file(files("lmkbc.probe.kamel").joinpath("schema.toml")) as bundled:
        relations = read_schema(schema or bundled)
    check_replaceable(out, QUESTIONS)
    facts = read_triples(triples, relations)
    questions = list(Builder(facts, relations, seed).questions())
    parts = split(questions, facts, seed)
    written = {f"{name}.jsonl": question_lines(part) for name, part in parts.items()}
    write_directory(out, with_record(QUESTIONS, written, {"seed": seed}), QUESTIONS)
    counts = {name: Counter(question.type for question in part) for name, part in parts.items()}
    whole = sum(counts.values(), Counter[str]())
    if json:
        show_json(dict(whole))
    else:
        show_table(
            ["type", "questions", *counts],
            [[kind, whole[kind], *(part[kind] for part in counts.values())] for kind in TYPES],
        )
    left = f"; {len(questions) - whole.total()} that two splits would share are left out"
    note(f"{out}: {counted(whole.total(), 'question')} on {counted(len(facts), 'fact')}{left}")


@app.command("score", epilog="Example: lmkbc probe kmir score kmir/test.jsonl answers.jsonl")
def score(
    questions: Annotated[Path, typer.Argument(help="Questions, as `kmir build` writes them.")],
    answers: Annotated[Path, typer.Argument(help='JSONL of {"id", "ret"}: a guess, or a list of guesses.')],
    answered: Annotated[
        bool, typer.Option("--answered", help="Leave out what has no answer, as after a run with --limit.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Score answers. Token F1 by type and topic, and how steadily facts are known."""
    from lmkbc.probe.kmir.files import TYPES, read_guesses, read_questions
    from lmkbc.probe.kmir.score import PUBLISHED, PUBLISHED_ROBUSTNESS
    from lmkbc.probe.kmir.score import score as score_questions

    items = read_questions(questions)
    guesses = read_guesses(answers, items)
    if answered:
        items = [question for question in items if question.id in guesses]
    if unanswered := sum(question.id not in guesses for question in items):
        note(f"no answer to {unanswered} of {counted(len(items), 'question')}: counted as wrong")
    table = score_questions(items, guesses)
    if json:
        show_json(asdict(table))
        return
    counts, topics = (Counter(getattr(question, field) for question in items) for field in ("type", "topic"))
    own, widths = ([shares.get(kind) for kind in TYPES] for shares in (table.types, table.half_widths))
    show_table(
        ["F1 %", *TYPES, "all"],
        [
            ["these answers", *(None if value is None else 100 * value for value in (*own, table.f1))],
            ["+- (95 % interval)", *(None if value is None else 100 * value for value in (*widths, table.half_width))],
            ["questions", *(counts[kind] for kind in TYPES), len(items)],
            *([f"paper: {name}", *values, None] for name, values in PUBLISHED.items()),
        ],
    )
    show_table(["topic", "F1 %", "questions"], [[topic, 100 * f1, topics[topic]] for topic, f1 in table.topics.items()])
    steady = table.robustness
    show_table(
        ["questions on one fact", "all right %", "some %", "none %", "facts"],
        [
            ["these answers", 100 * steady.every, 100 * steady.some, 100 * steady.none, steady.facts],
            *([f"paper: {name}", *values, None] for name, values in PUBLISHED_ROBUSTNESS.items()),
        ],
    )
