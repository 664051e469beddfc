"""Labelled data of one's own: rows of train, val and test for relations, drawn from Wikidata, in LM-KBC's layout.

A row has `SubjectEntity`, `SubjectEntityID`, `Relation`, `ObjectEntities` (a list of spellings per object) and
`ObjectEntitiesID` (QIDs; numbers, dates and texts as they are). So editions of ids and of strings can both read it.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lmkbc.domain import sparql
from lmkbc.domain.gold import LabelledSubject, number_of, readable, subjects
from lmkbc.domain.properties import PID
from lmkbc.domain.sparql import PAGE, QUERY_URL, QueryAnswer, QueryService, Row
from lmkbc.domain.strata import SPLITS, Stratum, draw
from lmkbc.errors import InputError, OptionError
from lmkbc.files.atomic import DirectoryKind, check_replaceable, with_record, write_directory
from lmkbc.files.places import cache_dir
from lmkbc.link.wikidata import Client
from lmkbc.names import WIKIDATA_ITEM, as_qid
from lmkbc.progress import Report, silent
from lmkbc.relation import ANYTHING, Relation
from lmkbc.types import grouped

LABELLED = DirectoryKind("labelled data", "manifest.json", frozenset(f"{split}.jsonl" for split in SPLITS))
FEWEST = 9
"""Fewest subjects of a relation: three for each split."""
MOST = 2_000
POOL = 5
"""Subjects that are read for each one that is drawn, so that strata can be filled."""
HOW = (
    "Pages of the class were drawn by the seed among those that the query service lists first. Subjects whose objects "
    "are known whole were drawn by strata of their number of objects and of their sitelinks, each in proportion, and "
    "dealt evenly to the splits. A subject is in the same split for all relations."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnRows:
    """How the rows of a relation were drawn.

    subjects: those that the query service listed, at most MOST_SUBJECTS. read: those that were read. left_out: how many
    of these cannot be gold, by reason. usable: all others. strata: what was drawn of these.
    """

    from_property: str
    classes: tuple[str, ...]
    subjects: int
    read: int
    left_out: Mapping[str, int]
    usable: int
    strata: tuple[Stratum, ...]

    @property
    def rows(self) -> dict[str, int]:
        """Return the number of rows of each split."""
        return {split: sum(stratum.splits[split] for stratum in self.strata) for split in SPLITS}


def make_data(
    relations: Sequence[Relation],
    folder: Path,
    *,
    client: Client | None = None,
    endpoint: str = QUERY_URL,
    cache: Path | None = None,
    per_relation: int = 200,
    seed: int = 0,
    language: str = "en",
    refresh: bool = False,
    progress: Report = silent,
) -> dict[str, DrawnRows]:
    """Write train.jsonl, val.jsonl and test.jsonl with a manifest into a folder; return how each relation was drawn.

    client: of the query service at `endpoint` (see `sparql.query_client`); None uses the cache alone. cache: file of
    all answers; a run that was killed goes on from there, and writes the same bytes. per_relation: rows of a relation,
    in all splits together. language: of labels and aliases. refresh: ask again for what the cache has. InputError for a
    relation without a property or class, and for a class of too few subjects.
    """
    _check(relations, per_relation, language)
    check_replaceable(folder, LABELLED)
    service = QueryService(client, endpoint, cache or cache_dir() / "wikidata.sqlite", refresh=refresh)
    splits: dict[str, str] = {}
    drawn, made, answers = dict[str, dict[str, list[LabelledSubject]]](), dict[str, DrawnRows](), list[QueryAnswer]()
    for relation in relations:
        name = relation.name
        counted = service.answers([sparql.count(relation)], f"count of {name} (queries)", progress)
        total = int(counted[0].rows[0]["count"])
        numbers = _page_numbers(relation, total, per_relation, seed)
        pages = [sparql.page(relation, number, total, language) for number in numbers]
        read = service.answers(pages, f"subjects of {name} (pages)", progress)
        rows = [row for page in read for row in page.rows]
        drawn[name], made[name] = _draw(relation, rows, total, per_relation, seed, splits)
        answers += [*counted, *read]
    names, asked = _aliases(service, drawn, language, progress)
    dates = sorted(answer.date for answer in (*answers, *asked))
    about = {
        "endpoint": endpoint,
        "language": language,
        "seed": seed,
        "per_relation": per_relation,
        "asked": {"first": dates[0], "last": dates[-1]},
        "how": HOW,
        "relations": {name: {**asdict(relation), "rows": relation.rows} for name, relation in made.items()},
    }
    files = {f"{split}.jsonl": _lines(split, drawn, names) for split in SPLITS}
    write_directory(folder, with_record(LABELLED, files, about), LABELLED)
    return made


def _check(relations: Sequence[Relation], per_relation: int, language: str) -> None:
    if not relations:
        raise InputError("no relation is named: data are made for the relations of a workspace")
    if not FEWEST <= per_relation <= MOST:
        raise OptionError("per_relation", f"is {per_relation}: give {FEWEST} to {MOST} rows")
    if not language.replace("-", "").isalnum() or not language.isascii():
        raise OptionError("language", f"is {language!r}: give a code of Wikidata, such as 'en' or 'pt-br'")
    for relation in relations:
        kind = relation.subject_class or relation.subject_type
        if not re.fullmatch(PID, relation.property):
            raise InputError(
                f"relation {relation.name} has no property of Wikidata: name it in its module, or leave it out"
            )
        if kind.qid == ANYTHING.qid or any(as_qid(qid) != qid for qid in (kind.qid, *kind.classes)):
            raise InputError(
                f"relation {relation.name} has no class of subjects: name one in its module, such as "
                "subject_type=EntityType('programming language', 'Q9143')"
            )


def _page_numbers(relation: Relation, total: int, per_relation: int, seed: int) -> list[int]:
    """Return the pages to read: all, or as many as the draw needs, by the seed."""
    pages = range(math.ceil(total / PAGE))
    needed = min(len(pages), math.ceil(POOL * per_relation / PAGE))
    return sorted(random.Random(f"{seed} {relation.property}").sample(pages, needed))


def _draw(
    relation: Relation,
    rows: Sequence[Row],
    total: int,
    per_relation: int,
    seed: int,
    splits: dict[str, str],
) -> tuple[dict[str, list[LabelledSubject]], DrawnRows]:
    kind = relation.subject_class or relation.subject_type
    usable, left_out = subjects(rows, relation)
    if len(usable) < FEWEST:
        reasons = ", ".join(f"{number} with {reason}" for reason, number in sorted(left_out.items()))
        raise InputError(
            f"Wikidata has {len(usable)} usable subjects of class {kind.qid} ({kind.noun}) with property "
            f"{relation.property} for relation {relation.name} ({reasons or 'none was left out'}), and train, val and "
            f"test need {FEWEST}: name a wider class in its module, or leave the relation out"
        )
    drawn, strata = draw(usable, per_relation, seed, splits)
    return drawn, DrawnRows(
        from_property=relation.property,
        classes=(kind.qid, *kind.classes),
        subjects=total,
        read=len({row["subject"] for row in rows}),
        left_out=dict(sorted(left_out.items())),
        usable=len(usable),
        strata=tuple(strata),
    )


def _aliases(
    service: QueryService, drawn: Mapping[str, Mapping[str, Sequence[LabelledSubject]]], language: str, progress: Report
) -> tuple[dict[str, tuple[str, ...]], list[QueryAnswer]]:
    """Return the aliases of all drawn objects that are items, and the answers that gave them."""
    found = (value.id for splits in drawn.values() for each in splits.values() for row in each for value in row.objects)
    items = sorted({value for value in found if value and as_qid(value) == value}, key=number_of)
    groups = [items[at : at + sparql.GROUP] for at in range(0, len(items), sparql.GROUP)]
    answers = service.answers([sparql.aliases(group, language) for group in groups], "aliases (groups)", progress)
    rows = (row for answer in answers for row in answer.rows)
    names = grouped((row["item"].removeprefix(WIKIDATA_ITEM), readable(row.get("alias", ""))) for row in rows)
    return {qid: tuple(sorted({*filter(None, spellings)})) for qid, spellings in names.items()}, answers


def _lines(
    split: str, drawn: Mapping[str, Mapping[str, Sequence[LabelledSubject]]], aliases: Mapping[str, tuple[str, ...]]
) -> bytes:
    """Return the file of a split."""
    rows: list[dict[str, Any]] = [
        {
            "SubjectEntityID": subject.qid,
            "SubjectEntity": subject.label,
            "Relation": relation,
            "ObjectEntities": [
                list(dict.fromkeys((*value.names, *aliases.get(value.id or "", ())))) for value in subject.objects
            ],
            "ObjectEntitiesID": [value.id for value in subject.objects],
        }
        for relation, splits in drawn.items()
        for subject in splits[split]
    ]
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows).encode()
