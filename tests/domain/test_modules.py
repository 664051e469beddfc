import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command import Command
from languages import client
from wikidata_server import Json, Ranked, WikidataServer, claim, item, prop

import lmkbc
from lmkbc import InputError, LmkbcError, Relation, Workspace
from lmkbc.domain.modules import new_relations

ROOT = Path(__file__).resolve().parents[2]
CLASSES = {"Q5": "human", "Q7397": "software", "Q515": "city", "Q6256": "country", "Q11573": "metre", "Q3710": "foot"}
NASTY = 'x" """\\ {y} \u2028\nimport os; os.abort()'


def properties() -> list[Json]:
    human, software, city, country = (["Q5"], ["Q7397"], ["Q515"], ["Q6256"])

    def typed(subjects: list[str], values: list[str], *more: Json) -> list[Json]:
        return [claim("P2302", "Q21503250", P2308=subjects), claim("P2302", "Q21510865", P2308=values), *more]

    inverse = {name: claim("P2302", "Q21510855", P2306=[name]) for name in ("P36", "P1376")}
    single = claim("P2302", "Q19474404")
    height = [
        claim("P2302", "Q21514353", P2305=["Q3710", "Q11573"]),
        claim("P2302", "Q52848401"),
    ]
    described = "person who made it (use on works, not humans); see P50"
    return [
        *(item(qid, label) for qid, label in CLASSES.items()),
        prop("P287", "designed by", constraints=typed(software, human), description=described),
        prop("P36", "capital", constraints=typed(country, city, single, inverse["P1376"])),
        prop("P1376", "capital of", constraints=typed(city, country, inverse["P36"])),
        prop("P47", "shares border with", constraints=typed(country, city, claim("P2302", "Q21510862"))),
        prop("P2044", "elevation above sea level", "quantity", height),
        prop("P18", "image", "commonsMedia"),
        prop("P7777", "", "string"),
        prop("P8001", "twice"),
        prop("P8002", "twice"),
        prop("P8003", NASTY, description=NASTY),
        prop("P8004", "size", "quantity", [claim("P2302", Ranked("Q19474404", "deprecated"))]),
    ]


@pytest.fixture
def made(tmp_path: Path) -> Any:
    def make(*ids: str, **settings: Any) -> dict[str, Relation]:
        with WikidataServer(properties(), merged={"P9001": "P36"}) as stand_in:
            new_relations(ids, tmp_path / "relations", client=client(stand_in.api), **settings)
        return dict(Workspace(tmp_path).relations)

    return make


def test_a_relation_has_what_the_property_says(made: Any) -> None:
    relations = made("P287", "P36", "P1376", "P47", "p2044")
    designer, capital, border, height = (relations[name] for name in ("P287", "P36", "P47", "P2044"))
    assert designer.name == "designed-by"
    assert (designer.subject_type.noun, designer.object_type.noun) == ("software", "person")
    assert designer.definition == "Person who made it. Every one counts; nothing when there is none."
    assert (capital.functional, capital.inverse_of, designer.functional) == (True, "capital-of", False)
    assert border.symmetric
    assert border.object_type == border.subject_type
    assert (height.kind, height.unit, height.unit_id, height.shape.integer) == ("number", "metres", "Q11573", True)


def test_a_class_of_subjects_may_be_named(made: Any) -> None:
    relation = made("P287", subject_class="Q515")["P287"]
    assert (relation.subject_type.qid, relation.subject_type.noun) == ("Q515", "city")
    for wrong in ("city", "Q777"):
        with pytest.raises(InputError, match="no class"):
            made("P36", subject_class=wrong)


@pytest.mark.parametrize(
    ("ids", "reason"),
    [
        (["P287", "P5000"], "no property P5000"),
        (["P287", "P99999999999"], "is no property"),
        (["P287", "P999999999"], "no property P999999999"),
        (["P287", "P9001"], "P9001 was merged into P36: name P36"),
        (["P287", "P18"], r"P18 \(image\) has values of the type 'commonsMedia'"),
        (["P287", "P7777"], "no English label"),
        (["P287", "P287"], "P287 is named twice"),
        (["P287", "designer"], "'designer' is no property"),
        (["P287", "P8001", "P8002"], "P8002 would be the second relation named 'twice'"),
    ],
)
def test_bad_properties_are_one_sentence_and_nothing_is_written(
    made: Any, tmp_path: Path, ids: list[str], reason: str
) -> None:
    with pytest.raises(InputError, match=reason) as caught:
        made(*ids)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "relations").exists()


