"""`lmkbc review`: what a person decides is a fact, and stays one through additions, other models and reruns."""

import base64
import csv
import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from bases import ATTACK, Base, answered, fact, neighbours, written
from command import Command
from space import SPACE
from wikidata_readers import comma_separated, items, version_1

import lmkbc
from lmkbc.kb.base.knowledge import Knowledge
from lmkbc.testing import CandidateSet, Query
from tests.small import small_relation

HEADER = "relation,subject,subject_id,object,object_id,label,value,value_id,source,quote,reviewer,date\n"
BORDERS, CHILDREN = "country-borders", "children"


@pytest.fixture
def run(command: Command) -> Command:
    written(
        Path("kb"),
        [
            fact(0, BORDERS, "Niger", 0.9, object_id="Q10"),
            fact(0, BORDERS, "Mali", 0.3, object_id="Q11"),
            fact(1, BORDERS, "nowhere", 0.8),
            fact(2, BORDERS, "Holland", 0.7, object_id="Q55", object_label="Netherlands"),
            fact(0, CHILDREN, "4", 0.9, literal="4"),
            fact(1, CHILDREN, "5", 0.6, literal="5"),
        ],
    )
    return command


def labels(*rows: str, path: str = "labels.csv") -> str:
    Path(path).write_text(HEADER + "".join(f"{row}{',' * (12 - len(next(csv.reader([row]))))}\n" for row in rows))
    return path


def facts(base: str = "kb", **options: Any) -> set[tuple[str, str, str, float]]:
    rows = Knowledge(Path(base), **options).facts()
    return {(row.relation, row.subject, row.object, row.confidence) for row in rows}


BEFORE = {
    (BORDERS, "subject 0", "Niger", 0.9),
    (BORDERS, "subject 0", "Mali", 0.3),
    (BORDERS, "subject 1", "nowhere", 0.8),
    (BORDERS, "subject 2", "Holland", 0.7),
    (CHILDREN, "subject 0", "4", 0.9),
    (CHILDREN, "subject 1", "5", 0.6),
}


def test_right_is_sure_wrong_is_out_and_a_value_is_a_fact_with_its_source(run: Command) -> None:
    labels(
        "country-borders,subject 0,Q1,Mali,Q11,right,,,,,Ann,2026-11-02",
        "country-borders,subject 1,Q2,nowhere,,wrong,Somewhere,Q77,https://example.org/a?b=1,A quote,Ann,2026-11-02",
        "country-borders,subject 2,,netherlands,,no",
        "children,subject 1,Q2,5,,,1200,,Q42",
        "country-borders,subject 0,Q1,Niger,Q10,cannot tell",
    )
    _, told = run.done("review", "kb", "labels.csv", "--reviewer", "Bob")
    assert told == "kb: 7 decisions, 7 of them new: 3 right, 1 unknown, 3 wrong\n"
    assert facts() == {
        (BORDERS, "subject 0", "Niger", 0.9),
        (BORDERS, "subject 0", "Mali", 1.0),
        (BORDERS, "subject 1", "Somewhere", 1.0),
        (CHILDREN, "subject 0", "4", 0.9),
        (CHILDREN, "subject 1", "1200", 1.0),
    }
    given = {row.object: row for row in Knowledge(Path("kb")).facts() if row.reviewed_by}
    decided = {name: (one.reviewed_by, one.reviewed_on, one.source, one.quote) for name, one in given.items()}
    assert decided["Mali"] == ("Ann", "2026-11-02", None, None)
    assert decided["Somewhere"] == ("Ann", "2026-11-02", "https://example.org/a?b=1", "A quote")
    assert (given["Somewhere"].object_id, given["Somewhere"].subject_row) == ("Q77", 1)
    assert (given["1200"].literal, given["1200"].reviewed_by, given["1200"].source) == ("1200", "Bob", "Q42")
    assert facts(as_built=True) == BEFORE
    emptied = pl.concat(Knowledge(Path("kb")).answers("nothing"))
    assert emptied.rows() == [(2, "subject 2", "Q3", BORDERS, "wrong by review")]


def test_the_same_labels_again_change_nothing(run: Command) -> None:
    labels("country-borders,subject 0,Q1,Mali,Q11,right", "country-borders,subject 0,Q1,Niger,Q10,wrong,Togo")
    run.done("review", "kb", "labels.csv", "--reviewer", "Ann")
    path = Path("kb/reviews.jsonl")
    before = path.read_bytes()
    assert ", 0 of them new" in run.done("review", "kb", "labels.csv", "--reviewer", "Ann")[1]
    assert path.read_bytes() == before
    yesterday = re.sub(rb'"reviewed_on":"[-0-9]{10}"', b'"reviewed_on":"2020-01-01"', before)
    path.write_bytes(yesterday)  # labels without a day are those of then
    run.done("review", "kb", "labels.csv", "--reviewer", "Ann")
    assert path.read_bytes() == yesterday
    assert "3 decisions, 0 of them new" in run.done("review", "kb")[1]


