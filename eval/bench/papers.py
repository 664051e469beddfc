"""Figures of the papers' items, as docs/papers.md shows them, on models that a small machine has.

organisers: recorded answers and baselines of 2022 and 2023. costs: requests of recipes without an outcome, one query
for each relation, asked of a stand-in for a server, and replayed from the kept answers. masked: recipes of masked
models, on --masked. kamel, kmir: samples, asked of --model and --masked. optiprompt: ways of asking --masked.

After a sign of plus or minus stands half of a 95 % interval, by bootstrap over facts. The page says how the model of
--masked is made. --work keeps what is finished, so that a killed run goes on.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec

from eval.bench import few_of, model_of, parsed, parser_of
from eval.bench.figures import Table
from eval.bench.recorded import context_of, proposed, scored, tuned_rules, untuned
from eval.bench.replay import ROWS as REPLAYS
from eval.bench.replay import digits, shown_of
from lmkbc.files.jsonl import read_jsonl
from lmkbc.plan import Plan
from lmkbc.probe.benchmark import BenchmarkRun, half_width
from lmkbc.probe.kamel.kamel import KamelBenchmark
from lmkbc.probe.kamel.kamel_data import LAMA
from lmkbc.probe.kmir.kmir import KmirBuild, KmirRun, KmirScore
from lmkbc.probe.kmir.questions import Question, sample
from lmkbc.probe.optiprompt.optiprompt import FactAnswers, OptiPromptBenchmark
from lmkbc.recipe import read_recipe
from lmkbc.run.pipeline import propose
from lmkbc.session.options import Servers
from lmkbc.session.run import Run
from lmkbc.tune.tuning_set import TuningOptions
from lmkbc.types import Query, grouped
from lmkbc.workspace import Workspace

HERE = "here"
REPLAYED = {
    "BL-1, BERT-large": "BERT-2022",
    "ProP": "GPT-3",
    "ProP, facts checked": "GPT-3-checked",
    "GPT-3, linked by the first hit": "organisers-GPT-3",
    "BERT-large": "organisers-BERT",
    "Minimal Probe": "GPT-4",
    "Yang et al.": "BERT-recode-yang23",
}
"""Row of the page -> row of the benchmark `replay`."""
COSTS = {
    "2022": ("prop22",),
    "2023": ("bl23-gpt-ids", "bl23-opt", "llmke23-best", "lix23", "biester23", "llm2kb23"),
}
MASKED = {
    "2022": ("bl22", "li22", "ning22", "fang22", "dalal22"),
    "2023": ("bl23-mlm",),
}


def main(argv: Sequence[str]) -> None:
    parser = parser_of(__doc__, *PARTS, figures=True)
    parser.add_argument("--model", default="SmolLM2-135M-Instruct", help="a causal model of this machine")
    parser.add_argument("--masked", default="models/tiny-facts", help="directory of a masked model")
    parser.add_argument("--limit", type=int, default=5, help="queries of a property, or of each type of question")
    parser.add_argument("--every", type=int, default=3, help="probe every n-th of LAMA's properties")
    parser.add_argument("--most", type=int, default=200, help="facts of a property to learn, and to test on")
    parser.add_argument("--epochs", type=int, default=10, help="passes over the facts to learn")
    parser.add_argument("--work", type=Path, help="directory for what is finished (default: a temporary one)")
    given = parsed(parser, argv, rows=["costs"])
    with ExitStack() as stack:
        given.model = stack.enter_context(model_of(given))
        given.work = given.work or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        given.work.mkdir(parents=True, exist_ok=True)
        for part in given.rows:
            PARTS[part](given, Table(f"papers-{part}", part, given.figures))


def kamel_of(given: argparse.Namespace) -> Path:
    """Return the archive of KAMEL, which lies beside the official splits."""
    space = Workspace(data=given.data)
    return space.split_path(space.edition("2023"), "train").parent.parent / "kamel" / "KAMEL.tar.xz"


def run_of(given: argparse.Namespace) -> BenchmarkRun:
    """Return the resources of a probe, whose answers are kept in --work."""
    return BenchmarkRun(offline=True, servers=Servers(store=given.work / "answers.sqlite"), note=print)


def bounded(share: float, half: float | None) -> str:
    """Return a share in percent with half of its interval."""
    return f"{100 * share:.1f}" if half is None else f"{100 * share:.1f} ± {100 * half:.1f}"


def organisers(given: argparse.Namespace, table: Table) -> None:
    """Score the recorded answers by their recipes, and the all-empty file."""
    space = Workspace(data=given.data)
    for label, name in REPLAYED.items():
        row = REPLAYS[name]
        edition = space.edition(row.edition)
        examples = space.examples(edition, edition.held_out)
        shown, failed = shown_of(context_of(space, edition, row.files), row, examples, given)
        table.add(label, {HERE: f"{digits(shown[-1:])} (their file {digits(row.authors[-1:])})"}, failed=failed)
    edition = space.edition("2022")
    run = Run(workspace=space, edition=edition, offline=True)
    empty = untuned(run, space.examples(edition, edition.held_out), read_recipe(space, "bl22-empty"))
    table.add("All-empty file", {HERE: digits([empty])})


def first_of_each(space: Workspace, name: str) -> list[Query]:
    """Return the first query of each relation of an edition's held-out split."""
    edition = space.edition(name)
    by_relation = grouped((query.relation, query) for query in space.queries(edition, edition.held_out))
    return [queries[0] for queries in by_relation.values()]