def test_what_is_there_is_never_replaced(made: Any, tmp_path: Path) -> None:
    made("P36")
    (tmp_path / "relations" / "capital.py").write_text("mine")
    with pytest.raises(InputError, match="is there already"):
        made("P287", "P36")
    assert [path.name for path in (tmp_path / "relations").glob("*.py")] == ["capital.py"]
    with pytest.raises(InputError, match="second relation named 'designed-by'"):
        made("P287", taken=["designed-by"])


def test_a_folder_that_cannot_be_written(made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InputError, match="may not be written to"):
        made("P36")


def test_a_disk_that_fills_leaves_nothing_half_written(
    made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Path] = []

    def write(path: Path, content: bytes, *, new: bool) -> None:
        if written:
            raise LmkbcError("no space")
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        written.append(path)

    monkeypatch.setattr("lmkbc.domain.modules.write_bytes", write)
    with pytest.raises(LmkbcError, match="no space"):
        made("P36", "P287")
    assert written
    assert not [*(tmp_path / "relations").iterdir()]


def test_modules_have_the_layout_of_the_house_and_hold_no_code_of_a_label(made: Any, tmp_path: Path) -> None:
    relations = made("P287", "P36", "P1376", "P47", "P2044", "P8003", "P8004")
    assert "os.abort" in relations["P8003"].question
    (tmp_path / "own").mkdir()
    lmkbc.new_relations(
        ["first-appeared:string", "number_of_keywords:number", "designer:entity"], workspace=tmp_path / "own"
    )
    files = [str(path) for path in tmp_path.rglob("*.py")]
    for step in (["check"], ["format", "--check"]):
        command = [sys.executable, "-m", "ruff", *step, "--no-cache", "--config", str(ROOT / "pyproject.toml"), *files]
        assert subprocess.run(command, capture_output=True, check=False).returncode == 0, step


HOSTILE = [
    '""";__import__("os").abort()#',
    "\\",
    "x\\",
    'x"',
    '\'"\'"""',
    "a\nimport os\nos.abort()",
    "\x00\x1b[2J\r\u202e\u2028\x85",
    "{subject.__class__}{mask}{0}",
    "\u200f" * 300,
    "(s) / x",
    "'\"" * 200,
    "Q5\n",
    "P36'",
    "Q0",
]
"""What a server may send in place of a label or an id."""


def entity_ids(*texts: str) -> list[Json]:
    """Return snaks of ids that are as given."""
    return [{"datavalue": {"type": "wikibase-entityid", "value": {"id": text}}} for text in texts]


@pytest.mark.whole(but=["wikibase"])
@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("kind", ["wikibase-item", "quantity", "time", "string"])
def test_what_a_server_sends_stays_in_literals(tmp_path: Path, hostile: str, kind: str) -> None:
    qualifiers = {name: entity_ids(hostile, "Q5") for name in ("P2308", "P2305", "P2306")}
    types = ("Q21503250", "Q21510865", "Q21510855", "Q21514353", "Q52848401", "Q19474404", "Q21502410")
    constraints = [claim("P2302", name) | {"qualifiers": qualifiers} for name in types]
    constraints.append({"mainsnak": entity_ids(hostile)[0], "rank": hostile, "qualifiers": {hostile: []}})
    for label, more in ((hostile, "plain"), ("plain", hostile)):
        sent = prop("P36", label, kind, constraints, description=more)
        sent["aliases"] = {"en": [{"language": "en", "value": text} for text in (more, hostile)]}
        folder = tmp_path / more.encode().hex()[:9]
        with WikidataServer([sent, item("Q5", hostile)]) as stand_in:
            (path,) = new_relations(["P36"], folder, client=client(stand_in.api))
        docstring, imported, assigned = ast.parse(path.read_bytes()).body
        assert isinstance(docstring, ast.Expr)
        assert isinstance(docstring.value, ast.Constant)
        assert isinstance(imported, ast.ImportFrom)
        assert imported.module == "lmkbc"
        assert isinstance(assigned, ast.Assign)
        for node in ast.walk(assigned.value):
            assert isinstance(node, ast.Call | ast.Name | ast.Load | ast.keyword | ast.Tuple | ast.Constant), node
            assert not isinstance(node, ast.Call) or node.func.id in {"Relation", "EntityType", "Shape"}  # type: ignore[attr-defined]
        assert path.read_text().replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("description", "definition"),
    [
        ("wheels, doors, etc. of a car. Use P1 for others", "Wheels, doors, etc. of a car"),
        ("maker, e.g. a company", "Maker, e.g. a company"),
        ("maker, i.e. who built it. Not the owner", "Maker, i.e. who built it"),
        ("part (cf. P527)", "Part"),
        ("mass, approx. in kg. See also: weight", "Mass, approx. in kg"),
        ("character of J. R. R. Tolkien. Not of others", "Character of J. R. R. Tolkien"),
        ("court of the U.S. and the U.K. Use with care", "Court of the U.S. and the U.K. Use with care"),
        ("works by authors et al. and others", "Works by authors et al. and others"),
        ("Teil, z. B. ein Rad, bzw. mehrere. Nicht das Ganze", "Teil, z. B. ein Rad, bzw. mehrere"),
        ("doors, wheels, etc.", "Doors, wheels, etc"),
        ("one sentence. Another one", "One sentence"),
        ("maker\\nof it", "Maker nof it"),
    ],
)
def test_a_definition_ends_with_a_sentence_and_not_with_an_abbreviation(
    tmp_path: Path, command: Command, description: str, definition: str
) -> None:
    with WikidataServer([prop("P36", "made by", description=description)]) as stand_in:
        command.done("init", "own")
        command.done(
            "relations", "new", "P36", "--workspace", "own", "--api-url", stand_in.api, "--contact", "me@example.org"
        )
    (relation,) = Workspace(tmp_path / "own").own_relations.values()
    assert relation.definition == f"{definition}. Every one counts; nothing when there is none."


