"""`lmkbc probe`: benchmarks of what a model knows, and controls that separate recall from learning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lmkbc.commands.terminal import note, note_published, progress, show_json, show_table
from lmkbc.commands.typed import made_from
from lmkbc.errors import InputError, counted
from lmkbc.files.atomic import write_bytes
from lmkbc.files.writable import check_directory, check_replaced
from lmkbc.models.store_place import Place
from lmkbc.probe.bear import BearBenchmark
from lmkbc.probe.benchmark import Benchmark, BenchmarkRun, Findings
from lmkbc.probe.kamel.kamel import KamelBenchmark, KamelBuild
from lmkbc.probe.kmir.kmir import KmirBuild, KmirRun, KmirScore
from lmkbc.probe.lama.lama import LamaBenchmark
from lmkbc.probe.optiprompt.optiprompt import OptiPromptBenchmark
from lmkbc.probe.probing import controls as run_controls
from lmkbc.probe.probing import invented as run_invented
from lmkbc.registry import BENCHMARKS
from lmkbc.report.figures import is_picture, standalone
from lmkbc.session.options import Servers, settled

if TYPE_CHECKING:
    from lmkbc.probe.controls import ControlRow

EXAMPLES = {
    "kamel": "lmkbc probe kamel KAMEL.tar.xz --model gpt2 --shots 5 --fixed --properties P36,P47 --limit 20",
    "kamel-build": "lmkbc probe kamel-build triples.jsonl --out data --train 100 --dev 20 --test 20",
    "lama": "lmkbc probe lama data/ --model bert-base-cased --model roberta-base --uhn",
    "bear": "lmkbc probe bear BEAR.tar.xz --model SmolLM2-135M-Instruct --limit 5 --table overall,domain",
    "optiprompt": "lmkbc probe optiprompt KAMEL.tar.xz --model bert-base-cased --lama --kept optiprompt.jsonl",
    "build": "lmkbc probe kmir build KAMEL.tar.xz --out kmir --seed 1",
    "run": "lmkbc probe kmir run kmir/test.jsonl --model bert-base-cased --train kmir/train.jsonl --out answers",
    "score": "lmkbc probe kmir score kmir/test.jsonl answers.jsonl",
}

Pictures = Annotated[
    Path | None, typer.Option("--pictures", help="Directory for the figures of the printed tables, as SVG.")
]


def kamel(
    *,
    benchmark: KamelBenchmark,
    json: bool = False,
    offline: bool = False,
    base_url: Annotated[str | None, typer.Option("--base-url", help="Ask this OpenAI-compatible server.")] = None,
    any_model: bool = False,
    concurrency: int | None = None,
    timeout: float | None = None,
    max_cost: float | None = None,
    max_tokens: int | None = None,
    prices: tuple[float, float] | None = None,
    store: Place | None = None,
) -> None:
    """Ask a model KAMEL's questions. A run that was killed can be resumed."""
    given = Servers(
        base_url=base_url,
        any_model=any_model,
        concurrency=concurrency,
        timeout=timeout,
        max_cost=max_cost,
        max_tokens=max_tokens,
        prices=prices,
        store=store,
    )
    _show(benchmark, json, offline, given)


def kamel_build(*, benchmark: KamelBuild, json: bool = False) -> None:
    """Build questions from your own triples in KAMEL's layout. Shows how many facts each of its filters removes."""
    _show(benchmark, json)


def lama(*, benchmark: LamaBenchmark, json: bool = False, offline: bool = False) -> None:
    """Ask masked models LAMA's clozes.

    Shows P@1, P@10 and MRR of objects in the shared vocabulary, mean over relations.
    """
    _show(benchmark, json, offline)


def bear(
    *,
    benchmark: BearBenchmark,
    json: bool = False,
    offline: bool = False,
    store: Place | None = None,
) -> None:
    """Rank the options of BEAR's items as whole sentences.

    Shows the mean accuracy over three templates with its standard error, beside floors and published figures.
    """
    _show(benchmark, json, offline, Servers(store=store))


def optiprompt(
    *, benchmark: OptiPromptBenchmark, json: bool = False, offline: bool = False, pictures: Pictures = None
) -> None:
    """Compare ways of prompting, and controls.

    Shows P@1, mean over relations, also on facts that no control answers.
    """
    _show(benchmark, json, offline, pictures=pictures)


def build(*, benchmark: KmirBuild, json: bool = False) -> None:
    """Build questions of the four types."""
    _show(benchmark, json)


