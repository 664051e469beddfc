"""OptiPrompt's table on the MiniLM encoder with a trained head: what prompts recall, and what they learn.

    python eval/bench/optiprompt.py [--data DIR] [--relations 10] [--facts 150] [--iterations 100] [--models DIR]
        [--methods manual,autoprompt-5,...] [--figures FILE]

The head learns KAMEL's train facts, silver facts and the challenge's train splits, one word per answer. Subjects of
KAMEL's dev and test splits are left out. Then each relation of LAMA in KAMEL is tested. The methods are the manual
cloze, soft prompts, fine-tuning, and five tokens searched as in AutoPrompt. Soft prompts start from 5 or 10 random
vectors, or from the manual cloze. Each method is used on that model, on random weights and on random embeddings. Test
facts that naive Bayes or a fine-tuned control answers are easy, the others hard. With --models, finished work is saved,
and a killed run can be resumed.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import figures
import torch

from lmkbc.cli.terminal import error_status, show_table
from lmkbc.files.places import data_dirs
from lmkbc.groups import grouped
from lmkbc.models.masked.backbone import load
from lmkbc.models.masked.vocabulary import Words
from lmkbc.names import folded_key
from lmkbc.probe.kamel import dataset as kamel
from lmkbc.probe.lama.dataset import kamel_clozes, of_kamel
from lmkbc.probe.optiprompt import dataset as optiprompt
from lmkbc.probe.optiprompt import tables
from lmkbc.probe.optiprompt.experiment import Experiment, ExperimentRunner
from lmkbc.train.corpus import KAMEL, Corpus, gather
from lmkbc.train.settings import Training, TrainingPlan
from lmkbc.train.teach import PLAN, teach
from lmkbc.types import Fact
from lmkbc.workspace import Workspace

ENCODER = "all-MiniLM-L6-v2"
METHODS = (*optiprompt.METHODS, "autoprompt-5")
HOW = Experiment(
    soft=TrainingPlan(rate=1e-2, epochs=10, batch=32, patience=3),
    finetune=TrainingPlan(rate=1e-4, epochs=10, batch=32, decay=0.01, patience=3),
    methods=METHODS,
)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="directory of the official splits (default: $LMKBC_DATA)")
    parser.add_argument("--relations", type=int, default=10)
    parser.add_argument("--facts", type=int, default=150, help="most facts to learn, to stop by, and to test on")
    parser.add_argument("--iterations", type=int, default=100, help="steps of AutoPrompt's search")
    parser.add_argument("--taught", type=int, help="most facts of a relation that teach the head (default: all)")
    parser.add_argument("--models", type=Path, help="directory that keeps the model and what is finished")
    parser.add_argument("--methods", default=",".join(METHODS), help="of these, comma-separated")
    figures.option(parser)
    given = parser.parse_args(argv)
    if given.relations < 1:
        parser.error(f"--relations is {given.relations}: give a whole number of at least 1")
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    places = data_dirs(given.data)
    archive = next(place / KAMEL for place in places if (place / KAMEL).is_file())
    facts = kamel.read(archive, properties=kamel.LAMA)
    with tempfile.TemporaryDirectory() as folder:
        models = given.models or Path(folder)
        if not (models / "words").is_dir():
            corpus = without(gather(Workspace(data=given.data), places), facts, given.taught)
            print("\n".join(corpus.proof), flush=True)
            training = Training(backbone=ENCODER, out=models / "words", offline=True)
            teach(training, PLAN, corpus, expand=False)
        backbone = load(models / "words", offline=True)
        words = Words(backbone.tokenizer)
        relations = optiprompt.learnable(
            of_kamel(facts, kamel_clozes(), kamel.SPLITS),
            lambda name: words.single(name) is not None,
            least=min(150, given.facts),
            most=given.facts,
        )[: given.relations]
        print(f"{len(relations)} relations, {sum(len(one.facts) for one in relations)} test facts", flush=True)
        start = time.monotonic()
        how = replace(HOW, methods=tuple(given.methods.split(",")), iterations=given.iterations)
        runner = ExperimentRunner(backbone, relations, how)
        answers = runner.run(models / "optiprompt.jsonl", show)
        for shown in (
            tables.overall(optiprompt.table(relations, answers, runner.unhelped())),
            tables.by_relation(relations, answers),
            tables.majority_share(relations, answers),
            tables.facts(list(tables.fact_rows(relations, answers))),
        ):
            show_table(shown.heads, shown.rows, title=shown.title)
            if shown.name == "overall":
                rows = {str(name): dict(zip(shown.heads[1:], map(cell, row), strict=True)) for name, *row in shown.rows}
                figures.record(given.figures, "optiprompt", rows)
        print(f"{time.monotonic() - start:.0f} s")


def cell(value: object) -> str:
    """Return a figure as documents show it."""
    return f"{value:.1f}" if isinstance(value, float) else str(value if value is not None else "")


def without(corpus: Corpus, facts: kamel.Kamel, most: int | None) -> Corpus:
    """Return the corpus without facts about subjects that are learned or tested later. most: facts of a relation."""
    asked = frozenset(
        folded_key(fact.subject) for (_, split), part in facts.facts.items() if split != "train" for fact in part
    )
    held = replace(corpus.held_out, keys=corpus.held_out.keys | asked, splits=(*corpus.held_out.splits, "KAMEL"))

    def kept(part: Sequence[Fact]) -> tuple[Fact, ...]:
        by_relation = grouped((fact.relation, fact) for fact in held.without(part)[0])
        return tuple(fact for group in by_relation.values() for fact in group[:most])

    return Corpus(kept(corpus.challenge), kept(corpus.others), corpus.removed, held)


def show(step: str, done: int, total: int | None) -> None:
    """Print one line per finished relation."""
    if step == "relations":
        print(f"{done} of {total} relations", flush=True)


if __name__ == "__main__":
    with error_status():
        main()