def costs(given: argparse.Namespace, table: Table) -> None:
    """Ask a stand-in for a server, and count. The tokens of prompts are SmolLM2's."""
    from loopback import Loopback, prompt_of

    recipes = {"mini": ("few-shot",)} if given.small else COSTS
    count = token_counter(given)
    for name, systems in recipes.items():
        space = Workspace(data=given.data)
        edition, queries = space.edition(name), first_of_each(space, name)
        texts = given.work / "texts.jsonl"
        passages = ({"title": query.subject, "text": f"About {query.subject}."} for query in queries)
        texts.write_text("".join(json.dumps(row) + "\n" for row in passages), encoding="utf-8")
        for system in systems:
            recipe = read_recipe(space, system)
            with tempfile.TemporaryDirectory() as folder, Loopback() as server:
                servers = Servers(base_url=server.url, any_model=True, store=Path(folder) / "answers.sqlite")
                run = Run(
                    workspace=space,
                    edition=edition,
                    model="stand-in",
                    offline=True,
                    servers=servers,
                    files=(texts,) if system in SHOWN_TEXTS else (),
                )
                sets = propose(Plan.of(run, recipe), queries).sets
                asked = list(server.requests)
                again = propose(Plan.of(run, recipe), queries).sets
                same = again == sets and len(server.requests) == len(asked)
            tokens = sum(count(prompt_of(body)) for body in asked)
            cost = f"{len(asked) / len(queries):.1f} calls, {tokens / len(queries):,.0f} tokens a query"
            failed = sum(one.failed for one in sets)
            table.add(f"`{system}`", {HERE: f"{cost}; replayed {'the same' if same else 'otherwise'}"}, failed=failed)


SHOWN_TEXTS = ("llmke23-best", "llm2kb23")
"""Recipes that show passages about the subject; here a sentence."""


def token_counter(given: argparse.Namespace) -> Callable[[str], int]:
    """Return a function from a text to the number of its tokens, those of --model."""
    if given.small:
        return lambda text: len(text.split())
    from lmkbc.local.checkpoint import load

    tokenizer = load(given.model, dtype="float32")[1]
    return lambda text: len(tokenizer(text)["input_ids"])


def masked(given: argparse.Namespace, table: Table) -> None:
    """Score recipes of masked models on --masked, by their own rule and out of fold."""
    space = Workspace(data=given.data)
    for name, systems in MASKED.items():
        edition = space.edition(name)
        examples = few_of(space.examples(edition, edition.held_out), given.limit * len(edition.relations) * 5)
        for system in systems:
            recipe = read_recipe(space, system)
            run = Run(workspace=space, edition=edition, model=given.masked, offline=True)
            sets = proposed(run, recipe, examples)
            own = scored(recipe, sets, examples, edition)
            tuned = tuned_rules(sets, examples, edition, run.relations, TuningOptions(trials=0), recipe.select)
            shown = f"{digits([own])}; tuned out of fold {digits([tuned.cv_macro_f1])}"
            table.add(f"`{system}`", {HERE: f"{shown}; {len(examples)} queries"})


