"""Measurements of linking: right links, calls, look-ups per second, bytes.

Run: python eval/bench/linking.py [NAME ...].
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import multiprocessing
import os
import random
import sys
import tarfile
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from rapidfuzz import process

from lmkbc.answer.parse import parse
from lmkbc.cli.terminal import error_status
from lmkbc.link.build import build_index
from lmkbc.link.builder import IndexBuilder, IndexEntity
from lmkbc.link.index import AliasIndex
from lmkbc.link.linker import Linker
from lmkbc.link.live import Wikidata
from lmkbc.link.sources import SearchTable
from lmkbc.link.train_objects import TrainObjects
from lmkbc.link.wikidata import Client
from lmkbc.types import Candidate, CandidateSet, Query
from lmkbc.workspace import Workspace

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "link")]
from stand_in import StandIn, item  # noqa: E402 (the tests' own server, found beside them)

DATA = Path(os.environ.get("LMKBC_DATA", ROOT.parent / "shared" / "data"))
ORGANISERS_CALLS = 3578
TYPING_ERRORS = "substitute insert delete swap".split()
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@cache
def workspace() -> Workspace:
    return Workspace(data=DATA)


def table() -> SearchTable:
    return SearchTable.read(DATA / "wikidata" / "search_first_hit.json")


def train_objects() -> TrainObjects:
    return TrainObjects(workspace().examples(workspace().edition("2023"), "train"), workspace().relations)


def gold() -> float:
    """Link 2023 val's published gold names with train objects and the recorded search; compare with the first hit."""
    search = table()
    sets, wanted = [], []
    path = workspace().split_path(workspace().edition("2023"), "val")
    for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        if workspace().relation(row["Relation"]).kind == "entity":
            pairs = [pair for pair in zip(row["ObjectEntities"], row["ObjectEntitiesID"], strict=False) if pair[1]]
            query = Query(row["SubjectEntity"], row["Relation"], row["SubjectEntityID"])
            sets.append(CandidateSet(query, tuple(Candidate(name) for name, _ in pairs)))
            wanted.append([qid for _, qid in pairs])
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    evidence: Counter[tuple[str, str]] = Counter()
    linked = Linker(workspace().relations, train_objects(), search=search).links(sets)
    for (group, links), ids in zip(linked, wanted, strict=True):
        for candidate, link, right in zip(group.candidates, links, ids, strict=True):
            first = [hit.id for hit in search.search([candidate.text])[candidate.text]]
            tally = {"n": 1, "first": first == [right], "right": link.id == right, "none": link.id is None}
            counts[group.query.relation].update(tally)
            evidence[link.evidence, "right" if link.id == right else "wrong"] += 1
    counts["all"] = sum(counts.values(), Counter())
    print(f"{'relation':32}{'objects':>8}{'first hit':>11}{'linked':>9}{'unlinked':>10}")
    for name, tally in counts.items():
        n = tally["n"]
        print(f"{name:32}{n:8}{tally['first'] / n:11.2%}{tally['right'] / n:9.2%}{tally['none']:10}")
    print("  ".join(f"{name} {verdict} {count}" for (name, verdict), count in sorted(evidence.items())))
    return counts["all"]["right"] / counts["all"]["n"]


