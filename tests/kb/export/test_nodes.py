"""Things that a base has settled are the same nodes in every export: two of one name, and one in two spellings."""

import csv
import json
from pathlib import Path

import networkx
import pytest
from bases import Base, answered, fact, written
from command import Command
from pyoxigraph import RdfFormat, parse

from lmkbc.testing import CandidateSet, Query

ENTITY = "urn:lmkbc:entity/"
NEIGHBOURS = {
    "Atom": [("Electrons", None, 0.9)],
    "Cell": [("electrons", None, 0.9), ("Gaul/1", None, 0.8)],
    "Gaul": [("Rome", "Q220", 0.9), ("Gaul", None, 0.8)],
    "Milan": [("rome", None, 0.9)],
}
"""Subject -> objects. Two subjects have the name Gaul, so that the object Gaul is a third thing of this name."""


def answer(query: Query) -> CandidateSet:
    return answered(query, *NEIGHBOURS[query.subject])


@pytest.fixture
def run(command: Command, tmp_path: Path) -> Command:
    base = Base(tmp_path, [])
    base.file.write_text("name,id\nAtom,\nCell,\nGaul,Q38060\nGaul,Q9\nMilan,Q490\n")
    with pytest.MonkeyPatch.context() as patch:
        base.build(patch, answer, ["country-borders"])
    return command.under("export")


def pairs_of_triples(path: Path) -> list[tuple[str, str]]:
    made = [quad.triple for quad in parse(path=path, format=RdfFormat.N_TRIPLES)]
    ends = [(one.subject.value, one.object.value) for one in made if "/prop/direct/" in one.predicate.value]
    if not ends:
        whose = {one.object.value: one.subject.value for one in made if one.predicate.value.endswith("/prop/P47")}
        ends = [(whose[one.subject.value], one.object.value) for one in made if "/statement/P47" in one.predicate.value]
    return [
        tuple(end.removeprefix(ENTITY).removeprefix("http://www.wikidata.org/entity/") for end in pair) for pair in ends
    ]


PAIRS = [
    ("Atom", "Electrons"),
    ("Cell", "Electrons"),
    ("Cell", "Gaul%2F1"),
    ("Q38060", "Q220"),
    ("Q38060", "Gaul"),
    ("Q9", "Q220"),
    ("Q9", "Gaul"),
    ("Q490", "Q220"),
]


@pytest.mark.parametrize("form", ["ntriples", "statements", "csv", "graphml", "wikidata-json", "quickstatements"])
def test_one_thing_is_one_node(run: Command, form: str) -> None:
    Path("known.csv").write_text("subject,property,object\nQ38060,P47,Q1\nQ9,P47,Q1\nQ490,P47,Q1\n")
    known = ["--known", "known.csv", "--unreviewed"] if form == "quickstatements" else []
    run.done("kb", "--format", form, "--out", "x", *known)
    path = Path("x")
    if known:
        lines = Path("x/review-00001.txt").read_text().splitlines()
        ends = [(cells[0], cells[2].split()[0]) for line in lines if (cells := line.split("\t"))]
        assert ends == [pair for pair in PAIRS if pair[1] == "Q220"]
    elif form == "wikidata-json":
        claims = {one.get("id", ""): one["claims"]["P47"] for one in json.loads(path.read_text())}
        (milan,) = claims["Q490"]
        assert milan["mainsnak"]["datavalue"]["value"]["id"] == "Q220"
    elif form == "graphml":
        drawn = networkx.read_graphml(path)
        assert sorted(name for _, name in drawn.nodes(data="label")) == sorted(
            ["Atom", "Electrons", "Cell", "Gaul/1", "Gaul", "Rome", "Gaul", "Gaul", "Milan"]
        )
    elif form == "csv":
        rows = csv.DictReader(path.read_text().splitlines())
        assert [
            (row["subject_node"].removeprefix("entity/"), row["object_node"].removeprefix("entity/")) for row in rows
        ] == PAIRS
    else:
        assert pairs_of_triples(path) == PAIRS


