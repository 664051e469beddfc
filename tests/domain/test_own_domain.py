"""The way from properties to labelled data, by the commands, over a stand-in of Wikidata."""

import importlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from command import Command
from languages import CONTACT, client, languages
from loopback import Body, Loopback
from wikidata_server import WikidataServer, claim, prop

import lmkbc
from lmkbc import InputError

SPLITS = ("train", "val", "test")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[WikidataServer]:
    """The small Wikidata with three properties of languages; who asks is in the environment."""
    monkeypatch.setenv("LMKBC_CONTACT", CONTACT)
    entities = languages()
    for at, entity in enumerate(each for each in entities if "P287" in each["claims"]):
        entity["claims"]["P737"] = [claim("P737", f"Q{1001 + at * 3 % 450}")]
    properties = [prop("P287", "designed by"), prop("P571", "inception", "time"), prop("P737", "influenced by")]
    with WikidataServer([*entities, *properties]) as stand_in:
        yield stand_in


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def said(body: Body) -> str:
    """Answer as gold has it for the language that the last question names, wrong for each fourth."""
    question = body["messages"][-1]["content"]
    at = int(re.findall(r"Lang (\d+)", question)[-1])
    if "hen " in question:
        return f"{1950 + at % 70}-03-05"
    if "website" in question:
        return f"https://language.example/{at}"
    return f"Person {(at * 7) % 60}" if at % 4 else "Nobody Known"


