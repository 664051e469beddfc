"""`lmkbc link`: a file of names becomes a file of ids, wrong rows are named, and one link is explained."""

import json
from pathlib import Path

import pytest
from command import Command

import lmkbc
from lmkbc import InputError


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """What a search found: of these names alone."""
    path = tmp_path / "search.json"
    path.write_text(json.dumps({"Atlantis": "Q7", "Spain": "Q9"}))
    return path


def rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_predictions_file_is_linked_and_counted(tmp_path: Path, table: Path) -> None:
    source, target = tmp_path / "p.jsonl", tmp_path / "linked.jsonl"
    borders, children, instruments = "CountryBordersCountry", "PersonHasNumberOfChildren", "PersonPlaysInstrument"
    names = ["spain", "Atlantis", "ATLANTIS", "Nowhere", ""]
    lines = [
        {"SubjectEntity": "Ulmia", "Relation": borders, "ObjectEntities": names},
        {"SubjectEntity": "Ada", "Relation": children, "ObjectEntitiesID": ["3"]},
        {"SubjectEntity": "Bob", "SubjectEntityID": "Q1", "Relation": instruments, "ObjectEntitiesID": []},
    ]
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    report = lmkbc.link(source, target, edition="mini", search_table=table)
    assert [row["ObjectEntitiesID"] for row in rows(target)] == [["Q29", "Q7"], ["3"], []]
    assert rows(target)[0]["ObjectEntities"] == names
    assert rows(target)[2]["SubjectEntityID"] == "Q1"
    assert report.per_relation() == {borders: (3, 1, 0), children: (1, 0, 0)}
    assert [(query.subject, link.searched, link.strategy) for query, link in report.unlinked] == [
        ("Ulmia", "Nowhere", "no hit")
    ]
    assert {(tally.evidence, tally.linked) for tally in report.tallies() if tally.linked} == {
        ("relation", 1),
        ("search", 2),
        ("literal", 1),
    }


def test_linked_rows_have_the_ids_of_the_queries_of_their_split(tmp_path: Path) -> None:
    gold = rows(Path(__file__).parents[2] / "eval" / "mini" / "val.jsonl")[:30]
    given = [
        {"SubjectEntity": f"{row['SubjectEntity']} ", "Relation": str(row["Relation"]).lower(), "ObjectEntities": []}
        for row in gold
    ]
    given += [given[0] | {"SubjectEntity": "Ulmia"}, given[1] | {"SubjectEntityID": "Q1"}]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in given))
    lmkbc.link(tmp_path / "p.jsonl", tmp_path / "linked.jsonl", offline=True)
    made = rows(tmp_path / "linked.jsonl")
    assert [row.get("SubjectEntityID") for row in made] == [*(row["SubjectEntityID"] for row in gold), None, "Q1"]
    assert [row["Relation"] for row in made[:30]] == [row["Relation"] for row in gold]


def test_a_table_is_linked(tmp_path: Path, table: Path) -> None:
    lines = "subject,relation,object\r\nUlmia,country borders,spain\r\nUlmia,country borders,Atlantis\r\n"
    (tmp_path / "p.csv").write_bytes(b"\xef\xbb\xbf" + lines.encode())
    lmkbc.link(tmp_path / "p.csv", tmp_path / "linked.jsonl", edition="mini", search_table=table)
    (row,) = rows(tmp_path / "linked.jsonl")
    assert (row["Relation"], row["ObjectEntitiesID"]) == ("CountryBordersCountry", ["Q29", "Q7"])