def test_things_of_one_name_are_nodes_of_their_own_with_this_label(command: Command, tmp_path: Path) -> None:
    base = Base(tmp_path, [])
    base.file.write_text("name,id,class\nGaul,,country\nGaul,,tribe\n")
    with pytest.MonkeyPatch.context() as patch:
        base.build(patch, lambda query: answered(query, ("Rome", "Q220", 0.9)), ["country-borders"])
    command.done("export", "kb", "--format", "ntriples", "--out", "x")
    assert {line.split()[0] for line in Path("x").read_text().splitlines()} == {f"<{ENTITY}Gaul>", f"<{ENTITY}Gaul/1>"}


def test_each_spelling_is_a_name_of_its_node(run: Command) -> None:
    run.done("kb", "--format", "ntriples", "--out", "x")
    names = {
        (line.split()[1].rpartition("#")[2], line.split('"')[1])
        for line in Path("x").read_text().splitlines()
        if f"<{ENTITY}Electrons> <" in line and '"' in line
    }
    assert names == {("label>", "Electrons"), ("altLabel>", "electrons")}


def test_rows_of_one_thing_are_one_item_of_wikidata_s_json(command: Command) -> None:
    rows = [(0, 7, "Q5", "Q1"), (1, 8, "Q6", "Q2"), (2, 7, "Q5", "Q3"), (3, None, None, "Q4")]
    names = ("country-borders", "children")
    written(
        Path("kb"),
        [
            fact(row, name, "4", 0.9, literal="4", object_id=qid, subject_id=subject, subject_entity=entity)
            for name in names
            for row, entity, subject, qid in rows
        ],
    )
    command.done("export", "kb", "--format", "wikidata-json", "--out", "x")
    found = [
        (one.get("id"), *(len(some) for some in one["claims"].values())) for one in json.loads(Path("x").read_text())
    ]
    assert found == [("Q5", 2, 2), ("Q6", 1, 1), (None, 1, 1)]


OWNERS = {
    "Atom": [("Ruhrverband", None, 0.9), ("Cell", None, 0.9)],
    "Cell": [("RUHRVERBAND", None, 0.9)],
    "Gaul": [("Congo", "Q971", 0.9)],
    "Milan": [("Congo", None, 0.9)],
}


@pytest.mark.parametrize(
    ("rows", "changed"),
    [
        (["Atom,Ruhrverband,Q882390,right,,"], {"Ruhrverband": "Q882390", "RUHRVERBAND": "Q882390"}),
        (["Gaul,,,,ruhrverband,Q882390"], {"Ruhrverband": "Q882390", "RUHRVERBAND": "Q882390"}),
        (["Atom,Ruhrverband,Q5,right,,", "Gaul,,,,Ruhrverband,Q6"], {"Ruhrverband": "Q5"}),
        (["Atom,Ruhrverband,Q5,wrong,,", "Atom,,,,Ruhr,Q5"], {"Ruhr": "Q5"}),
        (["Gaul,Congo,Q971,wrong,Congo,Q974"], {"Congo": "Q974"}),
        (["Gaul,,,,Cell,Q7"], {}),  # Cell is a given subject
        (["Niger,Ruhrverband,Q5,right,,"], {}),  # of a subject that the base does not ask
    ],
)
def test_a_name_means_the_one_thing_to_which_a_person_gave_a_qid(
    command: Command, tmp_path: Path, rows: list[str], changed: dict[str, str]
) -> None:
    base = Base(tmp_path, [])
    base.file.write_text("name,id\nAtom,\nCell,\nGaul,Q38060\nMilan,Q490\n")
    with pytest.MonkeyPatch.context() as patch:
        base.build(patch, lambda query: answered(query, *OWNERS[query.subject]), ["country-borders"])

    def nodes() -> dict[str, str]:
        command.done("export", "kb", "--format", "csv", "--out", "x")
        read = [*csv.DictReader(Path("x").read_text().splitlines())]
        Path("x").unlink()
        return {row["object"]: row["object_node"] for row in read if row["subject"] != "Gaul"}

    before = nodes()
    assert before["Ruhrverband"] == before["RUHRVERBAND"] == "entity/Ruhrverband"
    assert (before["Cell"], before["Congo"]) == ("entity/Cell", "Q971")
    rows = [f"country-borders,{row}" for row in rows]
    Path("labels.csv").write_text("\n".join(["relation,subject,object,object_id,label,value,value_id", *rows]))
    command.done("review", "kb", "labels.csv")
    after = nodes()
    assert {name: node for name, node in after.items() if node != before.get(name)} == changed
