"""Tables of OptiPrompt's experiment, each made from the answers of the rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmkbc.probe.benchmark import Sheet, percent
from lmkbc.probe.lama.dataset import RelationFacts
from lmkbc.probe.optiprompt import dataset
from lmkbc.report.figures import BLUE, GREEN, MUTED, ORANGE, Plot, canvas

TABLES = ("overall", "by-relation", "majority-share", "facts", "common-tokens")
"""Tables of the command, in the order of printing."""
DEFAULT = ("overall",)
SHOWN = 20
"""Rows of the table of facts. The file of `--facts` holds all."""
COLOURS = {"pretrained": BLUE, "random": ORANGE, "embeddings": GREEN}


@dataclass(frozen=True, slots=True)
class FactAnswers:
    """A test fact with the answer of each row. easy: whether a control answers it."""

    relation: str
    subject: str
    object: str
    easy: bool
    answers: Mapping[str, str]


def overall(table: Mapping[str, dataset.MethodScore]) -> Sheet:
    """Return P@1 in percent, with the paper's rows below."""
    kinds = list(next(iter(table.values())).types)
    heads = ["all", *kinds, "UHN", "easy", "hard"]
    rows: list[list[Any]] = [
        [name, *percent(row.overall, *(row.types[kind] for kind in kinds), row.uhn, row.easy, row.hard)]
        for name, row in table.items()
    ]
    rows += [[f"paper: {name}", *(row.get(head) for head in heads)] for name, row in dataset.PUBLISHED.items()]
    return Sheet(["P@1 %", *heads], rows, "overall")


def by_relation(relations: Sequence[RelationFacts], answers: Mapping[str, dataset.Answers]) -> Sheet:
    """Return P@1 of each relation by row (the paper's tables 5 and 7), beside the paper's figures."""
    hits = {row: dataset.hits(relations, answers, row) for row in dataset.rows_of(answers)}
    heads = ["P@1 %", "type", "facts", *hits, "paper: manual", "paper: soft-manual"]
    rows = [
        [
            *(relation.name, relation.type, len(relation.facts)),
            *percent(*(sum(own[relation.name]) / len(relation.facts) for own in hits.values())),
            *dataset.PUBLISHED_RELATIONS.get(relation.name, (None, None)),
        ]
        for relation in relations
    ]
    return Sheet(heads, rows, "by-relation", "P@1 by relation (tables 5 and 7 of the paper)")


def majority_share(relations: Sequence[RelationFacts], answers: Mapping[str, dataset.Answers]) -> Sheet:
    """Return the share of each row's answers that are the majority object (figure 3 and table 8 of the paper)."""
    shares = dataset.majority_shares(relations, answers)
    title = "Share of answers that are the relation's most frequent train object (figure 3 and table 8 of the paper)"
    rows = [[row, 100 * share] for row, share in shares.items()]
    return Sheet(["answers", "majority object %"], rows, "majority-share", title, lambda: _bars(shares))


def _bars(shares: Mapping[str, float]) -> Plot:
    caption = "Mean over relations. Blue: the model; orange: random weights; green: random embeddings; grey: no model."
    with canvas(
        "majority", "Answers that are the majority object of train", caption, 0.9 + 0.22 * len(shares)
    ) as drawn:
        places = range(len(shares) - 1, -1, -1)
        colours = [COLOURS.get(row.partition(" ")[0], MUTED) for row in shares]
        drawn.axes.barh(list(places), [100 * share for share in shares.values()], height=0.62, color=colours)
        drawn.axes.set(yticks=list(places), yticklabels=list(shares), xlim=(0, 100), xlabel="% of answers")
        drawn.axes.grid(visible=False, axis="y")
    return drawn.plot


def fact_rows(relations: Sequence[RelationFacts], answers: Mapping[str, dataset.Answers]) -> Iterator[FactAnswers]:
    """Yield every test fact with the answer of each row."""
    easy = dataset.easy_facts(relations, answers)
    for relation in relations:
        own = answers[relation.name]
        for n, (subject, object_) in enumerate(relation.facts):
            given = {row: names[n] for row, names in own.items()}
            yield FactAnswers(relation.name, subject, object_, easy[relation.name][n], given)


def facts(rows: Sequence[FactAnswers]) -> Sheet:
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


def common_tokens(models: Mapping[str, Mapping[str, dataset.MethodScore]]) -> Sheet:
    """Return P@1 of each model and row, all on the same facts (the paper's table 6)."""
    rows: list[list[Any]] = [
        [model, name, *percent(row.overall)] for model, table in models.items() for name, row in table.items()
    ]
    for model, published in dataset.PUBLISHED_MODELS.items():
        rows += ([f"paper: {model}", name, p1] for name, p1 in published.items())
    title = "Facts whose objects are one token of every model (table 6 of the paper)"
    return Sheet(["model", "answers", "P@1 %"], rows, "common-tokens", title)
