"""Measures linking: right links, search calls, lookups per second. Run: python eval/bench/linking.py [NAME ...]."""

from __future__ import annotations

import argparse
import os
from collections import Counter, defaultdict
from pathlib import Path

from lmkbc.link import Linker, SearchTable, TrainObjects
from lmkbc.types import Candidate, CandidateSet
from lmkbc.workspace import Workspace

ROOT = Path(__file__).resolve().parents[2]


def data_dir() -> Path:
    return Path(os.environ.get("LMKBC_DATA", ROOT.parent / "shared" / "data"))


def gold() -> None:
    """2023 val's gold names, linked with train objects and the recorded search; the first hit alone beside it."""
    workspace = Workspace(data=data_dir())
    edition = workspace.edition("2023")
    table = SearchTable.read(data_dir() / "wikidata" / "search_first_hit.json")
    train = TrainObjects(workspace.examples(edition, "train"), workspace.relations)
    full = Linker(workspace.relations, train, search=table)
    everything, first = {"links": full}, Linker(workspace.relations, search=table)
    print(f"{'relation':32}{'objects':>8}{'first hit':>11}{'linked':>9}{'unlinked':>10}")
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    evidence: Counter[tuple[str, bool]] = Counter()
    del everything
    sets, wanted = [], []
    for example in workspace.examples(edition, "val"):
        if workspace.relation(example.query.relation).kind == "entity":
            objects = [entity for entity in example.objects if entity.id]
            sets.append(CandidateSet(example.query, tuple(Candidate(entity.names[0]) for entity in objects)))
            wanted.append([entity.id for entity in objects])
    for (group, links), (_, plain), ids in zip(full.links(sets), first.links(sets), wanted, strict=True):
        tally = counts[group.query.relation]
        for link, other, right in zip(links, plain, ids, strict=True):
            hit = table.search([other.asked])[other.asked] if other.asked else ()
            tally.update(n=1, first=bool(hit) and hit[0].id == right, right=link.id == right, none=link.id is None)
            evidence[link.evidence, link.id == right] += 1
            if os.environ.get("DBG") and link.id != right and link.evidence not in ("search", "relation"):
                print(group.query, link, right)
    total: Counter[str] = sum(counts.values(), Counter())
    for name, tally in [*sorted(counts.items()), ("all", total)]:
        n = tally["n"]
        print(f"{name:32}{n:8}{tally['first'] / n:11.1%}{tally['right'] / n:9.1%}{tally['none']:10}")
    for (name, good), count in sorted(evidence.items()):
        print(f"  {name:12}{'right' if good else 'wrong':8}{count:6}")


def main() -> None:
    benches = {"gold": gold}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which to measure, of {sorted(benches)}")
    for name in parser.parse_args().names or benches:
        benches[name]()


if __name__ == "__main__":
    main()
