"""Linking: right links of real names, calls of a cold run, look-ups per second, entities of a dump per minute.

gold: 2023 val's published names, by train objects and the recorded search, beside the search's first hit. calls: search
calls of a cold run on GPT-4's recorded answers, against one call per answer. loopback: the same with a simulated API
that fails one request in seven, then from the cache. kamel: an index of KAMEL's names, asked exactly and with a typing
error. million: look-ups in a million labels made of words of KAMEL's names, against rapidfuzz's scan. dump: entities
per minute of one core from a synthetic dump, and memory at two sizes.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import multiprocessing
import random
import tarfile
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rapidfuzz import process
from stand_in import StandIn, item

from eval.bench import few_of, parsed, parser_of, peak_mb, timed
from eval.bench.figures import Table
from lmkbc.answer.parse import parse
from lmkbc.files.places import data_dirs
from lmkbc.link.index import AliasIndex, IndexBuilder, IndexEntity
from lmkbc.link.index_sources import build_index
from lmkbc.link.linker import Linker
from lmkbc.link.search import SearchTable, Wikidata
from lmkbc.link.train_objects import TrainObjects
from lmkbc.link.wikidata import Client
from lmkbc.types import Candidate, CandidateSet, Query
from lmkbc.workspace import Workspace

SEARCHES = Path("wikidata/search_first_hit.json")
ORGANISERS_CALLS = 3578
TYPING_ERRORS = "substitute insert delete swap".split()
LETTERS = "abcdefghijklmnopqrstuvwxyz"
FAULTS = ("maxlag", "429", "503", "cut JSON", "cut short", "hang up")


class Linking:
    """The data of 2023, and what links it."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.data = next(place for place in data_dirs(given.data) if (place / SEARCHES).is_file())
        self.space = Workspace(data=self.data)
        edition = self.space.edition("2023")
        self.train_objects = TrainObjects(self.space.examples(edition, "train"), self.space.relations)
        self.val = self.space.split_path(edition, "val")

    def linker(self, search: Any) -> Linker:
        """Return a linker by train objects and a search."""
        return Linker(self.space.relations, self.train_objects, search=search)

    def recorded(self) -> list[CandidateSet]:
        """Return GPT-4's recorded answers on val, parsed."""
        path = self.data / "recorded" / "2023-val" / "gpt4_n_0_m_0_c_0.jsonl.gz"
        rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
        made = []
        for row in few_of(rows, self.given.limit):
            query = Query(row["SubjectEntity"], row["Relation"])
            objects = parse(row["completions"][0], self.space.relation(query.relation), query.subject).objects
            made.append(CandidateSet(query, tuple(Candidate(text) for text in objects)))
        return made

    def table(self, *, classes: bool = False) -> SearchTable:
        """Return the recorded searches. classes: whether hits count as having some, as those of the network do."""
        read = SearchTable.read(self.data / SEARCHES)
        read.knows_classes = classes
        return read

    def gold(self) -> float:
        """Return the share of right links of val's names, and print it for each relation."""
        search, sets, wanted = self.table(), [], []
        for row in few_of([*map(json.loads, self.val.read_text(encoding="utf-8").splitlines())], self.given.limit):
            if self.space.relation(row["Relation"]).kind == "entity":
                pairs = [pair for pair in zip(row["ObjectEntities"], row["ObjectEntitiesID"], strict=False) if pair[1]]
                query = Query(row["SubjectEntity"], row["Relation"], row["SubjectEntityID"])
                sets.append(CandidateSet(query, tuple(Candidate(name) for name, _ in pairs)))
                wanted.append([qid for _, qid in pairs])
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for (group, links), ids in zip(self.linker(search).links(sets), wanted, strict=True):
            for candidate, link, right in zip(group.candidates, links, ids, strict=True):
                first = [hit.id for hit in search.search([candidate.text])[candidate.text]]
                tally = {"n": 1, "first": first == [right], "right": link.id == right, "none": link.id is None}
                counts[group.query.relation].update(tally)
        counts["all"] = sum(counts.values(), Counter())
        shown = Table("linking-gold", "relation")
        for name, tally in counts.items():
            shares = {what: f"{tally[what] / max(tally['n'], 1):.2%}" for what in ("first", "right")}
            shown.add(name, {"objects": str(tally["n"]), **shares, "unlinked": str(int(tally["none"]))})
        return counts["all"]["right"] / counts["all"]["n"]

    def calls(self) -> float:
        """Return the number of distinct searches, in calls of the organisers' baseline.

        Hits of the network have classes, so a name need not be searched again with its type words. Hits of the recorded
        table have none, and searching it is free.
        """
        asked = {}
        for classes in (True, False):
            search = self.table(classes=classes)
            list(self.linker(search).links(self.recorded()))
            asked[classes] = len(search.searched)
        share = asked[True] / ORGANISERS_CALLS
        print(f"distinct strings asked of the network: {asked[True]} = {share:.3f} x {ORGANISERS_CALLS}")
        print(f"distinct strings looked up in the recorded table, type words included: {asked[False]}")
        return share

    def loopback(self) -> None:
        """Link with a simulated API that fails one request in seven, then again from the cache."""
        answers = json.loads((self.data / SEARCHES).read_text(encoding="utf-8"))
        world = {text: [qid] if qid else [] for text, qid in answers.items()}
        items = {qid: item(qid, text) for text, qid in answers.items() if qid}
        asked = self.recorded()
        plain = list(self.linker(self.table(classes=True)).link(asked))

        def fault(number: int, _: Any) -> str | None:
            return FAULTS[number // 7 % len(FAULTS)] if number % 7 == 0 else None

        with tempfile.TemporaryDirectory() as folder, StandIn(world, items, fault=fault) as stand_in:
            client = Client("bench, bench@example.org", stand_in.url, rate=5000)
            for run in ("cold", "warm"):
                before = sum(stand_in.searched.values())
                search = Wikidata(client, Path(folder) / "cache.sqlite")
                linked, _, seconds = timed(list, self.linker(search).link(asked))
                searches = sum(stand_in.searched.values()) - before
                same = sum(one == other for one, other in zip(linked, plain, strict=True))
                print(f"{run}: {searches} searches, {same} of {len(plain)} as from the table, {seconds:.1f} s")
        print(f"most in flight {stand_in.most_at_once}, most ids {max(map(len, stand_in.groups))}")
        print(f"most often asked {max(stand_in.searched.values())}; faults met: {dict(stand_in.faults)}")

    def entities(self) -> Iterator[IndexEntity]:
        """Return the entities in KAMEL's test split, with label and aliases. In small, those of one relation."""
        names: dict[str, dict[str, None]] = defaultdict(dict)
        with (
            lzma.open(self.data / "kamel" / "KAMEL.tar.xz") as packed,
            tarfile.open(fileobj=packed, mode="r|") as files,
        ):
            for member in files:
                if member.name.endswith("/test.jsonl") and (file := files.extractfile(member)):
                    for row in map(json.loads, file):
                        for qid, labels in zip(row["obj_uri"], row["obj_label"], strict=True):
                            spellings = [labels["chosen"], *labels["alternative"]]
                            names[qid].update(dict.fromkeys(name for name in spellings if name and qid.startswith("Q")))
                    if self.given.small:
                        break
        return (IndexEntity(qid, next(iter(spelt)), tuple(spelt)) for qid, spelt in names.items() if spelt)

    def kamel(self) -> None:
        """Index the names of KAMEL test, and look them up exactly and with a typing error."""
        entities = list(self.entities())
        with tempfile.TemporaryDirectory() as folder:
            index = indexed(Path(folder) / "kamel", entities)
            names = [(name, entity.id) for entity in entities for name in entity.names]
            ranks = Counter(_rank(index.exact(name), qid) for name, qid in names)
            print(
                f"{len(entities)} entities, {len(names)} names: among the hits {1 - ranks[-1] / len(names):.2%}, ",
                end="",
            )
            print(f"first {ranks[0] / len(names):.2%}")
            dice = random.Random(0)
            sample = dice.sample(names, min(10_000, len(names)))
            found = sum(_rank(index.fuzzy(mistyped(name, dice)), qid) >= 0 for name, qid in sample)
            print(f"one typing error: among the first five {found / len(sample):.2%}")
            index.close()

    def million(self) -> None:
        """Measure look-ups in many made-up labels, and compare with rapidfuzz."""
        dice = random.Random(0)
        words = sorted({word for entity in self.entities() for word in entity.label.split() if word.isalpha()})
        made: set[str] = set()
        while len(made) < self.given.size:
            made.add(" ".join(dice.choices(words, k=dice.choice((1, 2, 2, 2, 3)))))
        labels = sorted(made)
        with tempfile.TemporaryDirectory() as folder:
            rows = (IndexEntity(f"Q{number}", label) for number, label in enumerate(labels, 1))
            index, _, seconds = timed(indexed, Path(folder) / "million", rows)
            print(f"{len(labels)} labels, built in {seconds:.0f} s")
            sample = dice.sample(labels, len(labels) // 10)
            _, _, seconds = timed(lambda: [index.exact(label) for label in sample])
            print(f"exact: {len(sample) / seconds:,.0f} look-ups/s")
            typos = [(mistyped(label, dice), label) for label in sample[:5000]]
            found, _, fuzzy = timed(lambda: sum(label in [x.label for x in index.fuzzy(typo)] for typo, label in typos))
            _, _, scan = timed(lambda: [process.extractOne(typo, labels) for typo, _ in typos[:5]])
            each, whole = fuzzy / len(typos), scan / 5
            print(f"fuzzy: {each * 1e3:.3f} ms, recall {found / len(typos):.2%}; ", end="")
            print(f"extractOne {whole * 1e3:.0f} ms, {whole / each:,.0f} times slower")
            index.close()

    def dump(self) -> None:
        """Measure entities per minute of one core from a synthetic dump, and memory at two sizes."""
        for size in (self.given.size // 5, self.given.size // 5 * 2):
            with tempfile.TemporaryDirectory() as folder:
                write_dump(Path(folder) / "dump.json", size)
                if self.given.small:
                    cpu, peak = build(Path(folder))
                else:
                    with multiprocessing.get_context("spawn").Pool(1) as pool:
                        cpu, peak = pool.apply(build, (Path(folder),))
            print(f"{size} entities: {size / cpu * 60:,.0f} a minute of one core, peak {peak} MB")


def indexed(path: Path, entities: Any) -> AliasIndex:
    """Return an index of entities."""
    builder = IndexBuilder(path)
    builder.add(entities, "made")
    builder.finish()
    return AliasIndex(path)


def mistyped(name: str, dice: random.Random) -> str:
    """Return a name with one typing error."""
    kind, at, letter = dice.choice(TYPING_ERRORS), dice.randrange(len(name)), dice.choice(LETTERS)
    if kind == "substitute":
        return name[:at] + letter + name[at + 1 :]
    if kind == "insert":
        return name[:at] + letter + name[at:]
    return name[:at] + (name[at + 1 :] if kind == "delete" else name[at + 1 : at + 2] + name[at] + name[at + 2 :])


def _rank(hits: Sequence[Any], qid: str) -> int:
    return next((at for at, hit in enumerate(hits) if hit.id == qid), -1)


def write_dump(path: Path, size: int) -> None:
    """Write entities in the format of dumps: ten languages, a dozen statements with references, sitelinks."""
    languages = "en de fr es ru zh ja it pt ar".split()
    with path.open("w", encoding="utf-8") as file:
        file.write("[\n")
        for number in range(1, size + 1):
            entity = item(f"Q{number}", f"entity number {number}", ["Q5" if number % 2 else "Q515"], links=number % 9)
            term = entity["labels"]["en"]
            entity["labels"] = {language: {**term, "language": language} for language in languages}
            entity["aliases"] = {"en": [{"language": "en", "value": f"thing {number}"}]} if number % 3 else []
            snak = {**entity["claims"]["P31"][0], "references": [{"hash": "0" * 40, "snaks-order": ["P248"]}]}
            entity["claims"] |= {f"P{prop}": [snak] for prop in range(100, 112)}
            file.write(json.dumps(entity) + (",\n" if number < size else "\n"))
        file.write("]\n")


def build(folder: Path) -> tuple[float, int]:
    """Build an index from a folder's dump, and return CPU-seconds and this process's peak memory in MB."""
    _, cpu, _ = timed(build_index, folder / "index", dump=folder / "dump.json")
    return cpu, peak_mb()


PARTS: dict[str, Callable[[Linking], object]] = {
    "gold": Linking.gold,
    "calls": Linking.calls,
    "loopback": Linking.loopback,
    "kamel": Linking.kamel,
    "million": Linking.million,
    "dump": Linking.dump,
}


def main(argv: Sequence[str]) -> None:
    parser = parser_of(__doc__, *PARTS)
    parser.add_argument("--limit", type=int, help="rows of val, about so many, evenly spaced")
    parser.add_argument("--size", type=int, default=1_000_000, help="labels of 'million', and five times the entities")
    given = parsed(parser, argv, limit=40, size=500)
    linking = Linking(given)
    for name in given.rows:
        print(f"== {name}")
        PARTS[name](linking)
