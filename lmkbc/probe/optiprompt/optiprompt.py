"""OptiPrompt as a benchmark: its experiment on masked models and their random controls, and its scores and tables.

Each table is made from the answers of the rows, beside the paper's figures.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from lmkbc.errors import counted
from lmkbc.files.atomic import write_bytes
from lmkbc.files.writable import check_file
from lmkbc.probe.benchmark import BenchmarkRun, Findings, Sheet, TableNames, half_width, percent, wanted_tables
from lmkbc.probe.lama.lama_data import RelationFacts
from lmkbc.report.figures import BLUE, GREEN, MUTED, ORANGE, Plot, canvas
from lmkbc.settings import listed
from lmkbc.train.training import TrainingPlan
from lmkbc.types import grouped


@dataclass(frozen=True, slots=True, kw_only=True)
class OptiPromptBenchmark:
    """Prompting methods, and controls: P@1 over relations, and on the facts that no control answers."""

    source: Annotated[
        Path,
        Meta(
            description="KAMEL; or LAMA's directory of relations.jsonl and TREx/ (--train).", extra={"argument": True}
        ),
    ]
    model: Annotated[
        list[str],
        Meta(
            description="Masked model: id or directory; repeatable. All are asked facts whose objects are one token of "
            "each (--table common-tokens); the other tables are of the first."
        ),
    ]
    train: Annotated[
        Path | None, Meta(description="With LAMA: directory of P36/{train,dev}.jsonl, as AutoPrompt made them.")
    ] = None
    properties: Annotated[str | None, Meta(description="Only these relations, comma-separated.")] = None
    lama: Annotated[bool, Meta(description="Only those properties of KAMEL that LAMA has.")] = False
    models: Annotated[
        str | None,
        Meta(description="The model and its controls: pretrained, random, embeddings, comma-separated. Default: all."),
    ] = None
    methods: Annotated[
        str | None,
        Meta(
            description="Of manual, soft-5, soft-10, soft-manual, finetune, comma-separated. Default: all. soft-N: N "
            "vectors. "
            "autoprompt-N: N tokens, searched as in AutoPrompt."
        ),
    ] = None
    prompts: Annotated[
        list[str] | None,
        Meta(description="NAME=FILE of prompts as JSONL, or a directory of P36.jsonl and the like; repeatable."),
    ] = None
    iterations: Annotated[int, Meta(ge=1, description="Steps of AutoPrompt's search.")] = 1000
    most: Annotated[int, Meta(ge=1, description="Facts of a relation to learn, to stop by, and to test on.")] = 1000
    least: Annotated[int, Meta(ge=1, description="Leave out relations with fewer than N facts to learn.")] = 150
    rate: Annotated[float, Meta(description="Peak learning rate of soft prompts.")] = 3e-3
    epochs: Annotated[int, Meta(ge=1, description="Passes over the facts.")] = 10
    batch: Annotated[int, Meta(ge=1, description="Facts per step of soft prompts.")] = 16
    finetune_rate: Annotated[float, Meta(description="Peak learning rate of fine-tuning.")] = 2e-6
    finetune_batch: Annotated[int, Meta(ge=1, description="Facts per step of fine-tuning.")] = 2
    patience: Annotated[int, Meta(ge=0, description="Epochs without a better loss before stopping; 0: all.")] = 0
    seed: Annotated[int, Meta(description="Seed of random weights and vectors.")] = 0
    table: TableNames = None
    facts: Annotated[Path | None, Meta(description="Write what every row answers to each test fact, as JSONL.")] = None
    kept: Annotated[Path | None, Meta(description="File of what is finished; a killed run goes on from it.")] = None

    def run(self, run: BenchmarkRun) -> Findings:
        """Train and test relation by relation."""
        from lmkbc.masked.backbone import load
        from lmkbc.masked.vocabulary import Words
        from lmkbc.probe.optiprompt import experiment

        default = (*DEFAULT, "common-tokens") if len(self.model) > 1 else DEFAULT
        wanted = wanted_tables(self.table, TABLES, default)
        check_file(self.kept, self.source)
        check_file(self.facts, self.source, self.kept)
        shared: dict[str, Any] = {"epochs": self.epochs, "patience": self.patience, "seed": self.seed}
        how = experiment.Experiment(
            soft=TrainingPlan(rate=self.rate, batch=self.batch, **shared),
            finetune=TrainingPlan(rate=self.finetune_rate, batch=self.finetune_batch, decay=0.01, **shared),
            models=tuple(listed(self.models) or experiment.MODELS),
            methods=tuple(listed(self.methods) or experiment.METHODS),
            iterations=self.iterations,
            prompts=experiment.read_prompts(self.prompts or ()),
            seed=self.seed,
        )
        data = experiment.read_facts(self.source, self.train, listed(self.properties), lama=self.lama)
        backbones = {name: load(name, offline=run.offline) for name in self.model}
        words = [Words(backbone.tokenizer) for backbone in backbones.values()]
        relations = experiment.learnable(
            data,
            lambda name: all(vocabulary.single(name) is not None for vocabulary in words),
            least=self.least,
            most=self.most,
        )
        tested: dict[str, list[FactAnswers]] = {}
        scores: dict[str, dict[str, MethodScore]] = {}
        for name, backbone in backbones.items():
            runner = experiment.ExperimentRunner(backbone, relations, how)
            with run.progress() as report:
                tested[name] = fact_rows(relations, runner.run(self.kept, report))
            scores[name] = method_scores(relations, tested[name], runner.unhelped())
        facts, table = tested[self.model[0]], scores[self.model[0]]
        many = f"{counted(len(relations), 'relation')}, {counted(len(facts), 'fact')}"
        run.note(f"{many}; paper: BERT-base on T-REx")
        if lacking := [row for row in EASY if row not in table]:
            easy = f"easy is what the other controls answer, for want of {', '.join(lacking)}"
            run.note(f"{easy}: no figure to compare")
        if self.facts is not None:
            write_bytes(self.facts, msgspec.json.Encoder().encode_lines(facts))
        sheets = [
            overall(table),
            bounds(table),
            by_relation(relations, facts),
            majority_share(facts),
            differing_facts(facts),
            common_tokens(scores),
        ]
        values = {name: {row: asdict(line) for row, line in rows.items()} for name, rows in scores.items()}
        return Findings(
            values if len(values) > 1 else values[self.model[0]],
            [sheet for sheet in sheets if sheet.name in wanted],
        )


PUBLISHED: Mapping[str, Mapping[str, float]] = {
    "majority": {"all": 22.0, "1-1": 1.8, "N-1": 23.9, "N-M": 22.0, "UHN": 23.8},
    "naive Bayes": {"all": 24.6, "1-1": 0.3, "N-1": 28.6, "N-M": 21.8},
    "manual": {"all": 31.1, "1-1": 68.0, "N-1": 32.4, "N-M": 24.7, "UHN": 21.8, "easy": 41.5, "hard": 24.3},
    "LPAQA": {"all": 34.1, "1-1": 65.0, "N-1": 35.9, "N-M": 27.9, "UHN": 28.7, "easy": 47.0, "hard": 25.6},
    "AutoPrompt": {"all": 42.2, "1-1": 58.0, "N-1": 46.5, "N-M": 34.0, "UHN": 31.3, "easy": 68.2, "hard": 26.7},
    "soft-5": {"all": 47.6, "1-1": 49.6, "N-1": 53.1, "N-M": 39.4, "UHN": 37.5},
    "soft-10": {"all": 48.1, "1-1": 60.7, "N-1": 53.2, "N-M": 39.2, "UHN": 37.9},
    "soft-manual": {"all": 48.6, "1-1": 59.6, "N-1": 54.1, "N-M": 40.1, "UHN": 38.4, "easy": 75.6, "hard": 33.0},
}
"""Row -> column -> P@1 in percent on T-REx with BERT-base-cased (their table 2)."""

PUBLISHED_MODELS: Mapping[str, Mapping[str, float]] = {
    "BERT-base": {"pretrained soft": 50.8, "random soft": 19.9, "pretrained finetune": 51.9, "random finetune": 19.8},
    "BERT-large": {"pretrained soft": 52.7, "random soft": 19.3, "pretrained finetune": 54.9, "random finetune": 19.6},
    "RoBERTa-large": {
        "pretrained soft": 47.8,
        "random soft": 19.6,
        "pretrained finetune": 52.3,
        "random finetune": 21.4,
    },
    "ALBERT-xxlarge": {
        "pretrained soft": 44.6,
        "random soft": 16.9,
        "pretrained finetune": 52.8,
        "random finetune": 21.1,
    },
}
"""Model -> row -> P@1 in percent on facts of T-REx whose objects are tokens of all models (their table 6)."""

PUBLISHED_RELATIONS: Mapping[str, tuple[float, float]] = {
    "P19": (21.1, 20.6),
    "P36": (62.1, 61.3),
    "P47": (13.7, 22.2),
    "P103": (72.2, 86.8),
    "P136": (0.8, 63.6),
    "P176": (85.5, 87.3),
    "P530": (2.8, 3.3),
    "P1376": (73.8, 56.7),
}
"""Relation -> P@1 in percent of the manual cloze, and of OptiPrompt from it, with BERT-base-cased on T-REx."""

EASY = ("naive-bayes", "random finetune", "embeddings finetune")
"""The controls whose right answers make a fact easy, as in the paper."""

MANUAL = "manual"
"""The way of asking that others are compared with."""
PARTS = ("all", "UHN", "easy", "hard")
"""Columns of P@1: all facts, those of LAMA-UHN, and those that controls answer or do not answer."""

TABLES = ("overall", "bounds", "by-relation", "majority-share", "facts", "common-tokens")
"""Tables of the command, in the order of printing."""
DEFAULT = ("overall", "bounds")
SHOWN = 20
"""Rows of the table of facts. The file of `--facts` holds all."""
COLOURS = {"pretrained": BLUE, "random": ORANGE, "embeddings": GREEN}
Answers = Mapping[str, Sequence[str]]
"""Row of the table, or relation -> answers to the test facts."""


@dataclass(frozen=True, slots=True)
class Bounded:
    """Mean over relations, and half of its 95 % interval if other relations were drawn; None with one relation."""

    mean: float
    half_width: float | None


@dataclass(frozen=True, slots=True)
class MethodScore:
    """P@1 in [0, 1] of one row: mean over relations, by type, on LAMA-UHN's facts, and on easy and hard facts.

    None if there are no such facts. bounds: `overall` with its interval. leads: by how much P@1 is above that of the
    same model's manual cloze, on the facts of each of `PARTS`; empty for other rows.
    """

    overall: float | None
    bounds: Bounded | None
    leads: Mapping[str, Bounded | None]
    types: Mapping[str, float | None]
    uhn: float | None
    easy: float | None
    hard: float | None


@dataclass(frozen=True, slots=True)
class FactAnswers:
    """A test fact with the answer of each row. easy: whether a control answers it."""

    relation: str
    subject: str
    object: str
    easy: bool
    answers: Mapping[str, str]


def fact_rows(relations: Sequence[RelationFacts], answers: Mapping[str, Answers]) -> list[FactAnswers]:
    """Return every test fact with the answer of each row. answers: relation -> row -> answers to its test facts."""
    facts = []
    for relation in relations:
        for n, (subject, object_) in enumerate(relation.facts):
            given = {row: names[n] for row, names in answers[relation.name].items()}
            easy = any(given.get(row) == object_ for row in EASY)
            facts.append(FactAnswers(relation.name, subject, object_, easy, given))
    return facts


def relation_means(facts: Iterable[FactAnswers], value: Callable[[FactAnswers], float]) -> list[float]:
    """Return the mean value of the facts of each relation."""
    return [fmean(part) for part in grouped((fact.relation, value(fact)) for fact in facts).values()]


def mean_share(facts: Iterable[FactAnswers], test: Callable[[FactAnswers], bool]) -> float | None:
    """Return the share of facts that pass a test, mean over their relations; None without facts."""
    return fmean(shares) if (shares := relation_means(facts, test)) else None


def bounded(facts: Iterable[FactAnswers], value: Callable[[FactAnswers], float]) -> Bounded | None:
    """Return the mean value over relations with its bootstrap interval; None without facts.

    Relations are drawn, each with its own facts, so the interval has the variance of both.
    """
    means = relation_means(facts, value)
    width = half_width([[(mean, 0.0) for mean in means]], lambda drawn: drawn[:, 0, 0]) if means else None
    return Bounded(fmean(means), width) if means else None


def is_right(fact: FactAnswers, row: str) -> bool:
    """Return whether a row answers a fact with its object."""
    return fact.answers[row] == fact.object


def precision(facts: Iterable[FactAnswers], row: str) -> float | None:
    """Return P@1 of a row, mean over relations."""
    return mean_share(facts, lambda fact: is_right(fact, row))


def method_scores(
    relations: Sequence[RelationFacts], facts: Sequence[FactAnswers], unhelped: Collection[tuple[str, str]] = ()
) -> dict[str, MethodScore]:
    """Return row -> scores. unhelped: (relation, subject) of LAMA-UHN's facts."""
    types = {relation.name: relation.type for relation in relations}
    of_type = grouped((types[fact.relation], fact) for fact in facts)
    uhn = [fact for fact in facts if (fact.relation, fact.subject) in unhelped]
    easy, hard = ([fact for fact in facts if fact.easy is wanted] for wanted in (True, False))
    parts = dict(zip(PARTS, (facts, uhn, easy, hard), strict=True))

    def scored(row: str) -> MethodScore:
        manual = f"{row.partition(' ')[0]} {MANUAL}"
        compared = parts if manual != row and manual in facts[0].answers else {}
        return MethodScore(
            precision(facts, row),
            bounded(facts, lambda fact: is_right(fact, row)),
            {
                name: bounded(part, lambda fact: is_right(fact, row) - is_right(fact, manual))
                for name, part in compared.items()
            },
            {kind: precision(of_type[kind], row) for kind in sorted({*types.values()} - {""})},
            precision(uhn, row),
            precision(easy, row),
            precision(hard, row),
        )

    return {row: scored(row) for row in facts[0].answers}