def test_relations_of_one_file_are_refused(tmp_path: Path) -> None:
    for names in (("a-b", "a_b"), ("aB", "ab")):
        with pytest.raises(InputError, match=f"{names[0]} and {names[1]} would both be the module .*: rename one"):
            lmkbc.new_relations([f"{name}:date" for name in names], workspace=tmp_path)
    assert not [*tmp_path.iterdir()]


def test_skeletons_need_no_network_and_are_ready_to_ask(tmp_path: Path) -> None:
    lmkbc.new_relations(["P287", "p36"], offline=True, workspace=tmp_path)
    lmkbc.new_relations(["designer:entity", "first-appeared:string"], workspace=tmp_path)
    relations = Workspace(tmp_path).relations
    assert relations["P36"].name == "p36"
    assert "fill in" in (tmp_path / "relations" / "p36.py").read_text()
    assert relations["designer"].question == "What are the designers of {subject}?"
    assert relations["first-appeared"].kind == "string"
    with pytest.raises(InputError, match="would be the second relation named 'designer'"):
        lmkbc.new_relations("designer:entity", workspace=tmp_path)


def test_a_dump_serves_as_well(made: Any, tmp_path: Path) -> None:
    import json

    dump = tmp_path / "dump.json"
    lines = ",\n".join(json.dumps(each) for each in properties())
    dump.write_text(f"[\n{lines}\n]\n")
    new_relations(["P287", "P2044"], tmp_path / "relations", dump=dump)
    relations = dict(Workspace(tmp_path).relations)
    (tmp_path / "relations" / "designed_by.py").unlink()
    (tmp_path / "relations" / "elevation_above_sea_level.py").unlink()
    assert made("P287", "P2044") == relations
    with pytest.raises(InputError, match="no property P5000"):
        new_relations(["P5000"], tmp_path / "relations", dump=dump)
    (tmp_path / "broken.json").write_text('[\n{"type":"property","id":"P5000","labels":7}\n]\n')
    with pytest.raises(InputError, match="P5000 cannot be read"):
        new_relations(["P5000"], tmp_path / "relations", dump=tmp_path / "broken.json")


@pytest.mark.parametrize("fault", ["429", "503", "cut JSON", "cut short", "time-out"])
def test_a_fault_passes_and_one_that_stays_is_one_sentence(tmp_path: Path, fault: str) -> None:
    with WikidataServer(properties(), fault=lambda number, _: fault if number == 1 else None) as stand_in:
        assert new_relations(["P36"], tmp_path / "relations", client=client(stand_in.api))
        stand_in.fault = lambda *_: fault
        with pytest.raises(LmkbcError, match="did not answer for 'P287'") as caught:
            new_relations(["P287"], tmp_path / "relations", client=client(stand_in.api, patience=0.3))
    assert "\n" not in str(caught.value)