def test_a_person_who_decides_anew_has_one_decision(run: Command) -> None:
    labels("country-borders,subject 0,Q1,Mali,Q11,wrong,,,,,Ann,2026-11-02")
    run.done("review", "kb", "labels.csv")
    labels("country-borders,subject 0,Q1,Mali,Q11,right,,,,,Ann,2026-11-03", path="new.csv")
    run.done("review", "kb", "new.csv")
    run.done("review", "kb", "labels.csv")  # an earlier day is no later word
    assert len(Path("kb/reviews.jsonl").read_bytes().splitlines()) == 1
    assert (BORDERS, "subject 0", "Mali", 1.0) in facts()


def test_reviewers_who_differ_are_listed_and_the_later_date_counts_then_the_last_given(run: Command) -> None:
    labels(
        "country-borders,subject 0,Q1,Mali,Q11,wrong,,,,,Ann,2026-11-03",
        "country-borders,subject 0,Q1,Mali,Q11,right,,,,,Bob,2026-11-02",
        "country-borders,subject 0,Q1,Niger,Q10,wrong,,,,,Ann,2026-11-02",
        "country-borders,subject 0,Q1,Niger,Q10,right,,,,,Bob,2026-11-02",
        "children,subject 0,Q1,,,,7,,,,Ann,2026-11-05",
        "children,subject 0,Q1,,,,8,,,,Bob,2026-11-04",
    )
    told = run.done("review", "kb", "labels.csv")[1].splitlines()[1:]
    rule = "reviewers differ, and the later date counts, then the last given: "
    assert told == [
        rule + "country-borders of 'subject 0': 'Mali' is right says Bob on 2026-11-02, 'Mali' is wrong says Ann on "
        "2026-11-03; Ann counts",
        rule + "country-borders of 'subject 0': 'Niger' is wrong says Ann on 2026-11-02, 'Niger' is right says Bob on "
        "2026-11-02; Bob counts",
        rule + "children of 'subject 0': '8' is right says Bob on 2026-11-04, '7' is right says Ann on 2026-11-05; Ann "
        "counts",
    ]
    assert {row[2:] for row in facts() if row[1] == "subject 0"} == {("Niger", 1.0), ("7", 1.0)}


def other(query: Query) -> CandidateSet:
    """Answer as another model would."""
    if query.relation == "CountryBordersCountry":
        return answered(query, (f"Left of {query.subject}", "Q9", 0.6), ("Atlantis", None, 0.9))
    return answered(query, ("6", None, 0.8))


DECIDED = {
    (BORDERS, "Chad", "right of Chad", 1.0),
    (BORDERS, "Chad", "Libya", 1.0),
    (BORDERS, "Mali", "Niger", 1.0),
    (CHILDREN, "Mali", "2", 1.0),
    (CHILDREN, "Togo", "1", 1.0),
}


