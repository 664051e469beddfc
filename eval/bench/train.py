"""Effect of taught facts on a masked LM: the MiniLM encoder with a head, its random control, and number formats.

    python eval/bench/train.py [--data DIR] [--quick] [--only expanded words random] [--models DIR]
        [--figures FILE]

One model answers both editions. It learns KAMEL and silver facts related to the challenge, then the challenge's train
splits, as in `lmkbc train mlm`. Subjects of val and test splits are left out, under all their names. Selection rules
are tuned on candidates for train rows. These candidates are from heads that have not seen their subjects. The model is
also run in bf16, with the rules of fp32.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import figures
import torch

from lmkbc.cli.terminal import error_status
from lmkbc.edition import Edition
from lmkbc.files.columns import read_column
from lmkbc.files.places import data_dirs
from lmkbc.generate.embedded.generator import EmbeddedGenerator
from lmkbc.generate.entity_masked import EntityMasked
from lmkbc.link.recipe import Linking
from lmkbc.models.encoder import find_encoder
from lmkbc.models.masked.backbone import Dtype
from lmkbc.notes import Notes
from lmkbc.run.base import Run
from lmkbc.select.pool import Pool
from lmkbc.train.corpus import gather
from lmkbc.train.settings import Training
from lmkbc.train.teach import PLAN, teach
from lmkbc.tune.tune import Tuned, tune
from lmkbc.types import CandidateSet, Query
from lmkbc.workspace import Workspace

ENCODER = "all-MiniLM-L6-v2"
EDITIONS = ("2023", "2022")
EXPANDED = "one vector per object"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="directory of the official splits (default: $LMKBC_DATA)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the facts: shows that it runs")
    parser.add_argument("--only", nargs="+", default=["expanded", "words", "random"])
    parser.add_argument("--models", type=Path, help="directory that keeps the models (default: they are not kept)")
    figures.option(parser)
    given = parser.parse_args(argv)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Workspace(data=given.data), data_dirs(given.data), given.models or Path(folder), given.quick)
        print("\n".join(bench.corpus.proof), flush=True)
        print(f"{'model':48}{'2023 val':>9}{'2022 dev':>9}{'seconds':>8}", flush=True)
        if "expanded" in given.only:
            bench.system("expanded", EXPANDED, expand=True, more=True)
        if "words" in given.only:
            bench.system("single-token objects", "objects of one token only", expand=False)
        if "random" in given.only:
            control = f"{EXPANDED}, random backbone, same training"
            bench.system("random backbone, expanded", control, expand=True, random="all")
        figures.record(given.figures, "train", bench.values)


class Bench:
    """Data that the rows of the table share."""

    def __init__(self, workspace: Workspace, places: Sequence[Path], models: Path, quick: bool) -> None:
        self.workspace, self.models, self.most = workspace, models, 100 if quick else 1000
        self.values: dict[str, dict[str, str]] = {}
        self.corpus = gather(workspace, places, EDITIONS)
        self.editions = [workspace.edition(name) for name in EDITIONS]
        table = workspace.split_path(self.editions[0], "val").parent.parent / "wikidata" / "search_first_hit.json"
        self.table = table if table.is_file() else None

    def system(self, name: str, label: str, *, expand: bool, random: str = "", more: bool = False) -> None:
        """Train, tune on train, and print the official F1 on both editions.

        more: whether to add other formats and pooling.
        """
        start = time.monotonic()
        out = self.models / name.replace(" ", "-").replace(",", "")
        training = Training(backbone=ENCODER, out=out, random=random, most=self.most, offline=True)
        teach(training, PLAN, self.corpus, expand=expand)
        made = [self.made(out, edition) for edition in self.editions]
        rules = [self.tuned(edition, fit) for edition, (fit, _) in zip(self.editions, made, strict=True)]
        found = [one for _, one in made]
        self.show(label, map(self.score, self.editions, rules, found), time.monotonic() - start)
        if more:
            self.formats(out, rules)
            self.pooled(made)

    def made(self, model: Path, edition: Edition) -> tuple[list[CandidateSet], list[CandidateSet]]:
        """Return candidates for the train split, out of fold, and for the held-out split."""
        train = [example.query for example in self.workspace.examples(edition, "train")]
        asked = self.workspace.queries(edition, edition.held_out)
        return list(self.candidates(model, edition, train)), list(self.candidates(model, edition, asked))

    def candidates(
        self, model: Path, edition: Edition, queries: Sequence[Query], dtype: Dtype = "float32"
    ) -> Iterator[CandidateSet]:
        """Return the model's candidates, linked if the edition needs ids."""
        found = EntityMasked.read(model, self.workspace.relations, dtype=dtype).generate(queries)
        if edition.target == "id":
            context = Run(workspace=self.workspace, edition=edition, search_table=self.table, offline=True)
            return Linking().open(context, Notes()).link(list(found))
        return found

    def tuned(self, edition: Edition, fit: Sequence[CandidateSet]) -> Tuned:
        """Return the rules that are best on train."""
        relations = {name: self.workspace.relation(name) for name in edition.relations}
        return tune(fit, self.workspace.examples(edition, "train"), edition, relations=relations, trials=0, folds=2)

    def score(self, edition: Edition, tuned: Tuned, found: Sequence[CandidateSet]) -> float:
        """Return the official F1 on the held-out split."""
        kept = {
            (one.query.subject, one.query.relation): [
                edition.value(candidate) for candidate in tuned.relations[one.query.relation].rule.select(one).objects
            ]
            for one in found
        }
        gold = read_column(self.workspace.split_path(edition, edition.held_out), edition.column)[0]
        return edition.metric.evaluate(kept, gold).overall.f1

    def formats(self, model: Path, rules: Sequence[Tuned]) -> None:
        """Print the scores of the same model and rules in bf16."""
        scores = []
        for edition, tuned in zip(self.editions, rules, strict=True):
            asked = self.workspace.queries(edition, edition.held_out)
            scores.append(self.score(edition, tuned, list(self.candidates(model, edition, asked, "bfloat16"))))
        self.show(f"{EXPANDED}, in bf16, same rules", scores)

    def pooled(self, made: Sequence[tuple[list[CandidateSet], list[CandidateSet]]]) -> None:
        """Print the scores with the embedded default pooled at equal weight, and of that default alone.

        The rules of both are tuned in the same way.
        """
        together, alone = [], []
        for edition, own in zip(self.editions, made, strict=True):
            train = self.workspace.examples(edition, "train")
            default = EmbeddedGenerator(edition, self.workspace.relations, train, find_encoder())
            others = {one.query: one for one in default.generate([one.query for part in own for one in part])}
            pool = Pool(edition)
            fit, found = (pool.merge([part, [others[one.query] for one in part]]) for part in own)
            together.append(self.score(edition, self.tuned(edition, fit), found))
            fit, found = ([others[one.query] for one in part] for part in own)
            alone.append(self.score(edition, self.tuned(edition, fit), found))
        self.show(f"{EXPANDED}, pooled with the embedded default", together)
        self.show("the embedded default, rules tuned alike", alone)

    def show(self, name: str, scores: Iterable[float], seconds: float | None = None) -> None:
        """Print one row of the table."""
        took, found = "" if seconds is None else f"{seconds:8.0f}", list(scores)
        self.values[name] = {
            f"{one.name} {one.held_out}": f"{f1:.3f}" for one, f1 in zip(self.editions, found, strict=True)
        }
        print(f"{name:48}{''.join(f'{score:9.4f}' for score in found)}{took}", flush=True)


if __name__ == "__main__":
    with error_status():
        main()