def overall(table: Mapping[str, MethodScore]) -> Sheet:
    """Return P@1 in percent, with the paper's rows below."""
    kinds = list(next(iter(table.values())).types)
    heads = [PARTS[0], *kinds, *PARTS[1:]]
    rows: list[list[Any]] = [
        [name, *percent(row.overall, *(row.types[kind] for kind in kinds), row.uhn, row.easy, row.hard)]
        for name, row in table.items()
    ]
    rows += [[f"paper: {name}", *(row.get(head) for head in heads)] for name, row in PUBLISHED.items()]
    return Sheet(["P@1 %", *heads], rows, "overall")


def bounds(table: Mapping[str, MethodScore]) -> Sheet:
    """Return P@1 in percent and its lead over the manual cloze, each with half of its interval; the paper's below."""

    def cells(value: Bounded | None) -> list[float | None]:
        return [None, None] if value is None else percent(value.mean, value.half_width)

    def line(name: str, value: Bounded | None, leads: Mapping[str, Bounded | None]) -> list[Any]:
        return [name, *cells(value), *(cell for part in PARTS for cell in cells(leads.get(part)))]

    rows = [line(name, row.bounds, row.leads) for name, row in table.items()]
    for name, scores in PUBLISHED.items():
        ahead = {
            part: Bounded((scores[part] - PUBLISHED[MANUAL][part]) / 100, None) for part in PARTS if part in scores
        }
        rows.append(line(f"paper: {name}", Bounded(scores["all"] / 100, None), ahead))
    heads = ["P@1 %", "all", "+-", *(head for part in PARTS for head in (f"ahead, {part}", "+-"))]
    title = "P@1, how far it is ahead of the model's manual cloze, and 95 % intervals over relations"
    return Sheet(heads, rows, "bounds", title)