def run(
    *,
    benchmark: KmirRun,
    json: bool = False,
    offline: bool = False,
    store: Place | None = None,
) -> None:
    """Ask a model. After a kill, finished training and answers are not repeated."""
    _show(benchmark, json, offline, Servers(store=store))


def score(*, benchmark: KmirScore, json: bool = False, pictures: Pictures = None) -> None:
    """Score answers. Shows token F1 by type and topic, and consistency of facts."""
    _show(benchmark, json, pictures=pictures)


def _show(
    benchmark: Benchmark,
    as_json: bool,
    offline: bool = False,
    servers: Servers | None = None,
    pictures: Path | None = None,
) -> None:
    """Run a benchmark, and show its results. pictures: directory for the figures of its tables."""
    run = BenchmarkRun(offline=offline, servers=settled(Servers, servers or {}), note=note, progress=progress)
    if pictures is not None:
        check_directory(pictures)
        import matplotlib  # noqa: F401 -- fails here, before anything is asked, if it is not installed
    found = benchmark.run(run)
    for sheet in found.sheets:
        if pictures is not None and sheet.picture is not None:
            place = pictures / f"{sheet.name}.svg"
            check_replaced(place, is_picture, "picture of this program")
            write_bytes(place, standalone(sheet.picture()))
            note(f"wrote {place}")
    _print(found, as_json)


def _print(found: Findings, as_json: bool) -> None:
    if as_json:
        show_json(found.values)
        return
    for sheet in found.sheets:
        show_table(sheet.heads, sheet.rows, title=sheet.title)


app = typer.Typer(
    no_args_is_help=True, help="Test what a model knows, by published benchmarks and controls.", rich_markup_mode=None
)
kmir = typer.Typer(no_args_is_help=True, help="KMIR: memorisation, identification, reasoning.", rich_markup_mode=None)
GROUPS: dict[typer.Typer, tuple[Callable[..., None], ...]] = {
    app: (kamel, kamel_build, lama, bear, optiprompt),
    kmir: (run, build, score),
}
for group, commands in GROUPS.items():
    for command in commands:
        name = command.__name__.replace("_", "-")
        group.command(name, epilog=f"Example: {EXAMPLES[name]}")(command)
app.add_typer(kmir, name="kmir")


def _plugged(kind: type[Benchmark]) -> Callable[..., None]:
    """Return the command of a plug-in's benchmark, whose options are the fields of its dataclass."""

    def probe(*, benchmark: Any, json: bool = False, offline: bool = False) -> None:
        _show(benchmark, json, offline)

    probe.__doc__ = kind.__doc__
    probe.__annotations__["benchmark"] = kind
    return probe


for name in BENCHMARKS.plugged():
    try:
        app.command(name)(_plugged(BENCHMARKS.get(name)))
    except InputError as error:  # the other benchmarks work
        note(str(error))


@app.command("invented", epilog="Example: lmkbc probe invented --edition mini --system embedded --subjects 5")
@made_from(run_invented)
def invented(*, json: bool = False, **given: Any) -> None:
    """Ask about what does not exist. Shows how much a model or a system says about invented names, beside real ones."""
    with progress() as report:
        found = run_invented(**given, progress=report)
    _print(found, json)


@app.command("controls", epilog="Example: lmkbc probe controls --edition 2023 --system recorded --from gpt4.jsonl.gz")
@made_from(run_controls)
def controls(*, json: bool = False, **given: Any) -> None:
    """Separate recall from learning. Shows a system's F1 beside the train split's, and its F1 on hard queries."""
    with progress() as report:
        table, edition, split = run_controls(**given, progress=report)
    if json:
        show_json(asdict(table))
        return
    names = list(table.overall.controls)

    def line(name: str, row: ControlRow) -> list[Any]:
        shares = ("-" if (share := row.controls[control]) is None else share for control in names)
        return [name, row.queries, row.system, *shares, row.hard, row.hard_f1]

    rows = [line(name, row) for name, row in table.relations.items()]
    rows.append(line("*** Average ***", table.overall))
    title = f"F1, {edition.title}, {split}, {'tuned, out of fold' if given['tuned'] else 'untuned'}"
    show_table(["relation", "queries", table.system, *names, "hard", "F1 on hard"], rows, title=title)
    note_published(edition, split)
    if table.failed:
        note(
            counted(
                table.failed, "query has no answer: it counts as wrong", "queries have no answer: they count as wrong"
            )
        )