@pytest.fixture
def built(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Base:
    base = Base(tmp_path, ["Chad", "Mali", "Togo"])
    base.build(monkeypatch, neighbours, (BORDERS, CHILDREN))
    labels(
        "country-borders,Chad,Q1,left of Chad,Q9,wrong",
        "country-borders,Chad,Q1,right of Chad,,right",
        "country-borders,Chad,,,,,Libya,Q1016",
        "country-borders,Chad,,Atlantis,,wrong",
        "country-borders,Mali,Q2,left of Mali,Q9,wrong,Niger,Q1032",
        "children,Mali,Q2,4,,wrong,2",
        "children,Togo,Q3,,,,1",  # the model gave none
        "children,Niger,Q4,,,,9",
    )
    _, told = command.done("review", base.out, "labels.csv", "--reviewer", "Ann")
    assert "1 decision about subjects that the base does not ask, first children of 'Niger'" in told
    return base


def check_decided(base: Path, *more: Any) -> None:
    found = {row for row in facts(str(base)) if row[3] == 1.0}
    assert found == DECIDED | {*more}
    assert not [
        row
        for row in facts(str(base))
        if row[2].casefold() in ("left of chad", "left of mali", "4")
        and (row[1], row[0]) in {("Chad", BORDERS), ("Mali", BORDERS), ("Mali", CHILDREN)}
    ]


def test_decisions_survive_an_addition_and_meet_their_subject_there(
    built: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_decided(built.out)
    with built.file.open("a") as file:
        file.write("Niger,Q4\n")
    built.build(monkeypatch, neighbours, (BORDERS, CHILDREN), add=True)
    check_decided(built.out, (CHILDREN, "Niger", "9", 1.0))


def test_decisions_survive_a_rebuild_by_another_model(
    built: Base, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "anew").mkdir()
    anew = Base(tmp_path / "anew", ["Togo", "Chad", "Mali"])
    anew.file.write_text("name,id\nTogo,Q3\nChad,Q1\nMali,Q2\n")
    anew.build(monkeypatch, other, (BORDERS, CHILDREN))
    assert (BORDERS, "Chad", "Atlantis", 0.9) in facts(str(anew.out))
    (anew.out / "reviews.jsonl").write_bytes((built.out / "reviews.jsonl").read_bytes())
    check_decided(anew.out)
    assert {row[:3] for row in facts(str(anew.out))} - {row[:3] for row in DECIDED} == {
        (CHILDREN, "Chad", "6"),
        (BORDERS, "Mali", "Atlantis"),
        (BORDERS, "Togo", "Left of Togo"),
        (BORDERS, "Togo", "Atlantis"),
    }  # one number of children is right, so no other one stays


def test_a_build_counts_what_persons_decided(command: Command) -> None:
    Path("s.csv").write_text("name,id,class\nChad,Q657,country\nMali,Q912,country\nTogo,Q945,country\n")
    row = {"SubjectEntity": "Chad", "Relation": "CountryBordersCountry", "completions": ['["Niger", "Peru"]']}
    Path("a.jsonl").write_text(json.dumps(row) + "\n")
    Path("t.json").write_text("{}")
    options = (
        "--subjects",
        "s.csv",
        "--edition",
        "mini",
        "--relation",
        BORDERS,
        "--offline",
        "--search-table",
        "t.json",
    )
    build = command.under("build", *options, "--from", "a.jsonl", "--least", "0", "--out")
    assert "2 of 3 queries failed" in build.fails("kb", status=1)
    labels(
        "country-borders,Chad,,Peru,,wrong", "country-borders,Mali,,Niger,,right", "country-borders,Togo,,Peru,,wrong"
    )
    command.done("review", "kb", "labels.csv")
    for words in (("kb",), ("other", "--reviews", "kb")):
        told = build.fails(*words, status=1)
        assert f"{words[0]}: 2 facts of 3 subjects" in told
        assert f"{words[0]}: facts that a person decided: 1 of 2" in told
        assert "1 of 3 queries failed" in told  # nobody knows what is right of Togo
    labels("country-borders,Togo,,Ghana,,right", "country-borders,Chad,,Niger,,wrong")
    command.done("review", "kb", "labels.csv")
    _, told = build.done("kb")
    assert "kb: 2 facts of 3 subjects" in told
    assert "1 of 3 queries answered with nothing" in told
    asked: Any = {"edition": "mini", "relation": BORDERS, "offline": True, "search_table": "t.json", "least": 0.0}
    base = lmkbc.build("s.csv", "kb", files=["a.jsonl"], **asked)
    assert (base.failed, dict(base.unread), base.counts["reviewed"]) == (0, {}, 2)


def test_a_build_takes_over_the_decisions_of_another_base(command: Command) -> None:
    Path("s.csv").write_text("name,id,class\nChad,Q657,country\n")
    options = ("--subjects", "s.csv", "--edition", "mini", "--relation", BORDERS, "--offline", "--least", "0")
    command.done("build", *options, "--system", "prior", "--out", "first")
    labels("country-borders,Chad,Q657,,,,Libya,Q1016,https://example.org/,,Ann,2026-11-02")
    command.done("review", "first", "labels.csv")
    command.done("build", *options, "--system", "naive-bayes", "--reviews", "first", "--out", "second")
    command.done("build", *options, "--system", "prior", "--reviews", "first/reviews.jsonl", "--out", "third")
    for base in ("second", "third"):
        assert (BORDERS, "Chad", "Libya", 1.0) in facts(base)
    before = Path("third/reviews.jsonl").read_bytes()
    command.done("build", *options, "--system", "prior", "--reviews", "first", "--out", "third")
    assert Path("third/reviews.jsonl").read_bytes() == before
    Path("bad.jsonl").write_text(json.dumps({"relation": BORDERS}) + "\n")
    told = command.fails("build", *options, "--system", "prior", "--reviews", "bad.jsonl", "--out", "fourth")
    assert "bad.jsonl, line 1: Object missing required field" in told
    Path("empty").mkdir()
    told = command.fails("build", *options, "--system", "prior", "--reviews", "empty", "--out", "fourth")
    assert "--reviews empty is no knowledge base: name one, or its file reviews.jsonl" in told
    assert not Path("fourth").exists()


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("country-borders,subject 0,Q1,Mali,Q11,perhaps", "line 2, field label: 'perhaps'; write right, wrong"),
        ("country-border,subject 0,Q1,Mali,Q11,right", "line 2, field relation: 'country-border' is no relation of"),
        ("country-borders,subject 0,Q1,,,wrong", "line 2, field object: empty"),
        ("country-borders,,,Mali,,wrong", "line 2, field subject: Expected `str` of length >= 1"),
        ("country-borders,subject 0,Q1,Mali,,right,Togo", "line 2, field value: 'Togo' stands beside a label right"),
        (
            "country-borders,subject 0,Q1,Mali,Q11,right,,Q12",
            "line 2, field value_id: 'Q12' stands beside a label right",
        ),
        ("country-borders,subject 0,Q1,Mali,,unknown,,Q11", "line 2, field value_id: 'Q11' stands beside a label unk"),
        ("country-borders,subject 0,Q1,Mali,,right,,Mali", "line 2, field object_id: 'Mali' is no QID"),
        ("country-borders,subject 0,Q1,Mali,,wrong,Mali", "line 2, field value: 'Mali' is the wrong object itself"),
        ("country-borders,subject 0,Q0,Mali,,wrong", "line 2, field subject_id: "),
        ("children,subject 0,Q1,4,,wrong,many", "line 2, field value: 'many' is no number that an answer can match"),
        ('children,subject 0,Q1,"2,5,1",,right', "line 2, field object: '2,5,1' is no number that an answer can match"),
        ("country-borders,subject 0,Q1,Keine,,right", "line 2, field object: 'Keine' names no object; where there is"),
        ("country-borders,subject 0,Q1,Mali,Q11,wrong,none", "line 2, field value: 'none' names no object; where"),
        ("children,subject 0,Q1,4,,wrong,4.0", "line 2, field value: '4.0' is the wrong object itself"),
        ("country-borders,subject 0,Q1,Mali,,right,,,javascript:alert(1)", "line 2, field source: "),
        ("country-borders,subject 0,Q1,Mali,,right,,,file:///etc/passwd", "line 2, field source: "),
        ("country-borders,subject 0,Q1,Mali,,right,,,http://a/ b", "line 2, field source: "),
        (
            "country-borders,subject 0,Q1,Mali,,right,,,,,Ann,22.11.2026",
            "line 2, field date: write it as in 2026-11-22",
        ),
        (
            "country-borders,subject 0,Q1,Mali,,right,,,,,Ann,2026-13-01",
            "line 2, field date: is no day: month must be in 1..12",
        ),
        ("country-borders,subject 0,Q1,Mali,Mali,right", "line 2, field object_id: 'Mali' is no QID"),
        ("country-borders,subject 0,Q1,Mali,,wrong,Togo,Togo", "line 2, field value_id: 'Togo' is no QID"),
        ("country-borders,subject 0,Q1,Mali,", "labels.csv decides nothing: fill in its column label"),
    ],
)
def test_what_is_no_decision_is_one_sentence_with_its_row(run: Command, row: str, told: str) -> None:
    labels(row)
    error = run.fails("review", "kb", "labels.csv")
    assert (error.count("\n"), told in error) == (1, True), error
    assert not Path("kb/reviews.jsonl").exists()


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_verdict_is_a_label_in_each_format_and_errors_name_the_column_of_the_file(run: Command, ending: str) -> None:
    import polars as pl

    for verdict, told in (("perhaps", f"own.{ending}, "), ("Right", "1 decision, 1 of them new: 1 right")):
        frame = pl.DataFrame(
            [{"relation": BORDERS, "subject": "subject 0", "object": "Mali", "verdict": verdict, "n": 1}]
        )
        ways: dict[str, Callable[..., Any]] = {"csv": frame.write_csv, "jsonl": frame.write_ndjson}
        ways["parquet"] = frame.write_parquet
        ways[ending](f"own.{ending}")
        status, _, said = run("review", "kb", f"own.{ending}")
        assert (status, told in said) == (2 if verdict == "perhaps" else 0, True), said
        assert ("field verdict: 'perhaps'" in said) == (verdict == "perhaps")


