"""A model with and without documents about its subjects: F1, and the quotes of what it answers.

Each document is about one subject of the silver triples of 2023, and has a sentence for each of its facts. A random
half of the facts is left out. Rows of val whose subject has a document are asked, as far as silver triples have their
relation. There are documents of their subjects, and of others up to 500. A quote of a wrong answer supports what the
documents say, and the gold does not.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from eval.bench import few_of, parsed, parser_of
from eval.bench.figures import Table
from lmkbc.domain.documents import Documents
from lmkbc.plan import Plan
from lmkbc.recipe import read_recipe
from lmkbc.run.pipeline import propose
from lmkbc.session.run import Run
from lmkbc.tune.learn import official
from lmkbc.types import Example, Prediction
from lmkbc.workspace import Workspace

DOCUMENTS = 500


def triples(folder: Path) -> Iterator[tuple[str, str, Sequence[str]]]:
    """Yield subject, relation and names of the objects of each silver row, without names that are QIDs."""
    for path in sorted(folder.glob("*.jsonl.gz")):
        for line in filter(None, gzip.decompress(path.read_bytes()).splitlines()):
            row = json.loads(line)
            names = [str(name) for name in row["ObjectEntities"] if name and not re.fullmatch(r"Q\d+", str(name))]
            yield row["SubjectEntity"], row["Relation"], names


def texts(workspace: Workspace, rows: Iterable[tuple[str, str, Sequence[str]]], seed: int) -> Mapping[str, list[str]]:
    """Return subject -> the sentences about it, a random half of its facts."""
    made, deal = defaultdict[str, list[str]](list), random.Random(seed)
    for subject, name, objects in rows:
        statement = workspace.relation(name).statement
        made[subject] += [statement.format(subject=subject, object=found) for found in objects if deal.random() < 0.5]
    return made


def main(argv: Sequence[str]) -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--system", default="few-shot")
    parser.add_argument("--model", default="SmolLM2-135M-Instruct")
    parser.add_argument("--limit", type=int, help="rows of val, about so many, evenly spaced")
    given = parsed(parser, argv, limit=3, system="prior", model=None)
    workspace = Workspace(data=given.data)
    edition = workspace.edition("mini" if given.small else "2023")
    rows, searches = workspace.examples(edition, "val"), None
    known: list[tuple[str, str, Sequence[str]]]
    if given.small:
        known = [(row.query.subject, row.query.relation, [gold.names[0] for gold in row.objects]) for row in rows]
    else:
        folder = workspace.split_path(edition, "val").parent.parent
        known, searches = [*triples(folder / "silver2023")], folder / "wikidata" / "search_first_hit.json"
    about, pairs = texts(workspace, known, 0), {(subject, relation) for subject, relation, _ in known}
    examples = [
        row for row in rows if about.get(row.query.subject) and (row.query.subject, row.query.relation) in pairs
    ]
    subjects = dict.fromkeys([row.query.subject for row in examples])
    others = [subject for subject in about if subject not in subjects and about[subject]]
    subjects |= dict.fromkeys(random.Random(0).sample(others, min(max(DOCUMENTS - len(subjects), 0), len(others))))
    asked, table = few_of(examples, given.limit), Table("documents", given.model or given.system)
    with tempfile.TemporaryDirectory() as place:
        for number, subject in enumerate(subjects):
            sentences = "\n".join(about[subject])
            (Path(place) / f"{number:03}.txt").write_text(f"{subject}\n\n{sentences}\n", encoding="utf-8")
        documents = Documents(Path(place))
        for label, shown in (("without", None), ("with", documents)):
            run = Run(
                workspace=workspace,
                edition=edition,
                model=given.model,
                offline=True,
                search_table=searches,
                documents=shown,
            )
            plan = Plan.of(run, read_recipe(workspace, given.system))
            made = plan.recipe.select.select_all(propose(plan, [row.query for row in asked]).sets)
            f1 = official({one.query: one for one in made}, asked, edition).overall.f1
            table.add(label, {"rows": str(len(asked)), "F1": f"{f1:.3f}", **quotes(asked, made, documents, run)})


def quotes(asked: Sequence[Example], made: Sequence[Prediction], documents: Documents, run: Run) -> dict[str, str]:
    """Return the number of answers, and how many right and wrong ones have a quote."""
    counts = {True: [0, 0], False: [0, 0]}
    for row, prediction in zip(asked, made, strict=True):
        relation = run.relations[row.query.relation]
        names = {name.casefold() for gold in row.objects for name in (*gold.names, gold.id or "")}
        for kept in prediction.objects:
            count = counts[not names.isdisjoint({kept.text.casefold(), (kept.id or "").casefold()})]
            count[0] += 1
            count[1] += documents.quote(row.query, relation, (kept.text,)) is not None
    words = {True: "right", False: "wrong"}
    return {f"{words[is_right]}, quoted": f"{quoted} of {number}" for is_right, (number, quoted) in counts.items()}