def recorded(name: str = "gpt4_n_0_m_0_c_0") -> Iterator[CandidateSet]:
    """Yield the recorded answers of a model on 2023 val, parsed."""
    with gzip.open(DATA / "recorded" / "2023-val" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            query = Query(row["SubjectEntity"], row["Relation"])
            objects = parse(row["completions"][0], workspace().relation(query.relation), query.subject).objects
            yield CandidateSet(query, tuple(Candidate(text) for text in objects))


def calls() -> float:
    """Count the search calls of a cold run on GPT-4's recorded answers, and compare with one call per answer.

    Hits of the network have classes, so a name need not be searched again with its type words. Hits of the recorded
    table have none, and searching it is free.
    """
    asked = {}
    for classes in (True, False):
        search = table()
        search.knows_classes = classes
        for _ in Linker(workspace().relations, train_objects(), search=search).links(recorded()):
            pass
        asked[classes] = len(search.searched)
    share = asked[True] / ORGANISERS_CALLS
    print(f"distinct strings asked of the network: {asked[True]} = {share:.3f} x {ORGANISERS_CALLS}")
    print(f"distinct strings looked up in the recorded table, type words included: {asked[False]}")
    return share


def loopback() -> None:
    """Link with a simulated API that fails one request in seven, then again from the cache."""
    answers = json.loads((DATA / "wikidata" / "search_first_hit.json").read_text(encoding="utf-8"))
    world = {text: [qid] if qid else [] for text, qid in answers.items()}
    items = {qid: item(qid, text) for text, qid in answers.items() if qid}
    faults = ("maxlag", "429", "503", "cut JSON", "cut short", "hang up")
    recorded_search = table()
    recorded_search.knows_classes = True
    plain = list(Linker(workspace().relations, train_objects(), search=recorded_search).link(recorded()))

    def fault(number: int, _: Any) -> str | None:
        return faults[number // 7 % len(faults)] if number % 7 == 0 else None

    with tempfile.TemporaryDirectory() as folder, StandIn(world, items, fault=fault) as stand_in:
        client = Client("bench, bench@example.org", stand_in.url, rate=5000, backoff=0.01)
        for run in ("cold", "warm"):
            before, started = sum(stand_in.searched.values()), time.perf_counter()
            search = Wikidata(client, Path(folder) / "cache.sqlite")
            linked = list(Linker(workspace().relations, train_objects(), search=search).link(recorded()))
            asked = sum(stand_in.searched.values()) - before
            same = sum(one == other for one, other in zip(linked, plain, strict=True))
            seconds = time.perf_counter() - started
            print(f"{run}: {asked} searches, {same} of {len(plain)} answers as from the table, {seconds:.1f} s")
    print(f"most in flight {stand_in.most_at_once}, most ids {max(map(len, stand_in.groups))}, ", end="")
    agents = {line for head in stand_in.headers for line in head.split("\r\n") if line.startswith("User-Agent")}
    print(f"most often asked {max(stand_in.searched.values())}, {agents}")
    print(f"faults met: {dict(stand_in.faults)}")


def mistyped(name: str, dice: random.Random) -> str:
    """Return a name with one typing error."""
    kind, at, letter = dice.choice(TYPING_ERRORS), dice.randrange(len(name)), dice.choice(LETTERS)
    if kind == "substitute":
        return name[:at] + letter + name[at + 1 :]
    if kind == "insert":
        return name[:at] + letter + name[at:]
    return name[:at] + (name[at + 1 :] if kind == "delete" else name[at + 1 : at + 2] + name[at] + name[at + 2 :])


def kamel_entities() -> Iterator[IndexEntity]:
    """Return the entities in KAMEL's test split, with label and aliases."""
    names: dict[str, dict[str, None]] = defaultdict(dict)
    with lzma.open(DATA / "kamel" / "KAMEL.tar.xz") as packed, tarfile.open(fileobj=packed) as files:
        for member in files:
            if member.name.endswith("/test.jsonl") and (file := files.extractfile(member)):
                for row in map(json.loads, file):
                    for qid, labels in zip(row["obj_uri"], row["obj_label"], strict=True):
                        spellings = [labels["chosen"], *labels["alternative"]]
                        names[qid].update(dict.fromkeys(name for name in spellings if name and qid.startswith("Q")))
    return (IndexEntity(qid, next(iter(spelt)), tuple(spelt)) for qid, spelt in names.items() if spelt)


def kamel() -> None:
    """Index the names of KAMEL test, and look them up exactly and with a typing error."""
    dice = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        entities = list(kamel_entities())
        builder = IndexBuilder(Path(folder) / "kamel")
        builder.add(entities, "kamel")
        builder.finish()
        index = AliasIndex(Path(folder) / "kamel")
        names = [(name, entity.id) for entity in entities for name in entity.names]
        ranks = Counter(_rank(index.exact(name), qid) for name, qid in names)
        print(
            f"{len(entities)} entities, {len(names)} names: among the hits {1 - ranks[-1] / len(names):.2%}, ", end=""
        )
        print(f"first {ranks[0] / len(names):.2%}")
        sample = dice.sample(names, 10_000)
        found = sum(_rank(index.fuzzy(mistyped(name, dice)), qid) >= 0 for name, qid in sample)
        print(f"one typing error: among the first five {found / len(sample):.2%}")
        index.close()


def _rank(hits: Sequence[Any], qid: str) -> int:
    return next((at for at, hit in enumerate(hits) if hit.id == qid), -1)


def million(size: int = 1_000_000) -> None:
    """Measure look-ups in a million labels made of words of KAMEL's names, and compare with rapidfuzz."""
    dice = random.Random(0)
    words = sorted({word for entity in kamel_entities() for word in entity.label.split() if word.isalpha()})
    made: set[str] = set()
    while len(made) < size:
        made.add(" ".join(dice.choices(words, k=dice.choice((1, 2, 2, 2, 3)))))
    labels = sorted(made)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "million"
        started = time.perf_counter()
        builder = IndexBuilder(path)
        builder.add((IndexEntity(f"Q{number}", label) for number, label in enumerate(labels, 1)), "made")
        builder.finish()
        print(f"built in {time.perf_counter() - started:.0f} s, {path.stat().st_size / 1e6:.0f} MB")
        index = AliasIndex(path)
        sample = dice.sample(labels, 100_000)
        started = time.perf_counter()
        for label in sample:
            index.exact(label)
        print(f"exact: {len(sample) / (time.perf_counter() - started):,.0f} look-ups/s")
        typos = [(mistyped(label, dice), label) for label in sample[:5000]]
        started = time.perf_counter()
        found = sum(label in [hit.label for hit in index.fuzzy(typo)] for typo, label in typos)
        fuzzy = (time.perf_counter() - started) / len(typos)
        started = time.perf_counter()
        for typo, _ in typos[:5]:
            process.extractOne(typo, labels)
        scan = (time.perf_counter() - started) / 5
        print(f"fuzzy: {fuzzy * 1e3:.3f} ms, recall {found / len(typos):.2%}; ", end="")
        print(f"extractOne {scan * 1e3:.0f} ms, {scan / fuzzy:,.0f} times slower")
        index.close()


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


def _build(path: Path, dump: Path, peak: Any) -> None:
    started = time.process_time()
    build_index(path, dump=dump)
    seconds = time.process_time() - started
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines())
    peak[:] = [int(status["VmHWM"].split()[0]) / 1024, seconds]


def dump_reading() -> None:
    """Measure entities per minute from a synthetic dump, memory at two sizes, and a build that is killed and resumed.

    The rate is per core.
    """
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for size in (200_000, 400_000):
            write_dump(folder / f"{size}.json", size)
            peak = spawn.Array("d", 2)
            worker = spawn.Process(target=_build, args=(folder / f"{size}", folder / f"{size}.json", peak))
            worker.start()
            worker.join()
            print(f"{size} entities: {size / peak[1] * 60:,.0f} a minute of one core, peak {peak[0]:.0f} MB")
        worker = spawn.Process(target=_build, args=(folder / "killed", folder / "400000.json", peak))
        worker.start()
        time.sleep(3)
        worker.kill()
        worker.join()
        left = (folder / "killed.partial").stat().st_size if (folder / "killed.partial").exists() else 0
        build_index(folder / "killed", dump=folder / "400000.json")
        same = (folder / "killed").read_bytes() == (folder / "400000").read_bytes()
        print(f"killed with {left / 1e6:.1f} MB staged, resumed: {'identical' if same else 'DIFFERENT'} bytes")


BENCHES = {"gold": gold, "calls": calls, "loopback": loopback, "kamel": kamel, "million": million, "dump": dump_reading}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which to measure, of {', '.join(BENCHES)}; all by default")
    for name in parser.parse_args().names or BENCHES:
        print(f"== {name}")
        BENCHES[name]()


if __name__ == "__main__":
    with error_status():
        main()