def test_numbers_are_read_as_labelled_rows_are_in_the_language_of_the_relation(run: Command) -> None:
    manifest = Path("kb/manifest.json")
    about = json.loads(manifest.read_bytes())
    about["relations"][CHILDREN]["language"] = "de"
    manifest.write_text(json.dumps(about))
    labels("children,subject 0,Q1,4,,wrong,1.250", 'children,subject 1,Q2,5,,wrong,"79,99"')
    run.done("review", "kb", "labels.csv")
    assert {row[2] for row in facts() if row[0] == CHILDREN} == {"1250", "79.99"}
    labels("children,subject 0,Q1,4,,wrong,1.299")
    told = run.fails("review", "kb", "labels.csv")
    assert "line 2, field value: '1.299' may mean 1.299 or 1299: write 1299, or 1,299" in told


def test_a_damaged_file_of_decisions_names_its_line(run: Command) -> None:
    labels("country-borders,subject 0,Q1,Mali,Q11,right")
    run.done("review", "kb", "labels.csv")
    path = Path("kb/reviews.jsonl")
    path.write_bytes(path.read_bytes().replace(b'"right"', b'"maybe"'))
    told = run.fails("export", "kb", "--format", "csv", "--out", "x.csv")
    assert "kb/reviews.jsonl, line 1, field verdict: Invalid enum value 'maybe'" in told


