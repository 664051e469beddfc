"""What facts teach a masked LM: the MiniLM encoder with a head, its random control, and soft prompts on it.

    python eval/bench/train.py [--data DIR] [--quick] [--only expanded words random soft] [--search-table FILE]

One model answers both editions. It is trained on KAMEL and silver facts that bear on the challenge, then on the
challenge's train splits; no subject of any val or test split is among them, under any name. Selection rules are tuned
on candidates for train rows that come from models trained without their subjects.
"""

from __future__ import annotations

import argparse
import copy
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import torch

from lmkbc.components import Context
from lmkbc.data import data_dirs, read_column
from lmkbc.generate.embedded import EmbeddedGenerator, find_encoder
from lmkbc.generate.entity_masked import EntityMasked
from lmkbc.generate.masked.backbone import Backbone
from lmkbc.pool import Pool
from lmkbc.predict import linker
from lmkbc.scorers import folded_key
from lmkbc.train.activations import Activations
from lmkbc.train.controls import randomised
from lmkbc.train.corpus import Corpus, gather, near
from lmkbc.train.entities import Entities
from lmkbc.train.facts import KAMEL, Fact, of_kamel
from lmkbc.train.head import Prompts, Top, assemble, open_encoder, prepare, train_top
from lmkbc.train.loop import Plan
from lmkbc.train.soft_prompt import SoftPrompt, precision, train_soft_prompt
from lmkbc.tune import tune
from lmkbc.types import CandidateSet, Edition, Example, Query
from lmkbc.workspace import Workspace

ENCODER = "all-MiniLM-L6-v2"
EDITIONS = ("2023", "2022")
FOLDS = 3
FIRST = Plan(rate=1e-3, rates={"layers": 3e-4}, epochs=5, batch=256)
SECOND = Plan(rate=6e-4, epochs=6, batch=256)
SOFT = Plan(rate=1e-2, epochs=10, batch=32)
SOFT_RELATIONS = ("P17", "P30", "P103", "P105", "P140", "P364", "P407", "P495")


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="directory of the official splits (default: $LMKBC_DATA)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the facts: shows that it runs")
    parser.add_argument("--only", nargs="+", default=["expanded", "words", "random", "soft"])
    parser.add_argument("--search-table", type=Path, help="recorded entity search, to link what train does not name")
    given = parser.parse_args(argv)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    bench = Bench(Workspace(data=given.data), data_dirs(given.data), given.quick, given.search_table)
    print("\n".join(bench.corpus.proof), flush=True)
    print("model                     2023 val  2022 dev  seconds", flush=True)
    if "expanded" in given.only:
        bench.system("expanded", expand=True, pooled=True)
    if "words" in given.only:
        bench.system("single-token objects", expand=False)
    if "random" in given.only:
        bench.system("random backbone", expand=True, random=True)
    if "soft" in given.only:
        bench.soft()


