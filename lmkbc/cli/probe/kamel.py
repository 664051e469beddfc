"""`lmkbc probe kamel`: ask a local model or a server KAMEL's questions, with the published scores beside its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lmkbc.cli import options
from lmkbc.cli.probe.kamel_tables import by_answers, by_property, overall
from lmkbc.cli.probe.models import local, served
from lmkbc.cli.screen import note, show_json
from lmkbc.cli.tables import show_table
from lmkbc.cli.terminal import progress
from lmkbc.errors import InputError, counted, did_you_mean
from lmkbc.files.atomic import check_file, write_bytes

if TYPE_CHECKING:
    from lmkbc.probe.kamel.controls import Answered
    from lmkbc.probe.kamel.prompts import PromptForm
    from lmkbc.probe.local import Local
    from lmkbc.probe.served import Served

EXAMPLE = "Example: lmkbc probe kamel KAMEL.tar.xz --model gpt2 --shots 5 --fixed --properties P36,P47 --limit 20"
FORMS = ("chat", "completion")
KamelFiles = Annotated[
    Path, typer.Argument(help="KAMEL.tar.xz, or the directory that holds P36/test.jsonl and the like.")
]


def kamel(
    source: KamelFiles,
    model: Annotated[str, typer.Option("--model", help="Causal model (id, directory), or the server's name for one.")],
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
    controls: Annotated[
        bool, typer.Option("--controls/--no-controls", help="Show what train alone teaches, and what it leaves.")
    ] = True,
    out: Annotated[Path | None, typer.Option(help="Write the completions as JSONL.")] = None,
    form: Annotated[str, typer.Option(help="How a server is asked: chat (turns) or completion (one text).")] = "chat",
    json: options.AsJson = False,
    offline: options.Offline = False,
    base_url: Annotated[str | None, typer.Option("--base-url", help="Ask this OpenAI-compatible server.")] = None,
    any_model: options.AnyModel = False,
    concurrency: options.Concurrency = None,
    max_cost: options.MaxCost = None,
    max_tokens: options.MaxTokens = None,
    prices: options.Prices = None,
    store: options.StorePlace = None,
) -> None:
    """Ask a model KAMEL's questions. A run that was killed goes on where it stopped."""
    from lmkbc.models.answers import open_store
    from lmkbc.probe.kamel import dataset as benchmark
    from lmkbc.probe.kamel.controls import learned
    from lmkbc.probe.kamel.prompts import Shots, check_wording, questions
    from lmkbc.probe.kamel.run import (
        GREEDY,
        ask,
        questions_of,
        sampling,
    )
    from lmkbc.run.base import Servers

    check_file(out, source, templates, store if isinstance(store, Path) else None)
    if split not in ("dev", "test"):
        raise InputError(f"--split is {split!r}: KAMEL is probed on test or dev, with examples of train")
    if form not in FORMS:
        raise InputError(f"--form is {form!r}: {did_you_mean(form, FORMS)}")
    chosen = Shots(count=shots, drawing="fixed" if fixed else "random", seed=seed)
    wording = questions(templates)
    wanted = options.listed(properties)
    data = benchmark.read(source, properties=wanted, splits=("train", split))
    names = data.properties if wanted is None else sorted(set(wanted), key=lambda name: (len(name), name))
    for name in names:
        data.of(name, split)  # or a sentence on what is absent, before a model is loaded
    check_wording(names, wording)
    prompt_form: PromptForm = "completion" if base_url is None or form == "completion" else "chat"
    requests = list(questions_of(data, wording, chosen, properties=names, split=split, limit=limit, form=prompt_form))
    kept = open_store(store, offline=offline)
    who: Local | Served
    if base_url is None:
        who = local(model, kept, GREEDY, offline=offline)
    else:
        server = Servers(
            base_url=base_url,
            any_model=any_model,
            concurrency=concurrency,
            max_cost=max_cost,
            max_tokens=max_tokens,
            prices=prices,
        )
        who = served(model, kept, sampling(prompt_form), server, offline=offline)
    with progress() as report:
        answers = ask(who, requests, report)
    for remark in getattr(who, "remarks", ()):
        note(remark)
    if unasked := sum(text is None for _, text in answers):
        note(f"{counted(unasked, 'prompt is', 'prompts are')} longer than the model's window: counted as wrong")
    replies = [(fact, text or "") for fact, text in answers]
    drawn = f"{shots} {'fixed' if fixed else 'random'} shots" if shots else "no shots"
    note(f"{model}, {drawn}: {counted(len(replies), 'query')} of {counted(len(names), 'property')}, {split}")
    _show(replies, learned(data, (fact for fact, _ in replies)) if controls else {}, out, json)


def _show(answers: Answered, controls: Mapping[str, Answered], out: Path | None, as_json: bool) -> None:
    import msgspec

    from lmkbc.probe.kamel.controls import hard
    from lmkbc.probe.kamel.score import score

    if out is not None:
        rows = ({"property": fact.property, "subject": fact.subject, "completion": text} for fact, text in answers)
        write_bytes(out, b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    ways = {
        "published": score(answers),
        "published, labels only": score(answers, alternatives=False),
        "stripped": score(answers, strip=True),
        "stripped, labels only": score(answers, strip=True, alternatives=False),
    }
    beside = {name: score(made) for name, made in controls.items()}
    left = hard(answers, controls) if controls else []
    if left:
        beside["published, what no control answers"] = score(left)
    if as_json:
        show_json({way: asdict(table) for way, table in (ways | beside).items()})
        return
    for shown in (overall(ways | beside), by_answers(ways | beside), by_property(ways)):
        show_table(*shown)
