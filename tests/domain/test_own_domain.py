"""The way from properties to labelled data, by the commands, over a stand-in of Wikidata."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import Command
from languages import CONTACT, client, languages
from wikidata_server import WikidataServer, claim, prop

import lmkbc
from lmkbc.domain.strata import SPLITS
from lmkbc.errors import OptionError

DOCS = Path(__file__).resolve().parents[2] / "docs" / "adding.md"
EDITION = DOCS.read_text(encoding="utf-8").partition("## A domain of your own")[2].split("```python")[1].split("```")[0]


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
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("named", [False, True])
def test_three_properties_become_labelled_data(
    command: Command, world: WikidataServer, tmp_path: Path, named: bool
) -> None:
    space, where = (tmp_path / "ws", ("--workspace", "ws")) if named else (tmp_path, ())
    wanted = ("P287", "P571", "P737", "--of", "Q9143", "--api-url", world.api)
    _, told = command.done("relations", "new", *wanted, *where)
    paths = sorted((space / "relations").iterdir())
    assert [path.name for path in paths] == ["designed_by.py", "inception.py", "influenced_by.py"]
    assert told.splitlines()[-1].endswith(f"make labelled data with 'lmkbc data make{' --workspace ws' * named}'")
    assert "second relation named" in command.fails("relations", "new", *wanted, *where)
    make = ("data", "make", *where, "--endpoint", world.sparql, "--per-relation", 30)
    shown, told = command.done(*make, "--json")
    assert [(row["relation"], sum(row[split] for split in SPLITS)) for row in json.loads(shown)] == [
        ("designed-by", 30),
        ("inception", 30),
        ("influenced-by", 30),
    ]
    assert "folder='own'" in told.splitlines()[-1]
    made = files(space / "eval" / "own")
    command.done(*make, "--offline")
    assert files(space / "eval" / "own") == made
    (space / "eval" / "languages.py").write_text(EDITION)
    command.done("relations", "check", "--workspace", space)
    shown, _ = command.done("data", "check", "languages", "--workspace", space, "--json")
    assert [(row["split"], row["state"]) for row in json.loads(shown)] == [(split, "ok") for split in SPLITS]
    run = ("--edition", "languages", "--workspace", space, "--system", "prior", "--out", "run")
    command.done("predict", "--split", "val", *run)


def test_one_of_the_relations_in_a_folder_of_its_own(command: Command, world: WikidataServer) -> None:
    paths = lmkbc.new_relations("P287", of="Q9143", api_url=world.api)
    lmkbc.new_relations("P571", offline=True)
    assert paths == [Path("relations/designed_by.py")]
    told = command.fails("data", "make", "--endpoint", world.sparql)
    assert "relation p571 has no class of subjects" in told
    data = lmkbc.make_data("P287", "mine", per_relation=9, language="en", endpoint=world.sparql)
    assert data.folder == Path("mine")
    assert data.table.to_dicts()[0]["property"] == "P287"
    assert "designed-by" in data._repr_html_()


def test_wrong_input_is_one_sentence_and_nothing_is_written(
    command: Command, world: WikidataServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = command.under("relations", "new", "--api-url", world.api)
    wrong = [
        (new.fails("P287", "P4000"), "Wikidata has no property P4000"),
        (new.fails("P287", "--of", "Q777"), "no class Q777"),
        (new.fails("P287", "--of", "Q9143", "--offline"), "--of has no effect on skeletons"),
        (new.fails("P287", "--dump", "absent.json"), "absent.json does not exist"),
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
            (command.fails("data", "make", "CountryBordersCountry"), "own cannot be written, since"),
        ]
        assert world.queries == asked
    for told, reason in wrong:
        assert reason in told, told
        assert len(told.strip().splitlines()) == 1, told
    assert not [path for path in tmp_path.iterdir() if path.name != "cache"]
    with pytest.raises(OptionError, match="per_relation is 8"):
        lmkbc.make_data("CountryBordersCountry", per_relation=8)


def test_an_answer_that_never_comes_is_named_by_its_question(
    command: Command, world: WikidataServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lmkbc.new_relations("P287", of="Q9143", api_url=world.api)
    world.fault = lambda *_: "503"
    monkeypatch.setattr("lmkbc.domain.sparql.query_client", lambda _, endpoint: client(endpoint))
    told = command.fails("data", "make", "--endpoint", world.sparql, status=1)
    assert "did not answer for '# the number of subjects of designed-by' (HTTP 503" in told
    assert not (tmp_path / "eval").exists()