class Bench:
    """Everything that the rows of the table share."""

    def __init__(self, workspace: Workspace, places: Sequence[Path], quick: bool, table: Path | None) -> None:
        self.workspace, self.places, self.quick, self.table = workspace, places, quick, table
        self.corpus: Corpus = gather(workspace, places, EDITIONS)
        self.facts = near(self.corpus, 100 if quick else 1000)
        self.backbone = open_encoder(ENCODER)

    def system(self, name: str, *, expand: bool, random: bool = False, pooled: bool = False) -> None:
        """Train, tune on train, and print the official F1 on both editions."""
        start = time.monotonic()
        backbone = self.backbone
        if random:
            backbone = Backbone("random", randomised(backbone.model, seed=1), backbone.tokenizer)
        held_out, final, entities = self.trained(backbone, expand)
        alone, together = [], []
        for edition in map(self.workspace.edition, EDITIONS):
            train = self.workspace.examples(edition, "train")
            out_of_fold = [
                one
                for fold, head in enumerate(held_out)
                for one in self.candidates(
                    backbone,
                    head,
                    entities,
                    edition,
                    [row.query for row in train if fold_of(row.query.subject) == fold],
                )
            ]
            asked = self.workspace.queries(edition, edition.held_out)
            found = list(self.candidates(backbone, final, entities, edition, asked))
            alone.append(self.score(edition, train, out_of_fold, found))
            if pooled:
                both = self.pooled(edition, train, out_of_fold, found)
                together.append((self.score(edition, train, *both), self.default))
        seconds = time.monotonic() - start
        print(f"{name:25} {alone[0]:8.4f}  {alone[1]:8.4f} {seconds:8.0f}", flush=True)
        if together:
            print(f"{'  with embedded default':25} {together[0][0]:8.4f}  {together[1][0]:8.4f}")
            print(f"{'  embedded default alone':25} {together[0][1]:8.4f}  {together[1][1]:8.4f}", flush=True)

    def trained(self, backbone: Backbone, expand: bool) -> tuple[list[Top], Top, Entities]:
        """One head per fold of the challenge's train rows, and one for all of them."""
        challenge = list(self.corpus.challenge)
        relations = sorted({fact.relation for fact in challenge})
        size = int(backbone.model.config.vocab_size)
        entities = Entities.of(
            [*self.facts, *challenge], backbone.tokenizer, size, expand=expand, always=relations, least=40
        )
        base = Top(backbone.model, entities, 1)
        train_top(base, prepare(backbone, self.facts, entities, 1, clozes=1), FIRST)
        prompts = prepare(backbone, challenge, entities, 1)
        heads = []
        for fold in range(FOLDS + 1):
            head = copy.deepcopy(base)
            train_top(head, without(prompts, challenge, fold), SECOND)
            heads.append(head)
        return heads[:FOLDS], heads[FOLDS], entities

    def candidates(
        self, backbone: Backbone, head: Top, entities: Entities, edition: Edition, queries: Sequence[Query]
    ) -> Iterator[CandidateSet]:
        """What the assembled model proposes, linked where the edition wants ids."""
        whole = Backbone(ENCODER, assemble(backbone, head, entities), backbone.tokenizer)
        found = EntityMasked(whole, entities, self.workspace.relations).generate(queries)
        if edition.target == "id":
            context = Context(workspace=self.workspace, edition=edition, search_table=self.table, offline=True)
            return linker(context).link(list(found))
        return found

    def score(
        self, edition: Edition, train: Sequence[Example], fit: Sequence[CandidateSet], found: Sequence[CandidateSet]
    ) -> float:
        """The official F1 on the held-out split of rules tuned on train's out-of-fold candidates."""
        relations = {name: self.workspace.relation(name) for name in edition.relations}
        rules = tune(fit, train, edition, relations=relations, trials=0, folds=2).relations
        kept = {
            (one.query.subject, one.query.relation): [
                edition.value(candidate) for candidate in rules[one.query.relation].rule.select(one).objects
            ]
            for one in found
        }
        gold = read_column(self.workspace.split_path(edition, edition.held_out), edition.column)[0]
        return edition.metric.evaluate(kept, gold).overall.f1

    def pooled(
        self, edition: Edition, train: Sequence[Example], fit: Sequence[CandidateSet], found: Sequence[CandidateSet]
    ) -> tuple[list[CandidateSet], list[CandidateSet]]:
        """The same with the embedded default's candidates, each weighing alike."""
        default = EmbeddedGenerator(edition, self.workspace.relations, train, find_encoder())
        others = {one.query: one for one in default.generate([one.query for one in (*fit, *found)])}
        pool = Pool.of(edition, {"method": "mean"})
        sets = [pool.merge([own, [others[one.query] for one in own]]) for own in (fit, found)]
        alone = [[others[one.query] for one in own] for own in (fit, found)]
        self.default = self.score(edition, train, *alone)
        return sets[0], sets[1]

    def soft(self) -> None:
        """P@1 on KAMEL dev facts of one-token objects: manual cloze, soft prompts on it, and a random model's."""
        entities = Entities.of(self.facts, self.backbone.tokenizer, self.backbone.model.config.vocab_size, expand=False)
        head = Top(self.backbone.model, entities, 1)
        train_top(head, prepare(self.backbone, self.facts, entities, 1, clozes=1), replace(FIRST, epochs=2))
        model = Backbone(ENCODER, assemble(self.backbone, head, entities), self.backbone.tokenizer)
        control = Backbone("random", randomised(model.model, seed=1), model.tokenizer)
        path = next(place / KAMEL for place in self.places if (place / KAMEL).is_file())
        rows = []
        print("relation       facts  manual    soft  random", flush=True)
        for name in SOFT_RELATIONS[:2] if self.quick else SOFT_RELATIONS:
            train, dev = (
                [fact for fact in of_kamel(path, {}, split) if fact.relation == name] for split in ("train", "dev")
            )
            rows.append(self.soft_relation(model, control, train[:200], dev))
            print(f"{name:14} {len(dev):5}  " + "  ".join(f"{value:6.3f}" for value in rows[-1]), flush=True)
        means = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
        print(f"{'average':14} {'':5}  " + "  ".join(f"{value:6.3f}" for value in means), flush=True)

    def soft_relation(
        self, model: Backbone, control: Backbone, train: Sequence[Fact], dev: Sequence[Fact]
    ) -> tuple[float, float, float]:
        """P@1 of the manual cloze, of soft prompts that start from it, and of a random model's."""
        entities = Entities.of([*train, *dev], model.tokenizer, model.model.config.vocab_size, expand=False)
        columns = torch.tensor(entities.rows)
        known = [
            [(fact.subject, gold) for fact, gold in zip(part, entities.numbers(part), strict=True) if gold]
            for part in (train, dev)
        ]
        (subjects, golds), test = ([[one[at] for one in part] for at in (0, 1)] for part in known)
        scores = []
        for backbone in (model, control):
            start = SoftPrompt.manual(backbone, train[0].clozes[0])
            trained, _ = train_soft_prompt(backbone, start, subjects, golds, columns, SOFT)
            scores.append([precision(backbone, prompt, *test, columns) for prompt in (start, trained)])
        return scores[0][0], scores[0][1], scores[1][1]


def fold_of(subject: str) -> int:
    """The fold of a subject, whatever the relation."""
    return crc32(folded_key(subject).encode()) % FOLDS


def without(prompts: Prompts, facts: Sequence[Fact], fold: int) -> Prompts:
    """The prompts whose subjects are not of the fold."""
    kept = [n for n, fact in enumerate(prompts.facts) if fold_of(facts[fact].subject) != fold]
    cached = prompts.cached
    chosen = torch.tensor(kept)
    part = Activations(cached.vectors, cached.starts[chosen], cached.lengths[chosen], cached.masks[chosen])
    return Prompts(part, [prompts.golds[n] for n in kept], [prompts.facts[n] for n in kept])


if __name__ == "__main__":
    main()
