"""Grouping of names into entities, as in 'lmkbc build': pairwise precision and recall on names of train objects.

    python eval/bench/consolidation.py [--data DIR] [--figures FILE] [EDITION ...]

The names are all aliases of all entity objects, in each query that has them. They are alias lists (2022, 2026), or the
names beside QIDs (2023, 2024). A pair is any two of them, from any queries and relations. A pair is right if both names
belong to one object: to one QID, or to one first name.

"folded" is the grouping of a build if no name is linked. "index" is its grouping with an index of all these aliases: a
name of exactly one object is that object. "several" counts the names of several gold objects. The other columns are
groupings that were tried: without brackets, without legal forms such as "Ltd.", and words in any order.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import comb
from pathlib import Path

import figures

from lmkbc.cli.terminal import error_status
from lmkbc.names import folded_key, without_legal_form, without_trailer
from lmkbc.types import Example
from lmkbc.workspace import Workspace

EDITIONS = ("2022", "2026", "2023", "2024")
Names = Mapping[tuple[str, str], int]
"""(name, object) -> number of queries with it."""


def folded(name: str) -> str:
    """Return the form of a name that `lmkbc.build.entities` compares."""
    return folded_key(name) or name


GROUPINGS: Mapping[str, Callable[[str], str]] = {
    "as written": str,
    "folded": folded,
    "no brackets": lambda name: folded(without_trailer(name)),
    "no legal form": lambda name: " ".join(without_legal_form(name)),
    "any order": lambda name: " ".join(sorted(folded(name).split())),
}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("editions", nargs="*", choices=[*EDITIONS, []], metavar="EDITION", help=", ".join(EDITIONS))
    parser.add_argument("--data", type=Path, help="directory of the official splits (default: $LMKBC_DATA)")
    figures.option(parser)
    given = parser.parse_args(argv)
    workspace = Workspace(data=given.data)
    values: dict[str, dict[str, str]] = {}
    for name in given.editions or EDITIONS:
        edition = workspace.edition(name)
        examples = workspace.examples(edition, "train")
        names = named(x for x in examples if workspace.relation(x.query.relation).kind == "entity")
        made = {way: measured(names, key) for way, key in GROUPINGS.items()}
        objects = defaultdict[str, set[str]](set)
        for written, one in names:
            objects[folded(written)].add(one)
        several = sum(len(found) > 1 for found in objects.values())

        def indexed(written: str, objects: Mapping[str, set[str]] = objects) -> str:
            found = objects[folded(written)]
            return min(found) if len(found) == 1 else folded(written)

        made["index"] = measured(names, indexed)
        row = {"names": str(len(objects)), "several": str(several)}
        row |= {way: f"{precision:.4f}, {recall:.4f}" for way, (precision, recall) in made.items()}
        values[name] = row
        print(f"{name}: " + "; ".join(f"{column} {value}" for column, value in row.items()), flush=True)
    figures.record(given.figures, "consolidation", values)


def named(examples: Iterable[Example]) -> Names:
    """Return the names of the objects of queries, with counts."""
    return Counter(
        (name, gold.id or folded(gold.names[0]))
        for example in examples
        for gold in example.objects
        for name in gold.names
        if name
    )


def measured(names: Names, key: Callable[[str], str]) -> tuple[float, float]:
    """Return the pairwise precision and recall of a grouping."""
    groups, both, objects = Counter[str](), Counter[tuple[str, str]](), Counter[str]()
    for (name, one), count in names.items():
        groups[key(name)] += count
        both[key(name), one] += count
        objects[one] += count
    right, made, true = (sum(comb(count, 2) for count in counts.values()) for counts in (both, groups, objects))
    return right / max(made, 1), right / max(true, 1)


if __name__ == "__main__":
    with error_status():
        main()