GOOD = '{"SubjectEntity": "Ulm", "Relation": "spouse", "ObjectEntities": []}'
ODD_ROWS = {
    '{"SubjectEntity": "Ulm", "Relation": "spous", "ObjectEntities": []}': "Relation: unknown 'spous'; did you mean",
    '{"SubjectEntity": " ", "Relation": "spouse", "ObjectEntities": []}': "SubjectEntity: empty",
    '{"SubjectEntity": "Ulm", "Relation": "spouse"}': "ObjectEntities: absent",
    '{"SubjectEntity": "Ulm", "Relation": "spouse", "ObjectEntities": null}': "ObjectEntities: absent",
    '{"SubjectEntity": "Ulm", "Relation": "spouse", "Objects": ["Inn"]}': "ObjectEntities: absent",
    '{"SubjectEntity": "Ulm", "Relation": "spouse", "ObjectEntities": [["Inn"]]}': r"ObjectEntities.* Expected `str`",
    '{"SubjectEntity": "Ulm", "Relation": "spouse", "ObjectEntities": [null]}': r"ObjectEntities.* Expected `str`",
    '{"SubjectEntity": "Ulm", "Relation": "spouse", "ObjectEntities": "Inn"}': "ObjectEntities: Expected `array",
    '{"SubjectEntity": 5, "Relation": "spouse", "ObjectEntities": []}': "SubjectEntity: Expected `str`",
    '{"Relation": "spouse", "ObjectEntities": []}': "missing required field `SubjectEntity`",
    "[]": "Expected `object`",
    "null": "Expected `object`",
    "{": "not valid JSON",
    '{"x":' + "[" * 100_000 + "]" * 100_000 + "}": "nested too deeply",
}


@pytest.mark.parametrize(("row", "reason"), ODD_ROWS.items(), ids=range(len(ODD_ROWS)))
def test_an_odd_row_is_named_by_line_and_field(tmp_path: Path, table: Path, row: str, reason: str) -> None:
    (tmp_path / "p.jsonl").write_text(f"{GOOD}\n\n{row}\n")
    with pytest.raises(InputError, match=f"line 3.*{reason}"):
        lmkbc.link(tmp_path / "p.jsonl", tmp_path / "out", edition="mini", search_table=table)
    assert not (tmp_path / "out").exists()


def test_explain_shows_every_candidate_with_its_evidence(command: Command, table: Path) -> None:
    def offers(text: str) -> list[list[str]]:
        asked = ("link", "--edition", "mini", "--search-table", table, "--relation", "country-borders")
        return [line.split() for line in command.done(*asked, "--explain", text)[0].splitlines()[1:]]

    assert offers("Spain") == [["*", "relation", "Q29", "Spain", "yes"], ["search", "Q9", "unknown"]]
    assert offers("Atlantis (lost)")[-1][:3] == ["*", "search", "'Atlantis'"]
    assert offers("Nowhere") == []


def test_what_is_there_is_never_replaced(command: Command, table: Path, tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text(f"{GOOD}\n", encoding="utf-8")
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    asked = ("link", tmp_path / "p.jsonl", "--edition", "mini", "--search-table", table)
    error = command.fails(*asked, "--out", tmp_path / "mine.txt")
    assert "mine.txt is there already, and this command replaces nothing" in error
    assert (tmp_path / "mine.txt").read_text(encoding="utf-8") == "mine"
    command.done(*asked, "--out", tmp_path / "new.jsonl")


def test_offline_without_recorded_searches_the_rest_stays_unlinked_and_the_run_says_how_many(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    row = {"SubjectEntity": "Ulmia", "Relation": "CountryBordersCountry", "ObjectEntities": ["Spain", "Nowhere"]}
    (tmp_path / "p.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    asked = ("--edition", "mini", "--offline", "--out", tmp_path / "linked")
    said = command.done("link", tmp_path / "p.jsonl", *asked)[1]
    assert [row["ObjectEntitiesID"] for row in rows(tmp_path / "linked")] == [["Q29"]]
    assert "had no recorded search, first 'nowhere'" in said
    assert "give --search-table, or run once without --offline" in said


def test_offline_a_run_with_names_that_were_never_searched_ends_and_says_how_many(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    names = ["Croatia", "Atlantis"]
    row = {"subject": "Bosnia and Herzegovina", "relation": "CountryBordersCountry", "answers": names}
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    asked = ("--edition", "mini", "--split", "val", "--relation", "CountryBordersCountry", "--failed-as-empty")
    given = ("--from", tmp_path / "a.jsonl", "--offline", "--no-report", "--out", tmp_path / "run")
    said = command.done("predict", *asked, *given)[1]
    assert said.count("had no recorded search") == 1
