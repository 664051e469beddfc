"""Data in KAMEL's layout from any triples, by the filters of its authors, with counts of each filter.

Kalo and Fichtel 2022; the filters and their order are those of the authors' create_train_dev_test_split.py. Their first
step keeps only facts that English Wikipedia states. It is left to the user.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from lmkbc.errors import InputError, counted
from lmkbc.files.atomic import Kind, check_replaceable, with_record, write_directory
from lmkbc.probe.benchmark import Findings, Means, Sheet
from lmkbc.probe.kamel.kamel_data import SPLITS, KamelAnswer
from lmkbc.probe.kmir.questions import TypedTriple, read_rows

MOST = 10
"""Most objects of a question."""
LAYOUT = Kind("data in KAMEL's layout", "manifest.json", form=re.compile(r"P[0-9]+/(?:train|dev|test)\.jsonl"))
"""Kind of the directory that `kamel-build` writes."""
_PROPERTY = re.compile(r"P[0-9]+")

Objects = dict[str, tuple[int, list[str]]]
"""Object of a question -> (number of its first triple, from 0, and its aliases)."""
Queries = dict[str, dict[str, Objects]]
"""Property -> subject -> its objects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KamelBuild:
    """Data in KAMEL's layout, built from triples."""

    triples: Annotated[
        Path,
        Meta(
            description="JSONL or TSV of subject, property, object; JSONL may have object_aliases. Or KAMEL.",
            extra={"argument": True},
        ),
    ]
    out: Annotated[Path, Meta(description="Directory for P36/train.jsonl and the like.")]
    train: Annotated[int, Meta(ge=1, description="Questions of a property to learn from.")] = 1000
    dev: Annotated[int, Meta(ge=1, description="Questions to choose settings by.")] = 200
    test: Annotated[int, Meta(ge=1, description="Questions to test on.")] = 200
    seed: Annotated[int, Meta(description="The same seed writes the same bytes.")] = 0

    def run(self, means: Means) -> Findings:
        """Filter the triples, draw the questions of each property, and write them in three splits."""
        check_replaceable(self.out, LAYOUT)
        rows = read_rows(self.triples)
        if others := [row.relation for row in rows if not _PROPERTY.fullmatch(row.relation)]:
            raise InputError(f"{self.triples}: {others[0]!r} is no property as KAMEL's layout has them: write P36")
        sizes = {"train": self.train, "dev": self.dev, "test": self.test}
        drawn, counts = selected(rows, sum(sizes.values()), self.seed)
        files: dict[str, bytes] = {}
        for name, queries in drawn.items():
            subjects = iter(queries.items())
            for split in SPLITS:
                lines = [_line(*next(subjects), split) for _ in range(sizes[split])]
                files[f"{name}/{split}.jsonl"] = msgspec.json.Encoder().encode_lines(lines)
        write_directory(self.out, with_record(LAYOUT, files, {"seed": self.seed}), LAYOUT)
        many = counted(sum(map(len, drawn.values())), "query")
        means.note(f"{self.out}: {many} of {counted(len(drawn), 'property')}")
        heads = ["filter", "facts removed", "facts left", "queries left", "properties left"]
        table = [[what, *count.values()] for what, count in counts.items()]
        return Findings(counts, [Sheet(heads, table, "filters")])


def selected(rows: Sequence[TypedTriple], size: int, seed: int) -> tuple[Queries, dict[str, dict[str, int]]]:
    """Return `size` questions of each property in random order, and the counts of each filter.

    Subjects with the same name are the same subject. InputError if no property has enough questions.
    """
    queries: Queries = {}
    for number, row in enumerate(rows):
        objects = queries.setdefault(row.relation, {}).setdefault(row.subject, {})
        known = objects.setdefault(row.object, (number, []))[1]
        known += [alias for alias in row.object_aliases if alias not in known]
    filters: dict[str, Callable[[str, dict[str, Objects]], dict[str, Objects]]] = {
        "fact that is there already": lambda _, own: own,
        "object within its subject's name": lambda _, own: {
            subject: kept
            for subject, objects in own.items()
            if (kept := {name: about for name, about in objects.items() if not is_part(name, subject)})
        },
        f"subject of more than {MOST} objects": lambda _, own: {
            subject: objects for subject, objects in own.items() if len(objects) <= MOST
        },
        f"property of fewer than {size} queries": lambda _, own: own if len(own) >= size else {},
        "not drawn": lambda name, own: {
            subject: own[subject] for subject in random.Random(f"{seed} {name}").sample(sorted(own), size)
        },
    }
    before, counts = len(rows), dict[str, dict[str, int]]()
    for what, kept_of in filters.items():
        queries = {name: kept for name, own in queries.items() if (kept := kept_of(name, own))}
        facts = sum(len(objects) for own in queries.values() for objects in own.values())
        left = {"facts": facts, "queries": sum(map(len, queries.values())), "properties": len(queries)}
        counts[what] = {"removed": before - facts, **left}
        before = facts
    if not queries:
        raise InputError(f"no property has {size} queries after the filters: lower --train, --dev or --test")
    return queries, counts


def is_part(label: str, subject: str) -> bool:
    """Return whether a label is an n-gram of the subject's words. Case and commas are ignored.

    The authors' script removes commas only from the subject. So KAMEL has "I, Robot" as an object of "I, Robot".
    """
    part, whole = (f" {' '.join(name.lower().replace(',', ' ').split())} " for name in (label, subject))
    return part in whole


def _line(subject: str, objects: Objects, split: str) -> dict[str, Any]:
    """Return a line of a split: labels, and in the test split all names. There, literals have no label, as in KAMEL."""
    index = [number for number, _ in objects.values()]
    if split != "test":
        return {"index": index, "sub_label": subject, "obj_label": list(objects)}
    named = [
        {"rdf": None, "chosen": name, "alternative": list(dict.fromkeys([*aliases, name]))}
        if KamelAnswer(name).literal
        else {"rdf": name, "chosen": name, "alternative": [alias for alias in aliases if alias != name]}
        for name, (_, aliases) in objects.items()
    ]
    return {"index": index, "sub_label": subject, "obj_label": named}
