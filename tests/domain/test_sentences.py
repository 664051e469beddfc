from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from languages import client
from wikidata_server import Json, WikidataServer, claim, item, prop

from lmkbc import Relation, Workspace
from lmkbc.domain.modules import new_relations

ROWS = [line.split("\t") for line in (Path(__file__).parent / "wordings.tsv").read_text().splitlines()]
"""Property, label, data type, S for a single value, classes of values, units, question, statement."""


THINGS, ONE_THING = ("wikibase-item", "M", ""), ("wikibase-item", "S", "")
PERSONS = ("wikibase-item", "M", "Q5 human;Q43229 organization;Q95074 fictional character")
NUMBERS, DATES = ("quantity", "M", ""), ("time", "M", "")
Objects = tuple[str, str, str]
"""Data type, S for a single value, and classes of values."""


def entities(rows: Iterable[Sequence[str]] = ROWS) -> list[Json]:
    """Return the listed properties, and the classes and units that their constraints name."""
    made: dict[str, Json] = {}
    for pid, label, datatype, single, classes, units, *_ in rows:
        kinds, measures = (
            [part.split(" ", 1) for part in text.split(mark) if part] for text, mark in _parts(classes, units)
        )
        made.update({qid: item(qid, name) for qid, name in (*kinds, *measures)})
        constraints = [claim("P2302", "Q19474404")] if single == "S" else []
        if kinds:
            constraints.append(claim("P2302", "Q21510865", P2308=[qid for qid, _ in kinds]))
        if measures:
            constraints.append(claim("P2302", "Q21514353", P2305=[qid for qid, _ in measures]))
        made[pid] = prop(pid, label, datatype, constraints)
    return list(made.values())


def _parts(classes: str, units: str) -> list[tuple[str, str]]:
    return [(classes, ";"), (units, ",")]


def test_listed_properties_are_worded_as_a_person_would(tmp_path: Path) -> None:
    """Compare with a table whose every line was read with a real subject and object put in."""
    with WikidataServer(entities(), delay=0.02) as stand_in:
        paths = new_relations([row[0] for row in ROWS], tmp_path / "relations", client=client(stand_in.api))
    assert len(paths) == len(ROWS) >= 86
    assert stand_in.most_at_once <= 3
    assert all("jane@example.org" in head for head in stand_in.headers)
    relations = Workspace(tmp_path).relations
    made = {row[0]: (relations[row[0]].question, relations[row[0]].statement) for row in ROWS}
    assert made == {row[0]: (row[6], row[7]) for row in ROWS}


def worded(folder: Path, label: str, objects: Objects = THINGS) -> Relation:
    """Return the relation of a property with this label."""
    with WikidataServer(entities([("P99", label, *objects, "")])) as stand_in:
        new_relations(["P99"], folder / "relations", client=client(stand_in.api))
    return Workspace(folder, trust=True).relations["P99"]


@pytest.mark.parametrize(
    ("label", "objects", "question", "statement"),
    [
        ("vehicle normally used", THINGS, "Which vehicles has {subject} normally used?", ""),
        ("parent taxon", THINGS, "What are the parent taxa of {subject}?", ""),
        ("has pet", PERSONS, "Who are the pets of {subject}?", "{object} is a pet of {subject}."),
        ("has effect", THINGS, "", "The effects of {subject} include {object}."),
        ("software", THINGS, "What is the software of {subject}?", "The software of {subject} is {object}."),
        ("crew members", PERSONS, "", "The crew members of {subject} include {object}."),
        ("code repository URL", THINGS, "What is the code repository URL of {subject}?", ""),
        ("visitors per year", NUMBERS, "How many visitors per year does {subject} have?", ""),
        (
            "goals scored",
            NUMBERS,
            "How many goals has {subject} scored?",
            "The number of goals scored by {subject} is {object}.",
        ),
        ("box office", NUMBERS, "What is the box office gross of {subject}?", ""),
        (
            "first appeared",
            DATES,
            "When did {subject} first appear?",
            "The date when {subject} first appeared is {object}.",
        ),
        ("founded", DATES, "When was {subject} founded?", "The date when {subject} was founded is {object}."),
        ("last update", DATES, "When was the last update of {subject}?", ""),
        ("effective date", DATES, "What is the effective date of {subject}?", ""),
        ("time", DATES, "What is the time of {subject}?", "The time of {subject} is {object}."),
        ("located in/on physical feature", THINGS, "Which physical features is {subject} located in or on?", ""),
        ("handedness", THINGS, "What is the handedness of {subject}?", "The handedness of {subject} is {object}."),
        ("capital of", ONE_THING, "What is {subject} the capital of?", ""),
        ("member of the crew of", THINGS, "What has {subject} been a member of the crew of?", ""),
        ("different from", THINGS, "What is {subject} different from?", ""),
        ("in opposition to", THINGS, "", "{subject} is in opposition to {object}."),
        ("partially coincident with", THINGS, "", "{subject} is partially coincident with {object}."),
        ("lyrics by", PERSONS, "Who does {subject} have lyrics by?", "{subject} has lyrics by {object}."),
        (
            "is pollinated by",
            THINGS,
            "Who or what is {subject} pollinated by?",
            "{subject} is pollinated by {object}.",
        ),
        ("licensed to broadcast to", THINGS, "What is {subject} licensed to broadcast to?", ""),
        ("regulates (molecular biology)", THINGS, "What does {subject} regulate?", ""),
        ("present in work", THINGS, "Which works is {subject} present in?", "{subject} is present in {object}."),
        (
            "product, material, or service produced or provided",
            THINGS,
            "Which products, materials, or services has {subject} produced or provided?",
            "{subject} produced or provided {object}.",
        ),
    ],
)
def test_forms_of_labels(tmp_path: Path, label: str, objects: Objects, question: str, statement: str) -> None:
    made = worded(tmp_path, label, objects)
    assert (question and made.question, statement and made.statement) == (question, statement)


@pytest.mark.parametrize(
    ("noun", "with_article"),
    [
        ("hour", "an hour"),
        ("university", "a university"),
        ("UN number", "a UN number"),
        ("ISBN-13", "an ISBN-13"),
        ("TV series", "a TV series"),
    ],
)
def test_articles_of_nouns(tmp_path: Path, noun: str, with_article: str) -> None:
    assert f"is {with_article} of {{subject}}" in worded(tmp_path, f"has {noun}", PERSONS).statement


@pytest.mark.parametrize(
    ("noun", "plural"),
    [
        ("city in Europe", "cities in Europe"),
        ("status", "statuses"),
        ("basis", "bases"),
        ("box", "boxes"),
        ("day", "days"),
        ("employees", "employees"),
        ("children", "children"),
        ("software", "software"),
    ],
)
def test_plurals_of_nouns(tmp_path: Path, noun: str, plural: str) -> None:
    made = worded(tmp_path, "capital of", ("wikibase-item", "M", f"Q77 {noun}"))
    assert made.question == f"Which {plural} is {{subject}} the capital of?"


@pytest.mark.parametrize(
    "label", ["(s)", "/", "of", "has", "educated", "{object} of {subject}", '"""', "of of", "by the"]
)
def test_every_label_has_a_form(tmp_path: Path, label: str) -> None:
    made = worded(tmp_path, label, ("wikibase-item", "M", "Q77 city"))
    assert made.question.count("{subject}") == made.statement.count("{object}") == 1