def test_labels_of_a_sample_are_decisions_and_still_give_a_precision(run: Command) -> None:
    many = [fact(row, BORDERS, f"land {row}", 0.8) for row in range(30)]
    written(Path("many"), many)
    run.done("audit", "many", "--sample", "10")
    rows = [json.loads(line) for line in Path("many-audit/labels.jsonl").read_text().splitlines()]
    words = ["Right", "y", "n", "wrong", "u", "unknown", None, "", "TRUE", "false"]
    given = [row | {"label": word} for row, word in zip(rows, words, strict=True)]
    given[3]["value"], given[3]["label"] = "Togo", None
    Path("labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in given))
    before = json.loads(run.done("audit", "many", "--labels", "labels.jsonl", "--json")[0])["precision"]
    assert (before[-1]["labelled"], before[-1]["right"], before[-1]["unknown"]) == (6, 3, 2)
    run.done("review", "many", "labels.jsonl")
    assert json.loads(run.done("audit", "many", "--labels", "labels.jsonl", "--json")[0])["precision"] == before
    assert len(facts("many")) == 28  # three are wrong, and one has a value in its place
    table = pl.DataFrame(given).select(pl.all().cast(pl.String))
    Path("labels.csv").write_text(table.write_csv())
    assert json.loads(run.done("audit", "many", "--labels", "labels.csv", "--json")[0])["precision"] == before
    assert "0 of them new" in run.done("review", "many", "labels.csv")[1]
    labels("country-borders,subject 0,Q1,land 0,,right", path="plain.csv")
    assert "line 2: of no sample" in run.fails("audit", "many", "--labels", "plain.csv")


@pytest.fixture
def reviewed(run: Command) -> Command:
    labels(
        "country-borders,subject 0,Q1,Niger,Q10,right,,,https://example.org/*/a,A quote,Ann,2026-11-02",
        "country-borders,subject 1,Q2,nowhere,,wrong,Somewhere,Q77,Q42,,Ann,2026-11-02",
        "children,subject 1,Q2,5,,right,,,,,Bob,2026-11-03",
    )
    run.done("review", "kb", "labels.csv")
    Path("known.csv").write_text(
        "subject,property,object\nQ1,P47,Q12\nQ2,P47,Q12\nQ2,P1971,7\nQ1,P1971,4\nQ3,P47,Q12\n"
    )
    return run


def test_quickstatements_are_of_reviewed_facts_and_have_their_references(reviewed: Command) -> None:
    export = reviewed.under("export", "kb", "--known", "known.csv")
    _, told = export.done("--format", "quickstatements", "--out", "qs")
    found = version_1(Path("qs/review-00001.txt").read_text())
    day = ("S813", "+2026-11-02T00:00:00Z/11")
    assert [one[:4] for one in found] == [
        ("Q1", "P47", "Q10", (("S854", '"https://example.org/%2A/a"'), day)),
        ("Q2", "P47", "Q77", (("S248", "Q42"), day)),
    ]
    assert found[0].summary == "reviewed by Ann on 2026-11-02: subject 0 - country-borders - Niger"
    assert "A person decided each" in Path("qs/README.txt").read_text()
    assert "not decided by a person (--unreviewed writes them) 2" in told
    assert "another value is known, or that there is none (contradicting.csv lists them) 1" in told
    export.done("--format", "quickstatements-csv", "--out", "csv")
    assert Path("csv/review-00001.csv").read_text().startswith("qid,P47,S854,S813,S248,#\n")
    assert [one[:3] for one in comma_separated(Path("csv/review-00001.csv").read_text())] == [one[:3] for one in found]
    assert [dict(one.more)["S813"] for one in comma_separated(Path("csv/review-00001.csv").read_text())] == [day[1]] * 2
    export.done("--format", "quickstatements", "--unreviewed", "--out", "rest", "--least", "0")
    rest = version_1(Path("rest/review-00001.txt").read_text())
    assert [one[:4] for one in rest] == [("Q1", "P47", "Q11", ()), ("Q3", "P47", "Q55", ())]
    assert all(one.summary.startswith("unchecked, for review: ") for one in rest)
    assert Path("rest/README.txt").read_text().startswith("FOR REVIEW, NOT FOR UPLOAD")


def test_a_worklist_has_what_is_missing_or_contradicts_with_its_source(reviewed: Command) -> None:
    export = reviewed.under("export", "kb", "--known", "known.csv", "--format", "worklist", "--least", "0")
    _, told = export.done("--out", "work.csv")
    rows = [*csv.DictReader(Path("work.csv").read_text().splitlines())]
    assert [(row["mark"], row["object"], float(row["expected"]) == 1) for row in rows] == [
        ("missing", "Niger", True),
        ("missing", "Somewhere", True),
        ("contradicting", "5", True),
        ("missing", "Holland", False),
        ("missing", "Mali", False),
    ]
    assert (rows[0]["source"], rows[0]["quote"], rows[2]["known"]) == ("https://example.org/*/a", "A quote", "7")
    assert "known already 1" in told
    assert "give those that it has with --known" in reviewed.fails(
        "export", "kb", "--format", "worklist", "--out", "other.csv"
    )
    assert not Path("other.csv").exists()


def test_every_reader_shows_who_decided(reviewed: Command) -> None:
    export = reviewed.under("export", "kb", "--least", "0")
    export.done("--format", "csv", "--reviewed", "--out", "kb.csv")
    rows = [*csv.DictReader(Path("kb.csv").read_text().splitlines())]
    assert [(row["object"], row["reviewed_by"], row["reviewed_on"]) for row in rows] == [
        ("Niger", "Ann", "2026-11-02"),
        ("Somewhere", "Ann", "2026-11-02"),
        ("5", "Bob", "2026-11-03"),
    ]
    assert (rows[0]["source"], rows[0]["quote"]) == ("https://example.org/*/a", "A quote")
    export.done("--format", "statements", "--out", "kb.nt")
    triples = Path("kb.nt").read_text()
    assert triples.count("<urn:lmkbc:reviewedBy>") == 3
    assert '<urn:lmkbc:reference> "https://example.org/*/a" .' in triples
    export.done("--format", "wikidata-json", "--out", "kb.json")
    cited = [
        [*one.snaks]
        for item in items(Path("kb.json").read_text())
        for claims in item.claims.values()
        for claim in claims
        for one in claim.references
    ]
    assert cited == [["P854", "P813"], ["P248", "P813"]]
    assert '"time":"+2026-11-02T00:00:00Z"' in Path("kb.json").read_text()
    export.done("--format", "graphml", "--out", "kb.graphml")
    assert Path("kb.graphml").read_text().count("edge-reviewed_by") == 4
    reviewed.done("audit", "kb", "--known", "known.csv", "--out", "marked.csv")
    marked = pl.read_csv("marked.csv")
    assert sorted(marked.filter(pl.col("reviewed_by").is_not_null())["object"]) == ["5", "Niger", "Somewhere"]
    went = lmkbc.compare_bases("kb", "kb").counts
    assert went["first"].sum() == 6
    reviewed.done("report", "kb")
    pieces = [re.search(r'","([^"]+)"', path.read_text()) for path in Path("kb/report/facts").iterdir()]
    shown = [json.loads(gzip.decompress(base64.b64decode(one[1]))) for one in pieces if one]
    sources = [source for one in shown for source in one["rows"]["sources"]]
    assert "m#0, reviewed by Ann on 2026-11-02; https://example.org/*/a: \u201cA quote\u201d" in sources


def test_hostile_texts_are_data_in_every_reader(run: Command) -> None:
    ours = {"relation": BORDERS, "subject": "subject 0", "subject_id": "Q1", "object": "Mali", "object_id": "Q11"}
    evil = f'{ATTACK}\x1b[2J */ || "\t\n=1+1'
    rows = [
        ours | {"label": "right", "quote": evil, "reviewer": evil, "source": "https://example.org/'%3Cb%3E"},
        ours | {"object": "Niger", "object_id": "Q10", "label": "wrong", "value": evil, "reviewer": evil},
        ours | {"object": "", "object_id": None, "value": "Land", "value_id": "Q99", "quote": evil, "reviewer": evil},
    ]
    Path("labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    _, told = run.done("review", "kb", "labels.jsonl")
    assert told.count("\n") == 1
    Path("known.csv").write_text("subject,property,object\nQ1,P47,Q12\n")
    run.done("export", "kb", "--format", "quickstatements", "--known", "known.csv", "--out", "qs")
    found = version_1(Path("qs/review-00001.txt").read_text())
    assert [one[:3] for one in found] == [("Q1", "P47", "Q11"), ("Q1", "P47", "Q99")]
    for form in ("csv", "graphml", "statements", "ntriples", "wikidata-json"):
        run.done("export", "kb", "--format", form, "--out", f"kb.{form}")
    run.done("report", "kb")
    assert ATTACK not in Path("kb/report/index.html").read_text()


def test_facts_that_labelled_rows_contradict_are_named_at_the_end_of_a_build(command: Command) -> None:
    Path("s.csv").write_text("name,class\nMichel Platini,human\n")
    row = {"SubjectEntity": "Michel Platini", "Relation": "PersonHasNumberOfChildren", "model": "m"}
    gold = next(
        one
        for one in lmkbc.Workspace().examples(lmkbc.Workspace().edition("mini"), "train")
        if one.query.relation == row["Relation"] and one.objects
    )
    Path("s.csv").write_text(f"name,class\n{gold.query.subject},human\n")
    row["SubjectEntity"] = gold.query.subject
    Path("a.jsonl").write_text(json.dumps(row | {"completions": ["17"]}) + "\n")
    options = ("--subjects", "s.csv", "--edition", "mini", "--relation", CHILDREN, "--offline", "--least", "0")
    _, told = command.done("build", *options, "--from", "a.jsonl", "--untuned", "--out", "kb")
    named = f"kb: children of {gold.query.subject}: 17, where a labelled row says: {gold.objects[0].names[0]}"
    assert named in told, told


def test_a_known_value_of_another_precision_is_no_second_statement(command: Command) -> None:
    written(Path("kb"), [fact(0, "area", "100", 0.9, literal="100"), fact(1, "area", "9", 0.9, literal="9")])
    labels("area,subject 0,Q1,100,,right,,,https://example.org/", "area,subject 1,Q2,9,,wrong,1300 ha,,Q42")
    command.done("review", "kb", "labels.csv")
    assert {row.literal for row in Knowledge(Path("kb")).facts()} == {"100", "13"}  # in the unit of the relation
    Path("known.csv").write_text('subject,property,object\nQ1,P2046,10000U35852\nQ2,P2046,"1,300 ha"\n')
    _, told = command.done("export", "kb", "--format", "quickstatements", "--known", "known.csv", "--out", "qs")
    assert "known already 2" in told


def test_a_date_of_a_review_is_read_as_that_of_a_reply_is(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SPACE.relations.own, "begun", small_relation(name="begun", kind="date", functional=True))
    written(Path("old"), [fact(row, "begun", "1780", 0.6, literal="1780") for row in range(3)])
    given = "1889–1891", "Ende des 19. Jahrhunderts", "1907–1911"
    rows = [f"begun,subject {row},Q{row + 1},1780,,wrong,{text}" for row, text in enumerate(given)]
    labels(*rows)
    assert "1907–1911" in run.fails("review", "old", "labels.csv")
    labels(*rows[:2])
    run.done("review", "old", "labels.csv")
    assert [row.literal for row in Knowledge(Path("old")).facts()] == ["c. 1890", "19th century", "1780"]


def test_a_decision_by_name_is_about_each_fact_of_the_name(run: Command) -> None:
    written(Path("two"), [fact(0, BORDERS, "Congo", 0.6, object_id=qid) for qid in ("Q971", "Q974")])
    labels("country-borders,subject 0,,congo,,right")
    run.done("review", "two", "labels.csv")
    assert [row.confidence for row in Knowledge(Path("two")).facts()] == [1.0, 1.0]
    labels("country-borders,subject 0,,Congo,Q974,wrong")
    run.done("review", "two", "labels.csv", "--reviewer", "Bob")
    assert [row.object_id for row in Knowledge(Path("two")).facts()] == ["Q971"]


@pytest.mark.parametrize(
    "row",
    [
        "Nowhere,Q77,right",
        "nowhere,,right,,Q77",
        "nowhere,,right,Nowhere,Q77",
        "nowhere,,wrong,nowhere,Q77",
    ],
)
def test_a_fact_without_a_qid_takes_that_of_its_decision_in_every_reader(run: Command, row: str) -> None:
    labels(f"country-borders,subject 1,Q2,{row}")
    run.done("review", "kb", "labels.csv", "--reviewer", "Ann")
    labels("country-borders,subject 1,Q2,nowhere,,right")  # of another person, and of the same one again
    for reviewer in ("Bob", "Ann"):
        run.done("review", "kb", "labels.csv", "--reviewer", reviewer)
    (found,) = (one for one in Knowledge(Path("kb")).facts() if one.subject == "subject 1" and one.relation == BORDERS)
    assert (found.object_id, found.object_node.node, found.confidence) == ("Q77", "Q77", 1.0)
    Path("known.csv").write_text("subject,property,object\nQ2,P47,Q12\n")
    run.done("export", "kb", "--format", "quickstatements", "--known", "known.csv", "--out", "qs")
    assert ("Q2", "P47", "Q77") in [one[:3] for one in version_1(Path("qs/review-00001.txt").read_text())]
    for form in ("csv", "graphml", "statements", "ntriples", "wikidata-json", "turtle", "jsonld", "parquet"):
        run.done("export", "kb", "--format", form, "--least", "0.9", "--out", f"kb.{form}")
        assert b"Q77" in Path(f"kb.{form}").read_bytes(), form
    assert "Q77" in run.done("query", "kb", "SELECT ?o { wd:Q2 wdt:P47 ?o }")[0]
    run.done("report", "kb")
    pieces = [re.search(r'","([^"]+)"', path.read_text()) for path in Path("kb/report/facts").iterdir()]
    assert any(b'"Q77"' in gzip.decompress(base64.b64decode(one[1])) for one in pieces if one)


def test_a_qid_of_a_decision_makes_no_second_fact_and_none_that_a_person_called_wrong(run: Command) -> None:
    borders = [
        fact(0, BORDERS, "Congo", 0.9),
        fact(0, BORDERS, "Kongo", 0.6, object_id="Q974"),
        fact(1, BORDERS, "Niger", 0.5, object_id="Q10"),
        fact(2, BORDERS, "Mali", 0.5),
    ]
    written(Path("two"), borders)
    labels("country-borders,subject 0,,Congo,Q974,right", "country-borders,subject 1,,Niger,Q1032,right")
    run.done("review", "two", "labels.csv")
    assert {(row.subject, row.object_id) for row in Knowledge(Path("two")).facts()} == {
        ("subject 0", "Q974"),
        ("subject 1", "Q10"),  # another thing of this name
        ("subject 1", "Q1032"),
        ("subject 2", None),
    }
    labels("country-borders,subject 2,,Mali,Q11,wrong,,,,,Ann,2026-11-02")
    run.done("review", "two", "labels.csv")
    labels("country-borders,subject 2,,Mali,,right,,,,,Bob,2026-11-03")
    run.done("review", "two", "labels.csv")
    assert [row.object_id for row in Knowledge(Path("two")).facts() if row.reviewed_by == "Bob"] == [None]


def of(row: int, object_: str, name: str, qid: str | None) -> dict[str, Any]:
    return fact(row, CHILDREN, object_, 0.6, literal=object_, subject=name, subject_id=qid)


def test_a_name_that_several_subjects_have_is_refused_and_a_qid_means_one(run: Command) -> None:
    written(Path("two"), [of(0, "4", "Ann Lee", "Q11"), of(1, "5", "Ann Lee", "Q12"), of(2, "6", "Bo", None)])
    labels("children,Bo,,6,,right", "children,ann lee,,4,,wrong,7")
    told = run.fails("review", "two", "labels.csv")
    line = "labels.csv, line 3, field subject: 'ann lee' is the name of 2 subjects of this base: give the subject_id, "
    assert told == f"error: {line}Q11 or Q12\n"
    assert not Path("two/reviews.jsonl").exists()
    labels("children,Ann Lee,Q11,4,,wrong,7")
    run.done("review", "two", "labels.csv")
    assert [row.literal for row in Knowledge(Path("two")).facts()] == ["7", "5", "6"]


@pytest.mark.parametrize("other", ["Ann Lee", "Ann Lee!"])
def test_a_decision_is_about_the_subject_of_its_qid_or_spelling_alone(run: Command, other: str) -> None:
    written(Path("two"), [of(0, "4", "Ann Lee", "Q11"), of(1, "5", other, None)])
    labels("children,Ann Lee,Q11,,,,7")
    run.done("review", "two", "labels.csv")
    assert [row.literal for row in Knowledge(Path("two")).facts()] == ["7", "5"]
    labels(f"children,{other},,,,,8")
    if other == "Ann Lee":
        assert "give the subject_id, Q11\n" in run.fails("review", "two", "labels.csv")
    else:
        run.done("review", "two", "labels.csv")
        assert [row.literal for row in Knowledge(Path("two")).facts()] == ["7", "8"]


def test_subjects_of_one_name_without_qids_cannot_be_told_apart(run: Command) -> None:
    written(Path("two"), [of(0, "4", "Ann Lee", None), of(1, "5", "Ann Lee", None)])
    labels("children,Ann Lee,,,,,7")
    assert "none of them has a QID, so build with a QID for each" in run.fails("review", "two", "labels.csv")


def test_a_decision_by_name_stays_with_its_subject_when_another_of_the_name_comes(run: Command) -> None:
    written(Path("a"), [of(0, "4", "Ann Lee", "Q11")])
    written(Path("b"), [of(0, "4", "Ann Lee", "Q11"), of(1, "5", "Ann Lee", "Q12")])
    labels("children,Ann Lee,,,,,7,,,,Ann,2026-11-02")
    run.done("review", "a", "labels.csv")
    decisions = Path("a/reviews.jsonl").read_text()
    Path("b/reviews.jsonl").write_text(decisions)
    assert [row.literal for row in Knowledge(Path("b")).facts()] == ["7", "5"]
    Path("b/reviews.jsonl").write_text(decisions.replace('"subject_id":"Q11",', ""))  # of a base without QIDs
    assert [row.literal for row in Knowledge(Path("b")).facts()] == ["4", "5"]
    assert "several subjects have, first children of 'Ann Lee'" in run.done("review", "b")[1]
