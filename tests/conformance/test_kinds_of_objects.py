"""Every kind of objects keeps to this: a new one in the registry passes all of this, and needs a case."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import RdfFormat, Store

import lmkbc
from lmkbc import Workspace, registry
from lmkbc.answer.parse import parse
from lmkbc.domain.modules import new_relations
from tests.command import Command
from tests.domain.languages import client
from tests.wikidata_readers import items
from tests.wikidata_server import WikidataServer, prop


@dataclass(frozen=True, kw_only=True)
class Case:
    """A kind of objects. reply: a model's text, and the objects in it. same, other: texts that mean the first, or not.

    id: item of the object. settings: lines of the relation's module.
    """

    reply: str
    objects: tuple[str, ...]
    same: tuple[str, ...]
    other: tuple[str, ...]
    id: str | None = None
    settings: str = ""


CASES = {
    "entity": Case(reply="Lima", objects=("Lima",), same=("lima",), other=("Rome",), id="Q2868"),
    "string": Case(reply='"Citius, altius"', objects=("Citius, altius",), same=("citius altius",), other=("Citius",)),
    "strings": Case(reply="WABC; KQED", objects=("WABC", "KQED"), same=("wabc",), other=("KQED",)),
    "text": Case(
        reply="“Je me souviens”",
        objects=("Je me souviens",),
        same=("je me souviens",),
        other=("Je me lave",),
        settings='language="fr"',
    ),
    "url": Case(
        reply="See https://example.org/a.",
        objects=("https://example.org/a",),
        same=(" https://example.org/a",),
        other=("https://example.org/A",),
    ),
    "identifier": Case(reply="`A1234`.", objects=("A1234",), same=("A1234 ",), other=("a1234", "A123")),
    "number": Case(
        reply="About 39 square miles.",
        objects=("101.0095",),
        same=("101.0095", "39 sq mi", "104"),
        other=("390", "39", "many"),
        settings='unit="km2", unit_id="Q712226"',
    ),
    "date": Case(
        reply="It was on 12 October 1985.",
        objects=("1985-10-12",),
        same=("12.10.1985", "c. 12 October 1985"),
        other=("1985", "1985-10-13", "soon"),
    ),
    "coordinates": Case(
        reply="It lies at 45°30′12″ N, 73°34′W.",
        objects=("45.50333, -73.567",),
        same=("45.5, -73.57", "Point(-73.57 45.5)", "45.5° N 73.57° W", "lat: 45.5, lon: -73.57", "@45.5/-73.57"),
        other=("45.5, 73.57", "46, -73.57", "-45.5, -73.57", "here", "95, 200"),
    ),
}
PROPERTY = "P9999"
FORMATS = ("ntriples", "wikidata-json")
"""Formats of exports that are read as known facts, too."""


def test_every_kind_has_a_case() -> None:
    assert [*CASES] == sorted(CASES, key=[*CASES].index)
    assert {*CASES} == {*registry.KINDS}


@pytest.fixture
def made(request: pytest.FixtureRequest, command: Command, tmp_path: Path) -> Path:
    """A workspace with one relation of a kind, as `init` makes it."""
    case, folder = CASES[request.param], tmp_path / "own"
    command.done("init", folder, "--relation", f"thing:{request.param}")
    module = folder / "relations" / "thing.py"
    text = module.read_text(encoding="utf-8").replace('property="thing"', f'property="{PROPERTY}"')
    module.write_text(text.replace("kind=", f"{case.settings}, kind=" if case.settings else "kind="), encoding="utf-8")
    (folder / "subjects.csv").write_text("name,id\nX,Q1\n")
    return folder


@pytest.mark.whole(only=["string", "text", "url", "identifier", "number", "coordinates"])
@pytest.mark.parametrize(("made", "kind"), [(name, name) for name in CASES], indirect=["made"])
def test_from_init_to_each_export_and_back(made: Path, kind: str, command: Command) -> None:
    case = CASES[kind]
    row: dict[str, Any] = {"SubjectEntity": "X", "Relation": "thing", "model": "m", "completions": [case.reply]}
    if case.id:
        del row["completions"]
        row["candidates"] = [{"object": case.objects[0], "id": case.id, "score": 1.0}]
    (made / "from.jsonl").write_text(json.dumps(row) + "\n")
    own = ("--workspace", made)
    command.done(
        *("build", *own, "--subjects", made / "subjects.csv", "--from", made / "from.jsonl", "--untuned"),
        *("--least", "0", "--out", "kb", "--trust"),
    )
    for name in (name for name in registry.EXPORTS if not name.startswith(("quickstatements", "worklist"))):
        command.done("export", "kb", "--format", name, "--out", f"kb.{name}", "--least", "0")
    Path("nothing.json").write_text('[\n{"type":"item","id":"Q1","claims":{}}\n]\n')
    written = (
        "--format",
        "quickstatements-csv",
        "--out",
        "new",
        "--least",
        "0",
        "--unreviewed",
        "--known",
        "nothing.json",
    )
    command.done("export", "kb", *written)
    assert any(f"qid,{PROPERTY}" in path.read_text(encoding="utf-8") for path in Path("new").glob("*.csv"))
    assert items(Path("kb.wikidata-json").read_text(encoding="utf-8"))
    for name in ("ntriples", "statements"):
        Store().load(Path(f"kb.{name}").read_bytes(), RdfFormat.N_TRIPLES)
    table = Path("kb.csv").read_text(encoding="utf-8")
    assert all(text in table.replace('""', '"') for text in (*case.objects, kind))
    Path("kb.table").write_text(
        "subject,property,object\n" + "".join(f'Q1,{PROPERTY},"{case.id or text}"\n' for text in case.objects)
    )
    for known in (*FORMATS, "table"):
        command.done("audit", "kb", "--known", f"kb.{known}", "--out", f"{known}.marks.csv")
        marks = Path(f"{known}.marks.csv").read_text(encoding="utf-8").splitlines()[1:]
        assert [line.partition(",")[0] for line in marks] == ["known"] * len(case.objects), known


@pytest.mark.parametrize("kind", CASES)
def test_what_objects_mean(kind: str, tmp_path: Path) -> None:
    case, known = CASES[kind], registry.KINDS.get(kind)
    (tmp_path / "relations").mkdir()
    (path,) = lmkbc.new_relations(f"thing:{kind}", workspace=tmp_path)
    if case.settings:
        path.write_text(path.read_text(encoding="utf-8").replace("kind=", f"{case.settings}, kind="), encoding="utf-8")
    relation = Workspace(tmp_path, trust=True).relation("thing")
    assert parse(case.reply, relation, "X").objects == case.objects
    first = known.meaning(case.objects[0], relation)
    for texts, right in (((case.objects[0], *case.same), True), (case.other, False)):
        for text in texts:
            assert known.is_same(known.meaning(text, relation), first, relation, coarser=False) == right, text
    if known.example:
        assert known.meaning(known.example.split("'")[1], relation) is not None
    assert known.schema["type"] in ("string", "number", "object")
    assert known.name == kind
    for data_type in known.data_types:
        with WikidataServer([prop("P99", "thing", data_type)]) as wikidata:
            new_relations(["P99"], tmp_path / data_type / "relations", client=client(wikidata.api))
        drafted = Workspace(tmp_path / data_type, trust=True).relations["P99"]
        assert data_type in registry.KINDS.get(drafted.kind).data_types
