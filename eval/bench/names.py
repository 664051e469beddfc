"""Names that differ by signs alone: false merges and lost matches by the scorer's key and by the key of names.

The names are those with a QID in the official data, subjects and objects, and those of KAMEL's test files. A pair of
names is of one entity if they have a QID in common. A false merge is a pair of different entities with one key. A lost
match is a pair of one entity with two keys. The first rows are of names that differ by "+", "#", "*" and "." alone. The
next rows are of all pairs that one of the keys merges.
"""

from __future__ import annotations

import json
import lzma
import tarfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

from eval.bench import EDITIONS, parsed, parser_of
from eval.bench.figures import Table
from lmkbc.files.places import data_dirs
from lmkbc.names import as_qid, folded_key, name_key, spelling
from lmkbc.workspace import Workspace

KEYS: Mapping[str, Callable[[str], str]] = {"folded_key": folded_key, "name_key": name_key}
NO_SIGNS = str.maketrans("", "", "+#*.")
KAMEL = Path("kamel/KAMEL.tar.xz")
Pairs = set[tuple[str, str]]


def main(argv: Sequence[str]) -> None:
    parser = parser_of(__doc__, figures=True)
    parser.add_argument("--editions", nargs="*", default=EDITIONS)
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print so many pairs of each kind")
    given = parsed(parser, argv, editions=["mini"])
    space, ids = Workspace(data=given.data), defaultdict[str, set[str]](set)
    for name, qid in named(space, given.editions):
        ids[spelling(name)].add(qid)
    for archive in [] if given.small else [place / KAMEL for place in data_dirs(given.data)]:
        for name, qid in of_kamel(archive) if archive.is_file() else ():
            ids[spelling(name)].add(qid)
    groups = [*grouped(ids, lambda name: " ".join(name.translate(NO_SIGNS).split()))]
    apart = sum(not set.intersection(*(ids[name] for name in group)) for group in groups)
    print(f"{len(ids)} names: {len(groups)} groups that differ by signs alone, {apart} of them of different entities")
    merged = {name: pairs(grouped(ids, key)) for name, key in KEYS.items()}
    table = Table("names", "names, key", given.figures)
    for what, asked in (("differ by signs", pairs(groups)), ("all", set.union(*merged.values()))):
        for name in KEYS:
            false = sorted(pair for pair in asked & merged[name] if ids[pair[0]].isdisjoint(ids[pair[1]]))
            lost = sorted(pair for pair in asked - merged[name] if not ids[pair[0]].isdisjoint(ids[pair[1]]))
            table.add(f"{what}, {name}", {"false merges": str(len(false)), "lost matches": str(len(lost))})
            for one, other in (*false[: given.show], *lost[: given.show]):
                print(f"    {one!r}, {other!r}")


def grouped(names: Iterable[str], key: Callable[[str], str]) -> Iterator[Sequence[str]]:
    """Yield the names of each key that several names have."""
    of_key = defaultdict[str, list[str]](list)
    for name in names:
        of_key[key(name) or name].append(name)
    yield from (group for group in of_key.values() if len(group) > 1)


def pairs(groups: Iterable[Sequence[str]]) -> Pairs:
    """Return all pairs of names within groups."""
    return {pair for group in groups for pair in combinations(sorted(group), 2)}


def named(space: Workspace, editions: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield (name, QID) of subjects and objects of labelled rows."""
    for edition in map(space.edition, editions):
        for split in edition.splits:
            for query in space.queries(edition, split) if space.has_data(edition, split) else ():
                if query.subject_id:
                    yield query.subject, query.subject_id
        for split in ("train", edition.held_out):
            for example in space.examples(edition, split):
                for gold in example.objects:
                    if gold.id and as_qid(gold.id):
                        yield from ((name, gold.id) for name in gold.names if name.strip() and not as_qid(name))


def of_kamel(archive: Path) -> Iterator[tuple[str, str]]:
    """Yield (name, QID) of the objects in KAMEL's test files."""
    with lzma.open(archive) as packed, tarfile.open(fileobj=packed, mode="r|") as files:
        for member in files:
            if member.name.endswith("/test.jsonl") and (file := files.extractfile(member)):
                for row in map(json.loads, file):
                    for qid, labels in zip(row["obj_uri"], row["obj_label"], strict=True):
                        for name in filter(None, (labels["chosen"], *labels["alternative"])):
                            if as_qid(qid) and name.strip():
                                yield name, qid
