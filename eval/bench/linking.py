"""Measures linking: right links, search calls, look-ups per second. Run: python eval/bench/linking.py [NAME ...]."""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter, defaultdict
from pathlib import Path

from lmkbc.link import Linker, SearchTable, TrainObjects
from lmkbc.types import Candidate, CandidateSet, Query
from lmkbc.workspace import Workspace

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("LMKBC_DATA", ROOT.parent / "shared" / "data"))


def gold() -> None:
    """2023 val's gold names as published, with train objects and the recorded search; the first hit alone beside it."""
    workspace = Workspace(data=DATA)
    edition = workspace.edition("2023")
    table = SearchTable.read(DATA / "wikidata" / "search_first_hit.json")
    linker = Linker(
        workspace.relations, TrainObjects(workspace.examples(edition, "train"), workspace.relations), search=table
    )
    sets, wanted = [], []
    for line in workspace.split_path(edition, "val").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if workspace.relation(row["Relation"]).kind == "entity":
            pairs = [pair for pair in zip(row["ObjectEntities"], row["ObjectEntitiesID"], strict=False) if pair[1]]
            sets.append(
                CandidateSet(Query(row["SubjectEntity"], row["Relation"]), tuple(Candidate(name) for name, _ in pairs))
            )
            wanted.append([qid for _, qid in pairs])
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    evidence: Counter[tuple[str, bool]] = Counter()
    for (group, links), ids in zip(linker.links(sets), wanted, strict=True):
        for candidate, link, right in zip(group.candidates, links, ids, strict=True):
            first = table.search([candidate.text])[candidate.text]
            counts[group.query.relation].update(
                n=1, first=[hit.id for hit in first] == [right], right=link.id == right, none=link.id is None
            )
            evidence[link.evidence, link.id == right] += 1
    counts["all"] = sum(counts.values(), Counter())
    print(f"{'relation':32}{'objects':>8}{'first hit':>11}{'linked':>9}{'unlinked':>10}")
    for name, tally in counts.items():
        n = tally["n"]
        print(f"{name:32}{n:8}{tally['first'] / n:11.2%}{tally['right'] / n:9.2%}{tally['none']:10}")
    for (name, right), count in sorted(evidence.items()):
        print(f"  {name:12}{'right' if right else 'wrong':8}{count:6}")


BENCHES = {"gold": gold}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which to measure, of {', '.join(BENCHES)}; all by default")
    for name in parser.parse_args().names or BENCHES:
        BENCHES[name]()


if __name__ == "__main__":
    main()
