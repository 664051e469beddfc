"""Objects that the index knows as another kind of thing are dropped; what it does not know is kept."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from command import Command
from opened import part

from lmkbc import Relation
from lmkbc.link.index_sources import build_index
from lmkbc.testing import Candidate, CandidateSet, Dropped, Query, State

ROWS = [
    "Inn,Q14369,Q4022",
    "inn,Q27686,Q11707",  # the hotel: a name may mean both
    "Guitar,Q6607,Q110295396",
    "Passau,Q4190,Q515",
    "Nile,Q3392,Q47521",  # a stream: below river
    "Nowhere,Q999,",
]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("index")
    (folder / "table.csv").write_text("\n".join(["text,id,classes", *ROWS]) + "\n")
    build_index(folder / "index.sqlite", tables=[folder / "table.csv"])
    return folder / "index.sqlite"


RECIPE = """
description = "d"
[[generate]]
component = "recorded"
[clean]
{clean}
[select]
rule = "top-k"
k = 9
"""


def test_a_recipe_of_any_generator_asks_for_it(command: Command, index: Path, tmp_path: Path) -> None:
    answers = tmp_path / "answers.jsonl"
    command.done("predict", "--edition", "mini", "--system", "prior", "--out", "p")
    with gzip.open(tmp_path / "p" / "candidates.jsonl.gz", "rt") as file:
        asked = [json.loads(line) for line in file]
    known = ["Passau", "Inn", "Guitar", "Nile", "Nowhere", "Atlantis"]
    names: list[dict[str, Any]] = [{"object": name, "score": 0.9 - n / 10} for n, name in enumerate(known)]
    names += [{"object": "the hotel", "score": 0.2, "id": "Q27686"}, {"object": "another", "score": 0.1, "id": "Q1"}]
    names += [{"object": "Guitar", "score": 0.05, "id": "Q27686"}]  # a hotel of that name
    answers.write_text("".join(json.dumps(row | {"candidates": names}) + "\n" for row in asked))
    recipe, counts = tmp_path / "own.toml", {}
    for types, clean in (("false", ""), ("true", 'component = "yang23/types"')):
        recipe.write_text(RECIPE.format(clean=clean))
        arguments = ["predict", "--edition", "mini", "--system", recipe, "--from", answers, "--index", index]
        command.done(*arguments, "--out", types)
        manifest = json.loads((tmp_path / types / "manifest.json").read_bytes())
        assert index.name in manifest["inputs"]
        with gzip.open(tmp_path / types / "candidates.jsonl.gz", "rt") as file:
            found = [json.loads(line) for line in file]
        counts[types] = {(row["Relation"], one["object"], one.get("id")) for row in found for one in row["candidates"]}
    assert ("PersonPlaysInstrument", "Guitar", "Q6607") in counts["true"]
    hotel = ("PersonPlaysInstrument", "Guitar", "Q27686")
    assert hotel in counts["false"] - counts["true"]
    dropped = {(relation, name) for relation, name, _ in counts["false"] - counts["true"]}
    assert ("PersonPlaysInstrument", "Passau") in dropped
    assert ("RiverBasinsCountry", "Guitar") in dropped
    instruments = {name for relation, name, _ in counts["true"] if relation == "PersonPlaysInstrument"}
    assert instruments == {"Guitar", "Nowhere", "Atlantis", "another"}, "of a link, its own kind counts"
    assert not any(relation == "PersonHasNumberOfChildren" for relation, _ in dropped), "numbers have no kind"


def test_without_an_index_there_is_nothing_to_tell_kinds_by(command: Command, tmp_path: Path) -> None:
    recipe = tmp_path / "own.toml"
    recipe.write_text(RECIPE.format(clean='component = "yang23/types"').replace("recorded", "prior"))
    assert "name one with --index" in command.fails("predict", "--edition", "mini", "--system", recipe)


@pytest.mark.parametrize(
    ("shape", "kept"),
    [
        ({}, "Ada King|al-Battani|Room 7|Émile Zola winner|X Æ A-Xii"),
        ({"longest": 8}, "Ada King|Room 7"),
        ({"component": "jhh25/shape", "shortest": 7, "words": 2}, "Ada King|al-Battani"),
        ({"capital": "name", "digits": False}, "Ada King|Émile Zola winner|X Æ A-Xii"),
        ({"capital": "words"}, "Ada King|Room 7|X Æ A-Xii"),
        ({"component": "jhh25/shape", "without": ("WINNER", "emile")}, "Ada King|al-Battani|Room 7|X Æ A-Xii"),
        ({"only": ("spouses",), "longest": 1}, "Ada King|al-Battani|Room 7|Émile Zola winner|X Æ A-Xii"),
        ({"only": ("rivers",), "longest": 1}, ""),
    ],
)
def test_names_of_another_shape_are_dropped(relations: dict[str, Relation], shape: dict[str, Any], kept: str) -> None:
    names = ["Ada King", "al-Battani", "Room 7", "Émile Zola winner", "X Æ A-Xii"]
    found = CandidateSet(Query("s", "Rivers"), tuple(Candidate(name) for name in names))
    left = part("clean", relations, shape=shape).kept(found, relations["Rivers"])
    assert "|".join(one.text for one in left.candidates) == kept
    assert {loss.rule for loss in left.dropped} <= {"name shape"}


def test_words_and_ids_that_are_never_an_object_are_dropped(relations: dict[str, Relation]) -> None:
    given = [("None", "Q9"), ("unknown", None), ("Inn", "Q14369"), ("film", "Q543287"), ("me", "Q1"), ("Q543287", None)]
    found = CandidateSet(Query("s", "Rivers", "Q1"), tuple(Candidate(text, id=qid) for text, qid in given))
    cleaning = part("clean", relations, stop=("none", "Unknown", "Q543287"))
    kept = cleaning.kept(found, relations["Rivers"])
    assert [one.text for one in kept.candidates] == ["Inn"]
    assert {loss.rule for loss in kept.dropped} == {"stop", "subject"}
    assert part("clean", relations, subject=False).kept(found, relations["Rivers"]) == found
    nothing = cleaning.kept(CandidateSet(Query("s", "Rivers"), (Candidate("NONE"),)), relations["Rivers"])
    assert (nothing.candidates, nothing.draws, nothing.failed) == ((), (State.DROPPED,), False)
    assert nothing.dropped == (Dropped("NONE", "stop"),)
