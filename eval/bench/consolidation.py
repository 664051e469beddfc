"""Grouping of names into entities, as in 'lmkbc build': pairwise precision and recall on names of train objects.

    python eval/bench/consolidation.py [--data DIR] [--figures FILE] [EDITION ...]

The names are all aliases of all entity objects, in each query that has them. They are alias lists (2022, 2026), or the
names beside QIDs (2023, 2024). A pair is any two of them, from any queries and relations. A pair is right if both names
belong to one object: to one QID, or to one first name.

"folded" is the grouping of a build if no name is linked. "index" is its grouping with an index of all these aliases: a
name of exactly one object is that object. "several" counts the names of several gold objects. The other columns are
groupings that were tried: without brackets, without legal forms such as "Ltd.", and words in any order. "by class" also
needs the same class of the relations' objects.

Names and relations cannot tell some pairs apart: those of one spelling in one relation, if the gold gives this spelling
to several objects. "undecidable" counts such pairs, and their spellings. "decidable" is "folded" without them. "wrong"
counts the wrong pairs of "folded", and how many of these are decidable. --wrong lists their names.
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
Names = Mapping[tuple[str, str, str], int]
"""(name, object, relation) -> number of queries with it."""


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
    parser.add_argument("--wrong", type=int, default=0, metavar="N", help="list N names with the most wrong pairs")
    figures.option(parser)
    given = parser.parse_args(argv)
    workspace = Workspace(data=given.data)
    values: dict[str, dict[str, str]] = {}
    for name in given.editions or EDITIONS:
        edition = workspace.edition(name)
        examples = workspace.examples(edition, "train")
        names = named(x for x in examples if workspace.relation(x.query.relation).kind == "entity")
        classes = {one: workspace.relation(one).object_type.qid for _, _, one in names}
        made = {way: measured(names, alone(key)) for way, key in GROUPINGS.items()}

        def by_class(written: str, relation: str, classes: Mapping[str, str] = classes) -> str:
            return f"{folded(written)} {classes[relation]}"

        made["by class"] = measured(names, by_class)
        objects = defaultdict[str, set[str]](set)
        for written, one, _ in names:
            objects[folded(written)].add(one)
        several = sum(len(found) > 1 for found in objects.values())

        def indexed(written: str, _: str, objects: Mapping[str, set[str]] = objects) -> str:
            found = objects[folded(written)]
            return min(found) if len(found) == 1 else folded(written)

        made["index"] = measured(names, indexed)
        row = {"names": str(len(objects)), "several": str(several)}
        row |= {way: f"{precision:.4f}, {recall:.4f}" for way, (precision, recall) in made.items()}
        row |= decidable(names)
        values[name] = row
        print(f"{name}: " + "; ".join(f"{column} {value}" for column, value in row.items()), flush=True)
        for line in wrong(names)[: given.wrong]:
            print(f"  {line}")
    figures.record(given.figures, "consolidation", values)


def alone(key: Callable[[str], str]) -> Callable[[str, str], str]:
    """Return a grouping of names that passes over their relations."""
    return lambda name, _: key(name)


def named(examples: Iterable[Example]) -> Names:
    """Return the names of the objects of queries, with counts."""
    return Counter(
        (name, gold.id or folded(gold.names[0]), example.query.relation)
        for example in examples
        for gold in example.objects
        for name in gold.names
        if name
    )


def pairs(counts: Iterable[int]) -> int:
    """Return how many pairs there are within groups of some sizes."""
    return sum(comb(count, 2) for count in counts)


def measured(names: Names, key: Callable[[str, str], str]) -> tuple[float, float]:
    """Return the pairwise precision and recall of a grouping of names and relations."""
    groups, both, objects = Counter[str](), Counter[tuple[str, str]](), Counter[str]()
    for (name, one, relation), count in names.items():
        groups[key(name, relation)] += count
        both[key(name, relation), one] += count
        objects[one] += count
    right, made, true = (pairs(counts.values()) for counts in (both, groups, objects))
    return right / max(made, 1), right / max(true, 1)


def spelled(names: Names, key: Callable[[str, str], tuple[str, ...]]) -> dict[tuple[str, ...], Counter[str]]:
    """Return how often each object has each key."""
    found = defaultdict[tuple[str, ...], Counter[str]](Counter)
    for (name, one, relation), count in names.items():
        found[key(name, relation)][one] += count
    return found


def decidable(names: Names) -> dict[str, str]:
    """Return the precision of folded names on pairs that names and relations may tell apart, and the other pairs."""
    merged = spelled(names, lambda name, _: (folded(name),)).values()
    made, right = pairs(its.total() for its in merged), sum(pairs(its.values()) for its in merged)
    same = [its for its in spelled(names, lambda name, relation: (name, relation)).values() if len(its) > 1]
    apart, both = pairs(its.total() for its in same), sum(pairs(its.values()) for its in same)
    return {
        "decidable": f"{(right - both) / max(made - apart, 1):.4f}",
        "undecidable": f"{apart} of {made} pairs, {len(same)} names",
        "wrong": f"{made - right}, decidable {made - right - apart + both}",
    }


def wrong(names: Names) -> list[str]:
    """Return the folded names of several objects, in descending order of their wrong pairs."""
    found = spelled(names, lambda name, _: (folded(name),))
    counts = {key: pairs([its.total()]) - pairs(its.values()) for key, its in found.items() if len(its) > 1}
    order = sorted(counts, key=lambda key: (-counts[key], key))
    return [
        f"{counts[key]} {key[0]}: {', '.join(f'{one} {n}' for one, n in found[key].most_common(4))}" for key in order
    ]


if __name__ == "__main__":
    with error_status():
        main()