def by_relation(relations: Sequence[RelationFacts], facts: Sequence[FactAnswers]) -> Sheet:
    """Return P@1 of each relation by row (the paper's tables 5 and 7), beside the paper's figures."""
    methods, of_relation = list(facts[0].answers), grouped((fact.relation, fact) for fact in facts)
    heads = ["P@1 %", "type", "facts", *methods, "paper: manual", "paper: soft-manual"]
    rows = [
        [
            *(relation.name, relation.type, len(relation.facts)),
            *percent(*(precision(of_relation[relation.name], method) for method in methods)),
            *PUBLISHED_RELATIONS.get(relation.name, (None, None)),
        ]
        for relation in relations
    ]
    return Sheet(heads, rows, "by-relation", "P@1 by relation (tables 5 and 7 of the paper)")


def majority_share(facts: Sequence[FactAnswers]) -> Sheet:
    """Return the share of each row's answers that are the majority object (figure 3 and table 8 of the paper).

    "gold objects": the same share of the test facts.
    """

    def share(row: str) -> float | None:
        return mean_share(facts, lambda fact: fact.answers.get(row, fact.object) == fact.answers["majority"])

    title = "Share of answers that are the relation's most frequent train object (figure 3 and table 8 of the paper)"
    rows = [[row, *percent(share(row))] for row in ("gold objects", *facts[0].answers) if row != "majority"]
    return Sheet(["answers", "majority object %"], rows, "majority-share", title, lambda: _bars(rows))


