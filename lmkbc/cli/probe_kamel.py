"""`lmkbc probe kamel`: ask a local model KAMEL's questions, with the published scores beside its own."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from lmkbc.atomic import write_bytes
from lmkbc.cli.options import AsJson, Offline, StorePath
from lmkbc.cli.screen import note, progress, show_json, show_table
from lmkbc.errors import InputError

EXAMPLE = "Example: lmkbc probe kamel KAMEL.tar.xz --model gpt2 --shots 5 --fixed --properties P36,P47 --limit 20"
Source = Annotated[Path, typer.Argument(help="KAMEL.tar.xz, or the directory that holds P36/test.jsonl and the like.")]


def kamel(
    source: Source,
    model: Annotated[str, typer.Option("--model", help="Causal model: id on the hub, or directory.")],
    shots: Annotated[int, typer.Option(min=0, help="Examples before each question; the paper has 1, 5 and 10.")] = 5,
    fixed: Annotated[
        bool, typer.Option("--fixed/--random", help="The same examples per property (fast), or others per query.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of the examples.")] = 0,
    properties: Annotated[str | None, typer.Option(help="Only these properties, comma-separated.")] = None,
    split: Annotated[str, typer.Option(help="test or dev.")] = "test",
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many queries per property.")] = None,
    templates: Annotated[
        Path | None, typer.Option(help="Questions in place of ours, such as the authors' file.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the completions as JSONL.")] = None,
    json: AsJson = False,
    offline: Offline = False,
    store: StorePath = None,
) -> None:
    """Probe a local model with KAMEL; a run that was killed goes on where it stopped."""
    import msgspec

    from lmkbc.generate.causal.checkpoint import identity, load
    from lmkbc.generate.causal.model import CausalModel
    from lmkbc.probe import kamel as benchmark
    from lmkbc.probe.kamel_prompts import Shots, questions
    from lmkbc.probe.kamel_run import run
    from lmkbc.probe.kamel_score import PUBLISHED, score
    from lmkbc.store import Store, default_store

    if split not in ("dev", "test"):
        raise InputError(f"--split is {split!r}: KAMEL is probed on test or dev, with examples of train")
    wording = questions(templates)
    wanted = None if properties is None else {name.strip() for name in properties.split(",")}
    data = benchmark.read(source, properties=wanted, splits=("train", split))
    for line in data.skipped:
        note(f"skipped {line}")
    names = data.properties if wanted is None else sorted(wanted, key=lambda name: int(name[1:] or 0))
    loaded, tokenizer = load(model, offline=offline)
    name = Path(model).name if Path(model).is_dir() else model
    with progress() as report:
        answers = list(
            run(
                CausalModel(loaded, tokenizer), name, data, wording,
                Shots(count=shots, drawing="fixed" if fixed else "random", seed=seed),
                properties=names, split=split, limit=limit, store=Store(store or default_store()),
                revision=identity(model, loaded), report=report,
            )
        )  # fmt: skip
    if out is not None:
        rows = ({"property": fact.property, "subject": fact.subject, "completion": text} for fact, text in answers)
        write_bytes(out, b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    ways = {
        "published": score(answers),
        "published, labels only": score(answers, alternatives=False),
        "stripped": score(answers, strip=True),
        "stripped, labels only": score(answers, strip=True, alternatives=False),
    }
    if json:
        show_json({way: asdict(table) for way, table in ways.items()})
        return
    lines: list[list[Any]] = [
        [way, part, *(100 * value for value in (one.p, one.r, one.f1)), one.count]
        for way, table in ways.items()
        for part, one in {
            "all": table.overall, "entities": table.entities, "literals": table.literals, "LAMA's": table.lama,
            **{f"{count} gold answers": scored for count, scored in table.by_answers.items()},
        }.items()
    ]  # fmt: skip
    lines += [
        [paper, f"paper, {k} shots", *scores, 234] for paper, table in PUBLISHED.items() for k, scores in table.items()
    ]
    show_table(["scoring", "over", "P %", "R %", "F1 %", "count"], lines)
    per = ways["stripped"].properties.items()
    show_table(["property", "P %", "R %", "F1 %"], [[n, 100 * one.p, 100 * one.r, 100 * one.f1] for n, one in per])