def test_the_walk_from_a_name_to_a_base(
    command: Command, world: WikidataServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, told = command.done("init", "languages")
    assert told.splitlines()[-1].startswith("made languages: go there, make relations")
    space = tmp_path / "languages"
    monkeypatch.chdir(space)
    wanted = ("P287", "P571", "--of", "Q9143", "--api-url", world.api)
    _, told = command.done("relations", "new", *wanted)
    assert told.startswith(f"Workspace {space}\n"), "its modules are run"
    assert "make labelled data with 'lmkbc data make'" in told.splitlines()[-1]
    assert "second relation named" in command.fails("relations", "new", *wanted)
    assert {path.name for path in (space / "relations").glob("*.py")} == {"designed_by.py", "inception.py"}
    make = ("data", "make", "--endpoint", world.sparql, "--per-relation", 40)
    shown, _ = command.done(*make, "--json")
    assert [(row["relation"], sum(row[split] for split in SPLITS)) for row in json.loads(shown)] == [
        ("designed-by", 40),
        ("inception", 40),
    ]
    made = files(space / "data")
    command.done(*make, "--offline")
    assert files(space / "data") == made
    shown, _ = command.done("data", "check", "languages", "--json")
    assert [(row["split"], row["state"]) for row in json.loads(shown)] == [(split, "ok") for split in SPLITS]
    with Loopback(answer=said) as model:
        asked = ("--model", "tiny", "--base-url", model.url)
        shown, told = command.done("tune", "--split", "val", *asked)
        assert "languages, val" in shown
        assert "LM-KBC" not in shown + told
        assert [path.parent.name for path in (space / "thresholds").rglob("*.toml")] == ["languages"]
        lines = [f"Lang {at},Q{1001 + at}" for at in range(100, 120)]
        (space / "subjects.csv").write_text("\n".join(["name,id", *lines]))
        command.done("build", "--subjects", "subjects.csv", "--out", "kb", *asked)
    base = pl.read_parquet(space / "kb" / "facts" / "**" / "*.parquet", hive_partitioning=True)
    assert len(base.filter(pl.col("relation") == "inception")) == 20
    assert set(base["relation"]) == {"inception", "designed-by"}
    command.done("report", "kb", "--out", "pages")
    page = (space / "pages" / "index.html").read_text()
    assert "Knowledge base of chat, languages" in page
    assert "unknown class" not in page


def test_relations_of_one_s_own_need_no_labelled_row(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = ("designer:entity", "first-appeared:date", "website:url", "size:number", "motto:string", "code:identifier")
    options = [word for kind in kinds for word in ("--relation", kind)]
    command.done("init", "languages", *options)
    monkeypatch.chdir(tmp_path / "languages")
    shown, _ = command.done("relations", "check")
    Path("subjects.csv").write_text("name\nLang 1\nLang 2\n")
    with Loopback(answer=said) as model:
        asked = ("--model", "tiny", "--base-url", model.url)
        command.done("build", "--subjects", "subjects.csv", "--out", "kb", *asked)
        shown, _ = command.done("ask", "Lang 3", "first-appeared", *asked, "--json")
    assert json.loads(shown)["objects"][0]["object"] == "1953-03-05"
    assert json.loads(shown)["edition"] == "languages"
    assert json.loads(Path("kb/manifest.json").read_text())["counts"]["queries"] == 12
    assert "the test split of edition languages is not in" in command.fails("predict", *asked)


def test_rules_that_were_tuned_on_val_need_no_train(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command.done("init", "languages", "--relation", "designer:entity")
    monkeypatch.chdir(tmp_path / "languages")
    row = {"SubjectEntity": "Lang 1", "Relation": "designer"}
    Path("data").mkdir()
    Path("data/val.jsonl").write_text(json.dumps(row | {"ObjectEntities": [["Ada"]]}) + "\n")
    Path("own.jsonl").write_text(json.dumps(row | {"model": "m", "completions": ["Ada"] * 5}) + "\n")
    Path("subjects.csv").write_text("name\nLang 1\n")
    command.done("tune", "--split", "val", "--from", "own.jsonl")
    told = command.done("build", "--from", "own.jsonl", "--subjects", "subjects.csv", "--out", "kb")[1]
    assert "selected by" in told
    assert "fewer than" in told or "few answered rows" in told


EDITION = """
from lmkbc import Edition
EDITION = Edition(
    name="2027", folder="lmkbc2027", relations=("monthOf", "dayOf", "mildest"), column="ObjectEntities",
    target="string", splits={"train": None, "val": None, "test": None},
)
"""
GOLD = {"monthOf": [["June", "Jun"]], "dayOf": ["1985-10-12"], "mildest": ["21.5"]}
"""Aliases, a day, and degrees Celsius."""


def test_an_edition_of_one_s_own_goes_from_data_to_submission_and_copies_nothing(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command.done("init", "next", "-r", "monthOf:entity", "-r", "dayOf:date", "-r", "mildest:number")
    space = tmp_path / "next"
    monkeypatch.chdir(space)
    path = space / "relations" / "mildest.py"
    path.write_text(path.read_text().replace('kind="number",', 'kind="number", unit="°C", unit_id="Q25267",'))
    data = space / "eval" / "lmkbc2027"
    data.mkdir(parents=True)
    (space / "eval" / "lmkbc2027.py").write_text(EDITION)
    for split in SPLITS:
        rows = [
            {"SubjectEntity": f"{split} {at}", "SubjectEntityID": "", "Relation": name, "ObjectEntities": gold}
            for name, gold in GOLD.items()
            for at in range(6)
        ]
        (data / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)))

    def answer(body: Body) -> str:
        question = body["messages"][-1]["content"]
        return "Jun" if "month" in question else "12 October 1985" if "day" in question else "70.7 °F"

    with Loopback(answer=answer) as model:
        asked = ("--model", "tiny", "--base-url", model.url)
        command.done("predict", "--split", "val", "--out", "run", "--untuned", *asked)
        shown, _ = command.done("evaluate", "run")
        assert re.search(r"\*\*\* Average \*\*\* +1.000 +1.000 +1.000", shown)
        command.done("tune", "--split", "val", *asked)
        command.done("predict", "--split", "test", "--out", "sent", *asked)
    shown, _ = command.done("evaluate", "sent")  # test of one's own has gold
    assert re.search(r"\*\*\* Average \*\*\* +1.000 +1.000 +1.000", shown)
    hidden = [json.loads(line) | {"ObjectEntities": []} for line in (data / "test.jsonl").read_text().splitlines()]
    (data / "test.jsonl").write_text("\n".join(map(json.dumps, hidden)))
    assert "the test split of edition 2027 has no gold" in command.fails("evaluate", "sent")
    command.done("submit", "sent/predictions.jsonl", "--edition", "2027", "--split", "test", "--out", "sent.zip")
    assert [row["Relation"] for row in map(json.loads, Path("sent/predictions.jsonl").read_text().splitlines())][
        ::6
    ] == [*GOLD]


def test_a_workspace_lies_over_the_bundled_one(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lmkbc.init("mine", relation="spouse:entity", answers="ids")
    monkeypatch.chdir(tmp_path / "mine" / "systems")
    space = lmkbc.Workspace()
    assert space.root == tmp_path / "mine"
    assert space.relation("spouse").property == "spouse"
    assert space.relation("country-borders").property == "P47"
    assert {"mine", "mini", "2023"} <= set(space.editions)
    assert space.edition("mine").target == "id"
    assert {"chat", "prior"} <= set(space.system_names())
    command.done("systems", "check", "chat")
    assert command.done("relations", "list")[0].splitlines()[1].split()[:2] == ["spouse", "spouse"]
    shown, _ = command.done("ask", "Peru", "country-borders", "--edition", "mini", "--system", "prior", "--json")
    assert json.loads(shown)["edition"] == "mini"


def test_what_init_refuses(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    init = command.under("init")
    wrong = [
        (init.fails("2023"), "'2023' is no name for a workspace"),
        (init.fails("a b"), "'a b' is no name for a workspace"),
        (init.fails("x", "--relation", "Born In:date"), "--relation is 'Born In:date': give NAME:KIND"),
        (
            init.fails("x", "--relation", "eingeführt:date"),
            "a name has letters from a to z and A to Z, digits, and single",
        ),
        (init.fails("x", "--relation", "born:day"), "the kind of born is 'day'"),
        (init.fails("x", "--relation", "born:date", "--relation", "born:url"), "names a relation twice"),
        (init.fails("x", "--answers", "qids"), "answers is 'qids'"),
    ]
    assert not (tmp_path / "x").exists()
    init.done("x")
    before = files(tmp_path / "x")
    wrong.append((init.fails("x"), "x is there already"))
    wrong.append((init.fails("x/y"), f"lies in the workspace {tmp_path / 'x'}"))
    assert files(tmp_path / "x") == before
    (tmp_path / "x" / "lmkbc.toml").write_text("answers = 'both'")
    monkeypatch.chdir(tmp_path / "x")
    wrong.append((command.fails("relations", "list"), "lmkbc.toml: setting 'answers'"))
    for told, reason in wrong:
        assert reason in told, told


def test_a_folder_that_is_only_called_relations_is_no_workspace(command: Command, tmp_path: Path) -> None:
    (tmp_path / "relations").mkdir()
    (tmp_path / "relations" / "bad.py").write_text("raise SystemExit('run')")
    command.done("relations", "list")
    assert "there is no workspace here" in command.fails("relations", "new", "P287", "--offline")


def test_one_of_the_relations_in_a_folder_of_its_own(command: Command, world: WikidataServer) -> None:
    Path("lmkbc.toml").touch()
    paths = lmkbc.new_relations("P287", of="Q9143", api_url=world.api)
    lmkbc.new_relations("P571", offline=True)
    assert [path.name for path in lmkbc.new_relations("supplier:entity")] == ["supplier.py"]
    assert paths == [Path.cwd() / "relations" / "designed_by.py"]
    told = command.fails("data", "make", "--endpoint", world.sparql)
    assert "relation p571 has no class of subjects" in told
    data = lmkbc.make_data("P287", "mine", per_relation=9, language="en", endpoint=world.sparql)
    assert data.folder == Path("mine")
    assert data.table.to_dicts()[0]["property"] == "P287"
    assert "designed-by" in data._repr_html_()


def test_wrong_input_is_one_sentence_and_nothing_is_written(
    command: Command, world: WikidataServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("lmkbc.toml").touch()
    new = command.under("relations", "new", "--api-url", world.api)
    wrong = [
        (new.fails("P287", "P4000"), "Wikidata has no property P4000"),
        (new.fails("P287", "--of", "Q777"), "no class Q777"),
        (new.fails("P287", "--of", "Q9143", "--offline"), "--of has no effect on skeletons"),
        (new.fails("P287", "--dump", "absent.json"), "absent.json does not exist"),
        (new.fails("supplier"), "name one like P36, or NAME:KIND of your own"),
        (new.fails("supplier:entity", "--of", "Q9143"), "--of has no effect on skeletons"),
        (new.fails("supplier:thing"), "the kind of supplier is 'thing'"),
        (command.fails("data", "make"), "no relation is named"),
        (command.fails("data", "make", "spouze"), "unknown relation 'spouze'"),
        (command.fails("data", "make", "--workspace", "absent"), "absent is not a directory"),
        (command.fails("data", "make", "--per-relation", 8), "no relation is named"),
    ]
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda *_: False)
        asked = world.queries[:]
        wrong += [
            (new.fails("P287"), "relations cannot be written, since"),
            (command.fails("data", "make", "CountryBordersCountry"), "data cannot be written, since"),
        ]
        assert world.queries == asked
    for told, reason in wrong:
        assert reason in told, told
        assert len([line for line in told.splitlines() if not line.startswith("Workspace ")]) == 1, told
    assert not [path for path in tmp_path.iterdir() if path.name not in ("cache", "lmkbc.toml")]
    with pytest.raises(InputError, match="per_relation is 8"):
        lmkbc.make_data("CountryBordersCountry", per_relation=8)


def test_an_answer_that_never_comes_is_named_by_its_question(
    command: Command, world: WikidataServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("lmkbc.toml").touch()
    lmkbc.new_relations("P287", of="Q9143", api_url=world.api)
    world.fault = lambda *_: "503"
    monkeypatch.setattr("lmkbc.domain.sparql.query_client", lambda _, endpoint: client(endpoint))
    told = command.fails("data", "make", "--endpoint", world.sparql, status=1)
    assert "did not answer for '# the number of subjects of designed-by' (HTTP 503" in told
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("words", "place", "step"),
    [
        (("init", "x"), "x/notes", "lmkbc.domain.new_workspace.own_relations"),
        (
            ("relations", "new", "born:date", "--workspace", "w"),
            "w/relations/born.py",
            "lmkbc.domain.modules.write_bytes",
        ),
        (("relations", "new", "a:date", "born:date", "--workspace", "w"), "w/relations/born.py", "os.link"),
    ],
    ids=["init", "a module", "the second module"],
)
def test_what_appears_meanwhile_stays_as_it_is(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], place: str, step: str
) -> None:
    command.done("init", "w")
    owner, _, name = step.rpartition(".")
    module = importlib.import_module(owner)
    real = getattr(module, name)

    def late(*given: Any, **named: Any) -> Any:
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text("mine")
        return real(*given, **named)

    before = files(tmp_path)
    monkeypatch.setattr(module, name, late)
    told = command.fails(*words, status=1)
    assert "what was there before is untouched" in told
    assert files(tmp_path) == {**before, place: b"mine"}