def _bars(rows: Sequence[Sequence[Any]]) -> Plot:
    caption = "Mean over relations. Blue: the model; orange: random weights; green: random embeddings; grey: no model."
    names, shares = zip(*rows, strict=True)
    with canvas("majority", "Answers that are the majority object of train", caption, 0.9 + 0.22 * len(rows)) as drawn:
        places = range(len(rows) - 1, -1, -1)
        colours = [COLOURS.get(row.partition(" ")[0], MUTED) for row in names]
        drawn.axes.barh(list(places), list(shares), height=0.62, color=colours)
        drawn.axes.set(yticks=list(places), yticklabels=list(names), xlim=(0, 100), xlabel="% of answers")
        drawn.axes.grid(visible=False, axis="y")
    return drawn.plot


def differing_facts(rows: Sequence[FactAnswers]) -> Sheet:
    """Return the first facts that some prompting methods answer and others do not (the paper's table 9)."""
    every = list(rows[0].answers)
    shown = [row for row in every if row.startswith("pretrained ")] or every
    differing = [row for row in rows if len({row.answers[name] == row.object for name in shown}) > 1]
    table = [
        [row.relation, row.subject, row.object, "easy" if row.easy else "hard", *(row.answers[name] for name in shown)]
        for row in differing[:SHOWN]
    ]
    title = f"Facts that some ways of asking answer, {len(table)} of {len(differing)} (table 9 of the paper)"
    return Sheet(["relation", "subject", "object", "part", *shown], table, "facts", title)


def common_tokens(models: Mapping[str, Mapping[str, MethodScore]]) -> Sheet:
    """Return P@1 of each model and row, all on the same facts (the paper's table 6)."""
    rows: list[list[Any]] = [
        [model, name, *percent(row.overall)] for model, table in models.items() for name, row in table.items()
    ]
    for model, published in PUBLISHED_MODELS.items():
        rows += ([f"paper: {model}", name, p1] for name, p1 in published.items())
    title = "Facts whose objects are one token of every model (table 6 of the paper)"
    return Sheet(["model", "answers", "P@1 %"], rows, "common-tokens", title)