def kamel(given: argparse.Namespace, table: Table) -> None:
    """Ask --model a sample of KAMEL, five shots."""
    asked = KamelBenchmark(source=kamel_of(given), model=given.model, fixed=True, limit=given.limit)
    found: Mapping[str, Any] = asked.run(run_of(given)).values
    whole = found["published"]
    queries = sum(mean["count"] for mean in whole["properties"].values())
    table.add("GPT-J, GPT2-xl, OPT: 5 shots", {HERE: bounded(whole["overall"]["f1"], whole["half_width"])})
    table.add("Questions asked", {HERE: f"{queries:,} of {len(whole['properties'])} properties"})
    for label, name in (("Majority object of train", "majority"), ("Naive Bayes", "naive-bayes")):
        if name in found:
            table.add(label, {HERE: bounded(found[name]["overall"]["f1"], found[name]["half_width"])})
    for label in ("entities", "literals", "lama"):
        mean = whole[label]
        name = {"lama": "KAMEL's facts of LAMA's properties"}.get(label, f"Properties of {label}")
        table.add(name, {HERE: f"{100 * mean['f1']:.1f} ({mean['count']} properties)"})
    counts = [f"{count}: {100 * mean['f1']:.1f}" for count, mean in whole["by_answers"].items() if mean["count"] >= 20]
    table.add("F1 by number of answers", {HERE: ", ".join(counts)})
    ranked = sorted(whole["properties"].items(), key=lambda item: (-item[1]["f1"], int(item[0][1:])))
    table.add("Best properties", {HERE: ", ".join(f"{name} {100 * mean['f1']:.0f}" for name, mean in ranked[:5])})
    none = sum(not mean["f1"] for _, mean in ranked)
    table.add("Worst properties", {HERE: f"{none} of {len(ranked)} have 0"})
    if years := found["years"]["answers"].get("*** All ***"):
        table.add(
            "Years off, mean and median",
            {HERE: f"{years['mean']:.0f} and {years['median']:.0f} ({years['questions']} questions)"},
        )
        control = found["years"]["control"]["*** All ***"]
        table.add("Years off, train's median year", {HERE: f"{control['mean']:.0f} and {control['median']:.0f}"})


def kmir(given: argparse.Namespace, table: Table) -> None:
    """Ask --model and --masked a sample of KMIR's questions, built of KAMEL."""
    built, run = given.work / "kmir", run_of(given)
    if not (built / "test.jsonl").exists():
        KmirBuild(triples=kamel_of(given), out=built).run(run)
    lessons = given.work / "lessons.jsonl"
    train = read_jsonl(built / "train.jsonl", Question)
    lessons.write_bytes(msgspec.json.Encoder().encode_lines(sample(train, given.most, 0)))
    every = read_jsonl(built / "test.jsonl", Question)
    table.add("Questions", {HERE: f"{len(train) + len(every):,} in train and test"})
    for label, model in (("SmolLM2-135M", given.model), ("small masked model", given.masked)):
        out = given.work / f"kmir-{label.partition(' ')[0]}"
        KmirRun(
            questions=[built / "test.jsonl"], model=model, out=out, train=lessons, limit=given.limit, rate=3e-4
        ).run(run)
        score = KmirScore(
            questions=built / "test.jsonl", answers=out / "test.jsonl", answered=True, table="by-type,chance"
        )
        found = score.run(run).values
        for kind, f1 in found["types"].items():
            chance = max(found["chance"]["name"][kind], found["chance"]["commonest"][kind])
            cell = f"{bounded(f1, found['half_widths'][kind])} (chance {100 * chance:.1f})"
            table.add(f"{kind}, {label}", {HERE: cell})
        table.add(f"Facts with all questions right, {label}", {HERE: f"{100 * found['robustness']['every']:.1f}"})
        topics = sorted(found["topics"].items(), key=lambda item: -item[1])
        best = ", ".join(f"{name} {100 * f1:.0f}" for name, f1 in (*topics[:2], *topics[-2:]))
        table.add(f"Topics, best and worst two, {label}", {HERE: best})


Test = Callable[[FactAnswers], float]


def mean_of(facts: Iterable[FactAnswers], test: Test) -> str:
    """Return the mean over relations of a test of facts, with half of its interval. A relation needs two facts."""
    strata = [part for part in grouped((fact.relation, (test(fact), 0.0)) for fact in facts).values() if len(part) > 1]
    if not strata:
        return "-"
    half = half_width(strata, lambda means: means[:, :, 0].mean(axis=1))
    return bounded(fmean(fmean(value for value, _ in part) for part in strata), half)


def optiprompt(given: argparse.Namespace, table: Table) -> None:
    """Ask --masked in the paper's ways, and its controls in some."""
    asked = sorted(LAMA, key=lambda name: int(name[1:]))[:: given.every]
    facts = merged(
        answers_of(given, asked, "pretrained,random,embeddings", "manual,soft-5,finetune"),
        answers_of(given, asked, "pretrained", "soft-10,soft-manual,autoprompt-5"),
    )
    easy = [fact for fact in facts if fact.easy]
    hard = [fact for fact in facts if not fact.easy]
    table.add("facts", {"all": f"{len(facts):,}", "easy": f"{len(easy):,}", "hard": f"{len(hard):,}"})
    common = {
        relation: max(names, key=names.count)
        for relation, names in grouped((fact.relation, fact.object) for fact in facts).items()
    }

    def add(label: str, test: Test) -> None:
        parts = {"all": facts, "easy": easy, "hard": hard}
        table.add(label, {name: mean_of(part, test) for name, part in parts.items()})

    def right(row: str) -> Test:
        return lambda fact: float(fact.answers[row] == fact.object)

    add("majority", lambda fact: float(common[fact.relation] == fact.object))
    add("class prior", right("majority"))
    add("naive Bayes", right("naive-bayes"))
    for row in dict.fromkeys(row for fact in facts for row in fact.answers):
        if " " in row:
            add(row, right(row))

    def gain(row: str, other: str) -> Test:
        return lambda fact: float(fact.answers[row] == fact.object) - float(fact.answers[other] == fact.object)

    for row, other in (
        ("pretrained soft-5", "pretrained manual"),
        ("pretrained soft-manual", "pretrained manual"),
        ("random soft-5", "random manual"),
        ("random finetune", "random manual"),
        ("pretrained soft-5", "random soft-5"),
        ("pretrained finetune", "random finetune"),
    ):
        add(f"{row} less {other}", gain(row, other))


def answers_of(given: argparse.Namespace, asked: Sequence[str], models: str, methods: str) -> list[FactAnswers]:
    """Return the test facts with the answers of some models and ways of asking."""
    name = f"{models.count(',')}-{methods.replace(',', '-')}"
    rows = given.work / f"facts-{name}.jsonl"
    OptiPromptBenchmark(
        source=kamel_of(given),
        model=[given.masked],
        properties=",".join(asked),
        models=models,
        methods=methods,
        most=given.most,
        least=60,
        epochs=given.epochs,
        iterations=50,
        finetune_rate=1e-4,
        finetune_batch=16,
        facts=rows,
        kept=given.work / f"kept-{name}.jsonl",
    ).run(run_of(given))
    return read_jsonl(rows, FactAnswers)


def merged(facts: Sequence[FactAnswers], others: Sequence[FactAnswers]) -> list[FactAnswers]:
    """Return the same facts with the answers of both. What is easy, the first say."""
    return [
        FactAnswers(fact.relation, fact.subject, fact.object, fact.easy, {**fact.answers, **other.answers})
        for fact, other in zip(facts, others, strict=True)
    ]


PARTS: Mapping[str, Callable[[argparse.Namespace, Table], None]] = {
    "organisers": organisers,
    "costs": costs,
    "masked": masked,
    "kamel": kamel,
    "kmir": kmir,
    "optiprompt": optiprompt,
}
